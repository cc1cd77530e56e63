"""CSR rows in arrays with room to grow, and their products with vectors, added to an array in place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from evenhand.arrays import Floats, Indices

# private to SciPy: a replacement below is used if a SciPy version moves them
_kernels = getattr(sparse, "_sparsetools", None)


def _csr_matvec(n: int, p: int, start: Any, column: Any, values: Any, x: Floats, out: Floats) -> None:
    out += sparse.csr_array((values, column, start), shape=(n, p)) @ x


def _csc_matvec(p: int, n: int, start: Any, row: Any, values: Any, x: Floats, out: Floats) -> None:
    out += sparse.csc_array((values, row, start), shape=(p, n)) @ x


# SciPy's own kernels, if they are found: for few rows, making a matrix costs more than the product itself
csr_matvec: Any = getattr(_kernels, "csr_matvec", _csr_matvec)
csc_matvec: Any = getattr(_kernels, "csc_matvec", _csc_matvec)


class Csr(NamedTuple):
    """n rows of width p: row i has `values[start[i]:start[i+1]]` in the columns `column[…]`; arrays may be longer."""

    n: int
    p: int
    start: Indices
    column: Indices
    values: Floats

    def add_product(self, x: Floats, out: Floats) -> None:
        """Add A·x to `out` (n,)."""
        csr_matvec(self.n, self.p, self.start, self.column, self.values, x, out)

    def add_transposed_product(self, x: Floats, out: Floats) -> None:
        """Add Aᵀ·x to `out` (p,)."""
        csc_matvec(self.p, self.n, self.start, self.column, self.values, x, out)

    def matrix(self) -> sparse.csr_array:
        """The rows as a SciPy array that shares the values."""
        last = self.start[self.n]
        parts = (self.values[:last], self.column[:last], self.start[: self.n + 1])
        return sparse.csr_array(parts, shape=(self.n, self.p))

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> Csr:
        """The arrays of a SciPy matrix."""
        start, column = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
        return cls(matrix.shape[0], matrix.shape[1], start, column, matrix.data)
