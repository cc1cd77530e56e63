"""Names for the arrays that everything is computed with, and whether something is a table instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bytes", "Floats", "Ints", "Mask", "Positions", "Words", "is_frame"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]


def is_frame(X: Any) -> bool:
    """Whether it is a table of named columns, of pandas, polars, Arrow or any other library that narwhals knows.

    >>> is_frame([[1.0, 2.0]])
    False
    """
    # the usual cases first: narwhals takes a while to import
    if isinstance(X, np.ndarray | list | tuple) or hasattr(X, "tocsr"):
        return False
    import narwhals as nw

    return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)
