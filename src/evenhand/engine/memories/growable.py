"""Rows that grow one by one and are read as one matrix without copying."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.arrays import Floats, Ints
from evenhand.learners.logistic.csr import Csr
from evenhand.learners.logistic.objectives import Rows

_Kind = TypeVar("_Kind", bound=np.generic)
_GROWTH = 1.5  # while an array moves, old and new exist side by side: 2.5 times the rows held


def enlarged(array: NDArray[_Kind], size: int, axis: int = 0) -> NDArray[_Kind]:
    """The array with room for at least `size` along the axis; entries beyond the old end are not initialised."""
    if size <= array.shape[axis]:
        return array
    shape = list(array.shape)
    shape[axis] = max(size, int(_GROWTH * array.shape[axis]), 16)
    larger = np.empty(shape, dtype=array.dtype)
    larger[tuple(slice(0, length) for length in array.shape)] = array
    return larger


class DenseRows:
    """Dense rows with a trailing 1; `size` holds the sums of the columns' absolute values."""

    def __init__(self, features: int) -> None:
        self.n, self.size = 0, np.zeros(features + 1)
        self._rows = np.empty((0, features + 1))

    def append(self, X: Floats, row: int) -> None:
        """Add one row of X."""
        self._rows = enlarged(self._rows, self.n + 1)
        self._rows[self.n, :-1], self._rows[self.n, -1] = X[row], 1.0
        self.size += np.abs(self._rows[self.n])
        self.n += 1

    def rows(self, start: int = 0) -> Floats:
        """Rows from `start` on, as a view."""
        return self._rows[start : self.n]


class SparseRows:
    """CSR rows (no column twice) with a trailing 1."""

    def __init__(self, features: int) -> None:
        self.n, self.features = 0, features
        self._size, self._sized = np.zeros(features + 1), 0
        self._values, self._column = np.empty(0), np.empty(0, dtype=np.int32)
        self._start = np.zeros(1, dtype=np.int32)

    def append(self, X: sparse.csr_array, row: int) -> None:
        """Add one row of X."""
        first, last = int(X.indptr[row]), int(X.indptr[row + 1])
        begin = int(self._start[self.n])
        end = begin + last - first
        # both arrays have one length, so one test serves
        if end >= len(self._values):
            self._values, self._column = enlarged(self._values, end + 1), enlarged(self._column, end + 1)
        self._start = enlarged(self._start, self.n + 2)
        self._values[begin:end], self._column[begin:end] = X.data[first:last], X.indices[first:last]
        self._values[end], self._column[end] = 1.0, self.features
        self.n += 1
        self._start[self.n] = end + 1

    @property
    def size(self) -> Floats:
        """Sums of the columns' absolute values, brought up to date when asked for."""
        new = slice(self._sized, int(self._start[self.n]))
        if new.start < new.stop:
            weight = np.abs(self._values[new])
            self._size += np.bincount(self._column[new], weights=weight, minlength=self.features + 1)
            self._sized = new.stop
        return self._size

    def rows(self, start: int = 0) -> sparse.csr_array:
        """Rows from `start` on; a view of the values."""
        begin = self._start[start]
        parts = (self._start[start : self.n + 1] - begin, self._column[begin:], self._values[begin:])
        return Csr(self.n - start, self.features + 1, *parts).matrix()


class GrowableSet:
    """Rows with the label's position and the group of each; `by_group` counts them."""

    def __init__(self, features: int, groups: int, *, is_sparse: bool) -> None:
        self._rows: DenseRows | SparseRows = SparseRows(features) if is_sparse else DenseRows(features)
        self._y, self._group = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.by_group = np.zeros(groups, dtype=np.int64)

    def append(self, X: Any, row: int, y: int, group: int) -> None:
        """Add one row of X."""
        n = self.n
        self._y, self._group = enlarged(self._y, n + 1), enlarged(self._group, n + 1)
        self._y[n], self._group[n] = y, group
        self.by_group[group] += 1
        self._rows.append(X, row)

    @property
    def n(self) -> int:
        """How many rows there are."""
        return self._rows.n

    @property
    def size(self) -> Floats:
        """Sums of the columns' absolute values."""
        return self._rows.size

    def rows(self, start: int = 0) -> Rows:
        """Rows from `start` on."""
        return self._rows.rows(start)

    def y(self, start: int = 0) -> Ints:
        """Positions of the labels from `start` on."""
        return self._y[start : self.n]

    def group(self, start: int = 0) -> Ints:
        """Groups from `start` on."""
        return self._group[start : self.n]
