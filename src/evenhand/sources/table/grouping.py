"""Groups from columns: names, bins and intersections."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evenhand.arrays import Indices, Ints
from evenhand.sources.table.problems import TableError, missing_column, names

__all__ = [
    "MISSING", "OTHER", "Coding", "GroupColumn", "Groups", "code_column", "group_column", "intersect", "merge_small", "value_text",
]  # fmt: skip

MISSING = "(missing)"
OTHER = "other"
"""The name of the group that small groups are merged into."""
MOST_VALUES = 1000
MOST_COMBINATIONS = 1_000_000


@dataclass(frozen=True)
class GroupColumn:
    """A column that tells the group, with the edges of its bins where it is a number: `age:25,45,65`."""

    name: str
    edges: tuple[float, ...] = ()

    def bins(self) -> list[str]:
        """The names of the bins.

        >>> GroupColumn("age", (25, 65)).bins()
        ['under 25', '25 to under 65', '65 and over']
        """
        texts = [f"{edge:g}" for edge in self.edges]
        inner = [f"{low} to under {high}" for low, high in itertools.pairwise(texts)]
        return [f"under {texts[0]}", *inner, f"{texts[-1]} and over"]


def group_column(text: str, columns: Sequence[str]) -> GroupColumn:
    """The column meant by `sex` or `age:25,45,65`."""
    # first as it is: a column may well be called age:25
    if text in columns:
        return GroupColumn(text)
    name, colon, edges = text.rpartition(":")
    if not colon or name not in columns:
        raise TableError(missing_column(name if colon else text, columns, "group"))
    try:
        numbers = tuple(float(edge) for edge in edges.split(","))
    except ValueError as error:
        raise TableError(f"the bins of {text!r} must be numbers, like 'age:25,45,65'.") from error
    if any(a >= b for a, b in itertools.pairwise(numbers)):
        raise TableError(f"the bins of {text!r} must go upwards.")
    return GroupColumn(name, numbers)


@dataclass(frozen=True)
class Coding:
    """A column as positions in the list of its values; the last position stands for missing where there is any."""

    codes: Indices
    values: list[Any]
    missing: bool


def code_column(chunks: Iterator[pa.Array], column: GroupColumn, *, keep_order: bool = True) -> Coding:
    """Codes of a column that comes in chunks, values in ascending order, or in that of an ordered category."""
    found: dict[Any, int] = {}
    coded: list[Indices] = []
    ordered = False
    for chunk in chunks:
        if column.edges:
            coded.append(_bin(chunk, column))
            continue
        # Python sees each value once, not each row
        encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        ordered = ordered or bool(encoded.type.ordered)
        # A missing cell has index −1 and takes the last entry.
        mapping = [found.setdefault(value, len(found)) for value in encoded.dictionary.to_pylist()] + [-1]
        indices = encoded.indices.fill_null(-1) if encoded.null_count else encoded.indices
        coded.append(np.array(mapping, dtype=np.int32)[indices.to_numpy(zero_copy_only=False)])
    codes = np.concatenate(coded)
    if column.edges:
        return _with_missing(codes, column.bins())
    # a dictionary may list values that no row has
    used = np.bincount(codes + 1, minlength=len(found) + 1)[1:]
    values = [value for value, code in found.items() if used[code]]
    if any(_is_nan(value) for value in values):
        codes = np.where(np.isin(codes, [found[value] for value in values if _is_nan(value)]), -1, codes)
        values = [value for value in values if not _is_nan(value)]
    # an ordered category, low to high, keeps the order its owner gave it
    if not (ordered and keep_order):
        values.sort()
    lookup = np.full(len(found) + 1, -1, dtype=np.int32)
    lookup[[found[value] for value in values]] = np.arange(len(values), dtype=np.int32)
    return _with_missing(lookup[codes], values)


def value_text(value: object) -> str:
    """A label or group as text, the same for the same value: 0 and 0.0 are one.

    >>> value_text(0.0), value_text(0), value_text(0.5), value_text(True)
    ('0', '0', '0.5', 'True')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value


