"""Leases of requests, refits one at a time, and what a campaign says of the age of its scores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.helpers import Clock

import evenhand as eh
from evenhand.campaign import models
from evenhand.campaign.state import State
from evenhand.ledger import Event, Ledger, MemoryLedger
from evenhand.ledger.database import DatabaseLedger


class Slow:
    """A learner during whose fit something else happens."""

    meanwhile: ClassVar[list[Callable[[], object]]] = []

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, previous: Any = None, seed: int = 0) -> Any:
        for each in self.meanwhile:
            each()
        return eh.Logistic().fit(X, y)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What happens during a fit of `Slow`."""
    found: list[Callable[[], object]] = []
    monkeypatch.setattr(Slow, "meanwhile", found)
    return found


def rows(k: int, size: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    return rng.normal(size=(size, 2)), np.arange(size) % 2


def part(k: int, which: slice, size: int = 4) -> tuple[Any, Any]:
    X, y = rows(k, size)
    return X[which], y[which]


def made(ledger: Ledger, **settings: Any) -> eh.Campaign:
    given = {"strategy": "uniform", "learner": "logistic", "budget": 8, "lease": "1h", **settings}
    return eh.Campaign.create(ledger, "survey", ["u", "v"], **given)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Any:
    if request.param == "memory":
        yield MemoryLedger(clock=clock)
        return
    with DatabaseLedger(f"sqlite:///{tmp_path / 'ledger.db'}", create=True, clock=clock) as found:
        yield found


def events(ledger: Ledger, *kinds: str, request: int | None = None) -> list[Event]:
    with ledger.reading(ledger.find("survey")) as reader:
        return reader.events(kinds=kinds, request=request)


def replay(ledger: Ledger) -> State:
    state = State()
    for event in events(ledger):
        state.fold([event])
        assert state.labels_used + state.outstanding <= state.settings["budget"]
    return state


def open_and_expired(c: eh.Campaign) -> tuple[list[int], list[int]]:
    found = c.status()
    return [r["request"] for r in found["open"]], [r["request"] for r in found["expired"]]


# -------------------------------------------------------------------- requests


def test_an_expired_request_gives_its_labels_back(ledger: Ledger, clock: Clock) -> None:
    c = made(ledger)
    first = c.ask_many(4)
    assert [r.until for r in first] == [clock.now + 3600] * 4
    with pytest.raises(eh.NothingToAsk, match="waiting"):
        c.ask()
    clock.now += 3599
    with pytest.raises(eh.NothingToAsk, match="waiting"):
        c.ask()
    assert len(c.status()["open"]) == 4
    clock.now += 1
    assert len(c.status()["expired"]) == 4
    again = c.ask()
    assert again.id == 5
    assert open_and_expired(c) == ([5], [r.id for r in first])
    assert [e.kind for e in events(ledger, request=1)] == ["asked", "expired"]
    assert replay(ledger).expired.keys() == {1, 2, 3, 4}


def test_a_late_delivery_is_taken_while_it_fits(ledger: Ledger, clock: Clock) -> None:
    c = made(ledger)
    c.ask_many(4)
    clock.now += 3600
    c.ask_many(3)  # the four expire, six of eight labels are promised again
    receipt = c.tell(1, *rows(1))
    assert receipt.late
    assert open_and_expired(c)[1] == [2, 3, 4]
    with pytest.raises(ValueError, match="of these 2 rows 0 would fit"):
        c.tell(2, *rows(2))
    assert c.tell(1, *rows(1)).repeated
    c.abandon(5)
    with pytest.raises(ValueError, match="of these 3 rows 2 would fit"):
        c.tell(2, *rows(2, 3))
    assert c.tell(2, *rows(2)).late
    assert replay(ledger).labels_used == 4


def test_of_a_late_delivery_as_much_is_taken_as_fits(ledger: Ledger, clock: Clock) -> None:
    c = made(ledger, budget=9, batch=2)
    assert [r.size for r in c.ask_many(2)] == [4, 4]
    clock.now += 3600
    c.ask_many(2)  # one label is left
    receipt = c.tell(1, *rows(1, 4), partial=True)
    assert (receipt.rows, receipt.late, receipt.outstanding) == (1, True, 3)
    assert [(r.row, r.reason) for r in receipt.refused] == [(k, "the budget is spent") for k in (1, 2, 3)]
    assert replay(ledger).unspent == 0


def test_a_partial_delivery_and_then_its_lease_ends(ledger: Ledger, clock: Clock) -> None:
    c = made(ledger, budget=8, batch=2)
    c.ask_many(2)
    assert c.tell(1, *part(1, slice(0, 1))).outstanding == 3
    clock.now += 3600
    c.ask()  # the rest of both requests is back: seven labels, four of them promised again
    assert open_and_expired(c) == ([3], [1, 2])
    assert (c.labels_used, c.unspent) == (1, 3)
    receipt = c.tell(1, *part(1, slice(1, 4)))
    assert (receipt.rows, receipt.late, receipt.outstanding) == (3, True, 0)
    assert open_and_expired(c) == ([3], [2])
    assert (c.labels_used, c.unspent) == (4, 0)
    assert c.tell(1, *part(1, slice(1, 4))).repeated
    assert replay(ledger).answered == 1


def test_an_overdue_request_nobody_needed_is_still_answered(ledger: Ledger, clock: Clock) -> None:
    c = made(ledger)
    request = c.ask()
    clock.now += 10_000
    receipt = c.tell(request, *rows(0))
    assert receipt.late
    assert receipt.rows == 2


def test_a_request_may_wait_longer(ledger: Ledger, clock: Clock) -> None:
    c = made(ledger)
    first, second = c.ask_many(4)[:2]
    clock.now += 3000
    assert c.extend(first, "2h") == clock.now + 7200
    assert c.extend(second, "never") is None
    clock.now += 7199
    c.ask()
    assert open_and_expired(c) == ([1, 2, 5], [3, 4])
    clock.now += 10**6
    c.ask()
    assert open_and_expired(c) == ([2, 6], [1, 3, 4, 5])
    with pytest.raises(ValueError, match="request 1 has expired; open requests: 2, 6"):
        c.extend(1, "1h")
    with pytest.raises(ValueError, match="request 1 has expired"):
        c.abandon(1)
    with pytest.raises(ValueError, match="cannot use the lease"):
        c.extend(2, "soon")


def test_without_a_lease_a_request_waits_for_ever(ledger: Ledger, clock: Clock) -> None:
    c = made(ledger, lease=None)
    assert [r.until for r in c.ask_many(4)] == [None] * 4
    clock.now += 10**9
    with pytest.raises(eh.NothingToAsk, match="waiting"):
        c.ask()
    c.change(lease="1m")  # for requests from here on
    c.abandon(1)
    assert c.ask().until == clock.now + 60


# -------------------------------------------------------------------- refits


def test_scores_are_refitted_every_so_many_labels(ledger: Ledger) -> None:
    c = made(ledger, strategy="optimistic", budget=100, refit=6)
    kinds = []
    for k in range(12):
        request = c.ask()
        kinds.append((request.behind, request.scores_age is None))
        c.tell(request, *rows(k))
    assert [e.facts["examples"] for e in events(ledger, "scored")] == [6, 12, 18]
    assert kinds[:8] == [(0, True), (2, True), (4, True), (0, False), (2, False), (4, False), (0, False), (2, False)]


def test_the_age_of_scores(ledger: Ledger, clock: Clock) -> None:
    c = made(ledger, strategy="optimistic", budget=100, refit="background")
    c.tell(c.ask(), *rows(0))
    c.refit()
    clock.now += 90
    assert c.ask().scores_age == 90
    assert c.status()["scores"]["age_seconds"] == 90


def test_in_the_background_an_ask_never_fits(ledger: Ledger) -> None:
    c = made(ledger, strategy="optimistic", budget=100, refit="background")
    for k in range(4):
        c.tell(c.ask(), *rows(k))
    assert events(ledger, "scored") == []
    assert c.refit()
    assert not c.refit()
    c.tell(c.ask(), *rows(9))
    request = c.ask()
    assert request.behind == 2
    assert request.decision.kind != "warm-up"
    assert request.rests_on == events(ledger, "scored")[0].facts["rests_on"]


def test_one_refit_at_a_time(tmp_path: Path) -> None:
    with DatabaseLedger(f"sqlite:///{tmp_path / 'ledger.db'}", create=True) as ledger:
        c = made(ledger, strategy="optimistic", budget=100)
        c.tell(c.ask(), *rows(0))
        assert ledger.lease(ledger.find("survey"), "somebody else", 0.4)
        assert not c.refit()
        assert c.ask().behind == 0  # waited until the lease ran out, then fitted
        assert len(events(ledger, "scored")) == 1


def test_the_lease_is_renewed_while_a_fit_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: list[Callable[[], object]]
) -> None:
    monkeypatch.setattr(models, "LEASE_SECONDS", 0.3)
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with DatabaseLedger(url, create=True) as ledger, DatabaseLedger(url) as other:
        c = made(ledger, learner=Slow(), budget=100, refit="background")
        c.tell(c.ask(), *rows(0))
        taken: list[bool] = []

        def wait() -> None:
            threading.Event().wait(0.8)
            taken.append(other.lease(1, "somebody else", 1))

        meanwhile.append(wait)
        assert c.refit()
        assert set(taken) == {False}
        assert other.lease(1, "somebody else", 1)


