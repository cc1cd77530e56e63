"""Groups from columns: names, bins and intersections."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenhand.arrays import Indices, Ints
from evenhand.tables.arrow import is_text
from evenhand.tables.frame import Frame
from evenhand.tables.kinds import bad_rows, decimal_mark, read_as
from evenhand.tables.problems import TableError, missing_column, names, rows_text
from evenhand.tables.spelling import check_spellings, merged_spellings

__all__ = [
    "OTHER",
    "Coding",
    "GroupColumn",
    "Groups",
    "GroupRule",
    "code_column",
    "find_groups",
    "group_column",
    "intersect",
    "merge_small",
]

LONGEST_NAME = 500
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
    """A column as positions in the list of its values, which are text; −1 where a value is missing."""

    codes: Indices
    values: list[str]

    @property
    def missing(self) -> list[int]:
        """The rows without a value."""
        found: list[int] = np.flatnonzero(self.codes < 0).tolist()
        return found

    def counts(self) -> dict[str, int]:
        """How many rows have each value."""
        found = np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))
        return dict(zip(self.values, found.tolist(), strict=True))

    def merged(self, into: Mapping[str, str]) -> Coding:
        """The same with some values as others."""
        if not into:
            return self
        kept = [value for value in self.values if value not in into]
        place = {value: kept.index(into.get(value, value)) for value in self.values}
        lookup = np.array([*(place[value] for value in self.values), -1], dtype=np.int32)
        return Coding(lookup[self.codes], kept)


def code_column(chunks: Iterator[pa.Array], column: GroupColumn, missing: Sequence[str] = ()) -> Coding:
    """Codes of a column that comes in chunks; values as they are written, in ascending order, numbers as such.

    An ordered category keeps the order its owner gave it.
    """
    found: dict[str, int] = {}
    coded: list[Indices] = []
    ordered = False
    mark = None
    if column.edges:
        chunks = iter(whole := list(chunks))
        mark = decimal_mark(each for each in whole if is_text(each.type))
    for chunk in chunks:
        if pa.types.is_nested(chunk.type) or pa.types.is_binary(chunk.type):
            raise TableError(f"column {column.name!r} holds {chunk.type}: make it text or numbers.")
        if column.edges:
            coded.append(_bin(chunk, column, missing, mark))
            continue
        ordered = ordered or bool(pa.types.is_dictionary(chunk.type) and chunk.type.ordered)
        # Python sees each value once, not each row
        encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        values = read_as(encoded.dictionary, "category", missing).to_pylist()
        # what is missing has index −1 and takes the last entry
        mapping = [-1 if value is None else found.setdefault(value, len(found)) for value in values] + [-1]
        indices = encoded.indices.fill_null(len(values)) if encoded.null_count else encoded.indices
        coded.append(np.array(mapping, dtype=np.int32)[indices.to_numpy(zero_copy_only=False)])
    codes = np.concatenate(coded) if coded else np.empty(0, dtype=np.int32)
    if column.edges:
        return Coding(codes, column.bins())
    # a dictionary may list values that no row has
    used = np.bincount(codes + 1, minlength=len(found) + 1)[1:]
    there = [value for value, code in found.items() if used[code]]
    if not ordered:
        there.sort(key=_natural)
    lookup = np.full(len(found) + 1, -1, dtype=np.int32)
    lookup[[found[value] for value in there]] = np.arange(len(there), dtype=np.int32)
    return Coding(lookup[codes], there)


def _natural(text: str) -> tuple[bool, float, str]:
    """Numbers before texts, 9 before 10."""
    try:
        return False, float(text), text
    except ValueError:
        return True, 0.0, text


def _bin(chunk: pa.Array, column: GroupColumn, missing: Sequence[str], mark: str | None) -> Indices:
    numbers = read_as(chunk, "number", missing, mark)
    if bad := bad_rows(chunk, numbers, "number", missing):
        raise TableError(f"group column {column.name!r} has bins, and {min(bad.items())[1]}.")
    values = numbers.cast(pa.float64()).to_numpy(zero_copy_only=False)
    # an edge belongs to the bin above it: "25 to under 65"
    codes = np.searchsorted(column.edges, values, side="right").astype(np.int32)
    return np.where(np.isnan(values), np.int32(-1), codes)


@dataclass(frozen=True)
class GroupRule:
    """How groups are told from columns.

    Attributes:
        columns: the columns, numbers with their bins: `("sex", "age:25,45,65")`.
        exclude: groups to leave out, by name.
        merge_below: groups with fewer rows than this become one, called other.
        merge_spellings: whether texts that differ only by case, blanks or Unicode form are one, instead of refused.
        missing: words for a missing value, beside the empty cell.
    """

    columns: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    merge_below: int = 0
    merge_spellings: bool = False
    missing: tuple[str, ...] = ()


def find_groups(frame: Frame, rule: GroupRule) -> tuple[Groups, tuple[str, ...]]:
    """The groups of a frame's rows, and the names of those that were merged; rows without a group are refused."""
    available = frame.schema.names
    if not rule.columns:
        raise TableError("name the column that tells the group: groups=['sex'] (--group sex).")
    parts = [group_column(text, available) for text in rule.columns]
    codings = []
    for part in parts:
        coding = code_column(frame.column(part.name), part, rule.missing)
        if coding.missing:
            raise TableError(
                f"{frame.name}: {part.name!r} tells the group, and is empty in {rows_text(coding.missing)}: leave these rows "
                "out, or fill in a group, 'unknown' for example."
            )
        if not part.edges and (problem := check_spellings(coding.counts(), f"group column {part.name!r}")):
            if not rule.merge_spellings:
                raise TableError(f"{frame.name}: {problem}")
            coding = coding.merged(merged_spellings(coding.counts()))
        codings.append(coding)
    return merge_small(intersect([part.name for part in parts], codings, rule.exclude), rule.merge_below)


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
    texts = [_values(column, coding) for column, coding in zip(columns, codings, strict=True)]
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


def _values(column: str, coding: Coding) -> list[str]:
    if len(coding.values) > MOST_VALUES:
        raise TableError(
            f"group column {column!r} has {len(coding.values):,} different values; at most {MOST_VALUES:,} are possible. "
            f"For a number give bins, like '{column}:25,45,65'."
        )
    long = next((value for value in coding.values if len(value) > LONGEST_NAME), None)
    if long is not None:
        raise TableError(
            f"group column {column!r} has a name of {len(long):,} characters ({long[:40]!r} …); at most {LONGEST_NAME} are possible."
        )
    return coding.values


def _join(columns: Sequence[str], parts: Sequence[str]) -> str:
    if len(columns) == 1:
        return parts[0]
    return ", ".join(f"{column}={part}" for column, part in zip(columns, parts, strict=True))