def _bin(chunk: pa.Array, column: GroupColumn) -> Indices:
    try:
        numbers = pc.cast(chunk, pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TableError(f"group column {column.name!r} has bins but is not a number ({chunk.type}).") from error
    # an edge belongs to the bin above it: "25 to under 65"
    codes = np.searchsorted(column.edges, numbers, side="right").astype(np.int32)
    return np.where(np.isnan(numbers), np.int32(-1), codes)


def _with_missing(codes: Indices, values: list[Any]) -> Coding:
    gaps = codes < 0
    if not gaps.any():
        return Coding(codes, values, False)
    return Coding(np.where(gaps, np.int32(len(values)), codes), values, True)


@dataclass(frozen=True)
class Groups:
    """The groups found, each row's group, and the intersections without rows."""

    names: tuple[str, ...]
    columns: tuple[str, ...]
    codes: NDArray[np.int16]
    counts: Ints
    empty: tuple[str, ...]


def intersect(columns: Sequence[str], codings: Sequence[Coding], exclude: Sequence[str] = ()) -> Groups:
    """Groups as intersections of the columns, named `sex=Male, race=White`; rows of an excluded group get −1."""
    texts = [_texts(column, coding) for column, coding in zip(columns, codings, strict=True)]
    # before anything is allocated: five columns of a hundred values make ten billion combinations
    size = math.prod(len(values) for values in texts)
    if size > MOST_COMBINATIONS:
        raise TableError(
            f"{' × '.join(columns)} makes {size:,} combinations; at most {MOST_COMBINATIONS:,} are possible."
        )
    combined = np.zeros(len(codings[0].codes), dtype=np.int32)
    for coding, values in zip(codings, texts, strict=True):
        # mixed-radix numbers: one integer a row for all combinations, counted in one pass
        combined = combined * np.int32(len(values)) + coding.codes
    counts = np.bincount(combined, minlength=size)
    labels = [_join(columns, part) for part in itertools.product(*texts)]
    unknown = [name for name in exclude if name not in labels]
    if unknown:
        raise TableError(missing_column(unknown[0], labels, "group to exclude").replace("column", "group"))
    kept = [i for i in range(size) if counts[i] and labels[i] not in exclude]
    chosen = tuple(labels[i] for i in kept)
    if len(chosen) > MOST_VALUES:
        raise TableError(f"{' × '.join(columns)} makes {len(chosen):,} groups; at most {MOST_VALUES:,} are possible.")
    # 1 and "1" look the same once they are text
    if len(set(chosen)) < len(chosen):
        twice = sorted({name for name in chosen if chosen.count(name) > 1})
        raise TableError(f"different values make the same group {names(twice)}; rename one of them.")
    lookup = np.full(size, -1, dtype=np.int16)
    lookup[kept] = np.arange(len(kept), dtype=np.int16)
    empty = tuple(labels[i] for i in range(size) if not counts[i])
    return Groups(chosen, tuple(columns), lookup[combined], counts[kept], empty)


def merge_small(groups: Groups, least: int) -> tuple[Groups, tuple[str, ...]]:
    """The groups with fewer rows than `least` as one, called other; and the names of those that were merged."""
    small = groups.counts < least
    if not small.any():
        return groups, ()
    if OTHER in {name for name, merged in zip(groups.names, small, strict=True) if not merged}:
        raise TableError(
            f"a group is called {OTHER!r} already, so small groups cannot be merged under that name; rename it."
        )
    kept = np.flatnonzero(~small)
    lookup = np.full(len(small) + 1, -1, dtype=np.int16)  # −1, a row left out, takes the last entry
    lookup[kept] = np.arange(len(kept), dtype=np.int16)
    lookup[np.flatnonzero(small)] = len(kept)
    merged = replace(
        groups,
        names=(*(groups.names[z] for z in kept), OTHER),
        codes=lookup[groups.codes],
        counts=np.append(groups.counts[kept], groups.counts[small].sum()),
    )
    return merged, tuple(name for name, gone in zip(groups.names, small, strict=True) if gone)


def _texts(column: str, coding: Coding) -> list[str]:
    texts = [value_text(value) for value in coding.values] + [MISSING] * coding.missing
    if len(texts) > MOST_VALUES:
        raise TableError(
            f"group column {column!r} has {len(texts):,} different values; at most {MOST_VALUES:,} are possible. "
            f"For a number give bins, like '{column}:25,45,65'."
        )
    return texts


def _join(columns: Sequence[str], parts: Sequence[str]) -> str:
    if len(columns) == 1:
        return parts[0]
    return ", ".join(f"{column}={part}" for column, part in zip(columns, parts, strict=True))
