"""Stopping rules of campaigns: the same in memory and in a database, looked at by the ledger's clock."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.campaign.state import State
from evenhand.claims.stopping import AnyOf, Deadline, ErrorBelow, LabelsSpent, NoImprovement, Rule, Seen
from evenhand.ledger.database import DatabaseLedger


def examples(k: int, size: int) -> tuple[Any, Any]:
    """The k-th delivery, the same for whoever asks."""
    rng = np.random.default_rng(k)
    y = rng.integers(0, 2, size)
    return rng.normal(size=(size, 2)) + 1.5 * (2 * y - 1)[:, None], y


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.mark.parametrize(
    ("texts", "rule"),
    [
        (["target=0.25"], ErrorBelow(0.25)),
        (["no-improvement=4"], NoImprovement(4)),
        (["labels=70", "target=0.01"], LabelsSpent(70) | ErrorBelow(0.01)),
    ],
)
@pytest.mark.parametrize("strategy", ["optimistic", "uniform"])
def test_it_stops_where_a_campaign_in_memory_does(url: str, texts: list[str], rule: Rule, strategy: str) -> None:
    settings: dict[str, Any] = {"budget": 2000, "batch": 5, "seed": 2, "distinct": True}
    plain = eh.Campaign(["u", "v"], strategy, eh.Logistic(), stop=rule, **settings)
    kept = eh.Campaign.create(url, "survey", ["u", "v"], strategy, "logistic", stop=texts, **settings)
    for k in range(200):
        try:
            expected = plain.ask()
        except eh.NothingToAsk:
            break
        found = kept.ask()
        assert (found.id, found.group) == (expected.id, expected.group)
        for campaign, request in ((plain, expected), (kept, found)):
            campaign.tell(request, *examples(k, request.size))
        if k % 3 == 2:
            kept.release()
            kept = eh.Campaign.open(url, "survey")
    assert 5 < k < 199
    assert plain.done
    with pytest.raises(eh.NothingToAsk, match="stopping rule"):
        kept.ask()
    found = kept.status()
    assert (found["nothing_to_ask"], found["stop"]) == ("stopping rule", " | ".join(texts))
    assert found["stopped"] == plain.status()["stopped"]
    assert found["stopped"] is not None
    assert kept.certificate() == plain.certificate()
    assert kept.verify().problems == []
    with DatabaseLedger(url, read_only=True) as ledger, ledger.reading(1) as reader:
        state = State().fold(reader.events())
    assert State.from_text(state.as_text()) == state
    kept.change(stop=None)
    assert kept.ask().id == k + 1
    assert kept.status()["stopped"] is None
    kept.release()


def test_a_target_rests_on_a_certificate(url: str) -> None:
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=2000, batch=5, stop="target=0.25") as c:
        k = 0
        while True:
            try:
                request = c.ask()
            except eh.NothingToAsk:
                break
            c.tell(request, *examples(k, request.size), ids=[f"{k}:{i}" for i in range(request.size)])
            k += 1
        certificate = c.certificate()
        assert certificate is not None
        assert certificate.worst_at_most <= 0.25
        assert "no group's error is above 0.25" in c.status()["stopped"]
        assert c.labels_used < 2000


def test_of_rows_without_ids_a_target_is_not_reached_unless_somebody_vouches(url: str) -> None:
    """Nobody can know whether one came twice: no model is frozen by itself."""
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=400, batch=5, stop="target=0.25") as c:
        for k in range(40):
            c.tell(c.ask(), *examples(k, 10))
        with pytest.raises(eh.NothingToAsk, match="budget spent"):
            c.ask()
        assert c.certificate() is None


def test_a_date(url: str) -> None:
    day = 1803859200.0  # 2027-03-01 in UTC
    now = [day - 1]
    with DatabaseLedger(url, create=True, clock=lambda: now[0]) as ledger:
        c = eh.Campaign.create(ledger, "survey", ["u", "v"], "uniform", None, budget=40, stop="until=2027-03-01")
        assert c.ask().id == 1
        assert c.status()["stopped"] is None
        now[0] = day
        with pytest.raises(eh.NothingToAsk, match="stopping rule"):
            c.ask()
        assert "past 2027-03-01" in c.status()["stopped"]
        assert not c.done  # a request is still open
        c.tell(1, n=2)  # what was asked for is still taken
        assert c.done


@pytest.mark.parametrize(
    ("learner", "stop", "message"),
    [
        ("logistic", "soon", "cannot read the stopping rule 'soon': write target=0.1"),
        ("logistic", "target=2", "cannot read the stopping rule 'target=2'"),
        ("logistic", "labels=many", "cannot read the stopping rule 'labels=many'"),
        ("logistic", "until=tomorrow", "cannot read the stopping rule 'until=tomorrow'"),
        ("logistic", "labels=5,6", "cannot read the stopping rule 'labels=5,6'"),
        (None, "target=0.1", "needs a learner"),
        (None, "labels=5 & target=0.1", "needs a learner"),
    ],
)
def test_rules_that_cannot_be(url: str, learner: str | None, stop: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        eh.Campaign.create(url, "survey", ["u", "v"], "uniform", learner, budget=40, stop=stop)
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", learner, budget=40) as c:
        with pytest.raises(ValueError, match=message):
            c.change(stop=[stop])
        assert c.settings["stop"] is None


class MyRule(Rule):
    """A rule of one's own."""

    def reason(self, seen: Seen) -> str | None:
        return "it is enough" if seen.labels >= 4 else None


def test_a_rule_of_ones_own_is_given_again(url: str) -> None:
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", None, budget=40, stop=MyRule()) as c:
        assert c.settings["stop"] == "own:MyRule"
        for _ in range(2):
            c.tell(c.ask(), n=2)
        with pytest.raises(eh.NothingToAsk, match="stopping rule"):
            c.ask()
    with eh.Campaign.open(url, "survey") as c:
        assert c.labels_used == 4
        with pytest.raises(ValueError, match=r"this campaign's stop is your own object \(MyRule\): give it again"):
            c.ask()
    with eh.Campaign.open(url, "survey", stop=MyRule()) as c:
        assert c.status()["stopped"] == "it is enough"
        c.change(stop="labels=100")
        assert c.ask().id == 3
    with pytest.raises(ValueError, match="this campaign's stop is stored as 'labels=100': leave it out of open"):
        eh.Campaign.open(url, "survey", stop=MyRule())


@pytest.mark.parametrize(
    "rule",
    [
        LabelsSpent(10) | Deadline("2999-01-01"),
        AnyOf([NoImprovement(3, 0.01), LabelsSpent(9) & ErrorBelow(0.2, 0.9)]),
        Deadline(datetime(2999, 1, 1, 12, tzinfo=UTC)),
    ],
)
def test_rules_are_kept_as_text(url: str, rule: Rule) -> None:
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=40, stop=rule) as c:
        assert c.settings["stop"] == str(rule)
    with eh.Campaign.open(url, "survey") as c:
        assert c.ask().id == 1
