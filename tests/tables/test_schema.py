"""What columns are taken for, what is refused, and that a schema stays what it was."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.tables.frame import InMemory
from evenhand.tables.groups import GroupRule, find_groups
from evenhand.tables.ids import find_ids
from evenhand.tables.kinds import LARGEST
from evenhand.tables.labels import find_labels
from evenhand.tables.problems import TableError
from evenhand.tables.reading import read
from evenhand.tables.schema import Columns, Schema, infer, typed_schema
from evenhand.tables.spelling import alike


def kind(values: list[Any], **wanted: Any) -> str:
    """What a column of these cells is, with another one beside it."""
    return schema_of(values, **wanted)["c"].kind


def schema_of(values: list[Any], **wanted: Any) -> Schema:
    return infer(InMemory(pa.table({"c": pa.array(values), "x": range(len(values))}), "t"), Columns.of(**wanted))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2.5", " 3 "], "number"),
        (["1", "", "NA", "?", "null", "N/A"], "number"),
        (["1", "-"], "category"),
        (["1,5", "2,25"], "number"),
        (["1,000", "2,000"], "category"),
        (["1.5", "1,5"], "category"),
        (["$1", "$2"], "category"),
        (["007", "008"], "category"),
        (["0x1", "0x2"], "category"),
        (["2026-11-30", "2026-12-01 08:15"], "date"),
        (["2026-11-30T10:00:00+02:00", ""], "date"),
        (["30.11.2026", "1.12.2026"], "category"),
        (["yes", "No", ""], "yes/no"),
        (["true", "false"], "yes/no"),
        (["yes", "true"], "category"),
        (["NA", "null"], "category"),
        (["a", "b"], "category"),
        ([1, None], "number"),
        ([True, None], "yes/no"),
    ],
)
def test_kinds(cells: list[Any], expected: str) -> None:
    found = schema_of(cells)
    assert found["c"].kind == expected
    assert found["c"].use == "feature"


def test_texts_are_told_from_categories_by_their_words() -> None:
    assert kind([f"the case of {k}" for k in range(60)]) == "text"
    assert kind(["New York", "San Jose"] * 30) == "category"
    assert kind(["New York", "San Jose"] * 30, text="c") == "text"
    assert kind([f"img/{k}.png" for k in range(60)], image="c") == "image"
    assert kind([[1.0, 2.0]] * 3) == "vector"
    assert "c" not in schema_of([[1.0, 2.0]] * 3).encoded


def test_what_a_user_says_of_numbers_and_missing_words() -> None:
    money = ["$1,000.50", "€ 2", "12 %", "NA", "-3"]
    found = schema_of(money, numbers="c")
    assert found.read_column("c", pa.array(money)).to_pylist() == [1000.5, 2, 12, None, -3]
    for bad in ("(1,000)", "12kg", "one"):
        assert found.read(pa.table({"c": ["1", bad], "x": [0, 1]})).problems.keys() == {1}
    assert kind(["1", "gone", "2"], missing=["gone"]) == "number"
    typed = schema_of([1, -999, 2], missing=["-999"])
    assert typed.read(pa.table({"c": [1, -999], "x": [0, 1]})).table.column("c").to_pylist() == [1, None]


def test_columns_that_are_left_out_are_named_and_named_ones_are_refused() -> None:
    names = [f"n{k}" for k in range(50)]
    found = schema_of(names)
    assert found.features == ("x",)
    assert found.left_out == {"c": "50 values in 50 rows"}
    assert found.summary() == "1 number; left out: `c` (50 values in 50 rows)"
    with pytest.raises(TableError, match="'c' cannot be a feature: 50 values in 50 rows"):
        schema_of(names, features=["c"])
    assert schema_of(names, max_categories=50).features == ("c", "x")
    assert schema_of([None] * 3).left_out["c"] == "no values at all"
    with pytest.raises(TableError, match="no column is left"):
        infer(InMemory(pa.table({"c": names}), "t"), Columns())


def test_all_problems_are_named_at_once() -> None:
    slips = ["oops", *map(str, range(50))]
    frame = InMemory(pa.table({"a": slips, "b": slips, "c": slips}), "t")
    with pytest.raises(TableError, match=r"(?s)3 things to put right.*'a' mixes.*'b' mixes.*'c' mixes"):
        infer(frame, Columns())
    with pytest.raises(TableError, match=r"(?s)2 things to put right.*'z' \(label\).*'y' \(id\)"):
        infer(frame, Columns.of(label="z", id="y"))


CELLS = st.sampled_from(
    ["", "NA", "1", "2.5", "1,5", "-3", "a", "b c", "yes", "no", "2026-11-30", "1e3", "?", "01", " 7", "x y z"]
)


@settings(max_examples=300)
@given(st.lists(CELLS, min_size=1, max_size=40), st.lists(CELLS, max_size=5))
def test_a_file_and_its_frame_have_one_schema_that_stays(cells: list[str], more: list[str]) -> None:
    frame = pd.DataFrame({"c": cells, "key": [f"r{k % 3}" for k in range(len(cells))]})
    text = frame.to_csv(index=False)
    again = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    ways = [read(text.encode(), name="t.csv"), read(frame), read(again)]
    found = []
    for way in ways:
        try:
            found.append(infer(way, Columns()))
        except TableError as error:
            found.append(str(error).partition(": ")[2])
    assert found[0] == found[1] == found[2]
    if not isinstance(found[0], Schema):
        return
    schema = Schema.from_json(json.loads(json.dumps(found[0].to_json())))
    assert schema == found[0]
    read_ = [schema.read(way.read()).refuse("t") for way in ways]
    assert read_[0] == read_[1] == read_[2]
    # a later table is read cell by cell, but for the decimal mark, which is its own
    if "c" in schema.features and more:
        whole = InMemory(pa.table({"c": more, "key": ["r0"] * len(more)}), "t")
        later = schema.read(whole.read())
        marks = schema.marks(whole)
        alone = [schema.read(pa.table({"c": [cell], "key": ["r0"]}), marks=marks) for cell in more]
        assert set(later.problems) == {k for k, one in enumerate(alone) if one.problems}
        kept = [one.table.column("c")[0].as_py() for one in alone]
        assert later.table.column("c").to_pylist() == kept


@settings(max_examples=200)
@given(st.lists(st.none() | st.floats(-LARGEST, LARGEST) | st.integers(-(2**60), 2**60), min_size=1))
def test_numbers_are_read_exactly(numbers: list[float | int | None]) -> None:
    texts = ["" if number is None else repr(number) for number in numbers]
    if not any(texts):
        return
    schema = Schema.from_json(
        {"columns": [{"name": "c", "kind": "number", "use": "feature"}], "missing": [], "decimal": None}
    )
    found = schema.read(pa.table({"c": texts})).refuse("t").column("c").to_pylist()
    assert found == [None if number is None else number for number in numbers] or [
        None if n is None else float(n) for n in found
    ] == [None if number is None else float(number) for number in numbers]


def test_rows_that_do_not_fit_are_named_with_their_value() -> None:
    schema = infer(read(b"n;d;f\n1,5;2026-11-30;yes\n2;;no\n", name="t.csv"), Columns())
    rows = schema.read(
        pa.table({"n": ["3", "many", "4,5"], "d": ["soon", "", "2027-01-01"], "f": ["no", "yes", "maybe"]}), 10
    )
    assert rows.problems == {
        10: "d: 'soon' is not a date like 2026-11-30",
        11: "n: 'many' is not a number",
        12: "f: 'maybe' is not yes or no",
    }
    assert rows.table.column("n").to_pylist() == [3.0, None, 4.5]
    with pytest.raises(TableError, match="there is no column 'd'"):
        schema.read(pa.table({"n": ["1"], "f": ["yes"]}))


def test_types_alone_make_a_schema() -> None:
    types = pa.schema({"a": pa.int8(), "b": pa.string(), "c": pa.bool_(), "d": pa.timestamp("us")})
    assert typed_schema(types).summary() == "1 number, 1 category, 1 yes/no, 1 date"


# -------------------------------------------------------------------- groups, labels, ids

WORDS = st.text(st.sampled_from("aAéÉ \t1" + "e\u0301\u200b"), min_size=1, max_size=4).filter(lambda w: w.strip())


@settings(max_examples=200)
@given(st.lists(WORDS, min_size=1, max_size=12))
def test_groups_are_as_written_and_spellings_are_one_or_refused(words: list[str]) -> None:
    frame = read(pd.DataFrame({"g": words}))
    one = len({alike(word) for word in words}) == len(set(words))
    if not one:
        with pytest.raises(TableError, match="--merge-spellings"):
            find_groups(frame, GroupRule(("g",)))
    groups, _ = find_groups(frame, GroupRule(("g",), merge_spellings=not one))
    names = [groups.names[code] for code in groups.codes]
    assert all(alike(name) == alike(word) for name, word in zip(names, words, strict=True))
    assert set(names) <= set(words)
    if one:
        assert names == words
    labels = find_labels(frame, "g", merge_spellings=True)
    assert len(labels.classes) <= len({alike(word) for word in words})


@pytest.mark.parametrize(
    ("cells", "groups"),
    [
        (["10", "9", "9"], ["9", "10"]),
        ([10.0, 9.0], ["9", "10"]),
        (["1", "01", "1.0", "NA"], ["01", "1", "1.0", "NA"]),
        (["b", "a", "2"], ["2", "a", "b"]),
        ([True, False], ["False", "True"]),
    ],
)
def test_groups_in_natural_order(cells: list[Any], groups: list[str]) -> None:
    assert sorted(find_groups(read(pd.DataFrame({"g": cells})), GroupRule(("g",)))[0].names) == sorted(groups)
    assert list(find_groups(read(pd.DataFrame({"g": cells})), GroupRule(("g",)))[0].names)[-1] == groups[-1]


@pytest.mark.parametrize(
    ("cells", "classes"),
    [
        (["1", "0", ""], (0, 1)),
        (["1.0", "0", "1"], (0, 1)),
        ([1.0, 0.0, None], (0, 1)),
        (["10", "9"], (9, 10)),
        (["01", "1"], ("01", "1")),
        (["true", "false"], ("false", "true")),
        ([True, False], (False, True)),
        (["NA", "yes"], ("NA", "yes")),
    ],
)
def test_classes(cells: list[Any], classes: tuple[Any, ...]) -> None:
    found = find_labels(read(pd.DataFrame({"y": cells})), "y")
    assert found.classes == classes
    assert [type(c) for c in found.classes] == [type(c) for c in classes]
    assert [None if code < 0 else classes[code] for code in found.codes].count(None) == sum(
        c in ("", None) for c in cells
    )


def test_decimal_labels_are_refused() -> None:
    for cells in (["0.5", "1"], [0.5, 1.0]):
        with pytest.raises(TableError, match="decimal numbers"):
            find_labels(read(pd.DataFrame({"y": cells})), "y")


def test_ids() -> None:
    assert find_ids(read(pd.DataFrame({"i": [1.0, 2.0]})), "i").to_pylist() == ["1", "2"]
    assert find_ids(read(pd.DataFrame({"i": ["01", "1", "NA"]})), "i").to_pylist() == ["01", "1", "NA"]
    for cells, message in (
        (["a", "a"], "comes again in row 2"),
        (["a", ""], "missing in row 2"),
        ([0.5, 1], "is no id"),
    ):
        with pytest.raises(TableError, match=message):
            find_ids(read(pd.DataFrame({"i": cells})), "i")


def test_bins_and_intersections() -> None:
    frame = read(pd.DataFrame({"age": ["20", "70", "30", "25"], "sex": list("fmfm")}))
    groups, _ = find_groups(frame, GroupRule(("sex", "age:25,65")))
    assert [groups.names[code] for code in groups.codes] == [
        "sex=f, age=under 25", "sex=m, age=65 and over", "sex=f, age=25 to under 65", "sex=m, age=25 to under 65",
    ]  # fmt: skip
    assert np.array_equal(groups.counts, np.bincount(groups.codes))
