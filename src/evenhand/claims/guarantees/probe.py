"""Assumption 2 in data: is every group's own best model better on it than on any other group?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, Ints, Mask
from evenhand.claims.guarantees.measured import Measured
from evenhand.claims.intervals import wilson
from evenhand.risks import Risk


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
    learner: Any,
    X: Any,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    risk: str | Risk = "error",
    positive: Any = None,
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
