"""Reads CSV files into Arrow: recognises separator and decimal comma, and keeps ids as they are written."""

from __future__ import annotations

import codecs
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from evenhand.notation import MISSING, SEPARATORS
from evenhand.sources.table.problems import TableError

__all__ = ["CsvFormat", "header_of", "read_column", "read_csv"]

# a row must lie within a block, and a column's type is guessed from the first one: large enough for both
BLOCK = 1 << 25
TEXT_FILES = {".csv", ".tsv", ".txt", ".data", ".test", ""}
COMPRESSED = {".gz", ".bz2", ".zst", ".lz4", ".zip"}
_COMMA_NUMBER = r"^\s*[+-]?\d+(,\d+)?([eE][+-]?\d+)?\s*$"


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written.

    Attributes:
        separator: what separates the cells; by default that of the header.
        decimal: the decimal mark; by default a comma in the columns of a file separated by `;` whose numbers have one.
        encoding: how the text is encoded.
        text: columns to read as text whatever they look like: an id 007 is not 7, and `NA` may be an id.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str = "utf-8"
    text: tuple[str, ...] = ()


def read_csv(path: Path, form: CsvFormat) -> pa.Table:
    """The table of a CSV file; rows without any value are left out."""
    separator, decimal = _marks(path, form)
    table = _read(path, form.encoding, separator, decimal)
    if len(set(table.column_names)) < table.num_columns:
        return table  # the caller refuses it and names it
    for name in table.column_names:
        # Arrow reads 12:30 as a time of day; as text it is what the user sees, and one-hot like any other text
        if name in form.text or pa.types.is_time(table.schema.field(name).type):
            table = _put(table, name, _as_written(path, form.encoding, separator, name))
    # where `;` separates, spreadsheets of half of Europe write 1,5; column by column, for a file may mix both
    if separator == ";" and form.decimal is None:
        for name in table.column_names:
            if name not in form.text and pa.types.is_string(table.schema.field(name).type):
                table = _put(table, name, _with_points(table.column(name)))
    return _without_blank_rows(table)


def header_of(path: Path, form: CsvFormat) -> list[str]:
    """The names of the columns of a CSV file."""
    separator, _ = _marks(path, form, whole=False)
    with _opened(path) as stream:
        reader = pacsv.open_csv(
            stream,
            read_options=pacsv.ReadOptions(encoding=form.encoding),
            parse_options=pacsv.ParseOptions(delimiter=separator, newlines_in_values=True),
        )
        return list(reader.schema.names)


def read_column(path: Path, form: CsvFormat, name: str) -> pa.ChunkedArray:
    """One column of a CSV file as text, missing where a cell says so; nothing else is kept."""
    separator, _ = _marks(path, form, whole=False)
    found = _read(path, form.encoding, separator, ".", [name]).column(name)
    return pc.if_else(pc.is_in(found, value_set=pa.array(MISSING)), pa.scalar(None, pa.string()), found)


def _marks(path: Path, form: CsvFormat, *, whole: bool = True) -> tuple[str, str]:
    """Separator and decimal mark of a file, after checking the `whole` file, or only its beginning, to be text."""
    kind = Path(path.stem).suffix if path.suffix in COMPRESSED else path.suffix
    if kind.lower() not in TEXT_FILES:
        raise TableError(f"{path.name}: {kind} files cannot be read; save the table as CSV or Parquet.")
    header = _check_text(path, form.encoding, whole)
    # by the header, whose names seldom hold separators; cells often do
    usual = "\t" if ".tsv" in path.suffixes else max(SEPARATORS, key=header.count)
    separator = form.separator or usual
    if separator not in header and usual in header:
        raise TableError(f"{path.name} looks separated by {usual!r}: say separator={usual!r} (--separator).")
    decimal = form.decimal or "."
    if len(separator) != 1 or decimal not in {".", ","} or separator == decimal:
        raise TableError(f"separator {separator!r} and decimal {decimal!r} do not make a CSV file.")
    return separator, decimal


