"""Reads a frame or a file into Arrow, whatever library or format it comes from."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv

from evenhand.sources.parquet import ParquetFiles
from evenhand.sources.problems import TableError, names

__all__ = ["CsvFormat", "Frame", "is_parquet", "read"]

NULLS = ["", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null"]
LARGEST_BLOCK = 1 << 30
TEXT_FILES = {".csv", ".tsv", ".txt", ".data", ".test", ""}
COMPRESSED = {".gz", ".bz2", ".zst", ".lz4"}


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written; the separator is a tab for `.tsv` and a comma otherwise unless said.

    Columns named in `text` are text whatever they look like: an id of 007 is not 7.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    text: tuple[str, ...] = ()


@dataclass(frozen=True)
class Frame:
    """A table in Arrow, and what is wrong with the columns that could not be brought there."""

    table: pa.Table
    name: str
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self.table.schema

    def column(self, name: str) -> Iterator[pa.Array]:
        """One column, chunk by chunk."""
        return iter(self.table.column(name).chunks)

    def sample(self, columns: Sequence[str]) -> pa.Table:
        """Rows to learn from what the columns hold: all of them."""
        return self.table.select(list(columns))


def is_parquet(data: object) -> bool:
    """Whether the data is a path to a Parquet file or a folder of them."""
    return isinstance(data, str | Path) and (Path(data).is_dir() or Path(data).suffix in {".parquet", ".pq"})


def read(data: Any, form: CsvFormat) -> Frame:
    """A pandas, polars or Arrow table, or the path of a CSV or Parquet file, as Arrow."""
    if isinstance(data, str | Path):
        path = Path(data)
        if not path.exists():
            raise TableError(f"there is no file {str(path)!r}.")
        frame = Frame(ParquetFiles(path).read(), path.name) if is_parquet(path) else _csv(path, form)
    else:
        frame = _native(data)
    doubled = [name for name, count in Counter(frame.table.column_names).items() if count > 1]
    if doubled:
        raise TableError(f"{frame.name}: more than one column is called {names(doubled)}; rename them.")
    if not frame.table.num_rows:
        raise TableError(f"{frame.name}: the table has no rows.")
    return frame


def _native(data: Any) -> Frame:
    if isinstance(data, pd.DataFrame):
        return _pandas(data)
    try:
        frame = nw.from_native(data)
    except TypeError as error:
        raise TableError(
            "the data must be a pandas, polars or Arrow table or the path of a CSV or Parquet file, "
            f"got {type(data).__name__}."
        ) from error
    return Frame(
        frame.collect("pyarrow").to_native() if isinstance(frame, nw.LazyFrame) else _arrow(frame), "the table"
    )


def _arrow(frame: nw.DataFrame[Any]) -> pa.Table:
    objects = [name for name, kind in frame.schema.items() if kind == nw.Object]
    if objects:
        raise TableError(f"column {names(objects)} holds Python objects; make it numbers or text.")
    return frame.to_arrow()


def _pandas(data: pd.DataFrame) -> Frame:
    columns = [str(name) for name in data.columns]
    arrays: list[Any] = []
    broken: dict[str, str] = {}
    for position, name in enumerate(columns):
        series = data.iloc[:, position]
        try:
            arrays.append(pa.array(series, from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            kinds = sorted({type(value).__name__ for value in series.dropna()})
            broken[name] = f"column {name!r} mixes types ({', '.join(kinds[:4])}); make it one type, or ignore it."
            arrays.append(pa.nulls(len(series)))
    return Frame(pa.table(arrays, names=columns), "the table", broken)


def _csv(path: Path, form: CsvFormat) -> Frame:
    kind = Path(path.stem).suffix if path.suffix in COMPRESSED else path.suffix
    if kind.lower() not in TEXT_FILES:
        raise TableError(f"{path.name}: {kind} files cannot be read; save the table as CSV or Parquet.")
    header = _check_text(path, form.encoding)
    separator = form.separator or ("\t" if ".tsv" in path.suffixes else ",")
    other = next((s for s in (";", "\t", "|", ",") if s != separator and s in header), None)
    if separator not in header and other is not None:
        raise TableError(f"{path.name} looks separated by {other!r}: say separator={other!r} (--separator).")
    if len(separator) != 1 or form.decimal not in {".", ","} or separator == form.decimal:
        raise TableError(f"separator {separator!r} and decimal {form.decimal!r} do not make a CSV file.")
    try:
        table = pacsv.read_csv(
            path,
            read_options=pacsv.ReadOptions(
                encoding=form.encoding, block_size=min(LARGEST_BLOCK, 2 * path.stat().st_size + (1 << 20))
            ),
            parse_options=pacsv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                null_values=NULLS,
                strings_can_be_null=True,
                true_values=[],
                false_values=[],
                decimal_point=form.decimal,
                column_types=dict.fromkeys(form.text, pa.string()),
            ),
        )
    except pa.ArrowInvalid as error:
        raise TableError(f"{path.name} cannot be read as CSV: {error}") from error
    return Frame(table, path.name)


def _check_text(path: Path, encoding: str) -> str:
    """The header line, once the whole file is known to be text in this encoding."""
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError as error:
        raise TableError(f"unknown encoding {encoding!r}; try 'utf-8', 'latin-1' or 'utf-16'.") from error
    start = b""
    with pa.input_stream(path, compression="detect") as stream:
        while chunk := stream.read(1 << 20):
            start = start or chunk
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                guess = "utf-16" if start[:2] in {b"\xff\xfe", b"\xfe\xff"} else "latin-1"
                raise TableError(
                    f"{path.name} is not written in {encoding} ({error.reason}); say its encoding, "
                    f"e.g. encoding={guess!r} (--encoding {guess})."
                ) from error
    lines = start.decode(encoding, errors="ignore").lstrip("\ufeff").splitlines()
    if not lines or not any(line.strip() for line in lines):
        raise TableError(f"{path.name} is empty.")
    return lines[0]
