"""Tables that cannot be used, each with a message that says what to do."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.sources.table.table import Table
from evenhand.tables.problems import TableError


def good(n: int = 40) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "x": np.arange(n) / 7,
            "c": list("ab") * (n // 2),
            "sex": list("ffmm") * (n // 4),
            "y": [0, 1, 1, 0] * (n // 4),
        }
    )


def refused(data: Any, match: str, **settings: Any) -> None:
    with pytest.raises(TableError, match=match):
        Table(data, **({"label": "y", "groups": "sex"} | settings))


def written(tmp_path: Path, text: str | bytes, name: str = "pool.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"label": "Y"}, r"no column 'Y' \(label\); did you mean 'y'"),
        ({"groups": "sx"}, "did you mean 'sex'"),
        ({"groups": "zzz"}, "the columns are 'x', 'c', 'sex', 'y'"),
        ({"groups": []}, "at least one group column"),
        ({"groups": ["sex", "sex"]}, "must all be different"),
        ({"groups": "y"}, "must all be different"),
        ({"groups": "x:3,1"}, "must go upwards"),
        ({"groups": "x:a,b"}, "must be numbers"),
        ({"groups": "c:1,2"}, "is not a number"),
        ({"features": ["x", "q"]}, "no column 'q'"),
        ({"ignore": ["x", "c"]}, "no column is left"),
        ({"exclude": ["fem"]}, "no group 'fem'"),
        ({"exclude": ["f", "m"]}, "every group is excluded"),
        ({"test": 1.5}, "share must lie"),
        ({"validation": 0}, "validation must lie"),
        ({"fill": "drop"}, "fill must be one of"),
        ({"spellings": "any"}, "spellings must be one of"),
        ({"replace": "yes"}, "replace must be one of"),
        ({"scale_by": "all"}, "scale_by must be one of"),
        ({"scale": "log"}, "scale must be one of 'standard', 'minmax', 'none'"),
        ({"max_categories": 1, "features": ["c"]}, "'c' cannot be a feature: 2 values"),
        ({"numbers": ["c"]}, r"row 1: c: 'a' is not a number"),
        ({"missing": ["0"]}, "'y' is missing in 20 rows"),
    ],
)
def test_settings(settings: dict[str, Any], match: str) -> None:
    refused(good(), match, **settings)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"y": 1}, "always 1"),
        ({"y": [2, *[0, 1] * 19, 0]}, r"single example of 2"),
        ({"y": [None, *[0, 1] * 19, 0]}, "missing in 1 rows"),
        ({"y": np.arange(800) // 2}, "make classes of it"),
        ({"sex": ["x", *["f"] * 39]}, "have one: 'x'; make one group of all small ones"),
        ({"y": np.arange(40) % 2 + 0.5}, "decimal numbers"),
        ({"y": ["Yes", "no ", "yes", "no"] * 10}, r"'Yes', 'yes'; 'no'|'no', 'no '|spellings"),
        ({"sex": [None, *["f", "m"] * 19, "m"]}, "'sex' tells the group, and is empty in row 1"),
        ({"sex": ["F", "f", "m", "m"] * 10}, "differ only by case.*'F', 'f'.*--merge-spellings"),
        ({"x": [np.inf, *range(39)]}, r"row 1: x: inf is beyond"),
        ({"x": ["one", *range(39)]}, r"'x' mixes types \(int, str\)"),
        ({"x": ["one", *map(str, range(39))]}, r"mixes numbers and text \('one'\)"),
        ({"sex": [[1]] * 40}, "'sex' holds list<item: int64>"),
        ({"y": [[1]] * 40}, "'y' holds list<item: int64>"),
    ],
)
def test_columns(change: dict[str, Any], match: str) -> None:
    n = max([40, *(len(v) for v in change.values() if hasattr(v, "__len__"))])
    refused(good(n).assign(**change), match)


def test_a_number_with_too_many_values_as_group_asks_for_bins() -> None:
    frame = good(4000)
    refused(frame, r"give bins, like 'x:25,45,65'", groups="x")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"x": None}, "no values at all"),
        ({"x": np.nan}, "no values at all"),
        ({"x": [[1]] * 40}, "list<item: int64>, which no learner can use"),
        ({"x": [b"a", b"b"] * 20}, "images are not learned from yet"),
        ({"x": [f"p{i}" for i in range(40)]}, "40 values in 40 rows"),
        ({"x": ["a word and more of them " + str(i) for i in range(40)]}, "texts are not learned from yet"),
    ],
)
def test_columns_that_nothing_can_be_learned_from_are_left_out_and_named(change: dict[str, Any], why: str) -> None:
    table = Table(good().assign(**change), label="y", groups="sex")
    assert table.left_out["x"] == why
    assert f"`x` ({why})" in table.was_read[1]
    assert table.feature_columns == ["c"]


def test_ten_thousand_categories() -> None:
    frame = good(20_000).assign(id=[f"p{i // 2}" for i in range(20_000)])
    table = Table(frame, label="y", groups="sex")
    assert table.feature_columns == ["x", "c"]
    assert table.left_out["id"] == "10,000 values"
    refused(frame, "'id' cannot be a feature: 10,000 values", features=["id", "x"])
    assert "id" in Table(frame, label="y", groups="sex", max_categories=10_000).feature_columns


def test_everything_wrong_is_said_at_once() -> None:
    slips = ["one", *map(str, range(39))]
    refused(good().assign(x=slips, c=slips), "(?s)2 things to put right.*'x' mixes.*'c' mixes")
    refused(good().assign(y=0, sex=["x", *["f"] * 39]), "(?s)2 things to put right.*always 0.*have one: 'x'")


def test_duplicate_columns(tmp_path: Path) -> None:
    refused(good().rename(columns={"c": "x"}), "more than one column is called 'x'")
    refused(written(tmp_path, "x,x,sex,y\n1,2,f,0\n"), "more than one column is called 'x'")


def test_not_a_table() -> None:
    refused([1, 2], "got list")
    refused(good()[:0], "no rows")
    refused("nowhere.csv", "no file 'nowhere.csv'")


def test_csv_files(tmp_path: Path) -> None:
    frame = good()
    refused(written(tmp_path, ""), "is empty")
    refused(written(tmp_path, "x,sex,y\n"), "no rows")
    refused(written(tmp_path, frame.to_csv(sep=";", index=False)), "looks separated by ';'", separator="|")
    refused(written(tmp_path, "x,sex,y\n1,f,0\n1,2,3,4\n"), "row 2: it has 4 cells, the header has 3")
    refused(written(tmp_path, frame.to_csv(index=False)), "do not make a CSV", decimal=",")
    latin = frame.assign(c="Málaga").to_csv(index=False).encode("latin-1")
    refused(written(tmp_path, latin), "not written in utf-8.*encoding='latin-1'")
    assert Table(written(tmp_path, frame.to_csv(index=False).encode("utf-16")), label="y", groups="sex").groups == (
        "f",
        "m",
    )
    refused(written(tmp_path, latin), "unknown encoding 'klingon'", encoding="klingon")


def test_csv_files_with_the_right_settings(tmp_path: Path) -> None:
    frame = good()
    expected = Table(frame, label="y", groups="sex").open(0, [0]).draw(np.array([0]), np.array([9]))
    text = frame.to_csv(sep=";", decimal=",", index=False).encode("utf-16")
    files = [
        (written(tmp_path, text), {"separator": ";", "decimal": ",", "encoding": "utf-16"}),
        (written(tmp_path, frame.to_csv(sep=";", decimal=",", index=False), "comma.csv"), {}),
        (written(tmp_path, frame.to_csv(sep="|", index=False), "bars.csv"), {}),
        (written(tmp_path, frame.to_csv(sep="\t", index=False), "pool.tsv"), {}),
        (written(tmp_path, b"\xef\xbb\xbf" + frame.to_csv(index=False).encode(), "bom.csv"), {}),
    ]
    for path, form in files:
        drawn = Table(path, label="y", groups="sex", **form).open(0, [0]).draw(np.array([0]), np.array([9]))
        np.testing.assert_allclose(drawn.X, expected.X, atol=1e-12)


@pytest.mark.parametrize("on_disk", [False, True])
def test_parquet_files(tmp_path: Path, on_disk: bool) -> None:
    nested = pa.table({"x": [[1], [2]] * 4, "sex": list("fm") * 4, "y": [0, 1, 1, 0] * 2})
    pq.write_table(nested, tmp_path / "nested.parquet")
    refused(tmp_path / "nested.parquet", "no column is left.*`x`.*list", on_disk=on_disk)
    refused(tmp_path / "nested.parquet", "'x' holds list", on_disk=on_disk, groups="x", features=["sex"])
    refused(written(tmp_path, "not parquet", "bad.parquet"), "cannot be read as Parquet", on_disk=on_disk)
    refused(tmp_path / "none.parquet", "no file", on_disk=on_disk)


def test_other_kinds_of_files_and_objects(tmp_path: Path) -> None:
    refused(written(tmp_path, "PK", "pool.xlsx"), r"\.xlsx files cannot be read")
    frame = pl.DataFrame({"x": pl.Series([object(), object()], dtype=pl.Object), "sex": ["f", "m"], "y": [0, 1]})
    refused(frame, "'x' holds Python objects")


def test_compressed_csv_files(tmp_path: Path) -> None:
    good().to_csv(tmp_path / "pool.csv.gz", index=False)
    assert Table(tmp_path / "pool.csv.gz", label="y", groups="sex").groups == ("f", "m")


def test_json_lines_and_gz(tmp_path: Path) -> None:
    good().to_json(tmp_path / "pool.jsonl", orient="records", lines=True)
    good().to_csv(tmp_path / "pool.csv.gz", index=False)
    tables = [Table(tmp_path / name, label="y", groups="sex") for name in ("pool.jsonl", "pool.csv.gz")]
    assert [table.was_read[0] for table in tables] == [
        "read 40 rows, 4 columns",
        "read 40 rows, 4 columns, separator ,, gzip",
    ]
    assert tables[0].was_read[1] == tables[1].was_read[1]


def test_a_column_that_numbers_the_rows_is_pointed_out() -> None:
    frame = good().reset_index()
    assert (
        "column 'index': it only numbers the rows: you may want to ignore it"
        in Table(frame, label="y", groups="sex").notes
    )


def test_dates_in_other_forms_are_pointed_out() -> None:
    def noted(when: list[str]) -> bool:
        frame = good().assign(when=(when * 40)[:40])
        return any("'when': dates that are not written like" in n for n in Table(frame, label="y", groups="sex").notes)

    assert noted(["29.11.2024", "1.2.2025", None, "3/4/25"])
    assert not noted(["1.2.3", "version", "10-20", "2024"])
    real = good().assign(when=pd.date_range("2024-11-29", periods=40).strftime("%Y-%m-%d"))
    table = Table(real, label="y", groups="sex")
    assert table.schema["when"].kind == "date"
    assert not [note for note in table.notes if "dates" in note]


def test_ids_are_no_features_when_they_are_named() -> None:
    frame = good().assign(person=range(40))
    assert any("'person': it only numbers the rows" in note for note in Table(frame, label="y", groups="sex").notes)
    table = Table(frame, label="y", groups="sex", id="person")
    assert not [note for note in table.notes if "person" in note]
    assert table.left_out["person"] == "the id"


def test_column_names_that_are_numbers() -> None:
    frame = good().set_axis([0, 1, 2, 3], axis=1)
    assert Table(frame, label=3, groups=[2]).groups == ("f", "m")


def test_dates_and_decimals_are_numbers() -> None:
    day = pa.array(pd.date_range("2020-01-01", periods=40).date)
    columns = {
        "day": day,
        "time": pa.array(pd.date_range("2020-01-01", periods=40, freq="min")),
        "price": pa.array([None, *range(39)], pa.decimal128(10, 2)),
        "on": pa.array([True, False] * 20),
    }
    table = pa.table(columns | {"sex": list("ffmm") * 10, "y": [0, 1, 1, 0] * 10})
    source = Table(table, label="y", groups="sex", test=None, scale="minmax")
    assert source.feature_names == ["day", "time", "price", "on", "price=(missing)"]
    drawn = source.open(0, [0]).draw(np.array([0]), np.array([20]))
    trained = drawn.X[~drawn.validation][:, :2]
    assert trained.min() >= 0
    assert trained.max() <= 1


def test_folders(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "holds no .parquet file")
    good().to_parquet(tmp_path / "a.parquet")
    good().drop(columns="c").to_parquet(tmp_path / "b.parquet")
    refused(tmp_path, "do not have the same columns")


def test_test_parts() -> None:
    frame = good()
    refused(frame, "groups the pool has not: 'd'", test=frame.assign(sex="d"))
    refused(frame, "values the pool has not: 7", test=frame.assign(y=7))
    refused(frame, "no column 'x'", test=frame.drop(columns="x"))
    refused(frame, "row 1: x: 'many' is not a number", test=frame.assign(x="many"))
    refused(frame, "missing in 1 rows", test=frame.assign(y=[None, *[0.0, 1.0] * 19, 1.0]))


def test_a_random_split_needs_a_share_of_rows() -> None:
    frame = good()
    for given in ({"test": None}, {"test": frame}, {"split_by": "x"}):
        refused(frame, "stratify=False has no effect", stratify=False, **given)
