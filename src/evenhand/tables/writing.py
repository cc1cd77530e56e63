"""Writes rows as CSV that no spreadsheet runs, or as Parquet.

A cell that a spreadsheet would run as a formula gets an apostrophe before it; `unguarded` takes it off again.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["guarded_cell", "unguarded", "write_csv", "write_table"]

_RUN = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet would run, also if apostrophes come before it


def guarded_cell(value: object) -> Any:
    """A cell that no spreadsheet runs as a formula; numbers stay as they are.

    >>> guarded_cell("=cmd()"), guarded_cell("-1"), guarded_cell(3)
    ("'=cmd()", '-1', 3)
    """
    if not isinstance(value, str) or not _RUN.match(value):
        return value
    try:
        # a negative number begins with a minus too, and a guarded number would not be one any more
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def unguarded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells of text as they were before `guarded_cell`."""
    import pyarrow.compute as pc

    guarded = pc.match_substring_regex(column, r"^'+[=+\-@\t\r]")
    return pc.if_else(guarded, pc.utf8_slice_codeunits(column, 1), column) if pc.any(guarded).as_py() else column


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Write rows as CSV; returns their number."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([guarded_cell(name) for name in names])
        for row in rows:
            writer.writerow([guarded_cell(value) for value in row])
            count += 1
    return count


def write_table(path: Path, table: pa.Table, first: Sequence[str] = ()) -> None:
    """Write a table as CSV, or as Parquet if the path ends so; the columns of `first` come first."""
    order = [*first, *(name for name in table.column_names if name not in first)]
    table = table.select(order)
    if path.suffix.lower() in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        pq.write_table(table, path)
        return
    from evenhand.tables.kinds import time_text

    def rows() -> Iterable[Sequence[object]]:
        for batch in table.to_batches(20_000):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield [time_text(value) if hasattr(value, "isoformat") else value for value in row]

    write_csv(path, order, rows())
