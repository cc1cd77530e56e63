import math
from xml.etree import ElementTree

import pytest

from evenhand.report.charts import Interval, Line, areas, intervals, lines, ticks

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
