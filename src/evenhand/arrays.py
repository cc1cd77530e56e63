"""Type names for arrays and rows, and the few operations that work on rows of any kind."""

from __future__ import annotations

from dataclasses import fields
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
    "is_missing",
    "plain",
    "plain_fields",
    "take_rows",
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
    """Whether X is a table with named columns, from pandas, polars, Arrow or any other library that narwhals knows.

    >>> is_frame([[1.0, 2.0]])
    False
    """
    # the usual cases first: narwhals takes a while to import
    if isinstance(X, np.ndarray | list | tuple) or hasattr(X, "tocsr"):
        return False
    import narwhals as nw

    return isinstance(nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame)


def take_rows(X: Any, places: Ints | Positions) -> Any:
    """The rows with these numbers, from an array, a sparse matrix, a list or a frame of any library."""
    if isinstance(X, np.ndarray):
        return X[places]
    if hasattr(X, "tocsr"):
        return X.tocsr()[places]
    if isinstance(X, list | tuple):
        return [X[i] for i in places.tolist()]
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame[places.tolist()].to_native() if isinstance(frame, nw.DataFrame) else X[places]


def plain(value: Any) -> Any:
    """A number, text, truth value or time of NumPy as Python's own; everything else as it is.

    >>> plain(np.int64(3)), plain(np.str_("u")), plain("u")
    (3, 'u', 'u')
    """
    return value.item() if isinstance(value, np.generic) else value


def plain_fields(settings: Any) -> None:
    """Make NumPy's values in the fields of a frozen dataclass Python's own, so that they can be written down."""
    for field in fields(settings):
        object.__setattr__(settings, field.name, plain(getattr(settings, field.name)))


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None, NaN, or pandas' own missing value.

    >>> is_missing(None), is_missing(float("nan")), is_missing(0)
    (True, True, False)
    """
    # by name: importing pandas to recognise its missing values would take longer than a whole command
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (getattr(value, "ndim", 0) == 0 and bool(value != value))
    )
