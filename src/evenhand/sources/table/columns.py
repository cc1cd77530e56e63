"""Feature columns of a table as numbers and category codes, ready to be one-hot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenhand.arrays import Floats, Indices, Ints
from evenhand.sources.table.grouping import MISSING
from evenhand.sources.table.problems import names

__all__ = ["Coded", "Layout", "column_problem", "counts_the_rows", "holds_dates_as_text", "is_free_text", "plan"]

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
_DATE = r"^\s*(\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4})\b"
_MICROSECONDS = 86_400_000_000.0  # of a day
# a column with this share of numbers has slips in it ("n/a", "12kg"); with fewer it is text
MOSTLY = 0.9
_SPACE = r"\S\s+\S"


@dataclass(frozen=True)
class Coded:
    """Rows as numbers (NaN: missing) and positions of their categories; `~start` of a column's block means none."""

    numbers: Floats
    categories: Indices

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Coded:
        return Coded(self.numbers[rows], self.categories[rows])


@dataclass(frozen=True)
class Layout:
    """The position of every feature: numbers first, then a block of positions for every category column."""

    numbers: tuple[str, ...]
    gaps: tuple[str, ...]
    categories: tuple[tuple[str, tuple[str, ...], bool], ...]

    @property
    def names(self) -> list[str]:
        """The name of every position."""
        blocks = [
            f"{name}={value}" for name, values, missing in self._blocks() for value in [*values, *[MISSING] * missing]
        ]
        return [*self.numbers, *blocks]

    @property
    def width(self) -> int:
        """The number of features after one-hot coding."""
        return len(self.numbers) + sum(len(values) + missing for _, values, missing in self._blocks())

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [*self.numbers, *(name for name, _, _ in self.categories)]

    def _blocks(self) -> list[tuple[str, tuple[str, ...], bool]]:
        return [*((name, (), True) for name in self.gaps), *self.categories]

    def code(self, table: pa.Table) -> Coded:
        """Code the rows of a table; a category that the layout does not know counts as no category."""
        # codes, not one-hot columns: a row costs as many numbers
        # as the table has columns, however many values those have
        numbers = np.empty((table.num_rows, len(self.numbers)))
        for j, name in enumerate(self.numbers):
            numbers[:, j] = _as_float(table.column(name))
        blocks = self._blocks()
        categories = np.empty((table.num_rows, len(blocks)), dtype=np.int32)
        start = len(self.numbers)
        for j, (name, values, missing) in enumerate(blocks):
            if name in self.gaps:
                codes = np.where(np.isnan(numbers[:, self.numbers.index(name)]), 0, -1)
            else:
                codes = _positions(table.column(name), values, missing)
            # ~start is negative and still says which block
            # it was: sparse rows then have the same length
            categories[:, j] = np.where(codes < 0, ~start, start + codes)
            start += len(values) + missing
        return Coded(numbers, categories)


def plan(table: pa.Table) -> Layout:
    """The layout for these rows: text and categories one-hot, all else numbers."""
    numbers, gaps, categories = [], [], []
    for name in table.column_names:
        column = table.column(name)
        if _is_category(column.type):
            text = _as_text(column)
            # sorted, so that the order of the rows does not decide the order of the features
            values = tuple(sorted(value for value in pc.unique(text).to_pylist() if value is not None))
            categories.append((name, values, text.null_count > 0))
        else:
            numbers.append(name)
            if np.isnan(_as_float(column)).any():
                gaps.append(name)
    return Layout(tuple(numbers), tuple(gaps), tuple(categories))


