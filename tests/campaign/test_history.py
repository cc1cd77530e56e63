"""The past of a campaign, kept in a bounded number of points."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import evenhand as eh
from evenhand.campaign.history import History, Past
from evenhand.campaign.view import view_of


def told(rounds: int) -> eh.Campaign:
    c = eh.Campaign(["u", "v", "w"], eh.Uniform(), budget=4 * rounds, seed=1)
    for k in range(rounds):
        c.tell(c.ask(["ann", "bo"][k % 2]), n=2)
    return c


def history(c: eh.Campaign) -> Past:
    with c.reading() as reader:
        return History().follow(reader).past()


def test_points_are_few_and_the_ends_are_exact() -> None:
    c = told(700)
    found = history(c).points
    assert len(found) <= 401
    assert [point.seq for point in found] == sorted({point.seq for point in found})
    assert (found[0].seq, found[0].labels) == (1, 0)
    assert (found[-1].seq, found[-1].labels) == (c.seen.seq, c.labels_used)
    assert found[-1].train == tuple(c.counts.values())
    # every point is what the ledger says of that moment, counted by hand
    for point in found[:: len(found) // 10]:
        events = [e for e in c.events() if e["kind"] == "counted" and e["seq"] <= point.seq]
        counted = Counter(dict.fromkeys(c.groups, 0))
        for event in events:
            counted[event["facts"]["group"]] += event["facts"]["train"]
        assert point.train == tuple(counted[g] for g in c.groups)
        assert point.labels == sum(event["facts"]["rows"] for event in events)


def test_in_parts_it_is_the_same_as_at_once() -> None:
    c = told(60)
    early = History()
    with c.reading() as reader:
        first = early.follow(reader).past()
    for _ in range(50):
        c.tell(c.ask("chi"), n=2)
    with c.reading() as reader:
        early.follow(reader)
    whole = history(c)
    assert early.past() == whole
    assert first.points[-1].labels == 120  # what was looked at stays as it was
    assert whole.decisions[0]["request"] == 110
    assert whole.points[-1].kinds == {"fewest": 110}


def test_risks_rows_left_out_and_reasons_are_kept_without_their_values() -> None:
    c = eh.Campaign(["u", "v"], learner=eh.Logistic(), budget=200, batch=5, classes=["no", "yes"], seed=2)
    rng = np.random.default_rng(0)
    for k in range(8):
        r = c.ask("ann")
        y = np.where(np.arange(10) % 2 == 1, "yes", "no").astype(object)
        if k == 5:
            y[3] = "Jane Doe, 12 High Street"
        c.tell(r, rng.normal(size=(10, 2)) + (y == "yes")[:, None], list(y), partial=True)
    c.refit()
    found = history(c)
    assert sum(d["rows"] for d in found.deliveries) == c.labels_used == 79
    left_out = next(d for d in found.deliveries if d["why"])
    assert left_out["left_out"] == [4]
    assert "Jane" not in str(c.events())
    assert list(left_out["why"].values()) == [1]
    assert found.collectors["ann"]["left_out"] == 1
    status = c.status()["groups"]
    assert found.points[-1].risk == pytest.approx([group["mean_loss"] for group in status.values()])
    view = view_of(c, found)
    assert view.worst is not None
    assert view.worst.name == max(status, key=lambda g: status[g]["mean_loss"])
    # the interval holds for all groups at once: that of each at half of δ
    alone = c.running(0.05 / 2)
    assert [row.running[2:] for row in view.groups] == list(zip(alone.low, alone.high, strict=True))


def test_the_pace_is_labels_a_day_over_the_last_week() -> None:
    c = told(30)
    found = history(c)
    start = found.points[0].at
    assert found.pace(start + 3 * 86400.0) == pytest.approx(60 / 3, rel=1e-3)
    assert found.pace(start + 100 * 86400.0) is None  # nothing came within the last week
    assert History().past().pace(0.0) is None