def _read(path: Path, encoding: str, separator: str, decimal: str, text: Sequence[str] = ()) -> pa.Table:
    """The whole file, or only some columns, as they are written."""
    try:
        with _opened(path) as stream:
            return pacsv.read_csv(
                stream,
                read_options=pacsv.ReadOptions(encoding=encoding, block_size=BLOCK),
                parse_options=pacsv.ParseOptions(delimiter=separator, newlines_in_values=True),
                convert_options=pacsv.ConvertOptions(
                    # NA, n/a and the like of numbers; the columns of `text` keep such cells, one may be a name
                    null_values=list(MISSING),
                    strings_can_be_null=not text,
                    # "T" and "yes" stay what they are: a label must come back as it was written
                    true_values=[],
                    false_values=[],
                    decimal_point=decimal,
                    include_columns=list(text),
                    column_types=dict.fromkeys(text, pa.string()),
                ),
            )
    except pa.ArrowInvalid as error:
        raise TableError(f"{path.name} cannot be read as CSV: {error}") from error


@contextmanager
def _opened(path: Path) -> Iterator[pa.NativeFile]:
    """The text of a file, unpacked if its ending says that it is compressed; a zip archive must hold one file."""
    if path.suffix.lower() != ".zip":
        with pa.input_stream(path, compression="detect") as stream:
            yield stream
        return
    try:
        with zipfile.ZipFile(path) as archive:
            inside = [
                each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX")
            ]
            if len(inside) != 1:
                raise TableError(f"{path.name} holds {len(inside)} files; one table is one file.")
            with archive.open(inside[0]) as file, pa.PythonFile(file, mode="r") as stream:
                yield stream
    except (zipfile.BadZipFile, RuntimeError) as error:  # the latter where it needs a password
        raise TableError(f"{path.name} cannot be unpacked: {error}") from None


def _as_written(path: Path, encoding: str, separator: str, name: str) -> pa.ChunkedArray:
    found = _read(path, encoding, separator, ".", [name]).column(name)
    return pc.if_else(pc.equal(found, ""), pa.scalar(None, pa.string()), found)


def _with_points(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as numbers if its numbers have a decimal comma; any other column as it is."""
    if column.null_count == len(column) or not pc.all(pc.match_substring_regex(column, _COMMA_NUMBER)).as_py():
        return column
    return pc.cast(pc.replace_substring(pc.utf8_trim_whitespace(column), ",", "."), pa.float64())


def _put(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _without_blank_rows(table: pa.Table) -> pa.Table:
    """The table without rows that hold nothing but separators, as spreadsheets leave them behind."""
    # a column without gaps says that no row is blank, without looking at all of them
    if not table.num_rows or any(not column.null_count for column in table.columns):
        return table
    blank = table.columns[0].is_null()
    for column in table.columns[1:]:
        blank = pc.and_(blank, column.is_null())
    return table.filter(pc.invert(blank))


def _check_text(path: Path, encoding: str, whole: bool) -> str:
    """The header line, once the `whole` file, or its beginning, is known to be text in this encoding."""
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except (LookupError, ValueError) as error:
        raise TableError(f"unknown encoding {encoding!r}; try 'utf-8', 'latin-1' or 'utf-16'.") from error
    start = b""
    with _opened(path) as stream:
        while chunk := stream.read(1 << 20):
            start = start or chunk
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                # latin-1 reads any bytes, so it is what a file that is no Unicode most likely is
                guess = "utf-16" if start[:2] in {b"\xff\xfe", b"\xfe\xff"} else "latin-1"
                raise TableError(
                    f"{path.name} is not written in {encoding} ({error.reason}); say its encoding, "
                    f"e.g. encoding={guess!r} (--encoding {guess})."
                ) from error
            if not whole:
                break
    lines = start.decode(encoding, errors="ignore").lstrip("\ufeff").splitlines()
    if not lines or not any(line.strip() for line in lines):
        raise TableError(f"{path.name} is empty.")
    return lines[0]
