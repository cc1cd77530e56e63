import math
import unicodedata
from xml.etree import ElementTree

import pytest

from evenhand.report.charts import Interval, Line, areas, intervals, lines, ticks
from evenhand.report.times import time_marks

TEXT = {"title": "A <title>", "description": "what & why", "x_label": "labels"}


def test_every_chart_is_well_formed_and_says_what_it_shows() -> None:
    names = [f"group {i} & <co>" for i in range(9)]
    x = list(range(1000))
    series = [Line(name, x, [i / 10] * 1000, [0.0] * 1000, [1.0] * 1000) for i, name in enumerate(names)]
    pictures = [
        lines(series, **TEXT, y_label="accuracy"),
        areas(names, x, [[1 / 9] * 9] * 1000, **TEXT, y_label="share"),
        intervals([Interval(n, 0.8, 0.7, 0.9, (0.75, None)) for n in names], ["a", "b", "c"], **TEXT),
    ]
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        assert root.attrib["role"] == "img"
        assert root.find("title").text == "A <title>"
        assert all(name in "".join(root.itertext()) for name in names)
        assert len(picture) < 120_000


@pytest.mark.parametrize("width", [760, 360])
def test_no_text_reaches_beyond_a_chart(width: int) -> None:
    names = ["W" * 200, "a name of many words " * 10, "short", "名" * 90]
    rows = [Interval(name, 0.8, 0.7, 0.9, (0.75,), "n = 12,345") for name in names]
    pictures = [
        intervals(rows, ["this model", "a mark with a long name, " * 9], **TEXT, width=width),
        lines([Line(n, [1, 2_000_000], [0.5, 0.6]) for n in names], **TEXT, y_label="accuracy", width=width),
        areas(names, [1, 2], [[0.25] * 4] * 2, **TEXT, y_label="share", width=width),
    ]
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        assert root.attrib["viewBox"].split()[2] == str(width)
        for text in root.iter("text"):
            spans = [span.text or "" for span in text.iter("tspan")] or [text.text or ""]
            for said in spans:
                # letters of the usual fonts are at most this wide at 12.5 pixels
                wide = sum(
                    13.0 if unicodedata.east_asian_width(c) in "WF" else 12.4 if c in "WMm" else 7.4 for c in said
                )
                x, anchor = float(text.attrib["x"]), text.attrib.get("text-anchor", "start")
                start = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
                assert start >= -1
                assert start + wide <= width + 1


def test_missing_values_are_left_out() -> None:
    picture = lines([Line("a", [1, 2, 3], [0.5, math.nan, 0.6]), Line("b", [1], [math.nan])], **TEXT, y_label="y")
    assert "nan" not in picture
    assert lines([Line("a", [1], [math.nan])], **TEXT, y_label="y") == ""
    assert intervals([Interval("a", math.nan, 0, 1)], ["a"], **TEXT) == ""
    assert areas(["a"], [], [], **TEXT, y_label="y") == ""


def test_a_single_point_is_drawn() -> None:
    assert "<circle" in lines([Line("a", [1], [0.5])], **TEXT, y_label="y")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.68, 0.94, [0.7, 0.8, 0.9]), (0, 5000, [0, 1000, 2000, 3000, 4000, 5000]), (3, 3, [3.0])],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_moments_below_a_chart_are_named_however_short_it_is_and_days_stay_days() -> None:
    for seconds in (3, 40, 500, 9000, 86400, 40 * 86400, 900 * 86400):
        marks = time_marks(1_000_000_007, 1_000_000_007 + seconds)
        assert 1 <= len(marks) <= 6, seconds
        assert len({name for _, name in marks}) == len(marks), seconds
    days = time_marks(0, 2 * 86400, shortest=86400)
    assert [name for _, name in days] == ["1 Jan", "2 Jan", "3 Jan"]
