"""Odd tables, as people and programs write them: each a small file, its options, and what every way must make of it.

Three columns carry meaning everywhere: `group`, `label` and, where an odd table is about ids, `id`.
"""

from __future__ import annotations

import gzip
import io
import zipfile
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["ODD", "Odd"]

N = 240


@dataclass(frozen=True)
class Odd:
    """A table: the bytes of its file, the file's ending, options, and words of the refusal if it must be refused."""

    name: str
    data: bytes
    ending: str = "csv"
    options: dict[str, Any] = field(default_factory=dict)
    refused: str = ""
    separator: str | None = None

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.{self.ending}"
        path.write_bytes(self.data)
        return path

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `Table` and `curate`."""
        return {"label": "label", "groups": "group"} | self.options

    def frames(self) -> list[Any]:
        """The same rows as frames; none where it is the file that is odd."""
        if {"separator", "decimal", "encoding"} & self.options.keys():
            return []
        if self.separator is not None:
            frame = pd.read_csv(io.BytesIO(self.data), dtype=str, keep_default_na=False, sep=self.separator)
            return [frame, pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)]
        if self.ending == "parquet" and not self.refused.startswith("cannot"):
            return [pq.ParquetFile(io.BytesIO(self.data)).read()]
        return []


ODD: dict[str, Odd] = {}


def plain(n: int = N) -> pd.DataFrame:
    """Two groups, two numbers, a category and a label that the numbers say something about."""
    rng = np.random.default_rng(7)
    group, a, b = rng.choice(["u", "v"], n), rng.normal(size=n).round(6), rng.normal(size=n).round(6)
    return pd.DataFrame(
        {
            "id": [f"r{k}" for k in range(n)],
            "group": group,
            "a": a,
            "b": b,
            "kind": rng.choice(["p", "q", "r"], n),
            "label": (a + (group == "v") * b + rng.normal(size=n) / 2 > 0).astype(int),
        }
    )


def put(name: str, data: bytes, refused: str = "", ending: str = "csv", **options: Any) -> None:
    assert name not in ODD, name
    ODD[name] = Odd(name, data, ending, options, refused)


def csv(name: str, frame: pd.DataFrame, refused: str = "", *, said: dict[str, Any] | None = None, **how: Any) -> None:
    data = frame.to_csv(index=False, **how).encode()
    ODD[name] = Odd(name, data, "csv", said or {}, refused, how.get("sep", ","))


def arrow(name: str, columns: dict[str, Any] | pa.Table, refused: str = "", **options: Any) -> None:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    file = io.BytesIO()
    pq.write_table(table, file)
    put(name, file.getvalue(), refused, "parquet", **options)


def columns_of(frame: pd.DataFrame) -> dict[str, Any]:
    return {str(name): pa.array(frame[name].tolist()) for name in frame}


def changed(**columns: Any) -> pd.DataFrame:
    return plain().assign(**columns)


def every(k: int, value: Any, column: str, frame: pd.DataFrame | None = None) -> pd.DataFrame:
    """The frame with a value in every k-th cell of a column."""
    frame = plain() if frame is None else frame
    texts = [str(v) for v in frame[column]]
    return frame.assign(**{column: [value if i % k == 0 else text for i, text in enumerate(texts)]})


def _numbers() -> None:
    csv("plain", plain())
    csv("gaps", every(7, "", "a"))
    csv("words_for_missing", every(9, "NA", "a", every(11, "?", "b")))
    csv("a_word_of_their_own", every(9, "unknown", "a"), said={"missing": ["unknown"]})
    csv("a_slip_among_numbers", every(100, "12kg", "a"), "mixes numbers and text")
    csv("infinite", every(100, "inf", "a"), "beyond")
    csv("too_large", every(100, "1e400", "a"), "beyond")
    csv("tiny", changed(a=plain()["a"] * 1e-320))
    csv("huge_whole_numbers", changed(a=[2**70 + k for k in range(N)]))
    csv("whole_numbers_beyond_floats", changed(a=[2**53 + k for k in range(N)]))
    csv("blanks_around_numbers", changed(a=[f" {v:.3f} " for v in plain()["a"]]))
    csv("signs_of_zero", changed(a=np.where(np.arange(N) % 2, 0.0, -0.0)))
    csv("numbers_that_begin_with_0", changed(a=[f"{k % 20:04d}" for k in range(N)]))
    csv("hexadecimal", changed(a=[hex(k % 30) for k in range(N)]))
    csv("underscores", changed(a=["1_000", "2_0"] * (N // 2)))
    csv("arabic_digits", changed(a=["٣", "١٢"] * (N // 2)))
    csv("thousands", changed(a=["1,000", "2,500"] * (N // 2)))
    csv("thousands_as_numbers", changed(a=["1,000", "2,500.5"] * (N // 2)), said={"numbers": "a"})
    csv("currency", changed(a=[f"${1 + k % 9}" for k in range(N)]))
    csv("currency_as_numbers", changed(a=[f"${k:,}" for k in range(1000, 1000 + N)]), said={"numbers": "a"})
    csv("brackets_are_no_numbers", changed(a=["(1,000)", "3"] * (N // 2)), "row 1: a:", said={"numbers": "a"})
    csv("percent", changed(a=[f"{k % 50}%" for k in range(N)]))
    csv("decimal_comma", changed(a=[f"{v:.3f}".replace(".", ",") for v in plain()["a"]]), sep=";")
    csv("decimal_comma_quoted", changed(a=[f"{v:.3f}".replace(".", ",") for v in plain()["a"]]))
    both = changed(a=[f"{v:.3f}".replace(".", ",") for v in plain()["a"]])
    csv("commas_and_points", both, sep=";")
    csv("commas_and_points_in_one", every(2, "0.5", "a", both), "", sep=";")
    csv("comma_that_was_said", both, said={"decimal": ","}, sep=";")
    arrow("uint64", columns_of(plain()) | {"a": pa.array([2**63 + k for k in range(N)], pa.uint64())})
    arrow("float16", columns_of(plain()) | {"a": pa.array(np.arange(N).astype(np.float16))})
    arrow("decimal_type", columns_of(plain()) | {"a": pa.array([Decimal(k) / 4 for k in range(N)])})
    arrow("infinite_parquet", columns_of(plain()) | {"a": pa.array([float("inf"), *[1.0] * (N - 1)])}, "beyond")


def _times_and_truth() -> None:
    days = [(date(2020, 1, 1) + timedelta(days=k % 90)) for k in range(N)]
    csv("dates", changed(when=days))
    csv("dates_with_gaps", every(6, "", "when", changed(when=days)))
    csv("times", changed(when=pd.date_range("2020-01-01", periods=N, freq="37min")))
    csv("times_in_zones", changed(when=pd.date_range("2020-01-01", periods=N, freq="h", tz="Europe/Berlin")))
    csv("dates_of_another_form", changed(when=[f"{d:%d.%m.%Y}" for d in days]))
    csv("clock_times", changed(when=[f"{k % 24:02d}:30" for k in range(N)]))
    arrow("dates_parquet", columns_of(plain()) | {"when": pa.array(days)})
    zoned = pd.date_range("2020-01-01", periods=N, freq="h", tz="Europe/Berlin")
    arrow("zones_parquet", columns_of(plain()) | {"when": pa.array(zoned)})
    arrow("clock_parquet", columns_of(plain()) | {"when": pa.array([time(k % 24) for k in range(N)])})
    arrow("durations", columns_of(plain()) | {"long": pa.array([timedelta(hours=k) for k in range(N)])})
    csv("yes_and_no", changed(flag=["yes", "no", "YES"] * (N // 3)))
    csv("true_and_false", changed(flag=["true", "false"] * (N // 2)))
    arrow("truth", columns_of(plain()) | {"flag": pa.array([True, False, None] * (N // 3))})


def _labels_and_groups() -> None:
    label = plain()["label"]
    csv("label_words", changed(label=label.map({0: "no", 1: "yes"})))
    csv("label_true_and_false", changed(label=label.map({0: "false", 1: "true"})))
    csv("label_with_points", changed(label=label.astype(float)))
    csv("label_with_some_points", every(2, "1.0", "label", changed(label=1 - label * 0)), "always 1")
    csv("label_fractions", changed(label=label + 0.5), "decimal numbers")
    csv("label_case", every(3, "YES", "label", changed(label=label.map({0: "no", 1: "yes"}))), "differ only by case")
    merged = {"spellings": "merge"}
    csv("label_case_merged", every(3, "YES", "label", changed(label=label.map({0: "no", 1: "yes"}))), said=merged)
    csv("label_blanks", every(3, "yes ", "label", changed(label=label.map({0: "no", 1: "yes"}))), "differ only by case")
    accents = label.map({0: "tea", 1: "caf\u00e9"})
    csv("label_forms", every(4, "cafe\u0301", "label", changed(label=accents)), "Unicode form")
    csv("label_named_NA", changed(label=label.map({0: "NA", 1: "yes"})))
    csv("label_1_and_01", changed(label=label.map({0: "01", 1: "1"})))
    csv("label_of_one_class", changed(label=1), "always 1")
    csv("label_of_many_classes", changed(label=[k // 2 for k in range(N)]))
    csv(
        "label_of_too_many_classes",
        pd.concat([plain()] * 2).assign(label=[k // 2 for k in range(2 * N)]),
        "make classes",
    )
    csv("label_another_in_every_row", changed(label=range(N)), "make classes")
    csv("label_once", changed(label=[5, *plain()["label"][1:]]), "single example of 5")
    csv("label_formula", changed(label=label.map({0: "=1+1", 1: "@SUM(A1)"})))
    arrow("label_truth", columns_of(plain()) | {"label": pa.array((label == 1).tolist())})
    arrow("label_decimal_type", columns_of(plain()) | {"label": pa.array([Decimal(int(v)) for v in label])})
    arrow("label_dates", columns_of(plain()) | {"label": pa.array([date(2020, 1, 1 + int(v)) for v in label])})
    arrow("label_lists", columns_of(plain()) | {"label": pa.array([[1]] * N)}, "make it text or numbers")
    group = plain()["group"]
    csv("group_gaps", every(9, "", "group"), "is empty in rows 1, 10")
    csv("group_case", every(3, "U", "group"), "differ only by case")
    csv("group_case_merged", every(5, "U", "group"), said=merged)
    csv("group_blanks", every(3, "u ", "group"), "differ only by case")
    invisible = group.map({"u": "u", "v": "v"}).mask(np.arange(N) % 4 == 0, "u\u200b")
    csv("group_invisible", changed(group=invisible), "differ only by case")
    csv("group_names_that_mean_missing", changed(group=group.map({"u": "NA", "v": "NULL"})))
    csv("group_1_01_and_1.0", changed(group=["1", "01", "1.0"] * (N // 3)))
    csv("group_leading_zeros", changed(group=group.map({"u": "000", "v": "001"})))
    csv("group_numbers_in_order", changed(group=[str(9 + k % 2) for k in range(N)]))
    csv("group_bins", plain(), said={"groups": "a:-1,1"})
    csv("group_bins_of_text", plain(), "has bins", said={"groups": "kind:1,2"})
    csv("group_alone", changed(group="only"))
    csv("group_of_one_row", changed(group=["solo", *group[1:]]), "have one: 'solo'")
    csv("group_another_in_every_row", changed(group=[f"g{k}" for k in range(N)]), "have one")
    csv("group_too_long", changed(group=np.where(group == "u", "g" * 9000, "h")), "characters")
    csv("group_markup", changed(group=group.map({"u": "<script>alert(1)</script>", "v": '=HYPERLINK("x")'})))
    clash = changed(group=["tiny", *np.where(group == "u", "other", "v")[1:]])
    csv("group_called_other", clash, "called 'other' already", said={"merge_below": 20})
    arrow("group_dates", columns_of(plain()) | {"group": pa.array([date(2020, 1, 1 + (g == "u")) for g in group])})
    arrow("group_floats", columns_of(plain()) | {"group": pa.array([float(g == "u") for g in group])})
    arrow("group_truth", columns_of(plain()) | {"group": pa.array((group == "u").tolist())})
    gaps = np.where(np.arange(N) % 9 == 0, np.nan, (group == "u").astype(float))
    arrow("group_floats_with_gaps", columns_of(plain()) | {"group": pa.array(gaps)}, "is empty in rows 1, 10")
    coded = {
        "group": pa.array(group.tolist()).dictionary_encode(),
        "label": pa.array(label.astype(str).tolist()).dictionary_encode(),
    }
    arrow("dictionaries", columns_of(plain()) | coded)


def _ids() -> None:
    asked = {"id": "id"}
    csv("id_again", changed(id=["r1", *plain()["id"][1:]]), "comes again in row 2", said=asked)
    csv("id_all_the_same", changed(id="same"), "comes again", said=asked)
    csv("id_missing", changed(id=["", *plain()["id"][1:]]), "missing in row 1", said=asked)
    csv("id_large_numbers", changed(id=[10**17 + k for k in range(N)]), said=asked)
    csv("id_leading_zeros", changed(id=[f"{k:06d}" for k in range(N)]), said=asked)


def _columns() -> None:
    frame = plain()
    put("two_columns_of_a_name", frame.rename(columns={"b": "a"}).to_csv(index=False).encode(), "more than one column")
    put("two_labels", frame.rename(columns={"b": "label"}).to_csv(index=False).encode(), "more than one column")
    names = [*frame.columns[:3], "a", *frame.columns[4:]]
    doubled = pa.Table.from_arrays([pa.array(frame[c].tolist()) for c in frame], names=names)
    arrow("two_columns_of_a_name_parquet", doubled, "more than one column")
    put("a_column_without_a_name", frame.rename(columns={"a": ""}).to_csv(index=False).encode(), "has no name")
    put("an_index_without_a_name", frame.to_csv().encode(), "has no name")
    csv("names_with_blanks", frame.rename(columns={"a": " a", "b": "b "}))
    csv("names_of_all_sorts", frame.rename(columns={"a": "a,1", "b": "b\nc", "kind": "k;d"}))
    csv("a_blank_before_the_label", frame.rename(columns={"label": " label"}), "did you mean ' label'")
    csv("our_own_names", frame.rename(columns={"a": "role", "b": "prediction", "kind": "row"}))
    csv("a_column_without_values", changed(a=""))
    csv("constants", changed(a=7, b=7, kind="k"))
    csv("nearly_all_values_differ", changed(kind=[f"k{k}" for k in range(N)]))
    csv("all_values_differ_and_it_was_named", changed(kind=[f"k{k}" for k in range(N)]), "'kind' cannot be a feature",
        said={"features": ["a", "kind"]})  # fmt: skip
    csv("free_text", changed(kind=[f"a long letter about case {k}" for k in range(N)]))
    csv("a_column_that_gives_the_label_away", changed(leak=plain()["label"]))
    csv("words_as_categories", changed(kind=["nan", "none"] * (N // 2)))
    csv("long_cells", changed(kind="x" * 50_000).head(60))
    csv("every_row_twice", pd.concat([plain().drop(columns="id")] * 2))
    arrow("lists", columns_of(frame) | {"l": pa.array([[1, 2]] * N)})
    arrow("vectors", columns_of(frame) | {"l": pa.array([[1.0, 2.0]] * N)})
    arrow("structs", columns_of(frame) | {"s": pa.array([{"x": 1}] * N)})
    arrow("maps", columns_of(frame) | {"m": pa.array([[("x", 1)]] * N, pa.map_(pa.string(), pa.int64()))})
    arrow("binary", columns_of(frame) | {"bin": pa.array([b"\xff\x00"] * N)})
    arrow("nulls", columns_of(frame) | {"nothing": pa.nulls(N)})
    arrow("categories", columns_of(frame) | {"kind": pa.array(frame["kind"].tolist()).dictionary_encode()})
    wide = {f"w{k}": np.random.default_rng(k).normal(size=60).round(3) for k in range(1500)}
    csv("wide", pd.concat([frame.head(60), pd.DataFrame(wide)], axis=1))


def _text_files() -> None:
    text = plain().to_csv(index=False)
    frame = plain()
    csv("semicolons", frame, sep=";")
    csv("tabs", frame, sep="\t")
    csv("bars", frame, sep="|")
    csv("a_separator_that_was_said", frame, said={"separator": ";"}, sep=";")
    csv("another_separator_was_said", frame, "looks separated by ','", said={"separator": "|"})
    put("a_separator_nobody_expects", frame.to_csv(index=False, sep="~").encode(), "no column 'label'")
    put("excels_own_line", b"sep=;\r\n" + frame.to_csv(index=False, sep=";").encode())
    put("a_mark_of_utf8", b"\xef\xbb\xbf" + text.encode())
    put("utf16", text.encode("utf-16"))
    put("utf16_that_was_said", text.encode("utf-16"), encoding="utf-16")
    accents = frame.assign(kind=frame["kind"].replace({"p": "é"})).to_csv(index=False)
    put("latin", accents.encode("latin-1"), "encoding='latin-1'")
    put("latin_that_was_said", accents.encode("latin-1"), encoding="latin-1")
    put("an_encoding_nobody_knows", text.encode(), "unknown encoding", encoding="klingon")
    put("nul", text.encode().replace(b",p,", b",\0,", 1), "NUL")
    put("lines_of_windows", text.replace("\n", "\r\n").encode())
    put("lines_of_old_macs", text.replace("\n", "\r").encode())
    csv("quotes", frame.assign(kind=frame["kind"].map({"p": 'she said "a, b"', "q": "two\nlines", "r": "r"})))
    put("an_open_quote", text.replace("r7,", '"r7,').encode(), "never closed")
    put("a_long_row", text.replace("r7,", "r7,more,").encode(), "row 8: it has 7 cells, the header has 6")
    put("a_short_row", (text + "r999,u\n").encode(), f"row {N + 1}: it has 2 cells")
    put("a_separator_behind_every_row", text.replace("\n", ",\n").encode())
    put("a_comment_first", b"# made by hand\n" + text.encode(), "begins with a comment")
    put("empty_lines_first", b"\n\n" + text.encode())
    put("empty_lines_between", text.replace("\n", "\n\n").encode())
    put("rows_of_separators", (text + ",,,,,\n" * 3).encode())
    put("without_an_end", text.rstrip("\n").encode())
    put("nothing", b"", "is empty")
    put("empty_lines", b"\n\n\n", "is empty")
    put("a_header_alone", b"id,group,a,label", "no rows")
    put("one_row", plain(1).to_csv(index=False).encode(), "")
    put("gz", gzip.compress(text.encode()), ending="csv.gz")
    put("gz_by_its_bytes", gzip.compress(text.encode()))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("inside.csv", text)
    put("zip", file.getvalue(), ending="csv.zip")
    put("no_zip", b"PK\x03\x04" + bytes(range(200)), "cannot be unpacked")
    put("a_broken_gz", gzip.compress(text.encode())[:-20], "cannot be unpacked")
    records = frame.to_json(orient="records", lines=True)
    put("json_lines", records.encode(), ending="jsonl")
    put("json_array", frame.to_json(orient="records").encode(), ending="json")
    put("json_with_a_broken_line", (records + "{oops\n").encode(), "not a JSON object", ending="jsonl")
    put("json_of_nothing", b"[]", "no rows", ending="json")


def _parquet_files() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table(columns_of(plain())), file)
    put("parquet", file.getvalue(), ending="parquet")
    put("half_a_parquet_file", file.getvalue()[:-100], "cannot be read as Parquet", "parquet")
    put("an_empty_parquet_file", b"", "cannot be read as Parquet", "parquet")
    put("csv_that_calls_itself_parquet", plain().to_csv(index=False).encode(), "cannot be read as Parquet", "parquet")
    arrow("parquet_without_rows", columns_of(plain().head(0)), "no rows")
    arrow("parquet_without_columns", pa.table({}), "no rows")


for _each in (_numbers, _times_and_truth, _labels_and_groups, _ids, _columns, _text_files, _parquet_files):
    _each()
