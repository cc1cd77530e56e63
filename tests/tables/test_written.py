"""What is written reads back as it was, and no spreadsheet runs it."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.tables.kinds import LARGEST
from evenhand.tables.reading import read
from evenhand.tables.schema import Column, Schema
from evenhand.tables.writing import guarded_cell, unguarded, unguarded_text, write_table

# what files cannot hold: NUL, halves of characters
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=8),
    st.text(st.sampled_from("'=+-@\t\r\n\",;|# a1.é"), max_size=8),
    st.sampled_from(["NA", "null", "?", "-1", "+1", "'-1", "=1+1", "''=", "01", "1e5", "inf", "nan", "true", "sep=;"]),
)
NUMBERS = st.one_of(st.floats(-LARGEST, LARGEST), st.integers(-(2**62), 2**62).map(float), st.just(float("nan")))
TIMES = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))
VALUES = {
    "category": (pa.string(), TEXTS),
    "text": (pa.string(), TEXTS),
    "number": (pa.float64(), NUMBERS),
    "yes/no": (pa.bool_(), st.booleans()),
    "date": (pa.timestamp("us"), TIMES),
}
NAMES = st.text(CHARACTERS, min_size=1, max_size=6).filter(lambda name: name.strip())


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, Schema]:
    """A typed table and its schema; the last column has a value in every row."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=unguarded_text))
    kinds = [draw(st.sampled_from(sorted(VALUES))) for _ in names[1:]]
    rows = draw(st.integers(1, 6))
    columns: dict[str, Any] = {}
    for name, kind in zip(names, kinds, strict=False):
        of, values = VALUES[kind]
        columns[name] = pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), of)
    columns[names[-1]] = pa.array([f"r{row}" for row in range(rows)])
    schema = Schema(tuple(Column(n, k, "feature") for n, k in zip(names, [*kinds, "category"], strict=True)))  # type: ignore[arg-type]
    return schema.read(pa.table(columns)).refuse("it"), schema


def back(path: Path, schema: Schema) -> pa.Table:
    return schema.read(read(path).read()).refuse("it")


def the_same(one: pa.Table, other: pa.Table) -> None:
    assert one.column_names == other.column_names
    for name in one.column_names:
        first, second = one.column(name), other.column(name)
        assert first.cast(second.type).to_pylist() == second.to_pylist(), name


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=tables())
def test_a_written_table_reads_back(found: tuple[pa.Table, Schema], tmp_path: Path) -> None:
    table, schema = found
    write_table(tmp_path / "t.parquet", table)
    assert read(tmp_path / "t.parquet").read().equals(table)
    write_table(tmp_path / "t.csv", table)
    the_same(back(tmp_path / "t.csv", schema), table)


@given(TEXTS)
def test_nothing_is_run_and_nothing_is_lost(text: str) -> None:
    cell = guarded_cell(text)
    plain = not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert plain or float(cell) is not None
    assert unguarded_text(cell) == text
    assert unguarded(pa.array([cell])).to_pylist() == [text]


def test_other_programs_read_it_too(tmp_path: Path) -> None:
    table = pa.table({"a": [1.5, None], "b": ["x\ny", '"'], "t": [datetime(2020, 1, 1), datetime(2020, 1, 2, 3)]})
    write_table(tmp_path / "t.csv", table)
    frame = pd.read_csv(tmp_path / "t.csv", parse_dates=["t"])
    assert frame["a"].isna().tolist() == [False, True]
    assert frame["b"].tolist() == ["x\ny", '"']
    assert frame["t"].tolist() == table.column("t").to_pandas().tolist()


@pytest.mark.parametrize(
    "names", [["a;b", "c"], ["a", "#b"], ["#a"], ["sep=;"], ["a\tb"], ["=a", "'=b"], ["a,b", "c|d"]]
)
def test_names_of_all_sorts(names: list[str], tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", pa.table({name: ["1;2,3", "4"] for name in names}))
    assert read(tmp_path / "t.csv").schema.names == names
    with (tmp_path / "t.csv").open(newline="") as file:
        assert all(not cell.startswith(("=", "@")) for cell in next(csv.reader(io.StringIO(file.read()))))
