import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from evenhand.curation.curate import curate


class _Page(HTMLParser):
    """Collects links, tags and text, and checks that tags close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.addresses: list[str] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in {"meta", "br"}:
            self.opened.append(tag)
        self.addresses += [value for key, value in attrs if key in {"src", "href"}]

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def frame(groups: int, n: int = 600) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    names = np.array([f"<b>g{i:02d}</b>" for i in range(groups)])
    x = generator.normal(size=n)
    return pd.DataFrame(
        {"x": x, "group": names[np.arange(n) % groups], "y": (x + generator.normal(size=n) > 0).astype(int)}
    )


@pytest.mark.parametrize("groups", [1, 2, 8, 40])
def test_the_page_stands_alone(groups: int) -> None:
    curated = curate(frame(groups), label="y", groups="group", budget=4 * groups + 20, compare=1)
    text = curated.report()
    page = _Page(text)
    assert not page.opened
    assert not page.addresses
    assert "http" not in text
    assert "<b>g00</b>" not in text
    assert all(f"<b>g{i:02d}</b>" in "".join(page.text) for i in range(groups))
    assert ("Too few test rows" in page.text) == (600 // groups * 0.3 < 30)


def test_title_tiles_and_terms_say_what_they_are() -> None:
    curated = curate(frame(2, 900), label="y", groups="group", budget=100, compare=3)
    page = _Page(curated.report())
    said = " ".join(" ".join(page.text).split())
    table = curated.by_group
    worst = table["accuracy"].idxmin()
    right, n = round(table["accuracy"][worst] * table["count"][worst]), int(table["count"][worst])
    exact = binomtest(right, n).proportion_ci(1 - 0.05 / 2, "exact")
    low, high = 100 * exact.low, 100 * exact.high
    title = f"Worst-off: {worst}, {100 * right / n:.1f} % right [{low:.1f}, {high:.1f}]"
    assert said.startswith(f"{title} — Evenhand")
    assert f"{low:.1f} % to {high:.1f} %" in said  # split() took the no-break spaces out
    pairs = zip(table["accuracy"], table["count"], strict=True)
    others = [binomtest(round(a * k), int(k)).proportion_ci(0.975, "exact") for a, k in pairs]
    whole = curated.summary["worst_off"]
    assert whole["low"] == pytest.approx(max(1 - other.high for other in others))
    assert whole["high"] == pytest.approx(max(1 - other.low for other in others))
    assert f"{100 * whole['low']:.1f} % – {100 * whole['high']:.1f} %" in said
    assert "Against uniform" in said
    assert "Against uncurated" in said
    assert "± is the standard deviation over trials" in said
    assert "at once for all 2 comparisons" in said
    assert "Group columns (group) are not features" in said


def test_no_test_part_is_said_plainly() -> None:
    curated = curate(frame(2), label="y", groups="group", budget=40, compare=2, test=None)
    assert curated.summary["title"] == "40 rows chosen, not tested"
    said = " ".join(_Page(curated.report()).text)
    assert "No test part" in said
    assert "nobody knows who is worst off" in said


def test_a_useless_model_is_called_one() -> None:
    rng = np.random.default_rng(0)
    noise = pd.DataFrame({"x": rng.normal(size=900), "group": list("ab" * 450)})
    noise["y"] = rng.random(900) < 0.3
    found = curate(noise, label="y", groups="group", budget=60, compare=0).summary
    assert found["majority"] is False
    assert any("not clearly better than always saying False" in step for step in found["next"])


def test_numbers_keep_their_places_where_lines_end_and_names_run_from_right_to_left() -> None:
    names = np.array(["نساء (۳۰ تا ۴۵)", "men"])
    pool = frame(2, 600)
    pool["group"] = names[np.arange(600) % 2]
    found = curate(pool, label="y", groups="group", budget=60, compare=2)
    said = "".join(_Page(found.report()).text)
    body = said[said.index("Worst-off", said.index("— Evenhand")) :]
    assert f"Worst-off: {found.summary['worst']['group']}," in found.summary["title"]
    # beyond the title a blank never stands between a number and its sign; charts do not wrap
    assert "\u00a0%" in body
    assert not re.search(r"\d %|± \d", body.split("Accuracy of every group")[0])
    assert "\u2068نساء (۳۰ تا ۴۵)\u2069" in body
    # a chart for wide windows, one for narrow ones
    assert found.report().count('class="wide"') == found.report().count('class="narrow"') >= 4


def test_too_few_trials_are_not_taken_for_no_difference() -> None:
    found = curate(frame(2, 900), label="y", groups="group", budget=40, compare=2).summary
    widths = [d["high"] - d["low"] for d in found["comparison"]["differences"]]
    assert max(widths) > 0.06
    assert any("2 trials cannot tell" in step and "--compare 20" in step for step in found["next"])
    assert not any("not what limits" in step for step in found["next"])


def test_by_another_rate_its_own_chart_comes_first_and_rows_are_those_it_is_about() -> None:
    table = frame(2, 900)
    # of the second group few are of the class that the risk is about
    rare = (table["group"] == "<b>g01</b>") & (np.arange(len(table)) % 12 != 1)
    table.loc[rare, "y"] = 0
    curated = curate(table, label="y", groups="group", budget=100, compare=0, risk="fnr", positive=1)
    few = curated.summary["by_group"][1]
    assert few["few"]
    assert few["count"] > 100
    said = " ".join(" ".join(_Page(curated.report()).text).split())
    assert said.index("False negative rate of every group") < said.index("Accuracy of every group")
    assert (
        "rows of <b>g01</b>: with fewer than 30 each that the false negative rate is about, nothing is claimed" in said
    )
    assert "fewer than 30 test rows that the false negative rate is about" in said
    assert "of every group, worst first" not in curated.report().split("Accuracy of every group")[1]
