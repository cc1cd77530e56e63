"""Reads rows as people hold them into Arrow: files of any supported format, frames of any library, bytes, arrays.

What a cell means is not decided here: text stays text, as it is written. `schema` says what a column is.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from evenhand.arrays import Ints
from evenhand.tables.arrow import plain
from evenhand.tables.dialect import LARGEST_UNPACKED, PACKED, Dialect, Format, Text, tell, wrong_encoding
from evenhand.tables.frame import BATCH, Frame, InMemory
from evenhand.tables.parquet import ParquetFiles
from evenhand.tables.problems import TableError, names, refuse_rows
from evenhand.tables.writing import unguarded, unguarded_text

__all__ = ["BATCH", "Format", "Frame", "InMemory", "check_format", "column_names", "is_parquet", "native", "read"]

STREAMED = 256 << 20
"""A text file with more bytes than this is read in chunks, again at each pass, and never as a whole."""
# a row must lie within a block
_BLOCK, _STREAMED_BLOCK = 1 << 25, 1 << 23
_UNCLOSED = 'a quote (") opens a cell and is never closed'
MOST_GAPS = 10_000_000
"""Cells that are made for values that are not there: a few bytes must not become billions of them."""
_MOSTLY_GAPS = 100
_KINDS = {".parquet": "parquet", ".pq": "parquet", ".jsonl": "json", ".ndjson": "json", ".json": "json"}
_TEXT = {".csv", ".tsv", ".txt", ".data", ".test", ""}


class CsvFile(Frame):
    """A text file that is read in chunks, again at each pass."""

    def __init__(self, text: Text, dialect: Dialect) -> None:
        super().__init__(text.name, dialect=dialect)
        self._text, self._dialect = text, dialect
        kept = _kept_columns(text.name, dialect.names, self._chunks(dialect.names[-1:]))
        self._bare = {unguarded_text(name): name for name in kept}
        self._schema = pa.schema([(name, pa.string()) for name in self._bare])
        self._rows, last = 0, None
        for chunk in self._chunks(dialect.names[-1:]):
            self._rows, last = self._rows + chunk.num_rows, chunk.column(0)[-1].as_py() if chunk.num_rows else last
        if last is not None and _is_unclosed(last, text, dialect):
            raise TableError(f"{text.name}, row {self._rows}: {_UNCLOSED}: {last[:40]!r}")

    @property
    def schema(self) -> pa.Schema:
        """The columns, all of them text."""
        return self._schema

    def __len__(self) -> int:
        return int(self._rows)

    def column(self, name: str) -> Iterator[pa.Array]:
        """One column, chunk by chunk."""
        return (unguarded(chunk.column(0)) for chunk in self._chunks([self._bare[name]]))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """These columns of all rows, some rows at a time."""
        for chunk in self._chunks([self._bare[name] for name in columns]):
            table = pa.table([unguarded(column) for column in chunk.columns], names=list(columns))
            yield from (table.slice(start, BATCH) for start in range(0, table.num_rows, BATCH))

    def take(self, rows: Ints, columns: Sequence[str]) -> pa.Table:
        """These rows by number, ascending, in one pass."""
        found = [self._schema.empty_table().select(list(columns))]
        first = 0
        for batch in self.batches(columns):
            start, stop = np.searchsorted(rows, [first, first + batch.num_rows])
            found.append(batch.take(pa.array(rows[start:stop] - first)))
            first += batch.num_rows
        return pa.concat_tables(found)

    def sample(self, columns: Sequence[str]) -> pa.Table:
        """All rows, which a schema is told from chunk by chunk."""
        return pa.concat_tables(self.batches(columns))

    def read(self) -> pa.Table:
        """All rows at once."""
        return self.sample(self.schema.names)

    def _chunks(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._text.opened() as file, _said(self._text.name, self._dialect):
            yield from pacsv.open_csv(
                pa.PythonFile(file, mode="r"), **_options(self._dialect, _STREAMED_BLOCK, columns)
            )


def is_parquet(data: object) -> bool:
    """Whether the data is a path to a Parquet file or a folder of them."""
    return isinstance(data, str | Path) and (Path(data).is_dir() or _KINDS.get(Path(data).suffix.lower()) == "parquet")


def check_format(inputs: Sequence[Any], form: Format) -> None:
    """Refuse what is said of CSV files if there is no such file."""
    files = [each for each in inputs if isinstance(each, str | Path) and not is_parquet(each)]
    frames = [each for each in inputs if isinstance(each, Frame) and each.dialect is not None]
    if form.given() and not (files or frames):
        raise TableError(f"{form.given()[0]} has no effect: it is about CSV files, and there is none.")


def read(data: Any, form: Format | None = None, *, name: str | None = None, largest: int = LARGEST_UNPACKED) -> Frame:
    """The rows of a file, a frame of any library, an array, or the bytes of a file.

    Args:
        data: the path of a CSV, JSON lines or Parquet file, or of a folder of Parquet files; a pandas, polars or Arrow
            table; a two-dimensional array of numbers; or bytes.
        form: what is known of a CSV file; the rest is told from it.
        name: the file name that bytes had, whose ending tells what they are.
        largest: the most bytes that a packed file may unpack to.

    >>> read(b"a;b\\n1;x\\n", name="two.csv").read().to_pydict()
    {'a': ['1'], 'b': ['x']}
    """
    frame = _read(data, form or Format(), name, largest)
    twice = [name for name, count in Counter(frame.schema.names).items() if count > 1]
    if twice:
        raise TableError(f"{frame.name}: more than one column is called {names(twice)}; rename one.")
    if not len(frame):
        raise TableError(f"{frame.name}: the table has no rows.")
    return frame


def column_names(data: Any, form: Format | None = None) -> list[str]:
    """The names of the columns; of a text file's rows only the beginning is read."""
    path = Path(data) if isinstance(data, str | Path) else None
    if path is None or not path.exists() or is_parquet(path) or _ending(path.name) not in _TEXT:
        return list(read(data, form).schema.names)
    return [unguarded_text(name) for name in tell(Text(path.name, path), form or Format()).names]