def test_a_delivery_during_a_fit_counts_for_the_next_one(ledger: Ledger, meanwhile: list[Callable[[], object]]) -> None:
    c = made(ledger, strategy="optimistic:c1=0.1", learner=Slow(), budget=100, refit="background")
    other = eh.Campaign.open(ledger, "survey", learner=Slow())
    for k in range(4):
        c.tell(c.ask(), *rows(k))
    told: list[int] = []

    def tell_once() -> None:
        if not told:
            told.append(other.tell(other.ask(), *rows(7)).rows)

    meanwhile.append(tell_once)
    assert c.refit()
    assert told == [2]
    state = replay(ledger)
    assert len(state.fresh) == 1
    assert (state.scored_examples, state.examples) == (8, 10)
    assert [len(series) for series in state.recent] == [1, 1]
    assert c.status()["scores"]["labels_behind"] == 2
    assert c.refit()
    assert sorted(len(series) for series in replay(ledger).recent) == [1, 2]
    assert c.verify().problems == []


def test_a_fit_holds_nobody_up(ledger: Ledger, meanwhile: list[Callable[[], object]]) -> None:
    """Whoever asks, tells or looks in another thread does not wait for a fit to end."""
    c = made(ledger, strategy="optimistic", learner=Slow(), budget=100, refit="background")
    for k in range(4):
        c.tell(c.ask(), *rows(k))
    began, go_on, done = threading.Event(), threading.Event(), list[str]()

    def fit() -> None:
        began.set()
        go_on.wait(30)

    def others() -> None:
        began.wait(30)
        c.status()
        done.append("looked")
        c.tell(c.ask(), *rows(9))
        done.append("told")

    meanwhile.append(fit)
    threads = [threading.Thread(target=c.refit), threading.Thread(target=others)]
    for thread in threads:
        thread.start()
    threads[1].join(3)
    meanwhile_done = list(done)
    go_on.set()
    for thread in threads:
        thread.join()
    assert meanwhile_done == ["looked", "told"]


