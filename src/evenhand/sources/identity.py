"""Which data a source gives, as a digest, so that finished trials are never mixed with those of other data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np

from evenhand.sources.base import HasDigest, Source


def identity(source: Source) -> str:
    """A digest of a source's data and settings; of its name alone if a custom source has no `digest`.

    >>> from evenhand.sources.synthetic.model1 import SyntheticModel1
    >>> identity(SyntheticModel1.instance("I")) == identity(SyntheticModel1.instance("II"))
    False
    """
    if isinstance(source, HasDigest):
        return source.digest()
    return digest_of(source if is_dataclass(source) else source.name)


def digest_of(*values: object) -> str:
    """A short text that differs if the values do: arrays count by their bytes, dataclasses by their fields.

    >>> digest_of(1, "a") == digest_of(1, "a"), digest_of([1, 2]) == digest_of([12])
    (True, False)
    """
    found = hashlib.blake2b(digest_size=16)
    for part in _parts(values):
        found.update(part)
    return found.hexdigest()


def files(paths: Iterable[str | Path]) -> tuple[tuple[str, int, int], ...]:
    """What stands for files too large to be read for a digest: their names, sizes and the time they were written."""
    found = [(Path(path).name, Path(path).stat()) for path in paths]
    return tuple((name, about.st_size, about.st_mtime_ns) for name, about in found)


def _parts(value: object) -> Iterator[bytes | memoryview]:
    if isinstance(value, np.ndarray):
        yield f"{value.dtype}{value.shape}".encode()
        # an array of objects holds addresses, which differ from process to process
        yield from _parts(value.tolist()) if value.dtype.hasobject else [np.ascontiguousarray(value).data]
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        yield from _parts([getattr(value, field.name) for field in fields(value)])
    elif isinstance(value, Mapping):
        yield from _parts(list(value.items()))
    elif isinstance(value, list | tuple):
        # lengths too, or ["ab"] and ["a", "b"] would be the same bytes
        yield f"[{len(value)}".encode()
        for each in value:
            yield from _parts(each)
    else:
        yield f"{value!r};".encode()
