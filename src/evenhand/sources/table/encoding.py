"""From coded rows to features, trial by trial, scaled by the trial's own training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from evenhand.arrays import Floats, Ints
from evenhand.sources.table.columns import Coded

__all__ = ["Encoders", "Missing", "Scale", "fit_encoders"]

Missing = Literal["category", "median"]
Scale = Literal["standard", "minmax", "none"]


@dataclass(frozen=True)
class Encoders:
    """The encoders of T trials: numbers become (x − low)·scale, a category counts only where the trial has seen it.

    A missing number becomes `fill` before scaling; a separate position in the layout marks it as missing.
    """

    low: Floats
    scale: Floats
    fill: Floats
    seen: Floats
    dense: bool

    def encode(self, rows: Coded, trial: Ints) -> Any:
        """Features of these rows, each for its trial: an array, or CSR with the same number of entries in every row."""
        numbers = np.where(np.isnan(rows.numbers), self.fill[trial], rows.numbers)
        numbers = (numbers - self.low[trial]) * self.scale[trial]
        none = rows.categories < 0
        position = np.where(none, ~rows.categories, rows.categories)
        value = np.where(none, 0.0, self.seen[trial[:, None], position])
        k, p = numbers.shape
        d = self.seen.shape[1]
        if self.dense:
            features = np.zeros((k, d))
            features[:, :p] = numbers
            features[np.arange(k)[:, None], position] = value
            return features
        indices = np.empty((k, p + position.shape[1]), dtype=np.int32)
        indices[:, :p] = np.arange(p)
        indices[:, p:] = position
        data = np.concatenate([numbers, value], axis=1)
        indptr = np.arange(k + 1, dtype=np.int32) * np.int32(indices.shape[1])
        return sparse.csr_array((data.ravel(), indices.ravel(), indptr), shape=(k, d))

    def of(self, trial: int) -> Encoders:
        """The encoder of one trial, which becomes trial 0."""
        at = [trial]
        return Encoders(self.low[at], self.scale[at], self.fill[at], self.seen[at], self.dense)

    def fold(self, trials: Ints, coef: Floats, intercept: Floats) -> tuple[Floats, Floats, Floats]:
        """Linear rules of these trials, (k, d) and (k,), for unscaled rows; and what a missing number adds, (k, p)."""
        # test rows stay unscaled: the rule is moved into
        # their scale instead, one product for all trials
        p = self.low.shape[1]
        slopes = coef[:, :p] * self.scale[trials]
        folded = np.concatenate([slopes, coef[:, p:] * self.seen[trials, p:]], axis=1)
        return folded, intercept - (slopes * self.low[trials]).sum(axis=1), slopes * self.fill[trials]


def fit_encoders(training: Sequence[Coded], width: int, missing: Missing, dense: bool, scale: Scale) -> Encoders:
    """One encoder per trial, each from its own training rows alone."""
    p = training[0].numbers.shape[1]
    zero, factor, fill = np.zeros((3, len(training), p))
    seen = np.zeros((len(training), width))
    for t, rows in enumerate(training):
        zero[t], spread = _spread(rows.numbers, scale)
        # a constant column becomes 0, not a division by nothing
        factor[t] = np.divide(1.0, spread, out=np.zeros(p), where=spread > 0)
        # by default a missing number becomes 0 once scaled, and the indicator beside it carries what it means
        fill[t] = _median(rows.numbers, zero[t]) if missing == "median" else zero[t]
        # a category that no training row has would have a weight of pure chance
        seen[t] = np.bincount(rows.categories[rows.categories >= 0], minlength=width) > 0
    return Encoders(zero, factor, fill, seen, dense)


def _spread(numbers: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """What to subtract from and divide by in every column: mean and deviation, minimum and range, or 0 and 1."""
    if scale == "none":
        return np.zeros(numbers.shape[1]), np.ones(numbers.shape[1])
    low, high = _range(numbers)
    if scale == "minmax":
        return low, high - low
    mean, deviation = low.copy(), np.zeros_like(low)
    for j in np.flatnonzero(high > low):  # the deviation of equal numbers comes out as rounding, not as 0
        known = numbers[~np.isnan(numbers[:, j]), j]
        mean[j], deviation[j] = known.mean(), known.std()
    return mean, deviation


def _range(numbers: Floats) -> tuple[Floats, Floats]:
    """Smallest and largest value of every column; 0 and 0 for a column without values."""
    empty = np.isnan(numbers).all(axis=0)
    low = np.where(empty, 0.0, np.fmin.reduce(numbers, axis=0, initial=np.inf))
    return low, np.where(empty, 0.0, np.fmax.reduce(numbers, axis=0, initial=-np.inf))


def _median(numbers: Floats, otherwise: Floats) -> Floats:
    middle = otherwise.copy()
    gaps = np.isnan(numbers)
    for j in np.flatnonzero(~gaps.all(axis=0)):
        middle[j] = np.median(numbers[~gaps[:, j], j])
    return middle
