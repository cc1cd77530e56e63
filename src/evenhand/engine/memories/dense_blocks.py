"""Dense rows of T trials with two classes, in one array; `sparse_blocks` is for sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import Floats, Ints, Positions
from evenhand.engine.memories.growable import enlarged
from evenhand.learners.logistic.objectives import BinaryBlock, margins

Pick = Any  # which trials: a slice if that avoids a copy, else their numbers


class DenseBlock:
    """Rows (T, p, capacity), features first, with a trailing feature 1, times their signs."""

    compiled = False

    def __init__(self, trials: int, features: int, capacity: int) -> None:
        self.n, self.size = np.zeros(trials, dtype=np.int64), np.zeros((trials, features + 1))
        # rows last, so that a pass over all rows of a feature reads memory in order
        self._rows = np.empty((trials, features + 1, capacity))

    def append(self, trial: Ints, X: Floats, rows: Positions, sign: Floats) -> Ints:
        """Add some rows of X, in their order within each trial; returns where they went."""
        arrived = np.bincount(trial, minlength=len(self.n))
        at, X = places(self.n, trial, arrived), X[rows]
        self._rows = enlarged(self._rows, int((self.n + arrived).max()), axis=2)
        self._rows[trial, :-1, at], self._rows[trial, -1, at] = X * sign[:, None], sign
        # += with repeated indices counts only the last; add.at counts all, and is slower
        if arrived.max() > 1:
            np.add.at(self.size[:, :-1], trial, np.abs(X))
        else:
            self.size[trial, :-1] += np.abs(X)
        self.n += arrived
        self.size[:, -1] = self.n
        return at

    def problem(self, pick: Pick, n: int, C: float, scale: Floats) -> BinaryBlock:
        """The objective of trials that all have n rows."""
        return BinaryBlock(self._rows[pick, :, :n], C, scale)

    def joined(self, other: DenseBlock, trials: Positions, sign: Floats, C: float, scale: Floats) -> BinaryBlock:
        """The objective of all rows of these trials, here and in the other block; those get their signs here."""
        # training rows are stored times their sign; validation rows are not, because scoring needs them as they are
        one, two = int(self.n[trials[0]]), sign.shape[1]
        rows = (self.part(trials, 0, one), other.part(trials, 0, two) * sign[:, None, :])
        return BinaryBlock(np.concatenate(rows, axis=2), C, scale)

    def part(self, pick: Pick, first: int, last: int) -> Floats:
        """Rows first … last − 1 of some trials, (k, p, rows)."""
        return self._rows[pick, :, first:last]

    def margins(self, pick: Pick, theta: Floats, first: int, last: int) -> Floats:
        """Scores of rows first … last − 1 of some trials, (k, rows)."""
        return margins(theta, self.part(pick, first, last))


def places(n: Ints, trial: Ints, arrived: Ints) -> Ints:
    """Where the rows of a delivery go: behind the n rows each trial has, in their order."""
    at = n[trial]
    if arrived.max() > 1:
        order = np.argsort(trial, kind="stable")
        # a stable sort puts a trial's rows together: their place within the trial is the distance from its first one
        at[order] += np.arange(len(trial)) - (np.cumsum(arrived) - arrived)[trial[order]]
    return at
