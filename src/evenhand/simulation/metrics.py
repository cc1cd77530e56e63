"""Metrics of results: the worst-off group, the gap, shares, means with standard deviations, paired differences.

Every other module asks here which group is worst off: the one with the lowest accuracy, or with the highest risk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from evenhand.arrays import Floats, Ints
from evenhand.claims.intervals import paired_difference

__all__ = [
    "Gain", "gap", "is_risk", "paired", "paired_by_trial", "share", "spread", "worst", "worst_by", "worst_first",
]  # fmt: skip


def worst(accuracy: Floats) -> Floats:
    """Accuracy of the worst group, which is the lowest on the last axis.

    >>> worst(np.array([[0.8, 0.9], [0.7, 0.6]])).tolist()
    [0.8, 0.6]
    """
    return np.asarray(accuracy.min(axis=-1))


def is_risk(column: str) -> bool:
    """Whether a column holds a risk, whose highest value is the worst, and not an accuracy.

    >>> is_risk("final_test_risk"), is_risk("test_accuracy")
    (True, False)
    """
    return column.endswith("risk")


def worst_by(frame: pd.DataFrame, keys: Sequence[str], column: str) -> pd.Series:
    """Accuracy or risk of the worst group in every combination of the keys; groups that were not tested do not count."""
    groups = frame.groupby(list(keys), observed=True)[column]
    found: pd.Series = groups.max() if is_risk(column) else groups.min()
    return found


def worst_first(accuracy: Sequence[float | None]) -> list[int]:
    """The positions of the groups, the worst one first, those that were not tested last.

    >>> worst_first([0.9, None, 0.7])
    [2, 0, 1]
    """
    # infinite, not 0: a group that nobody tested must not look worst off
    known = [math.inf if value is None else value for value in accuracy]
    return sorted(range(len(known)), key=known.__getitem__)


def gap(accuracy: Floats) -> Floats:
    """Accuracy of the best group minus that of the worst, on the last axis."""
    return np.asarray(accuracy.max(axis=-1) - worst(accuracy))


def share(counts: Ints) -> Floats:
    """Every group's share of the examples, on the last axis; 0 before the first one.

    >>> share(np.array([[3, 1], [0, 0]])).tolist()
    [[0.75, 0.25], [0.0, 0.0]]
    """
    return np.asarray(counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1))


def spread(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation over trials, the last axis; the deviation of a single trial is NaN."""
    # dividing by n − 1 gives NaN for one trial
    several = min(1, values.shape[-1] - 1)
    return np.asarray(values.mean(axis=-1)), np.asarray(values.std(axis=-1, ddof=several))


class Gain(tuple[float, float, float]):
    """A paired difference: mean and the ends of its 95 % interval, which are infinite for a single trial."""

    def __str__(self) -> str:
        mean, low, high = self
        if np.isinf(low):
            return f"{mean:+.4f} in the one trial"
        return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"

    @property
    def above(self) -> bool:
        """Whether the whole interval is above 0."""
        return self[1] > 0

    def within(self, margin: float) -> bool:
        """Whether the whole interval is closer to 0 than a margin."""
        return -margin < self[1] and self[2] < margin


def paired(a: Floats, b: Floats) -> Gain:
    """a − b over the same trials."""
    if len(a) < 2:
        return Gain((float(np.mean(a - b)), -np.inf, np.inf))
    mean, low, high, _ = paired_difference(a, b)
    return Gain((mean, low, high))


def paired_by_trial(a: pd.Series, b: pd.Series) -> tuple[Gain | None, int]:
    """a − b over the trials that both have, and how many these are; None if there are none."""
    # trials that both have: a rule that was interrupted earlier must not be compared on easier ones
    both = pd.concat([a, b], axis=1, join="inner").dropna().to_numpy()
    return paired(both[:, 0], both[:, 1]) if len(both) else None, len(both)
