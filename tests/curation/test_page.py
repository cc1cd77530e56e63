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
    assert ("few test rows" in page.text) == (600 // groups * 0.3 < 30)


def test_the_headline_the_worst_group_and_its_interval() -> None:
    curated = curate(frame(2), label="y", groups="group", budget=100, compare=3)
    page = _Page(curated.report())
    said = " ".join(" ".join(page.text).split())
    table = curated.by_group
    worst = table["accuracy"].idxmin()
    right, n = round(table["accuracy"][worst] * table["count"][worst]), int(table["count"][worst])
    interval = binomtest(right, n).proportion_ci(method="wilson")
    assert said.split("—")[0].strip() == "50 to train on, 50 that validated"
    assert f"Worst group {table['accuracy'][worst]:.1%} {worst}" in said
    assert f"{interval.low:.1%} to {interval.high:.1%}, n = {n}" in said
    assert "Against uniform" in said
    assert "Against uncurated" in said
    assert "group columns (group) are not features".capitalize() in said
