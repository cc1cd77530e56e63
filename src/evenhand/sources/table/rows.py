"""Rows of a table by number: coded for encoders, or as frames for learners that take columns as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from evenhand.arrays import Ints
from evenhand.tables.parquet import ParquetFiles
from evenhand.tables.problems import refuse_rows
from evenhand.tables.schema import Schema
from evenhand.tables.stored import as_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FrameRows", "OnDisk", "RowsByNumber"]


class RowsByNumber(Protocol):
    """Rows, given by their numbers."""

    def __getitem__(self, rows: Any) -> Any: ...


class FrameRows:
    """Typed rows as a pandas frame; all at once, so that a column has the same type in every draw."""

    def __init__(self, typed: pa.Table) -> None:
        self._frame = as_frame(typed)

    def __getitem__(self, rows: Ints) -> pd.DataFrame:
        return self._frame.iloc[rows].reset_index(drop=True)


class OnDisk:
    """Rows of Parquet files, in the form that `made` gives them; rows once read stay in memory.

    Args:
        files: where the rows are.
        schema: what their columns hold.
        made: makes rows by number of typed rows.
    """

    def __init__(self, files: ParquetFiles, schema: Schema, made: Callable[[pa.Table], RowsByNumber]) -> None:
        self._files, self._schema, self._made = files, schema, made
        self.known: Ints = np.empty(0, dtype=np.int64)
        """The numbers of the rows read so far, ascending."""
        self._typed = self._read(self.known)
        self._rows = made(self._typed)

    def _read(self, rows: Ints) -> pa.Table:
        found = self._schema.read(self._files.take(rows, self._schema.features))
        refuse_rows(self._files.name, {int(rows[place]): why for place, why in found.problems.items()})
        # whole numbers become floats, since any of those still unread may be missing
        types = [pa.float64() if pa.types.is_integer(field.type) else field.type for field in found.table.schema]
        return found.table.cast(pa.schema(list(zip(found.table.column_names, types, strict=True))))

    def fetch(self, rows: Ints) -> None:
        """Read those of these rows that are not read yet."""
        # ascending, which `take` needs to read each row group once
        new = np.setdiff1d(rows, self.known)
        if not len(new):
            return
        merged = np.concatenate([self.known, new])
        order = np.argsort(merged, kind="stable")
        self._typed = pa.concat_tables([self._typed, self._read(new)]).take(order)
        self.known, self._rows = merged[order], self._made(self._typed)

    def __getitem__(self, rows: Ints) -> Any:
        # rows not fetched would give others silently
        self.fetch(rows)
        return self._rows[np.searchsorted(self.known, rows)]
