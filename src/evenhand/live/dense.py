"""Parcels of plain numbers, the usual delivery: packed without going through Arrow, byte for byte the same."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.live.parcel import SECOND, Parcel

__all__ = ["DenseParcel", "pack"]

_NUMBERS = {int: "q", float: "d"}  # 64 bits each
_LIMIT = 2**63
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"  # of an Arrow stream


def pack(X: Any, y: Sequence[Any]) -> Parcel:
    """The parcel of features and labels in their plain form."""
    kinds = {type(label) for label in y}
    fit = kinds == {float} or (kinds == {int} and min(y) >= -_LIMIT and max(y) < _LIMIT)
    return DenseParcel(X, list(y)) if fit and isinstance(X, np.ndarray) else Parcel.of(X, y)


class DenseParcel(Parcel):
    """A parcel of a dense array and labels that are all whole or all broken numbers; its table is made when wanted.

    `numbers` are the features as they lie in memory, column after column.
    """

    numbers: bytes

    def __init__(self, X: NDArray[np.float64], y: list[Any]) -> None:
        width = X.shape[1]
        found = {"kind": "dense", "features": _names(width), "width": width, "label": "label", "group": None}
        self.__dict__.update(found, X=X, y=y, numbers=X.T.tobytes())

    @cached_property
    def table(self) -> Any:
        """The columns as Arrow."""
        return Parcel.of(self.X, self.y).table

    def __len__(self) -> int:
        return len(self.y)

    @property
    def finite(self) -> bool:
        """Whether no feature is NaN or infinite."""
        return bool(np.logical_and.reduce(np.isfinite(self.X), axis=None))

    @property
    def digest(self) -> str:
        """The same fingerprint as any parcel's."""
        content = b"".join((_spelled(self.features), self.numbers, repr(self.y).encode()))
        return f"{SECOND}{hashlib.sha256(content).hexdigest()}"

    def to_bytes(self) -> bytes:
        """The same bytes as any parcel's: what comes before the numbers depends on nothing but how many there are."""
        before = _before(len(self), self.width, whole=isinstance(self.y[0], int))
        return super().to_bytes() if before is None else before + self.numbers + _end(self.y)


def _end(y: list[Any]) -> bytes:
    """The labels and the end of an Arrow stream."""
    return array(_NUMBERS[type(y[0])], y).tobytes() + _END


@lru_cache(maxsize=64)
def _before(rows: int, width: int, *, whole: bool) -> bytes | None:
    """What Arrow writes before the numbers; None where it does not write them as we do."""
    X, y = np.arange(1.0, 1 + rows * width).reshape(rows, width), [1 + row if whole else 0.5 for row in range(rows)]
    stream, numbers = Parcel.of(X, y).to_bytes(), DenseParcel(X, y).numbers + _end(y)
    return stream.removesuffix(numbers) if stream.endswith(numbers) else None


@lru_cache(maxsize=64)
def _spelled(features: tuple[str, ...]) -> bytes:
    return repr(features).encode()


@lru_cache(maxsize=64)
def _names(width: int) -> tuple[str, ...]:
    return tuple(map(str, range(width)))
