"""Rows that grow one by one and are read as one matrix without copying."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.learners.objectives import Floats, Rows

__all__ = ["DenseRows", "GrowingSet", "SparseRows", "enlarged"]

_GROWTH = 1.5  # at a move old and new stand side by side: 2.5 times the rows held


def enlarged(array: NDArray[Any], size: int, axis: int = 0, growth: float = _GROWTH) -> NDArray[Any]:
    """The array with room for at least `size` along the axis; what is beyond the old end is not set."""
    if size <= array.shape[axis]:
        return array
    shape = list(array.shape)
    shape[axis] = max(size, int(growth * array.shape[axis]), 16)
    larger = np.empty(shape, dtype=array.dtype)
    larger[tuple(slice(0, length) for length in array.shape)] = array
    return larger


class DenseRows:
    """Dense rows with a trailing 1, times a sign; `size` holds the sums of the columns' absolute values."""

    def __init__(self, features: int) -> None:
        self.n, self.size = 0, np.zeros(features + 1)
        self._rows = np.empty((0, features + 1))

    def append(self, X: Floats, row: int, sign: float = 1.0) -> None:
        """Add one row of X."""
        self._rows = enlarged(self._rows, self.n + 1)
        self._rows[self.n, :-1], self._rows[self.n, -1] = X[row], 1.0
        self.size += np.abs(self._rows[self.n])
        self._rows[self.n] *= sign
        self.n += 1

    def rows(self, start: int = 0) -> Floats:
        """Rows from `start` on; a view."""
        return self._rows[start : self.n]


class SparseRows:
    """CSR rows with a trailing 1, times a sign; `size` holds the sums of the columns' absolute values.

    `matrix` and its transpose `columns` are made anew only when the arrays move: rows not there yet are empty ones.
    """

    def __init__(self, features: int) -> None:
        self.n, self.size, self.features = 0, np.zeros(features + 1), features
        self._values, self._column = np.empty(0), np.empty(0, dtype=np.int32)
        self._start = np.zeros(1, dtype=np.int32)
        self._make()

    def _make(self) -> None:
        n, p = len(self._start) - 1, self.features + 1
        self.matrix, self.columns = sparse.csr_array((n, p)), sparse.csc_array((p, n))
        for view in (self.matrix, self.columns):
            # Set one by one: the constructor would cut the arrays to the values there are now.
            view.data, view.indices, view.indptr = self._values, self._column, self._start

    def append(self, X: sparse.csr_array, row: int, sign: float = 1.0) -> None:
        """Add one row of X."""
        first, last = int(X.indptr[row]), int(X.indptr[row + 1])
        begin = int(self._start[self.n])
        end = begin + last - first + 1
        if end > len(self._values) or self.n + 2 > len(self._start):
            self._values, self._column = enlarged(self._values, end), enlarged(self._column, end)
            self._start = enlarged(self._start, self.n + 2, growth=1.1)  # every pass reads all of it
            self._start[self.n + 1 :] = begin
            self._make()
        values, column = self._values[begin:end], self._column[begin:end]
        values[:-1], column[:-1] = X.data[first:last], X.indices[first:last]
        values[-1], column[-1] = 1.0, self.features
        np.add.at(self.size, column, np.abs(values))
        values *= sign
        self._start[self.n + 1 :] = end
        self.n += 1

    def dense(self, first: int, last: int) -> Floats:
        """Rows first … last − 1 made dense."""
        start = self._start[first : last + 1]
        made = np.zeros((last - first, self.features + 1))
        row = np.repeat(np.arange(last - first), np.diff(start))
        made[row, self._column[start[0] : start[-1]]] = self._values[start[0] : start[-1]]
        return made

    def rows(self, start: int = 0) -> sparse.csr_array:
        """Rows from `start` on; a view of the values."""
        first, last = self._start[start], self._start[self.n]
        parts = (self._values[first:last], self._column[first:last], self._start[start : self.n + 1] - first)
        return sparse.csr_array(parts, shape=(self.n - start, self.features + 1))


class GrowingSet:
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

    def y(self, start: int = 0) -> NDArray[np.int64]:
        """Positions of the labels from `start` on."""
        return self._y[start : self.n]

    def group(self, start: int = 0) -> NDArray[np.int64]:
        """Groups from `start` on."""
        return self._group[start : self.n]
