"""Leases of requests, refits, and what a campaign says of the age of its scores."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand import live
from evenhand.ledger import Ledger
from evenhand.live import LiveCampaign, training


class Clock:
    """Time that goes on when told to."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def rows(k: int, size: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    return rng.normal(size=(size, 2)), np.arange(size) % 2


def made(tmp_path: Path, clock: Clock, **settings: Any) -> LiveCampaign:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    given = {"strategy": "uniform", "learner": "logistic", "budget": 8, "lease": "1h", **settings}
    live.create(url, "survey", ["u", "v"], **given).ledger.close()
    return LiveCampaign(Ledger(url), "survey", clock=clock)


def test_an_expired_request_gives_its_labels_back(tmp_path: Path) -> None:
    clock = Clock()
    kept = made(tmp_path, clock)
    first = kept.ask_many(4)
    with pytest.raises(eh.NothingToAsk, match="waiting"):
        kept.ask()
    clock.now += 3599
    with pytest.raises(eh.NothingToAsk, match="waiting"):
        kept.ask()
    clock.now += 1
    again = kept.ask()
    assert again.id == 5
    state = kept.refresh()
    assert list(state.expired) == [r.id for r in first]
    assert list(state.open) == [5]
    assert [e.kind for e in kept.ledger.about(kept.number, 1)] == ["asked", "expired"]


def test_a_late_delivery_is_taken_while_it_fits(tmp_path: Path) -> None:
    clock = Clock()
    kept = made(tmp_path, clock)
    kept.ask_many(4)
    clock.now += 3600
    kept.ask_many(3)  # the four expire, six of eight labels are promised again
    receipt = kept.tell(1, *rows(1))
    assert receipt.late
    assert list(kept.refresh().expired) == [2, 3, 4]
    with pytest.raises(ValueError, match="of these 2 rows 0 would fit"):
        kept.tell(2, *rows(2))
    assert kept.tell(1, *rows(1)).repeated
    kept.abandon(5)
    with pytest.raises(ValueError, match="of these 3 rows 2 would fit"):
        kept.tell(2, *rows(2, 3))
    assert kept.tell(2, *rows(2)).late


def test_an_overdue_request_nobody_needed_is_still_on_time(tmp_path: Path) -> None:
    clock = Clock()
    kept = made(tmp_path, clock)
    request = kept.ask()
    clock.now += 10_000
    assert not kept.tell(request, *rows(0)).late


def test_scores_are_refitted_every_so_many_labels(tmp_path: Path) -> None:
    kept = made(tmp_path, Clock(), strategy="optimistic", budget=100, refit=6)
    kinds = []
    for k in range(12):
        request = kept.ask()
        kinds.append((request.behind, request.scores_age is None))
        kept.tell(request, *rows(k))
    scored = kept.ledger.events(kept.number, kind="scored")
    assert [e.header["examples"] for e in scored] == [6, 12, 18]
    assert kinds[:8] == [(0, True), (2, True), (4, True), (0, False), (2, False), (4, False), (0, False), (2, False)]


def test_in_the_background_an_ask_never_fits(tmp_path: Path) -> None:
    kept = made(tmp_path, Clock(), strategy="optimistic", budget=100, refit="background")
    for k in range(4):
        kept.tell(kept.ask(), *rows(k))
    assert kept.ledger.events(kept.number, kind="scored") == []
    assert kept.refit()
    assert not kept.refit()
    kept.tell(kept.ask(), *rows(9))
    request = kept.ask()
    assert request.behind == 2
    assert request.decision.kind != "start"
    assert request.rests_on == kept.ledger.events(kept.number, kind="scored")[0].header["rests_on"]


def test_one_refit_at_a_time(tmp_path: Path) -> None:
    kept = made(tmp_path, Clock(), strategy="optimistic", budget=100)
    kept.tell(kept.ask(), *rows(0))
    assert kept.ledger.lease(kept.number, "somebody else", 0.4)
    assert not kept.refit()
    assert kept.ask().behind == 0  # waited until the lease ran out, then fitted
    assert len(kept.ledger.events(kept.number, kind="scored")) == 1


def test_the_lease_is_renewed_while_a_fit_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "LEASE_SECONDS", 0.3)
    kept = made(tmp_path, Clock())
    with kept._trainer.alone() as mine:
        assert mine
        threading.Event().wait(0.8)
        assert not kept.ledger.lease(kept.number, "somebody else", 1)
    assert kept.ledger.lease(kept.number, "somebody else", 1)


def test_a_delivery_during_a_fit_counts_for_the_next_one(tmp_path: Path) -> None:
    kept = made(tmp_path, Clock(), strategy="optimistic:c1=0.1", budget=100, refit="background")
    other = LiveCampaign(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}"), "survey")
    for k in range(4):
        kept.tell(kept.ask(), *rows(k))
    scores = kept._trainer.scores

    def slow(state: Any) -> dict[str, Any]:
        other.tell(other.ask(), *rows(7))
        return scores(state)

    kept._trainer.scores = slow
    assert kept.refit()
    state = kept.refresh()
    assert len(state.fresh) == 1
    assert state.scored_labels == 8
    assert state.examples == 10
    assert [len(series) for series in state.recent] == [1, 1]
    kept._trainer.scores = scores
    assert kept.refit()
    assert sorted(len(series) for series in kept.refresh().recent) == [1, 2]
