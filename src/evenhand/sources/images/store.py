"""Images as bytes: in an array, or decoded when first needed and then kept."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from evenhand.arrays import Bytes, Ints, Values
from evenhand.errors import InputError
from evenhand.sources.identity import digest_of, files


class Store(Protocol):
    """Images by number, as bytes (n, channels, height, width)."""

    shape: tuple[int, int, int]

    def __len__(self) -> int: ...

    def read(self, rows: Ints) -> Bytes:
        """These images."""


class ArrayStore:
    """Images that are all in memory: (n, height, width), (n, channels, height, width) or channels last."""

    def __init__(self, images: object) -> None:
        array = np.asarray(images)
        if array.dtype != np.uint8:
            raise InputError(f"images must be bytes (uint8, 0 to 255), not {array.dtype}")
        if array.ndim == 3:
            array = array[:, None]
        if array.ndim != 4:
            raise InputError(f"images must be (n, height, width) or (n, channels, height, width), not {array.shape}")
        # no picture has more than four channels, and hardly one is four pixels wide
        if array.shape[1] > 4 and array.shape[3] <= 4:
            array = array.transpose(0, 3, 1, 2)
        self._images: Bytes = array
        self.shape: tuple[int, int, int] = (array.shape[1], array.shape[2], array.shape[3])

    def __len__(self) -> int:
        return len(self._images)

    def read(self, rows: Ints) -> Bytes:
        """These images."""
        return self._images[rows]

    def digest(self) -> str:
        """A text that differs where the images do."""
        return digest_of(self._images)


class LazyStore:
    """Images in files (paths) or in encoded form (bytes), decoded when first read and kept as bytes.

    Args:
        encoded: a path or the bytes of a JPEG, PNG, … for every image.
        channels: 1 for grey, 3 for colour.
        size: height and width that all images are resized to; None: that of the first image, which all must have.
    """

    def __init__(
        self, encoded: Sequence[str | Path | bytes], *, channels: int = 3, size: tuple[int, int] | None = None
    ) -> None:
        if channels not in (1, 3):
            raise InputError(f"channels must be 1 (grey) or 3 (colour), not {channels!r}")
        if not len(encoded):
            raise InputError("there are no images")
        self._encoded, self._channels, self._size = encoded, channels, size
        first = decode(encoded[0], channels, size)
        self.shape: tuple[int, int, int] = (first.shape[0], first.shape[1], first.shape[2])
        # memory that was never written to takes no space
        self._images = np.empty((len(encoded), *self.shape), dtype=np.uint8)
        self._there = np.zeros(len(encoded), dtype=bool)

    def __len__(self) -> int:
        return len(self._encoded)

    def read(self, rows: Ints) -> Bytes:
        """These images."""
        # each file once, though a batch may hold an image twice
        for row in np.unique(rows[~self._there[rows]]).tolist():
            image = decode(self._encoded[row], self._channels, self._size)
            if image.shape != self.shape:
                raise InputError(
                    f"image {_name(self._encoded[row], row)} has shape {image.shape}, the first one {self.shape}: "
                    "give size=(height, width)"
                )
            self._images[row], self._there[row] = image, True
        return self._images[rows]

    def digest(self) -> str:
        """A text that differs if the images do; files are identified by name, size and time."""
        named = [each for each in self._encoded if not isinstance(each, bytes)]
        within = [each for each in self._encoded if isinstance(each, bytes)]
        return digest_of(self.shape, files(named), within)


def decode(encoded: str | Path | bytes, channels: int, size: tuple[int, int] | None) -> Bytes:
    """One image as bytes (channels, height, width), resized if a size is given."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(encoded) if isinstance(encoded, bytes) else encoded) as image:
            # palettes and transparency too become what a network takes
            converted = image.convert("L" if channels == 1 else "RGB")
    except FileNotFoundError:
        raise InputError(f"there is no image file {str(encoded)!r}") from None
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise InputError(f"the image {_name(encoded, None)} cannot be read: {error}") from None
    if size is not None and converted.size != (size[1], size[0]):
        converted = converted.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    array: Bytes = np.asarray(converted)
    return array[None] if channels == 1 else np.ascontiguousarray(array.transpose(2, 0, 1))


def _name(encoded: str | Path | bytes, row: int | None) -> str:
    if isinstance(encoded, bytes):
        return "in memory" if row is None else f"number {row}"
    return repr(str(encoded))


@dataclass(frozen=True)
class ImageRows:
    """Some images of a store by number, read when needed. The numbers tell a learner which images it already has."""

    store: Store
    rows: Ints

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, channels, height, width)."""
        return (len(self.rows), *self.store.shape)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, where: Any) -> ImageRows:
        return ImageRows(self.store, self.rows[where])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        found = self.store.read(self.rows)
        return found if dtype is None else found.astype(dtype)
