"""The charts of a campaign: well-formed, without styles of their own, in one colour a group, with their numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import evenhand as eh
from evenhand.campaign.history import History
from evenhand.campaign.view import view_of
from evenhand.report.campaign_charts import CHARTS
from evenhand.report.pages import campaign_report
from evenhand.report.view import CampaignView, colours_for


def seen(groups: list[str], rounds: int, strategy: str = "optimistic", **settings: object) -> CampaignView:
    c = eh.Campaign(groups, strategy, eh.Logistic(), budget=4000, batch=2, seed=1, distinct=True, **settings)
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        r = c.ask("ann")
        y = np.arange(r.size) % 2
        c.tell(r, rng.normal(size=(r.size, 2)) + y[:, None], y)
    if rounds:
        c.certify()
    with c.reading() as reader:
        return view_of(c, History().follow(reader).past())


@pytest.mark.parametrize("groups", [["u", "<v> & 'w'"], [f"g{i}" for i in range(30)]])
def test_every_chart_is_well_formed_at_both_widths(groups: list[str]) -> None:
    view = seen(groups, 40, population=[1 / len(groups)] * len(groups))
    for name, chart in CHARTS.items():
        for width in (chart.width, 360):
            root = ElementTree.fromstring(chart.draw(view, width) or "<svg/>")
            assert not [e for e in root.iter() if "style" in e.attrib]
        heads, rows = chart.numbers(view)
        assert all(len(row) == len(heads) for row in rows), name
    assert len(CHARTS["risk"].draw(view, 980)) < 200_000


def test_a_group_has_one_colour_everywhere() -> None:
    view = seen(["u", "v", "w"], 12)
    for row in view.groups:
        mark = f"s{row.colour}"
        mixture = CHARTS["mixture"].draw(view, 490)
        assert re.search(rf'class="area {mark}" d="[^"]*"><title>{row.name}<', mixture)
        assert re.search(rf'class="bar {mark}"[^>]*><title>{row.name}, ', CHARTS["indication"].draw(view, 490))
        assert re.search(
            rf'<title>{row.name}: [^<]*</title><line class="whisker {mark}"', CHARTS["running"].draw(view, 490)
        )


def test_a_campaign_that_has_not_begun_draws_nothing_and_says_why_in_a_sentence() -> None:
    view = seen(["u", "v"], 0)
    assert not [name for name, chart in CHARTS.items() if chart.draw(view, 490)]
    assert view.next is not None
    assert view.next.why.startswith("Warm-up is still running")


def test_an_interval_past_the_proven_bound_is_explained() -> None:
    c = eh.Campaign(["u", "v"], eh.Uniform(), eh.Logistic(), budget=400, batch=20, distinct=True)
    rng = np.random.default_rng(0)
    for k in range(8):
        r = c.ask("ann")
        y = rng.integers(0, 2, r.size)
        c.tell(r, rng.normal(size=(r.size, 2)) + 4 * y[:, None], y)
        if k == 1:
            c.certify()
    certificate = c.certificate()
    assert max(certificate.high) > certificate.worst_at_most
    with c.reading() as reader:
        view = view_of(c, History().follow(reader).past())
    assert "and both hold" in campaign_report(view, "2027-01-01T00:00:00Z")
    alone = replace(view, status=view.status | {"certificate": view.status["certificate"] | {"worst_at_most": 0.99}})
    assert "and both hold" not in campaign_report(alone, "2027-01-01T00:00:00Z")


def test_with_many_groups_the_worst_have_colours_of_their_own() -> None:
    names = [f"g{i}" for i in range(20)]
    found = colours_for(names, ["g15", "g3", "g9", "g1", "g2", "g7", "g8", "g4"])
    assert {name for name, colour in found.items() if colour >= 0} == {"g15", "g3", "g9", "g1", "g2", "g7", "g8"}
    assert len({colour for colour in found.values() if colour >= 0}) == 7


def test_a_page_of_many_groups_stays_small() -> None:
    names = [f"a group with quite a long name, number {i}" for i in range(200)]
    c = eh.Campaign(names, eh.Uniform(), budget=4000)
    rng = np.random.default_rng(0)
    for k in range(300):
        c.tell(c.ask("ann"), n=2)
        if k > 200:
            c.tell_losses({name: (float(x), 1 - float(x), 40) for name, x in zip(names, rng.random(200), strict=True)})
    with c.reading() as reader:
        view = view_of(c, History().follow(reader).past())
    assert sum(any(point.risk) for point in view.points or ()) > 50
    assert len(campaign_report(view, "2027-01-01T00:00:00Z").encode()) < 1_000_000


def test_numbers_of_why_are_those_of_the_bars_whatever_decides() -> None:
    for strategy in ("optimistic", "uniform", "uncurated"):
        view = seen(["u", "v"], 6, strategy, population=[0.7, 0.3])
        heads, rows = CHARTS["why"].numbers(view)
        drawn = CHARTS["why"].draw(view, 430)
        for name, *values in rows:
            tips = re.findall(rf"<title>{name}, ([^<]*): ([^<]*)</title>", drawn)
            assert [tip[0] for tip in tips] == heads[1:], strategy
            assert [float(tip[1]) for tip in tips] == [pytest.approx(value, abs=5e-4) for value in values], strategy


def test_one_score_alone_is_drawn_beside_its_name() -> None:
    c = eh.Campaign(["u", "v"], learner=None, budget=40, batch=2)
    for _ in range(2):
        c.tell(c.ask("ann"), n=4)
    c.tell_losses({"u": (0.2, 0.8, 4), "v": (0.3, 0.7, 4)})
    with c.reading() as reader:
        view = view_of(c, History().follow(reader).past())
    drawn = CHARTS["risk"].draw(view, 980)
    starts, ends = zip(*re.findall(r'class="lead [^"]*" d="M([\d.]+) [\d.]+L([\d.]+)', drawn), strict=True)
    assert all(float(end) - float(start) < 20 for start, end in zip(starts, ends, strict=True))
    decided = campaign_report(view, "2027-01-01T00:00:00Z")
    assert "0 examples so far" in decided
    assert "-2.000" not in decided
