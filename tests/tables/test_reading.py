"""Files as people and programs write them: separators, encodings, packing, rows that do not fit."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.tables import reading
from evenhand.tables.problems import TableError
from evenhand.tables.reading import Format, column_names, read
from evenhand.tables.writing import unguarded_text

CELLS = st.text(st.sampled_from("ab1 ,;|\t\"'\n#é.-"), max_size=6)
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8)


def written(rows: list[tuple[str, str]], separator: str = ",", end: str = "\n") -> str:
    frame = pd.DataFrame(rows, columns=["first", "second"])
    return frame.to_csv(index=False, sep=separator, lineterminator=end, quoting=1)


def values(data: Any, form: Format | None = None, name: str = "t.csv") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read(data, form, name=name).read().to_pylist()
    return found


def as_rows(rows: list[tuple[str, str]]) -> list[dict[str, str]]:
    """What must be read: everything but rows without any value."""
    found = [(unguarded_text(a), unguarded_text(b)) for a, b in rows]
    return [{"first": a, "second": b} for a, b in found if a or b]


@settings(max_examples=150)
@given(
    ROWS, st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])
)
def test_dialects_are_told_from_the_file(rows: list[tuple[str, str]], separator: str, end: str, encoding: str) -> None:
    rows = [("x", "y"), *rows]
    data = written(rows, separator, end).encode(encoding)
    assert values(data) == as_rows(rows)
    assert values(gzip.compress(data)) == as_rows(rows)
    assert read(data, name="t.csv").dialect is not None


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_a_file_read_in_chunks_is_the_same(rows: list[tuple[str, str]], tmp_path: Path) -> None:
    rows = [("x", "y"), *rows, ("z", "'=1")]
    path = tmp_path / "t.csv"
    path.write_text(written(rows), encoding="utf-8", newline="")
    whole = read(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "STREAMED", 0)
        chunks = read(path)
    assert type(chunks) is not type(whole)
    # rows without a value are only known to be that once the whole row is seen
    assert [row for row in chunks.read().to_pylist() if any(row.values())] == whole.read().to_pylist()
    assert chunks.schema == whole.schema
    assert pa.concat_arrays(list(chunks.column("second"))).to_pylist()[-1] == "=1"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lambda data: pa.compress(data, "zstd", asbytes=True)])
def test_packed_files(pack: Any) -> None:
    with_size = pack(b"a,b\n1,2\n")
    try:
        assert values(with_size) == [{"a": "1", "b": "2"}]
    except TableError as error:  # a frame of zstd that does not say its size
        raise AssertionError from error


def test_zip_archives(tmp_path: Path) -> None:
    def archive(*names: str) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as found:
            for name in names:
                found.writestr(name, "a,b\n1,2\n")
        return file.getvalue()

    assert values(archive("x.csv", "__MACOSX/._x.csv")) == [{"a": "1", "b": "2"}]
    with pytest.raises(TableError, match="holds 2 files"):
        read(archive("x.csv", "y.csv"), name="t.csv.zip")
    with pytest.raises(TableError, match=r"cannot be unpacked: it is no \.zip file"):
        read(b"a,b\n1,2\n", name="t.csv.zip")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_file_that_unpacks_without_end_is_refused(pack: Any) -> None:
    bomb = pack(b"a,b\n" + b"1,2\n" * 3_000_000)
    assert len(bomb) < 100_000
    with pytest.raises(TableError, match="unpacks to more than 1 MiB"):
        read(bomb, name="t.csv", largest=1 << 20)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("sep=;\na;b\n1,5;x\n", {"a": "1,5", "b": "x"}),
        ("\n\na,b\n1,x\n", {"a": "1", "b": "x"}),
        ("a,b\r1,x\r", {"a": "1", "b": "x"}),
        ("a,b,\n1,x,\n", {"a": "1", "b": "x"}),
        ('a,b\n"1\n2",x\n', {"a": "1\n2", "b": "x"}),
        ('"a;b",c\n1,x\n', {"a;b": "1", "c": "x"}),
        ("a\n1", {"a": "1"}),
        ("a,b\n'=1,'tis\n", {"a": "=1", "b": "'tis"}),
        ("a,b\n01, NA \n", {"a": "01", "b": " NA "}),
    ],
)
def test_cells_are_text_as_they_are_written(text: str, first: dict[str, str]) -> None:
    assert values(text.encode())[0] == first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv is empty"),
        ("\n\n", "t.csv is empty"),
        ("a,b\n", "no rows"),
        ("# who made it\na,b\n1,2\n", "begins with a comment"),
        ("a,,b\n1,2,3\n", "column 2 has no name"),
        ("a,b,\n1,2,3\n", "column 3 has no name"),
        ("a,a\n1,2\n", "more than one column is called 'a'"),
    ],
)
def test_files_that_are_no_tables(text: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        read(text.encode(), name="t.csv")


def test_rows_that_do_not_fit_are_named_and_keep_their_place() -> None:
    frame = read(b"a,b\n1,2\n3\n4,5\n6,7,8\n9,10\n", name="t.csv")
    assert frame.skipped == {1: "it has 1 cell, the header has 2", 3: "it has 3 cells, the header has 2"}
    assert frame.read().column("a").to_pylist() == ["1", "", "4", "", "9"]
    many = read(b"a,b\n" + b"1,2\n1\n" * 50_000, name="t.csv")
    assert (len(many), len(many.skipped)) == (100_000, 50_000)
    with pytest.raises(TableError, match=r"(?s)50,000 rows cannot be used:.*row 2: .*and 49,995 more"):
        many.refuse_skipped()


def test_what_is_said_of_a_file_must_fit() -> None:
    data = b"a;b\n1;2\n"
    assert values(data, Format(separator=";")) == [{"a": "1", "b": "2"}]
    for form, message in (
        (Format(separator="|"), "looks separated by ';'"),
        (Format(separator="ab"), "one character"),
        (Format(encoding="klingon"), "unknown encoding 'klingon'"),
        (Format(encoding="ascii"), "not written in ascii"),
        (Format(separator=",", decimal=","), "do not make a CSV file"),
    ):
        with pytest.raises(TableError, match=message):
            read(data + "é;x\n".encode(), form, name="t.csv")


def test_json_lines_and_json_arrays() -> None:
    records = [{"a": 1, "b": "x"}, {"a": None, "b": "2026-11-30"}, {"b": "é"}]
    lines = "\n".join(json.dumps(record) for record in records)
    expected = [{"a": 1, "b": "x"}, {"a": None, "b": "2026-11-30"}, {"a": None, "b": "é"}]
    assert values(lines.encode(), name="t.jsonl") == expected
    assert values(json.dumps(records).encode(), name="t.json") == expected
    assert values(gzip.compress(lines.encode()), name="t.jsonl.gz") == expected
    broken = read((lines + "\n[1]\n{oops\n").encode(), name="t.jsonl")
    assert sorted(broken.skipped) == [3, 4]
    for text in ("", "[]", "{oops"):
        with pytest.raises(TableError):
            read(text.encode(), name="t.jsonl")


def test_frames_of_every_library_are_one() -> None:
    frame = pd.DataFrame({"x": [1.5, None, 3.0], "k": ["a", None, ""], "n": [1, 2, 3], "on": [True, False, True]})
    frame["when"] = pd.to_datetime(["2020-01-01 00:00", "2020-01-02 03:04", None])
    kinds = [
        frame,
        pl.from_pandas(frame),
        pl.from_pandas(frame).lazy(),
        pa.Table.from_pandas(frame, preserve_index=False),
    ]
    found = [read(each).read() for each in kinds]
    assert all(other.equals(found[0]) for other in found[1:])
    np.testing.assert_array_equal(read(np.eye(2)).read().to_pandas().to_numpy(), np.eye(2))


def test_ordered_categories_keep_their_order() -> None:
    series = pd.Categorical(["low", "high", "low"], categories=["low", "mid", "high"], ordered=True)
    column = read(pd.DataFrame({"k": series})).read().column("k")
    assert column.type.ordered
    assert column.chunk(0).dictionary.to_pylist() == ["low", "mid", "high"]


def test_folders_and_partitions(tmp_path: Path) -> None:
    for sex in ("f", "m"):
        (tmp_path / f"sex={sex}").mkdir()
        pq.write_table(pa.table({"x": [1, 2]}), tmp_path / f"sex={sex}" / "part.parquet")
    frame = read(tmp_path)
    assert frame.read().to_pydict() == {"x": [1, 2, 1, 2], "sex": ["f", "f", "m", "m"]}
    assert frame.take(np.array([1, 2]), ["sex", "x"]).to_pydict() == {"sex": ["f", "m"], "x": [2, 1]}


def test_names_are_known_without_the_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a;'=b\n" + b"1;2\n3\n" * 1000)
    assert column_names(tmp_path / "t.csv") == ["a", "=b"]
    assert column_names(pd.DataFrame({"a": [1]})) == ["a"]


@pytest.mark.parametrize("data", [3, [1, 2], {"a": [1]}, np.array(["x"]), np.zeros(3), pd.Series([1])])
def test_what_is_no_table_is_refused(data: Any) -> None:
    with pytest.raises(TableError):
        read(data)
