"""Example sets that grow row by row and are read as one matrix without copying."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evenhand.learners.objectives import Floats, Rows

__all__ = ["GrowingSet", "enlarged"]

_GROWTH = 1.5  # at a move old and new stand side by side: 2.5 times the rows held


def enlarged(array: NDArray[Any], size: int, axis: int = 0) -> NDArray[Any]:
    """The array with room for at least `size` along the axis; what is beyond the old end is not set."""
    if size <= array.shape[axis]:
        return array
    shape = list(array.shape)
    shape[axis] = max(size, int(_GROWTH * array.shape[axis]), 16)
    larger = np.empty(shape, dtype=array.dtype)
    larger[tuple(slice(0, length) for length in array.shape)] = array
    return larger


class GrowingSet:
    """Rows with a trailing 1, dense or CSR, with the label's position and the group of each.

    `size` holds the sums of the columns' absolute values, `by_group` the number of rows of each group.
    """

    def __init__(self, features: int, groups: int, *, is_sparse: bool) -> None:
        self.features, self.is_sparse, self.n = features, is_sparse, 0
        self._y, self._group = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._dense = np.empty((0, features + 1))
        self._values, self._columns = np.empty(0), np.empty(0, dtype=np.int32)
        self._starts = np.zeros(1, dtype=np.int32)
        self.size = np.zeros(features + 1)
        self.by_group = np.zeros(groups, dtype=np.int64)

    def append(self, X: Any, row: int, y: int, group: int) -> None:
        """Add one row of X."""
        n = self.n
        self._y, self._group = enlarged(self._y, n + 1), enlarged(self._group, n + 1)
        self._y[n], self._group[n] = y, group
        self.by_group[group] += 1
        if self.is_sparse:
            self._append_sparse(X.data, X.indices, int(X.indptr[row]), int(X.indptr[row + 1]))
        else:
            self._dense = enlarged(self._dense, n + 1)
            self._dense[n, :-1], self._dense[n, -1] = X[row], 1.0
            self.size += np.abs(self._dense[n])
        self.n = n + 1

    def _append_sparse(self, values: Floats, columns: NDArray[Any], first: int, last: int) -> None:
        start = int(self._starts[self.n])
        end = start + last - first
        self._values, self._columns = enlarged(self._values, end + 1), enlarged(self._columns, end + 1)
        self._values[start:end], self._columns[start:end] = values[first:last], columns[first:last]
        self._values[end], self._columns[end] = 1.0, self.features
        np.add.at(self.size, self._columns[start : end + 1], np.abs(self._values[start : end + 1]))
        self._starts = enlarged(self._starts, self.n + 2)
        self._starts[self.n + 1] = end + 1

    def rows(self, start: int = 0) -> Rows:
        """Rows from `start` on, with their trailing 1; a view."""
        if not self.is_sparse:
            return self._dense[start : self.n]
        first, last = self._starts[start], self._starts[self.n]
        starts = self._starts[start : self.n + 1] - first if start else self._starts[: self.n + 1]
        parts = (self._values[first:last], self._columns[first:last], starts)
        return sparse.csr_array(parts, shape=(self.n - start, self.features + 1))

    def y(self, start: int = 0) -> NDArray[np.int64]:
        """Positions of the labels from `start` on."""
        return self._y[start : self.n]

    def group(self, start: int = 0) -> NDArray[np.int64]:
        """Groups from `start` on."""
        return self._group[start : self.n]
