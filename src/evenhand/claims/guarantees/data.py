"""What labelled examples say: whether Assumption 2 holds in them (`probe`), and the front of group risks (`pareto`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.arrays import Floats, Ints, Mask, Positions, Values, take_rows
from evenhand.claims.intervals import wilson
from evenhand.errors import InputError
from evenhand.learners import as_learner
from evenhand.learners.weights import fit_learner, takes_weights
from evenhand.notation import JsonObject
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

    def _group_losses(self, model: object, rows: Positions, z: int) -> Floats:
        found = self.measure.of_model(model, take_rows(self.X, rows), self.y[rows])
        if not found.relevant.any():
            raise InputError(
                f"group {self.groups[z]!r} has no example that the risk {self.measure.risk.title} is about"
            )
        return np.asarray(found.values[found.relevant])


@dataclass(frozen=True)
class Probe:
    """Risks of models trained on one group alone, and what they say about Assumption 2.

    Attributes:
        groups: the names, in the order of the arrays.
        risks: risks[i, j] is the risk on group j of the model trained on group i alone.
        counts: test examples behind each column.
        fails: pairs (hard, easy) where the model trained on `hard` is surely better on `easy`.
        unclear: pairs that the data cannot decide.
    """

    groups: tuple[str, ...]
    risks: Floats
    counts: Ints
    fails: tuple[tuple[str, str], ...]
    unclear: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        if self.fails:
            pairs = ", ".join(f"{hard} (even its own model does better on {easy})" for hard, easy in self.fails)
            return (
                f"Assumption 2 fails: {pairs}. More examples of such a group buy little; a rule with a trend term, "
                "optimistic:c1=0.1 (A_opt+), notices that."
            )
        if self.unclear:
            return f"Assumption 2 is undecided for {len(self.unclear)} pairs of groups: too few examples."
        return "Assumption 2 holds in these data."


def probe(
    learner: object,
    X: object,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    risk: str | Risk = "error",
    positive: object = None,
    seed: int = 0,
) -> Probe:
    """Train on half of each group alone and test on the other half of every group.

    Intervals of 95 % decide, Wilson's where losses are 0 or 1. It takes a fit for each group.
    """
    measured = Measured.of(learner, X, y, groups, risk=risk, positive=positive, seed=seed)
    m = measured.m
    losses = [measured.losses(np.eye(m)[z]) for z in range(m)]
    counts = np.array([len(values) for values in losses[0]])
    risks = np.array([[values.mean() for values in row] for row in losses])
    if all(np.isin(values, (0.0, 1.0)).all() for row in losses for values in row):
        low, high = wilson(risks * counts, np.broadcast_to(counts, risks.shape))
    else:
        spread = np.array([[values.std(ddof=1) if len(values) > 1 else np.inf for values in row] for row in losses])
        # a normal interval, because Wilson's is for errors; this is a look at data, no claim
        half = 1.96 * spread / np.sqrt(counts)
        low, high = risks - half, risks + half
    # disjoint intervals decide: a pair whose intervals overlap is undecided, not in order
    own_low, own_high = np.diag(low)[:, None], np.diag(high)[:, None]
    apart = ~np.eye(m, dtype=bool)
    return Probe(
        groups=measured.groups,
        risks=risks,
        counts=counts,
        fails=_pairs(measured.groups, apart & (own_low > high)),
        unclear=_pairs(measured.groups, apart & ~(own_low > high) & ~(own_high < low)),
    )


def _pairs(groups: tuple[str, ...], where: Mask) -> tuple[tuple[str, str], ...]:
    return tuple((groups[i], groups[j]) for i, j in np.argwhere(where))


@dataclass(frozen=True)
class Front:
    """Group risks of the best classifiers for many mixtures, and the mixture with the lowest worst-group risk.

    Attributes:
        groups: the names, in the order of the last axis.
        mixtures: the mixtures π that were tried, (k, m).
        risks: L(z, f_π), (k, m).
        risk: what was measured.
    """

    groups: tuple[str, ...]
    mixtures: Floats
    risks: Floats
    risk: str

    @property
    def fair(self) -> int:
        """The position of the fair mixture among those tried: it has the smallest worst-group risk."""
        return int(np.argmin(self.risks.max(axis=1)))

    @property
    def dominated(self) -> Floats:
        """How much better another classifier is for every group at once; 0 on the Pareto front (Property 1)."""
        # the least gain over the groups: above 0 only where the other one is better for all of them
        margin = (self.risks[:, None, :] - self.risks[None, :, :]).min(axis=-1)
        return np.asarray(np.maximum(margin.max(axis=1), 0.0))

    @property
    def slack(self) -> Floats:
        """How far f_π is from the best of all tried for its own mixture; 0 where it minimises π·L (Property 3)."""
        return np.asarray(np.sum(self.mixtures * self.risks, axis=1) - (self.mixtures @ self.risks.T).min(axis=1))

    def as_dict(self) -> JsonObject:
        """The front as plain values."""
        return {
            "groups": list(self.groups),
            "risk": self.risk,
            "mixtures": self.mixtures.tolist(),
            "risks": self.risks.tolist(),
            "fair": self.fair,
        }

    def __str__(self) -> str:
        shares = ", ".join(f"{g} {p:.2f}" for g, p in zip(self.groups, self.mixtures[self.fair], strict=True))
        risks = ", ".join(f"{g} {r:.3f}" for g, r in zip(self.groups, self.risks[self.fair], strict=True))
        return f"fair mixture of {len(self.mixtures)} tried: {shares}; {self.risk} there: {risks}"


def pareto(
    learner: object,
    X: object,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    risk: str | Risk = "error",
    positive: object = None,
    points: int = 40,
    seed: int = 0,
) -> Front:
    """The front from classifiers trained on half of each group for many mixtures, risks from the other half.

    `points` mixtures are spread over the simplex, and half as many more close in on the fair one. The fair mixture is
    selected by these risks: they are an indication, never a claim.
    """
    if points < 3:
        raise InputError(f"points must be 3 or more, got {points!r}")
    measured = Measured.of(learner, X, y, groups, risk=risk, positive=positive, seed=seed)
    mixtures = list(_spread(measured.m, points, seed))
    risks = [measured.risks(pi) for pi in mixtures]
    pi = mixtures[int(np.argmin([found.max() for found in risks]))]
    for step in range(points // 2 if measured.m > 1 else 0):
        # the least risk V(π) is concave and its slope is L(·, f_π): uphill, the larger risks gain share
        found = measured.risks(pi)
        # by ratio, so that shares stay positive; over the spread of the risks, so that the step does not hang on their unit
        pi = pi * np.exp(_pace(step) * (found - found.mean()) / max(float(np.ptp(found)), 1e-12))
        pi = pi / pi.sum()
        mixtures.append(pi)
        risks.append(measured.risks(pi))
    return Front(measured.groups, np.array(mixtures), np.array(risks), measured.measure.risk.title)


def _pace(step: int) -> float:
    # steps that shrink: near the fair mixture the worst group changes from step to step
    return 0.5 * 0.8**step


def _spread(m: int, points: int, seed: int) -> Floats:
    """Mixtures all over the inside of the simplex: evenly spaced for two groups, else random, equal shares first."""
    if m == 1:
        return np.ones((1, 1))
    if m == 2:
        # midpoints: at the corners one group has no share, and its risk is that of a model that never saw it
        first = (np.arange(points) + 0.5) / points
        return np.column_stack([first, 1 - first])
    drawn = np.random.default_rng(seed).dirichlet(np.ones(m), points - 1)
    return np.concatenate([np.full((1, m), 1 / m), drawn])
