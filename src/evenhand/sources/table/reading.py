"""Reads a frame of any library, or a file of any supported format, into Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evenhand.sources.csv_files import CsvFormat, read_csv
from evenhand.sources.table.parquet import ParquetFiles
from evenhand.sources.table.problems import TableError, names

__all__ = ["CsvFormat", "Frame", "check_effects", "gaps", "is_parquet", "read"]


@dataclass(frozen=True)
class Frame:
    """A table in Arrow, and what is wrong with the columns that could not be converted."""

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
        """Rows that show what the columns hold: here all of them."""
        return self.table.select(list(columns))


def is_parquet(data: object) -> bool:
    """Whether the data is a path to a Parquet file or a folder of them."""
    return isinstance(data, str | Path) and (Path(data).is_dir() or Path(data).suffix in {".parquet", ".pq"})


def gaps(values: pa.Array) -> pa.BooleanArray:
    """Which values are missing, or are blank text."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    found = pc.is_null(values, nan_is_null=True)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        found = pc.or_(found, pc.fill_null(pc.equal(pc.utf8_trim_whitespace(values), ""), True))
    return found


def check_effects(inputs: Sequence[Any], given: Mapping[str, str | None]) -> None:
    """Refuse settings for CSV files if there is no such file."""
    files = [each for each in inputs if isinstance(each, str | Path) and not is_parquet(each)]
    useless = [key for key, value in given.items() if value is not None and not files]
    if useless:
        raise TableError(f"{useless[0]} has no effect: it is about CSV files, and there is none.")


def read(data: Any, form: CsvFormat) -> Frame:
    """A pandas, polars or Arrow table, or the path of a CSV or Parquet file, as Arrow."""
    if isinstance(data, str | Path):
        path = Path(data)
        if not path.exists():
            raise TableError(f"there is no file {str(path)!r}.")
        frame = Frame(ParquetFiles(path).read() if is_parquet(path) else read_csv(path, form), path.name)
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
        except UnicodeEncodeError:
            broken[name] = f"column {name!r} has half a character (a lone surrogate), which is not text; remove it."
            # the column keeps its place; whether anybody needs it is known later
            arrays.append(pa.nulls(len(series)))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            kinds = sorted({type(value).__name__ for value in series.dropna()})
            broken[name] = f"column {name!r} mixes types ({', '.join(kinds[:4])}); make it one type, or ignore it."
            arrays.append(pa.nulls(len(series)))
    return Frame(pa.table(arrays, names=columns), "the table", broken)
