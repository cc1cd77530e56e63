"""CSR rows of T trials with two classes; a separate module because its imports take a moment."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from evenhand.arrays import Floats, Indices, Ints, Positions
from evenhand.engine.memories.dense_blocks import Pick, places
from evenhand.engine.memories.growable import enlarged
from evenhand.learners.logistic.csr import Csr
from evenhand.learners.logistic.objectives import SparseBlock
from evenhand.learners.logistic.sparse_refit import BLOCK, append_rows, refit_sparse, write_margins


class SparseBlocks:
    """CSR rows of T trials with a trailing 1, times their signs; laid out as `learners.logistic.sparse_refit` reads them."""

    compiled = True

    def __init__(self, trials: int, features: int, capacity: int) -> None:
        self.n, self.features = np.zeros(trials, dtype=np.int64), features
        self._start = np.zeros((trials, capacity + 1), dtype=np.int32)
        self._column, self._values = np.empty((trials, 0), dtype=np.int32), np.empty((trials, 0))
        self.size = np.zeros((trials, features + 1))

    def append(self, trial: Ints, X: sparse.csr_array, rows: Positions, sign: Floats) -> Ints:
        """Add some rows of X, in their order within each trial; returns where they went."""
        arrived = np.bincount(trial, minlength=len(self.n))
        at = places(self.n, trial, arrived)
        # one entry more a row, for the trailing 1 of the intercept
        entries = np.bincount(trial, weights=np.diff(X.indptr)[rows] + 1, minlength=len(self.n)).astype(np.int64)
        self._start = enlarged(self._start, int((self.n + arrived).max()) + 1, axis=1)
        needed = int((self._ends() + entries).max())
        self._column, self._values = enlarged(self._column, needed, axis=1), enlarged(self._values, needed, axis=1)
        parts = (X.indptr, X.indices, X.data, self.features)
        append_rows(trial, rows, sign, *parts, self.n, self._start, self._column, self._values, self.size)
        return at

    def refit_sparse(
        self,
        trials: Positions,
        fitted: Ints,
        C: float,
        tol: float,
        step: float,
        theta: Floats,
        inverse: Floats,
        norm: Floats,
    ) -> None:
        """Bring fitted trials to the optimum with their new rows, in place; the norm is infinite where that failed."""
        # a gradient's size is measured against the data's own: the same tolerance then serves features of any unit
        scale = C * np.maximum(self.n[:, None], self.size)[trials]
        rows, shape = (self._start, self._column, self._values), (3, theta.shape[1])
        # made here once for all trials: compiled code would allocate it trial by trial
        room = (np.empty(shape), np.empty(shape, dtype=inverse.dtype), np.empty(BLOCK))
        refit_sparse(trials, self.n, fitted, *rows, scale, C, tol, step, theta, inverse, norm, *room)

    def problem(self, pick: Pick, n: int, C: float, scale: Floats) -> SparseBlock:
        """The objective of some trials."""
        return SparseBlock([self._csr(t) for t in self._picked(pick)], C, scale)

    def joined(self, other: SparseBlocks, trials: Positions, sign: Floats, C: float, scale: Floats) -> SparseBlock:
        """The objective of all rows of these trials, here and in the other block; those get their signs here."""
        both = []
        for t, s in zip(trials.tolist(), sign, strict=True):
            signed = sparse.diags_array(s) @ other._csr(t).matrix()
            both.append(Csr.of(sparse.csr_array(sparse.vstack((self._csr(t).matrix(), signed)))))
        return SparseBlock(both, C, scale)

    def part(self, pick: Pick, first: int, last: int) -> Floats:
        """Rows first … last − 1 of some trials made dense, (k, p, rows)."""
        return np.stack([self._csr(t).matrix()[first:last].toarray().T for t in self._picked(pick)])

    def margins(self, pick: Pick, theta: Floats, first: int, last: int) -> Floats:
        """Scores of rows first … last − 1 of some trials, (k, rows)."""
        found = np.empty((len(theta), last - first))
        write_margins(self._picked(pick), first, self._start, self._column, self._values, theta, found)
        return found

    def _csr(self, trial: int) -> Csr:
        arrays = (self._start[trial], self._column[trial], self._values[trial])
        return Csr(int(self.n[trial]), self.features + 1, *arrays)

    def _ends(self) -> Indices:
        return self._start[np.arange(len(self.n)), self.n]

    def _picked(self, pick: Pick) -> Positions:
        return np.arange(len(self.n))[pick]
