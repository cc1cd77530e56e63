"""Stopping rules of live campaigns: they stop where a campaign in memory does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand import live
from evenhand.ledger import Ledger, State
from evenhand.live import LiveCampaign
from evenhand.live.status import status
from evenhand.live.verify import verify
from evenhand.stopping import LabelsSpent, NoImprovement, Rule, TargetError


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
        (["target=0.25"], TargetError(0.25)),
        (["no-improvement=4"], NoImprovement(4)),
        (["labels=70", "target=0.01"], LabelsSpent(70) | TargetError(0.01)),
    ],
)
@pytest.mark.parametrize("strategy", ["optimistic", "uniform"])
def test_it_stops_where_a_campaign_in_memory_does(url: str, texts: list[str], rule: Rule, strategy: str) -> None:
    settings: dict[str, Any] = {"budget": 2000, "batch": 5, "seed": 2}
    chosen = eh.strategies.parse_strategy(strategy)[1]
    plain = eh.Campaign(["u", "v"], chosen, eh.Logistic(), stop=rule, **settings)
    kept = live.create(url, "survey", ["u", "v"], strategy, "logistic", stop=texts, **settings)
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
            kept = LiveCampaign(Ledger(url), "survey")
    assert 5 < k < 199
    with pytest.raises(eh.NothingToAsk, match="stopping rule"):
        kept.ask()
    found = status(kept)
    assert (found["nothing_to_ask"], found["stop"]) == ("stopping rule", texts)
    assert found["stopped"] == plain.monitor.stopped
    assert kept.certificate() == plain.monitor.certificate()
    assert State.from_json(kept.refresh().as_json()) == kept.refresh()
    assert verify(kept)["problems"] == []
    kept.change(stop=None)
    assert kept.ask().id == k + 1
    assert status(kept)["stopped"] is None


def test_a_date(url: str) -> None:
    live.create(url, "survey", ["u", "v"], "uniform", None, budget=40, stop="until=2027-03-01")
    day = 1803859200.0  # 2027-03-01 in UTC
    kept = LiveCampaign(Ledger(url), "survey", clock=lambda: day - 1)
    assert kept.ask().id == 1
    kept.clock = lambda: day
    with pytest.raises(eh.NothingToAsk, match="stopping rule"):
        kept.ask()
    assert "past 2027-03-01" in status(kept)["stopped"]
    kept.tell(1, n=2)  # what was asked for is still taken


@pytest.mark.parametrize(
    ("learner", "stop", "message"),
    [
        ("logistic", "soon", "cannot read the stopping rule 'soon': write target=0.1"),
        ("logistic", "target=2", "cannot read the stopping rule 'target=2'"),
        ("logistic", "labels=many", "cannot read the stopping rule 'labels=many'"),
        ("logistic", "until=tomorrow", "cannot read the stopping rule 'until=tomorrow'"),
        (None, "target=0.1", "needs a learner"),
        ("sklearn.linear_model.SGDClassifier:update=partial_fit", "target=0.1", "cannot be rebuilt exactly"),
    ],
)
def test_rules_that_cannot_be(url: str, learner: str | None, stop: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        live.create(url, "survey", ["u", "v"], "uniform", learner, budget=40, stop=stop)
    kept = live.create(url, "survey", ["u", "v"], "uniform", learner, budget=40)
    with pytest.raises(ValueError, match=message):
        kept.change(stop=[stop])
