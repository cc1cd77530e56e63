"""Files of rows, read without heavy imports: CSV as people and spreadsheets write it, JSON lines, Parquet.

Cells that a spreadsheet would run as a formula are written with an apostrophe before them, which is taken off again
when a file is read.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from evenhand.errors import InputError
from evenhand.notation import MISSING, SEPARATORS, JsonObject

__all__ = ["FileTable", "guarded_cell", "need_column", "read_file", "write_csv"]

_RUN = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet would run, also if apostrophes come before it
_GUARDED = re.compile(r"'+[=+\-@\t\r]")
_DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+([eE][+-]?\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_LARGEST_FIELD = 10_000_000
_FEW_CELLS, _CELLS_A_CHARACTER = 1_000_000, 5
_SHOWN = 500  # columns that a message names


@dataclass(frozen=True)
class FileTable:
    """The columns of a file by name, None where a cell is missing; `written` where all cells were text.

    `problems` are rows that could not be read, by number.
    """

    name: str
    columns: dict[str, list[object]]
    written: bool
    problems: dict[int, str]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def refuse_problems(self) -> None:
        """Refuse a table with rows that could not be read."""
        for row, why in self.problems.items():
            raise InputError(f"{self.name}, row {row + 1}: {why}; nothing was changed")


def read_file(path: Path, *, id: str | None = None, label: str | None = None) -> FileTable:
    """A CSV, JSON lines or Parquet file, by its ending; cells of the columns for id and label stay as they are written."""
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    kind = path.suffix.lower()
    if path.is_dir() or kind in (".parquet", ".pq"):
        found = _parquet(path)
    elif kind in (".jsonl", ".ndjson", ".json"):
        found = _json(path)
    elif kind in (".csv", ".tsv", ".txt", ""):
        found = _csv(path, id, label)
    else:
        raise InputError(f"{path.name}: {kind} files cannot be read; save the table as CSV, JSON lines or Parquet")
    if not len(found):
        raise InputError(f"{path.name} holds no rows")
    return found


def _csv(path: Path, id: str | None, label: str | None) -> FileTable:
    text = _text(path)
    first = text.partition("\n")[0]
    separator = "\t" if path.suffix.lower() == ".tsv" else max(SEPARATORS, key=first.count)
    # Python's own limit of 128 kB is less than a long text to be labelled
    csv.field_size_limit(_LARGEST_FIELD)
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
    lines: list[list[str]] = []
    ends = [0]  # the last line of every row: a cell in quotes may have several
    try:
        for row in filter(any, reader):
            lines.append(row)
            ends.append(reader.line_num)
    except csv.Error as error:
        where = _place(text, ends[-1], separator)
        raise InputError(f"{path.name} cannot be read as CSV: {where}: {error}") from None
    if not lines:
        raise InputError(f"{path.name} is empty")
    names, *rows = lines
    names = [_unguarded(name) for name in names]
    _check_names(path, names)
    _check_size(path, text, len(names), len(rows))
    problems = {
        i: f"line {ends[i + 2]}, column {min(len(row), len(names)) + 1}: it has {len(row)} cells, the header has {len(names)}"
        for i, row in enumerate(rows)
        if len(row) != len(names)
    }
    columns: dict[str, list[object]] = {}
    for j, name in enumerate(names):
        cells = [row[j] if j < len(row) else "" for row in rows]
        if name == id:  # NA may be one
            columns[name] = [_unguarded(cell) or None for cell in cells]
            continue
        columns[name] = [_cell(cell) for cell in cells]
        # Excel writes decimal commas where the separator is a semicolon; a label "1,5" stays as it is
        if separator == ";" and name != label:
            columns[name] = _with_points(columns[name])
    return FileTable(path.name, columns, True, problems)


def _place(text: str, read: int, separator: str) -> str:
    """Where a file cannot be read: the line after those that could, and its first cell with a quote out of place."""
    line = text.splitlines()[read] if read < len(text.splitlines()) else ""
    cells = next(csv.reader([line.replace("\0", "")], delimiter=separator), [])
    odd = next((j for j, cell in enumerate(cells) if '"' in cell), None)
    opened = next((j for j, cell in enumerate(line.split(separator)) if cell.lstrip().startswith('"')), 0)
    return f"line {read + 1}, column {(opened if odd is None else odd) + 1}"


def _text(path: Path) -> str:
    data = path.read_bytes()
    # what Excel calls "Unicode text"
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        kind = "UTF-16" if wide else "UTF-8"
        raise InputError(f"{path.name} is not {kind} text (byte {error.start}): save it as CSV in UTF-8") from None


def _check_names(path: Path, names: list[str]) -> None:
    blank = [i + 1 for i, name in enumerate(names) if not name.strip()]
    if blank:
        raise InputError(f"{path.name}: column {blank[0]} has no name in the header")
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise InputError(f"{path.name}: more than one column is called {twice!r}; rename one")


def _check_size(path: Path, text: str, columns: int, rows: int) -> None:
    """Refuse a table that would have many times more cells than the file has characters, nearly all of them empty."""
    if columns * rows > max(_FEW_CELLS, _CELLS_A_CHARACTER * len(text)):
        raise InputError(f"{path.name} would have {columns:,} columns in {rows:,} rows, nearly all without a value")


def _cell(text: str) -> str | None:
    if text in MISSING:
        return None
    return _unguarded(text)


def _unguarded(text: str) -> str:
    return text[1:] if _GUARDED.match(text) else text


def _with_points(column: list[Any]) -> list[Any]:
    """Numbers with a decimal comma written with a point, in a column that has no number with a point."""
    there = [cell for cell in column if cell is not None]
    if any(_DECIMAL_POINT.fullmatch(cell) for cell in there):
        return column
    return [c.replace(",", ".") if c is not None and _DECIMAL_COMMA.fullmatch(c) else c for c in column]


def _json(path: Path) -> FileTable:
    text = _text(path)
    lines = text.splitlines()
    if text.lstrip().startswith("["):
        try:
            lines = [json.dumps(record) for record in json.loads(text)]
        except (json.JSONDecodeError, RecursionError) as error:
            raise InputError(f"{path.name} is not JSON: {error}") from None
    records: list[JsonObject] = []
    problems: dict[int, str] = {}
    for line in filter(str.strip, lines):
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            record = None
        if not isinstance(record, dict):
            problems[len(records)] = "not a JSON object on one line"
        records.append(record if isinstance(record, dict) else {})
    names = list(dict.fromkeys(name for record in records for name in record))
    if not names:
        raise InputError(f"{path.name} holds no rows; JSON lines have one object per line")
    _check_size(path, text, len(names), len(records))
    return FileTable(path.name, {n: [record.get(n) for record in records] for n in names}, False, problems)


def _parquet(path: Path) -> FileTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path.name} cannot be read as Parquet: {error}") from None
    ours = [name for name in table.column_names if not name.startswith("__index_level_")]  # pandas writes it unasked
    return FileTable(path.name, {name: table.column(name).to_pylist() for name in ours}, False, {})


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


def need_column(table: FileTable, column: str, what: str) -> None:
    """Refuse a table without a column."""
    if column not in table.columns:
        shown = list(table.columns)[:_SHOWN]
        near = get_close_matches(column, shown, n=1)
        more = f" and {len(table.columns) - _SHOWN:,} more" if len(table.columns) > _SHOWN else ""
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(map(repr, shown))}{more}"
        raise InputError(f"{table.name} has no column {column!r} for {what}{hint}")
