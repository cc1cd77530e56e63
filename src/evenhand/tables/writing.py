"""Writes rows as CSV that no spreadsheet runs, or as Parquet.

A cell that a spreadsheet would run as a formula gets an apostrophe before it; `unguarded` takes it off again.
"""

from __future__ import annotations

import csv
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["guarded_cell", "time_text", "unguarded", "unguarded_text", "write_csv", "write_table"]

_GUARDED = r"^'+[=+\-@\t\r]"
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


def unguarded(column: Any) -> Any:
    """An Arrow column of text as it was before `guarded_cell`."""
    import pyarrow.compute as pc

    # few columns hold an apostrophe first, and looking for one is quick
    if not pc.any(pc.starts_with(column, "'")).as_py():
        return column
    guarded = pc.match_substring_regex(column, _GUARDED)
    return pc.if_else(guarded, pc.utf8_slice_codeunits(column, 1), column) if pc.any(guarded).as_py() else column


def unguarded_text(text: str) -> str:
    """A text as it was before `guarded_cell`.

    >>> unguarded_text("'=cmd()"), unguarded_text("'tis")
    ('=cmd()', "'tis")
    """
    return text[1:] if re.match(_GUARDED, text) else text


def time_text(value: date | time) -> str:
    """A date or a time as text, without the clock where it is midnight.

    >>> time_text(date(2026, 11, 30))
    '2026-11-30'
    """
    return value.isoformat().removesuffix("T00:00:00")


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Write rows as CSV; returns their number."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        # in quotes, where a reader could take the first line for a comment, or another sign for the separator
        odd = any(re.search(r"[;\t|]|^\s*#|^sep=", name) for name in names)
        csv.writer(file, quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL).writerow(map(guarded_cell, names))
        writer = csv.writer(file)
        for row in rows:
            writer.writerow([guarded_cell(value) for value in row])
            count += 1
    return count


def write_table(path: Path, table: pa.Table, *, ending: str | None = None) -> None:
    """Write a table as CSV, or as Parquet if the path's ending, or the one given in its place, says so."""
    if (ending or path.suffix).lower() in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        pq.write_table(table, path)
        return

    # one form in all rows of a column, which other programs expect
    days = [_are_days(column) for column in table.columns]

    def rows() -> Iterator[Sequence[object]]:
        for batch in table.to_batches(20_000):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield [_cell(value, whole) for value, whole in zip(row, days, strict=True)]

    write_csv(path, table.column_names, rows())


def _are_days(column: pa.ChunkedArray) -> bool:
    """Whether a column of times has no other clock than midnight."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return True
    return bool(pc.all(pc.equal(pc.floor_temporal(column, unit="day"), column)).as_py() is not False)


def _cell(value: Any, days: bool) -> Any:
    """A value as a cell that reads back as the same: nothing for a missing number, durations in days."""
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, timedelta):
        return value / timedelta(days=1)
    if isinstance(value, date | time):
        return time_text(value) if days else value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return json.dumps(value, default=str) if isinstance(value, list | dict) else value