def _read(data: Any, form: Format, name: str | None, largest: int) -> Frame:
    if isinstance(data, str | Path):
        path = Path(data)
        if not path.exists():
            raise TableError(f"there is no file {str(path)!r}.")
        return ParquetFiles(path) if is_parquet(path) else _file(Text(path.name, path, largest), form)
    if isinstance(data, bytes | bytearray | memoryview):
        text = Text(name or "the file", bytes(data), largest)
        if _KINDS.get(Path(text.name).suffix.lower()) == "parquet":
            return _parquet_bytes(text)
        return _file(text, form)
    return data if isinstance(data, Frame) else native(data)


# -------------------------------------------------------------------- text files


def _file(text: Text, form: Format) -> Frame:
    ending = _ending(text.name)
    if _KINDS.get(ending) == "json":
        return _json(text)
    if ending not in _TEXT and not ending[1:].isdecimal():  # a name such as "people 2.1"
        raise TableError(f"{text.name}: {ending} files cannot be read; save the table as CSV, JSON lines or Parquet.")
    dialect = tell(text, form)
    _check_names(text.name, [unguarded_text(each) for each in dialect.names])
    if not isinstance(text.at, bytes) and text.size > STREAMED:
        return CsvFile(text, dialect)
    return _csv(text, dialect)


def _ending(name: str) -> str:
    """The ending of a file's name, apart from how it is packed."""
    suffixes = [suffix.lower() for suffix in Path(name).suffixes if suffix.lower() not in PACKED]
    return suffixes[-1] if suffixes else ""


