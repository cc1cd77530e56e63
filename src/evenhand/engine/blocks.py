"""Rows of T trials with two classes: one dense array, or CSR rows trial by trial."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.engine.growing import SparseRows, enlarged
from evenhand.learners.csr import Csr
from evenhand.learners.objectives import BinaryBlock, Floats, Ints, SparseBlock, margins

__all__ = ["DenseBlock", "SparseBlocks"]

Counts = NDArray[np.int64]
Pick = Any  # an index of trials: a slice where that spares a copy, else their numbers


class DenseBlock:
    """Rows (T, p, capacity), features first, with a trailing feature 1, times their signs."""

    def __init__(self, trials: int, features: int, capacity: int) -> None:
        self.n, self.size = np.zeros(trials, dtype=np.int64), np.zeros((trials, features + 1))
        self._rows = np.empty((trials, features + 1, capacity))

    def append(self, trial: Counts, X: Floats, rows: Ints, sign: Floats) -> Counts:
        """Add some rows of X, in their order within each trial; where they went."""
        arrived = np.bincount(trial, minlength=len(self.n))
        at, X = places(self.n, trial, arrived), X[rows]
        self._rows = enlarged(self._rows, int((self.n + arrived).max()), axis=2)
        self._rows[trial, :-1, at], self._rows[trial, -1, at] = X * sign[:, None], sign
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

    def joined(self, other: DenseBlock, trials: Ints, sign: Floats, C: float, scale: Floats) -> BinaryBlock:
        """The objective of all rows of these trials, here and in the other block, those times their signs."""
        one, two = int(self.n[trials[0]]), sign.shape[1]
        rows = (self.part(trials, 0, one), other.part(trials, 0, two) * sign[:, None, :])
        return BinaryBlock(np.concatenate(rows, axis=2), C, scale)

    def part(self, pick: Pick, first: int, last: int) -> Floats:
        """Rows first … last − 1 of some trials, (k, p, rows)."""
        return self._rows[pick, :, first:last]

    def margins(self, pick: Pick, theta: Floats, first: int, last: int) -> Floats:
        """Scores of rows first … last − 1 of some trials, (k, rows)."""
        return margins(theta, self.part(pick, first, last))


class SparseBlocks:
    """CSR rows of T trials with a trailing 1, times their signs."""

    def __init__(self, trials: int, features: int, capacity: int) -> None:
        self.n = np.zeros(trials, dtype=np.int64)
        self._trials = [SparseRows(features) for _ in range(trials)]

    @property
    def size(self) -> Floats:
        """Sums of the columns' absolute values, (T, p)."""
        return np.stack([rows.size for rows in self._trials])

    def append(self, trial: Counts, X: sparse.csr_array, rows: Ints, sign: Floats) -> Counts:
        """Add some rows of X, in their order within each trial; where they went."""
        arrived = np.bincount(trial, minlength=len(self.n))
        at = places(self.n, trial, arrived)
        for t, row, s in zip(trial.tolist(), rows.tolist(), sign.tolist(), strict=True):
            self._trials[t].append(X, row, s)
        self.n += arrived
        return at

    def problem(self, pick: Pick, n: int, C: float, scale: Floats) -> SparseBlock:
        """The objective of some trials."""
        return SparseBlock([rows.csr() for rows in self._picked(pick)], C, scale)

    def joined(self, other: SparseBlocks, trials: Ints, sign: Floats, C: float, scale: Floats) -> SparseBlock:
        """The objective of all rows of these trials, here and in the other block, those times their signs."""
        both = []
        for mine, others, s in zip(self._picked(trials), other._picked(trials), sign, strict=True):
            signed = sparse.diags_array(s) @ others.rows()
            both.append(Csr.of(sparse.csr_array(sparse.vstack((mine.rows(), signed)))))
        return SparseBlock(both, C, scale)

    def part(self, pick: Pick, first: int, last: int) -> Floats:
        """Rows first … last − 1 of some trials made dense, (k, p, rows)."""
        return np.stack([rows.dense(first, last).T for rows in self._picked(pick)])

    def margins(self, pick: Pick, theta: Floats, first: int, last: int) -> Floats:
        """Scores of rows first … last − 1 of some trials, (k, rows)."""
        found = np.zeros((len(theta), last - first))
        for out, rows, w in zip(found, self._picked(pick), theta, strict=True):
            rows.csr(first).add_product(w, out)
        return found

    def _picked(self, pick: Pick) -> list[SparseRows]:
        return self._trials[pick] if isinstance(pick, slice) else [self._trials[t] for t in pick]


def places(n: Counts, trial: Counts, arrived: Counts) -> Counts:
    """Where the rows of a delivery go: behind the n rows each trial has, in their order."""
    at = n[trial]
    if arrived.max() > 1:
        order = np.argsort(trial, kind="stable")
        at[order] += np.arange(len(trial)) - (np.cumsum(arrived) - arrived)[trial[order]]
    return at
