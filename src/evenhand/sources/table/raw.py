"""The columns of a table as they are, for learners that make their own features from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from evenhand.arrays import Ints
from evenhand.sources.table.parquet import ParquetFiles
from evenhand.sources.table.reading import Frame

__all__ = ["RawRows", "as_frame", "raw_rows"]


def as_frame(table: pa.Table, columns: Sequence[str]) -> pd.DataFrame:
    """These columns as pandas reads them: numbers, text with NaN where it is missing, categories, truth values, times.

    >>> as_frame(pa.table({"x": [1, None], "t": ["a", None]}), ["t", "x"]).isna().sum().tolist()
    [1, 1]
    """
    found = {}
    for name in columns:
        column = table.column(name)
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("us"))
        elif pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        series = column.to_pandas()
        # scikit-learn looks for NaN, which is also what pandas reads from files
        found[name] = series.where(series.notna(), np.nan) if series.dtype == object else series
    return pd.DataFrame(found)


class RawRows(Protocol):
    """Rows as a frame, by row number."""

    def __getitem__(self, rows: Ints) -> pd.DataFrame: ...

    def fetch(self, rows: Ints) -> None:
        """Have these rows ready."""


def raw_rows(data: Frame | ParquetFiles, columns: Sequence[str]) -> RawRows:
    """The rows of a table; if it stays on disk, only the rows that are wanted are read."""
    return _OnDisk(data, columns) if isinstance(data, ParquetFiles) else _InMemory(data.table, columns)


class _InMemory:
    """All rows at once, so that a column has the same type in every draw."""

    def __init__(self, table: pa.Table, columns: Sequence[str]) -> None:
        self._table, self._columns = table, list(columns)

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return as_frame(self._table, self._columns)

    def __getitem__(self, rows: Ints) -> pd.DataFrame:
        return self._frame.iloc[rows].reset_index(drop=True)

    def fetch(self, rows: Ints) -> None:
        """Nothing to do: all rows are in memory."""


class _OnDisk:
    """Rows of Parquet files; rows once read stay in memory. Integers become floats, since any may be missing."""

    def __init__(self, files: ParquetFiles, columns: Sequence[str]) -> None:
        self._files, self._columns = files, list(columns)
        self._numbers: Ints = np.empty(0, dtype=np.int64)
        self._table = self._read(self._numbers)
        self._frame = as_frame(self._table, self._columns)

    def _read(self, rows: Ints) -> pa.Table:
        table = self._files.take(rows, self._columns)
        kinds = [pa.float64() if pa.types.is_integer(field.type) else field.type for field in table.schema]
        kinds = [
            kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds
        ]  # categories differ by file
        return table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True))))

    def fetch(self, rows: Ints) -> None:
        """Read those of these rows that are not read yet."""
        new = np.setdiff1d(rows, self._numbers)
        if not len(new):
            return
        merged = np.concatenate([self._numbers, new])
        order = np.argsort(merged, kind="stable")
        self._table = pa.concat_tables([self._table, self._read(new)]).take(order)
        self._numbers, self._frame = merged[order], as_frame(self._table, self._columns)

    def __getitem__(self, rows: Ints) -> pd.DataFrame:
        self.fetch(rows)
        return self._frame.iloc[np.searchsorted(self._numbers, rows)].reset_index(drop=True)
