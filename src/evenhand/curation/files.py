"""Rows in and out: in the type of frame that was given, and as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa

from evenhand.arrays import Ints
from evenhand.errors import InputError
from evenhand.files import write_atomically
from evenhand.notation import JsonObject
from evenhand.sources.table.table import Table
from evenhand.tables.writing import write_table

__all__ = [
    "check_output",
    "free_names",
    "like_given",
    "outputs",
    "with_columns",
    "write_beside",
    "write_rows",
    "write_text",
]


def like_given(given: Any, rows: Ints, columns: JsonObject, arrow: Callable[[], pa.Table]) -> Any:
    """Rows by number in the type of frame that was given, with more columns; in pandas if a file was given."""
    if isinstance(given, pd.DataFrame):
        return given.iloc[rows].assign(**free_names(columns, list(given.columns)))
    if given is None or isinstance(given, str | PathLike | Table):
        return arrow().to_pandas()
    frame = nw.from_native(given)
    eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    free = free_names(columns, eager.columns)
    added = [nw.new_series(name, values, backend=eager.implementation) for name, values in free.items()]
    return eager[rows.tolist()].with_columns(*added).to_native()


def with_columns(table: pa.Table, columns: JsonObject) -> pa.Table:
    """An Arrow table with more columns."""
    for name, values in free_names(columns, table.column_names).items():
        table = table.append_column(name, pa.array(values))
    return table


def free_names(columns: JsonObject, taken: Sequence[str]) -> JsonObject:
    """The columns under names that are not taken: `row`, or else `evenhand_row`."""
    return {f"evenhand_{name}" if name in taken else name: values for name, values in columns.items()}


def outputs(rows: Path) -> list[Path]:
    """All files that go with rows of this name."""
    endings = (
        f".test{rows.suffix}",
        ".model.zip",
        ".report.html",
        ".report.json",
        ".checkpoint.json",
        ".db",
        ".todo.csv",
    )
    return [rows, *(rows.with_suffix(ending) for ending in endings)]


def check_output(rows: Path, inputs: Sequence[Path]) -> None:
    """Refuse rows that cannot be written under this name, or whose files would replace an input or become part of it."""
    if rows.suffix not in {".parquet", ".csv"}:
        raise InputError(f"rows are written as .parquet or .csv, not as {rows.suffix or 'a file without ending'!r}.")
    for path in inputs:
        there = path.resolve()
        for output in outputs(rows):
            if output.resolve() == there or (there.is_dir() and output.resolve().is_relative_to(there)):
                raise InputError(f"{output} would be written onto the input {path}: choose another name or folder.")


def write_rows(path: Path, rows: pa.Table) -> None:
    """Write rows as Parquet or CSV, whole or not at all."""
    write_atomically(path, lambda file: write_table(file, rows, ending=path.suffix))


def write_beside(
    rows: Path, test: pa.Table | None, save_model: Callable[[Path], None] | None, texts: dict[str, str]
) -> list[Path]:
    """Write what goes with the rows of this name, under the names of `outputs`; returns the files."""
    written = []
    if test is not None:
        written.append(rows.with_suffix(f".test{rows.suffix}"))
        write_rows(written[-1], test)
    if save_model is not None:
        written.append(rows.with_suffix(".model.zip"))
        save_model(written[-1])
    for ending, text in texts.items():
        written.append(rows.with_suffix(ending))
        write_text(written[-1], text)
    return written


def write_text(path: Path, text: str) -> None:
    """Write text, whole or not at all."""
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