def _csv(text: Text, dialect: Dialect) -> Frame:
    skipped: dict[int, str] = {}
    with text.opened() as file:
        data = file.read()
    # Arrow cannot read a last line that does not end where it is the only one
    data += b"" if data[-2:].strip(b"\0").endswith((b"\n", b"\r")) else "\n".encode(_bare(dialect.encoding, data))
    options = _options(dialect, _BLOCK, dialect.names)
    with _said(text.name, dialect):
        try:
            table = pacsv.read_csv(pa.BufferReader(data), **options)
        except pa.ArrowInvalid as error:
            if "Expected" not in str(error):
                raise
            # once more, slower: the reader knows the numbers of rows only where it reads one after the other
            table = pacsv.read_csv(pa.BufferReader(data), **_noting(options, dialect, skipped))
    if table.num_rows and _is_unclosed(last := table.column(-1)[-1].as_py(), text, dialect):
        # whatever followed the quote has become part of the last cell
        skipped[table.num_rows + len(skipped) - 1] = f"{_UNCLOSED}: {last[:40]!r}"
        table = table.slice(0, table.num_rows - 1)
    table = _with_empty_rows(table.select(_kept_columns(text.name, dialect.names, [table])), text.name, skipped)
    table, skipped = _without_blank_rows(table, skipped)
    bare = [unguarded_text(name) for name in table.column_names]
    table = pa.table([unguarded(column) for column in table.columns], names=bare)
    return InMemory(table, text.name, skipped=skipped, dialect=dialect)


def _is_unclosed(last: str, text: Text, dialect: Dialect) -> bool:
    """Whether the file ends within quotes; `last` is its last cell."""
    if not last.endswith(("\n", "\r")):
        return False
    with text.opened() as file:
        quotes = sum(part.count('"') for part in io.TextIOWrapper(file, dialect.encoding, newline=""))
    return quotes % 2 == 1


def _with_empty_rows(table: pa.Table, name: str, skipped: dict[int, str]) -> pa.Table:
    """The table with rows that could not be read as empty ones, so that all others keep their numbers."""
    if not skipped:
        return table
    # a few bytes of a broken row would become as many empty cells as the table has columns
    if len(skipped) * table.num_columns > MOST_GAPS:
        refuse_rows(name, skipped)
    there = np.ones(table.num_rows + len(skipped), dtype=bool)
    there[list(skipped)] = False
    filled = table.take(pa.array(np.cumsum(there) - 1, mask=~there))
    return pa.table([pc.fill_null(column, "") for column in filled.columns], names=table.column_names)


def _bare(encoding: str, data: bytes) -> str:
    """The encoding without a mark at the beginning."""
    if encoding.lower().replace("_", "-") == "utf-16":
        return "utf-16-be" if data.startswith(b"\xfe\xff") else "utf-16-le"
    return encoding.removesuffix("-sig")


def _options(dialect: Dialect, block: int, columns: Sequence[str]) -> dict[str, Any]:
    """Every cell as the text that it is."""
    return {
        "read_options": pacsv.ReadOptions(
            column_names=list(dialect.names),
            skip_rows=dialect.skipped,
            skip_rows_after_names=1,
            encoding="utf-8" if dialect.encoding == "utf-8-sig" else dialect.encoding,
            block_size=block,
        ),
        "parse_options": pacsv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
        "convert_options": pacsv.ConvertOptions(
            column_types=dict.fromkeys(dialect.names, pa.string()), include_columns=list(columns), strings_can_be_null=False
        ),
    }  # fmt: skip


def _noting(options: dict[str, Any], dialect: Dialect, skipped: dict[int, str]) -> dict[str, Any]:
    """The same, with rows of another length left out and noted."""
    given: pacsv.ReadOptions = options["read_options"]

    def note(row: Any) -> str:
        skipped[row.number - 2 - dialect.skipped] = _ragged(row.text, row.actual_columns, len(dialect.names))
        return "skip"

    return {
        **options,
        "read_options": pacsv.ReadOptions(
            column_names=given.column_names, skip_rows=given.skip_rows, skip_rows_after_names=1,
            encoding=given.encoding, block_size=given.block_size, use_threads=False,
        ),
        "parse_options": pacsv.ParseOptions(
            delimiter=dialect.separator, newlines_in_values=True, invalid_row_handler=note
        ),
    }  # fmt: skip


