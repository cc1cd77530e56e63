"""Names for the arrays that everything is computed with, and whether something is a table instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from scipy.sparse import csr_array

    Features = ArrayLike | csr_array | IntoDataFrame
    """Rows of features as users hold them: arrays, lists, sparse rows, frames of any library that narwhals knows."""
else:
    # naming the two libraries at run time would import them, which takes longer than a short command
    Features = ArrayLike

__all__ = [
    "Bytes",
    "Features",
    "Floats",
    "Indices",
    "Ints",
    "Mask",
    "Positions",
    "Singles",
    "Values",
    "Words",
    "is_frame",
]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Values = NDArray[np.generic]
"""Values of whatever kind the user has, such as labels."""


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
