"""Metrics of results: the worst-off group, the gap, shares, means with standard deviations.

Every other module asks here which group is worst off: the one with the lowest accuracy, or with the highest risk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from evenhand.arrays import Floats, Ints


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


def mean_and_sd(values: pd.Series) -> dict[str, float | None]:
    """Mean and standard deviation over trials as plain values; None where there are none."""
    found = np.asarray(values.dropna(), dtype=float)
    if not len(found):
        return {"mean": None, "sd": None}
    mean, sd = spread(found)
    return {"mean": float(mean), "sd": float(sd)}