def _ragged(text: str, cells: int, columns: int) -> str:
    if text.count('"') % 2 or "\n" in text.strip():
        return f"{_UNCLOSED}: {text[:40]!r}"
    return f"it has {cells} cell{'s' if cells != 1 else ''}, the header has {columns}"


class _said:
    """Turns what Arrow says of a file into a sentence about it."""

    def __init__(self, name: str, dialect: Dialect) -> None:
        self._name, self._dialect = name, dialect

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, UnicodeDecodeError):
            raise wrong_encoding(self._name, self._dialect.encoding, error.reason) from None
        if isinstance(error, pa.ArrowInvalid):
            if "UTF8" in str(error):
                raise wrong_encoding(self._name, self._dialect.encoding, "invalid bytes") from None
            raise TableError(f"{self._name} cannot be read as CSV: {error}") from None


def _check_names(name: str, columns: Sequence[str]) -> None:
    blank = [i for i, column in enumerate(columns) if not column.strip()]
    # one without a name at the end comes from a separator behind every row; whether it is empty shows when it is read
    if blank and blank != [len(columns) - 1]:
        raise TableError(f"{name}: column {blank[0] + 1} has no name in the header; give it one, or remove the column.")
    twice = [column for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise TableError(f"{name}: more than one column is called {names(twice)}; rename one.")


def _kept_columns(name: str, columns: Sequence[str], parts: Any) -> list[str]:
    """All columns but a last one without a name, which must be empty."""
    if columns[-1].strip():
        return list(columns)
    for part in parts:
        column = part.column(columns[-1])
        if any(value.strip() for value in column.unique().to_pylist()):
            raise TableError(
                f"{name}: column {len(columns)} has no name in the header; give it one, or remove the column."
            )
    return list(columns[:-1])


def _without_blank_rows(table: pa.Table, skipped: dict[int, str]) -> tuple[pa.Table, dict[int, str]]:
    """The table without rows that hold nothing but separators, as spreadsheets leave them behind."""
    blank = None
    for column in table.columns:
        empty = pc.equal(column, "")
        blank = empty if blank is None else pc.and_(blank, empty)
        # a column without gaps says that no row is blank, without looking at all of them
        if not pc.any(blank).as_py():
            return table, skipped
    kept = np.ones(table.num_rows, dtype=bool) if blank is None else ~np.asarray(blank.to_numpy(), dtype=bool)
    kept[list(skipped)] = True
    number = np.cumsum(kept) - 1
    return table.filter(pa.array(kept)), {int(number[row]): why for row, why in skipped.items()}


def _json(text: Text) -> Frame:
    """JSON lines, or one JSON array of objects."""
    with text.opened() as file:
        data = file.read()
    try:
        decoded = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong_encoding(text.name, "utf-8", error.reason) from None
    if not decoded.strip():
        raise TableError(f"{text.name} is empty.")
    records, skipped = _records(text.name, decoded)
    if len(skipped) == len(records):
        raise TableError(f"{text.name} holds no rows; JSON lines have one object on each line.")
    columns = list(dict.fromkeys(name for record in records for name in record))
    if len(columns) * len(records) > MOST_GAPS + _MOSTLY_GAPS * sum(map(len, records)):
        raise TableError(
            f"{text.name} has {len(columns):,} different keys in {len(records):,} objects, and nearly every object lacks nearly "
            "all of them: write what differs from row to row as a value, not as a key."
        )
    table = pa.table({name: _json_column([record.get(name) for record in records]) for name in columns})
    return InMemory(plain(table), text.name, skipped=skipped)


def _records(name: str, text: str) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """One object a line; what is wrong with lines that hold none, by number."""
    lines: list[Any] = [line for line in text.split("\n") if line.strip()]
    if text.lstrip().startswith("["):
        try:
            lines = json.loads(text, parse_constant=lambda word: None)
        except (json.JSONDecodeError, RecursionError) as error:
            raise TableError(f"{name} is not JSON: {error}") from None
    found, skipped = [], {}
    for row, line in enumerate(lines):
        record = _record(line) if isinstance(line, str) else line
        if not isinstance(record, dict):
            skipped[row] = "not a JSON object on one line"
        found.append(record if isinstance(record, dict) else {})
    return found, skipped


def _record(line: str) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:
        # NaN and Infinity are no JSON, though Python writes them
        found = json.loads(line, parse_constant=lambda word: None)
        json.dumps(found, ensure_ascii=False).encode()  # half a character is no text
    except (ValueError, RecursionError):
        return None
    return found


def _json_column(values: list[Any]) -> pa.Array:
    """Values as a column: text where their types differ, as in a file of another kind."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError):
        return pa.array(
            [v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values], pa.string()
        )


# -------------------------------------------------------------------- Parquet and frames


def _parquet_bytes(text: Text) -> Frame:
    import pyarrow.parquet as pq

    try:
        # not `read_table`, which takes two columns of a name for a fault of its own
        table = pq.ParquetFile(pa.BufferReader(text.at)).read()
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{text.name} cannot be read as Parquet: {error}") from None
    return InMemory(plain(table), text.name)


def native(data: Any) -> Frame:
    """A frame of any library or an array of numbers, with any number of rows."""
    if isinstance(data, np.ndarray):
        return _array(data)
    if isinstance(data, pa.Table):
        return InMemory(plain(data), "the table")
    if type(data).__module__.partition(".")[0] == "pandas":
        return _pandas(data)
    import narwhals as nw

    try:
        frame = nw.from_native(data)
    except TypeError:
        raise TableError(
            "the data must be a pandas, polars or Arrow table, an array of numbers, or the path of a CSV, JSON lines or "
            f"Parquet file, got {type(data).__name__}."
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect("pyarrow")
    objects = [name for name, kind in frame.schema.items() if kind == nw.Object]
    if objects:
        raise TableError(f"column {names(objects)} holds Python objects; make it numbers or text.")
    return InMemory(plain(frame.to_arrow()), "the table")


def _array(data: Any) -> Frame:
    if data.ndim != 2 or data.dtype.kind not in "biuf":
        raise TableError(f"an array must hold numbers in rows and columns, not {data.dtype} of shape {data.shape}.")
    columns = {str(j): pa.array(np.ascontiguousarray(data[:, j])) for j in range(data.shape[1])}
    return InMemory(plain(pa.table(columns)), "the table")


def _pandas(data: Any) -> Frame:
    import pandas as pd

    if not isinstance(data, pd.DataFrame):
        raise TableError(f"the data must be a table with columns, got a {type(data).__name__}.")
    columns = [str(name) for name in data.columns]
    arrays: list[Any] = []
    broken: dict[str, str] = {}
    for position, name in enumerate(columns):
        series = data.iloc[:, position]
        try:
            arrays.append(pa.array(series, from_pandas=True))
        except UnicodeEncodeError:
            broken[name] = f"column {name!r} has half a character (a lone surrogate), which is not text; remove it."
            # the column keeps its place; whether anybody needs it is known later
            arrays.append(pa.nulls(len(series)))
        except (pa.ArrowException, TypeError, OverflowError):
            kinds = sorted({type(value).__name__ for value in series.dropna()})
            broken[name] = f"column {name!r} mixes types ({', '.join(kinds[:4])}); make it one type, or ignore it."
            arrays.append(pa.nulls(len(series)))
    return InMemory(plain(pa.table(arrays, names=columns)), "the table", broken=broken)
