"""A look at Assumption 2 in data: is every group's own best model better on it than on any other group?"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.claims.intervals import wilson
from evenhand.errors import InputError


class _Learner(Protocol):
    def fit(self, X: Any, y: Any, *, previous: Any = None, seed: int = 0) -> Any: ...


@dataclass(frozen=True)
class Probe:
    """Errors of models trained on one group alone, and what they say about Assumption 2.

    Attributes:
        groups: the names, in the order of the arrays.
        errors: errors[i, j] is the error on group j of the model trained on group i alone.
        counts: test examples behind each column.
        fails: pairs (hard, easy) where the model trained on `hard` is surely better on `easy`.
        unclear: pairs that the data cannot decide.
    """

    groups: tuple[str, ...]
    errors: NDArray[np.float64]
    counts: NDArray[np.int64]
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


def probe(learner: _Learner, X: ArrayLike, y: ArrayLike, groups: ArrayLike, *, seed: int = 0) -> Probe:
    """Train on half of each group, test on the other half of all; 95 % Wilson intervals decide."""
    features, labels, names = np.asarray(X), np.asarray(y), np.asarray(groups).astype(str)
    known = tuple(sorted(set(names.tolist())))
    rng = np.random.default_rng(seed)
    halves = [np.array_split(rng.permutation(np.nonzero(names == g)[0]), 2) for g in known]
    if min(len(half) for pair in halves for half in pair) < 1:
        raise InputError("every group needs at least 2 examples, one to train on and one to test on")
    models = [learner.fit(features[train], labels[train], seed=seed) for train, _ in halves]
    wrong = np.array([[np.sum(f.predict(features[test]) != labels[test]) for _, test in halves] for f in models])
    counts = np.array([len(test) for _, test in halves])
    low, high = wilson(wrong, np.broadcast_to(counts, wrong.shape))
    own_low, own_high = np.diag(low)[:, None], np.diag(high)[:, None]
    apart = ~np.eye(len(known), dtype=bool)
    return Probe(
        groups=known,
        errors=np.asarray(wrong / counts),
        counts=counts,
        fails=_pairs(known, apart & (own_low > high)),
        unclear=_pairs(known, apart & ~(own_low > high) & ~(own_high < low)),
    )


def _pairs(groups: tuple[str, ...], where: NDArray[np.bool_]) -> tuple[tuple[str, str], ...]:
    return tuple((groups[i], groups[j]) for i, j in np.argwhere(where))
