"""Group risks of classifiers trained for a mixture, measured on labelled examples; probes and fronts use them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.arrays import Floats, Positions, Values, take_rows
from evenhand.errors import InputError
from evenhand.learners import as_learner
from evenhand.learners.weights import fit_learner, takes_weights
from evenhand.risks import Measure, Risk, as_risk


@dataclass
class Measured:
    """A learner and examples in two halves, group by group: one half trains f_π, the other measures L(z, f_π).

    Attributes:
        names: the group of every row.
        groups: the names, sorted; arrays run over the groups in this order.
        train, test: rows of each group.
    """

    learner: Any
    X: Any
    y: Values
    names: NDArray[np.str_]
    groups: tuple[str, ...]
    train: list[Positions]
    test: list[Positions]
    measure: Measure
    seed: int = 0
    _losses: dict[tuple[float, ...], list[Floats]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        learner: Any,
        X: Any,
        y: ArrayLike,
        groups: ArrayLike,
        *,
        risk: str | Risk = "error",
        positive: Any = None,
        seed: int = 0,
    ) -> "Measured":
        """Check the examples and split them in random halves."""
        labels, names = np.asarray(y), np.asarray(groups).astype(str)
        if len(labels) != len(names) or len(labels) != np.shape(X)[0]:
            raise InputError(
                f"X, y and groups need as many rows: {np.shape(X)[0]}, {len(labels)} and {len(names)} given"
            )
        known = tuple(sorted(set(names.tolist())))
        chance = np.random.default_rng(seed)
        # shuffled within the group: tables are often sorted by date or by label
        rows = [chance.permutation(np.nonzero(names == group)[0]) for group in known]
        halves = [tuple(np.array_split(r, 2)) for r in rows]
        if min(len(half) for pair in halves for half in pair) < 1:
            raise InputError("every group needs at least 2 examples, one to train on and one to test on")
        measure = as_risk(risk, positive).for_classes(np.unique(labels))
        if measure.strata > 1:
            raise InputError("the balanced error is not a mean over examples: probe 'fnr' and 'fpr', its two halves")
        train, test = ([pair[k] for pair in halves] for k in (0, 1))
        return cls(as_learner(learner), X, labels, names, known, train, test, measure, seed)

    @property
    def m(self) -> int:
        """Number of groups."""
        return len(self.groups)

    def fit(self, pi: Sequence[float]) -> Any:
        """f_π: fitted on rows weighted to the mixture, or resampled in its shares if the learner takes no weights."""
        used = [z for z, share in enumerate(pi) if share > 0]
        rows = np.concatenate([self.train[z] for z in used])
        chance = np.concatenate([np.full(len(self.train[z]), pi[z] / len(self.train[z])) for z in used])
        # weights sum to the number of rows, so that a learner's penalty weighs as much as without them
        weight = chance * len(rows) if len(used) > 1 and takes_weights(self.learner) else None
        if len(used) > 1 and weight is None:
            # the same draws for every mixture, so that risks differ by the mixture and not by chance
            rows = np.random.default_rng(self.seed).choice(rows, size=len(rows), p=chance / chance.sum())
        return fit_learner(
            self.learner, take_rows(self.X, rows), self.y[rows], self.names[rows], sample_weight=weight, seed=self.seed
        )

    def losses(self, pi: ArrayLike) -> list[Floats]:
        """The losses of f_π on the relevant test examples of every group."""
        # a key that does not tell 0.1 + 0.2 from 0.3: the same mixture must not be fitted twice
        shares = tuple(np.round(np.asarray(pi, dtype=float), 12).tolist())
        if shares not in self._losses:
            model = self.fit(shares)
            self._losses[shares] = [self._group_losses(model, rows, z) for z, rows in enumerate(self.test)]
        return self._losses[shares]

    def risks(self, pi: ArrayLike) -> Floats:
        """L(z, f_π) of every group."""
        return np.array([values.mean() for values in self.losses(pi)])

    def _group_losses(self, model: Any, rows: Positions, z: int) -> Floats:
        found = self.measure.of_model(model, take_rows(self.X, rows), self.y[rows])
        if not found.relevant.any():
            raise InputError(
                f"group {self.groups[z]!r} has no example that the risk {self.measure.risk.title} is about"
            )
        return np.asarray(found.values[found.relevant])