def test_a_learner_that_fails_is_told_of_and_tried_again(ledger: Ledger, meanwhile: list[Callable[[], object]]) -> None:
    def fail() -> None:
        raise ZeroDivisionError("of its own")

    c = made(ledger, strategy="optimistic", learner=Slow(), budget=100)
    c.tell(c.ask(), *rows(0))
    meanwhile.append(fail)
    assert c.ask().behind == 2  # the campaign goes on with the scores there are
    assert "of its own" in c.status()["learner_failed"]["message"]
    with pytest.raises(eh.errors.LearnerError, match="of its own"):
        c.refit()
    assert c.ask().id == 3  # nothing came since: it is not tried again
    assert len(events(ledger, "failed")) == 1
    c.tell(2, *rows(1))
    c.ask()
    assert len(events(ledger, "failed")) == 2
    meanwhile.clear()
    assert c.refit()
    assert c.status()["learner_failed"] is None
    assert [e.kind for e in events(ledger, "failed", "scored")] == ["failed", "failed", "scored"]


def test_a_learner_that_fails_again_after_a_correction(ledger: Ledger, meanwhile: list[Callable[[], object]]) -> None:
    def fail() -> None:
        raise ZeroDivisionError("of its own")

    c = made(ledger, strategy="optimistic", learner=Slow(), budget=100)
    c.tell(c.ask(), *rows(0), ids=["a", "b"])
    meanwhile.append(fail)
    c.ask()
    c.correct("a", 1)
    asking = threading.Thread(target=c.ask, daemon=True)
    asking.start()
    asking.join(5)
    waits = asking.is_alive()
    meanwhile.clear()  # lets it go in any case
    asking.join()
    assert not waits