def column_problem(name: str, column: pa.ChunkedArray, most_categories: int) -> str | None:
    """Why a column cannot be a feature, or None."""
    kind = column.type
    if pa.types.is_nested(kind):
        return f"column {name!r} is nested ({kind}); flatten it, or ignore it."
    if not (_is_category(kind) or _is_number(kind)):
        return f"column {name!r} is neither numbers nor text ({kind}); change it, or ignore it."
    if column.null_count == len(column):
        return f"column {name!r} has no values at all; ignore it."
    if _is_category(kind):
        return _text_problem(name, _as_text(column), most_categories)
    numbers = _as_float(column)
    if np.isnan(numbers).all():
        return f"column {name!r} has no values at all; ignore it."
    return f"column {name!r} has infinite values; make them missing." if np.isinf(numbers).any() else None


def is_free_text(column: pa.ChunkedArray, most_categories: int) -> bool:
    """Whether a column is text to be read, too varied for categories: most of its values have several words."""
    if not _is_category(column.type):
        return False
    values = pc.drop_null(pc.unique(_as_text(column)))
    if len(values) <= most_categories:
        return False
    several = pc.sum(pc.match_substring_regex(values, _SPACE)).as_py() or 0
    return bool(several > len(values) / 2)


def counts_the_rows(column: pa.ChunkedArray) -> bool:
    """Whether a column is nothing but the numbers of the rows."""
    if not pa.types.is_integer(column.type) or column.null_count or len(column) < 3:
        return False
    values = column.to_numpy()
    return bool(values[0] in (0, 1) and (np.diff(values) == 1).all())


def holds_dates_as_text(column: pa.ChunkedArray) -> bool:
    """Whether a column is text in which nearly every value looks like a date."""
    if not _is_category(column.type):
        return False
    values = pc.drop_null(pc.unique(_as_text(column)))
    dates = pc.sum(pc.match_substring_regex(values, _DATE)).as_py() or 0
    return bool(dates and dates >= MOSTLY * len(values))


def _text_problem(name: str, text: pa.ChunkedArray, most_categories: int) -> str | None:
    values = [value for value in pc.unique(text).to_pylist() if value is not None]
    commas = sum(bool(_DECIMAL_COMMA.fullmatch(value)) for value in values)
    plain = [value for value in values if not _NUMBER.fullmatch(value)]
    if commas and commas + len(values) - len(plain) == len(values):
        return f"column {name!r} looks like numbers with a decimal comma ({names(values[:2])}): say decimal=',' (--decimal)."
    if 0 < len(plain) <= (1 - MOSTLY) * len(values):
        return (
            f"column {name!r} mixes numbers and text ({names(plain, 3)}); "
            "make those cells empty if they mean missing, or ignore the column."
        )
    if len(values) > most_categories:
        return (
            f"column {name!r} has {len(values):,} categories, more than max_categories={most_categories:,}; "
            "if it tells rows apart, name it (id=..., --id); else ignore it (ignore=[...], --ignore), or raise the limit."
        )
    return None


def _is_category(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_dictionary(kind)
    )


def _is_number(kind: pa.DataType) -> bool:
    plain = (
        pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
    )
    return bool(plain or pa.types.is_decimal(kind) or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind)))


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string())


def _as_float(column: pa.ChunkedArray) -> Floats:
    """A column as numbers; dates and times become days, whatever unit a file stores them in."""
    kind, unit = column.type, 1.0
    if pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_temporal(kind):
        whole = pa.timestamp("us") if pa.types.is_timestamp(kind) else None
        whole = pa.duration("us") if pa.types.is_duration(kind) else whole or pa.time64("us")
        # days, the same unit as for dates: a table may have both
        column, unit = column.cast(whole, safe=False).cast(pa.int64()), _MICROSECONDS
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64) / unit


def _positions(column: pa.ChunkedArray, values: Sequence[str], missing: bool) -> Ints:
    text = _as_text(column)
    # an unknown category is not missing: it is none of the known ones, missing is a category of its own
    found = pc.index_in(text, value_set=pa.array(values, pa.string()), skip_nulls=True)
    codes = np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int64)
    if missing and text.null_count:
        codes[np.asarray(pc.is_null(text).to_numpy())] = len(values)
    return codes
