"""Finds out whether a table's labels are still to be made, without reading all of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from evenhand.notation import JsonMapping
from evenhand.sources.csv_files import CsvFormat, header_of, read_column
from evenhand.sources.table.parquet import ParquetFiles
from evenhand.sources.table.problems import TableError, missing_column
from evenhand.sources.table.reading import check_effects, gaps, is_parquet, read

__all__ = ["Labels", "labels_in"]


class Labels(NamedTuple):
    """How many rows of a table have a label."""

    there: int
    rows: int

    @property
    def missing(self) -> int:
        """Rows without one."""
        return self.rows - self.there


def labels_in(data: Any, label: str, form: JsonMapping) -> Labels:
    """How many rows have a label: none if the column does not exist, unless its name looks like a typing error."""
    check_effects([data], form)
    # only the label's column of a file is read, which takes seconds for ten million rows
    if not isinstance(data, str | Path):
        frame = read(data, CsvFormat())
        return _counted(
            label, frame.schema.names, frame.column(label) if label in frame.schema.names else (), frame.table.num_rows
        )
    path = Path(data)
    if not path.exists():
        raise TableError(f"there is no file {str(path)!r}.")
    if is_parquet(path):
        files = ParquetFiles(path)
        names = list(files.schema.names)
        rows = sum(size for _, _, size in files.pieces)
        return _counted(label, names, files.column(label) if label in names else (), rows)
    csv = CsvFormat(**{key: value for key, value in form.items() if value is not None})
    names = header_of(path, csv)
    found = read_column(path, csv, label if label in names else names[0])
    return _counted(label, names, found.chunks if label in names else (), len(found))


def _counted(label: str, names: list[str], chunks: Iterable[pa.Array], rows: int) -> Labels:
    if label not in names:
        # --label icome must not begin a labelling campaign of a table that has the column income
        close = difflib.get_close_matches(label.casefold(), [name.casefold() for name in names], n=1, cutoff=0.6)
        if close or not rows:
            raise TableError(missing_column(label, names, "label"))
        return Labels(0, rows)
    return Labels(rows - sum(int(pc.sum(gaps(chunk)).as_py() or 0) for chunk in chunks), rows)
