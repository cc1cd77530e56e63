"""Any sequence of verbs: the same answers on all three ledgers, before and after a reopen, read-only too."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import evenhand as eh
from evenhand.campaign import campaign as campaign_module
from evenhand.campaign.state import State
from evenhand.errors import EvenhandError
from evenhand.ledger import Ledger, MemoryLedger
from evenhand.ledger.database import DatabaseLedger

BUDGET = 24
GROUPS = ("u", "v")
NAMES = itertools.count(1)
RULES = ["optimistic:c1=0.1", "epsilon-greedy:epsilon=0.3,explore=uniform", "greedy", "uniform", "uncurated"]
COLLECTORS = st.sampled_from([None, "ann", "bob"])
KEYS = st.integers(0, 3)
PICKS = st.integers(0, 7)
SIZES = st.integers(1, 4)
MAYBE = st.sampled_from([False, False, True])
CHANGES = st.one_of(
    st.fixed_dictionaries({"budget": st.integers(8, 30)}),
    st.fixed_dictionaries({"refit": st.sampled_from(["always", "background", 3])}),
    st.fixed_dictionaries({"lease": st.sampled_from(["30s", "5m", None])}),
    st.fixed_dictionaries({"learner": st.sampled_from(["logistic", "logistic:C=0.1", None])}),
    st.fixed_dictionaries({"stop": st.sampled_from(["labels=18", None])}),
)


def rows(key: int, size: int) -> tuple[Any, list[str]]:
    """The same key, the same rows; a larger size has them first."""
    rng = np.random.default_rng(key)
    words = ["no", "yes"] if key != 3 else ["yes", "no"]
    return rng.normal(size=(4, 2))[:size], [words[k % 2] for k in range(size)]


def plain(found: Any) -> Any:
    """An answer as plain values."""
    if isinstance(found, list):
        return [plain(each) for each in found]
    return found.as_dict() if hasattr(found, "as_dict") else found


def outcome(do: Callable[[Any], Any], campaign: eh.Campaign) -> tuple[str, Any]:
    """What a verb answers, or how it refuses."""
    try:
        return "done", plain(do(campaign))
    except EvenhandError as error:
        return type(error).__name__, str(error)


class AnySteps(RuleBasedStateMachine):
    """Plays the same verbs on every ledger, through two open campaigns each, as two processes would."""

    ledgers: tuple[Ledger, ...]
    readers: tuple[Ledger, ...]
    clock: list[float]
    campaigns: tuple[tuple[eh.Campaign, ...], ...] = ()

    @initialize(
        strategy=st.sampled_from(RULES),
        learner=st.sampled_from(["logistic", "logistic", None]),
        refit=st.sampled_from(["always", "background", 3]),
        given=st.fixed_dictionaries(
            {
                "batch": st.sampled_from([1, 2]),
                "validation": st.sampled_from([0.3, 0.5, 0.7]),
                "lease": st.sampled_from(["60s", None]),
                "classes": st.sampled_from([None, ["no", "yes"]]),
                "warmup": st.sampled_from([None, 3]),
                "seed": st.integers(0, 3),
                "distinct": st.booleans(),
            }
        ),
    )
    def create(self, strategy: str, learner: str | None, refit: str | int, given: dict[str, Any]) -> None:
        self.name, self.steps, self.process = f"c{next(NAMES)}", 0, 0
        made = [
            eh.Campaign.create(
                ledger, self.name, GROUPS, strategy, learner, budget=BUDGET, refit=refit, population=[0.3, 0.7], **given
            )
            for ledger in self.ledgers
        ]
        self.campaigns = tuple(
            (c, eh.Campaign.open(ledger, self.name)) for c, ledger in zip(made, self.ledgers, strict=True)
        )

    @property
    def using(self) -> list[eh.Campaign]:
        return [pair[self.process] for pair in self.campaigns]

    def number(self, pick: int) -> int:
        """A request that was made, most often; sometimes one that was not."""
        asked = sum(event["kind"] == "asked" for event in self.using[0].events())
        waiting = [request.id for request in self.using[0].open_requests]
        return waiting[pick % len(waiting)] if waiting and pick < 5 else 1 + pick % (asked + 1)

    def each(self, do: Callable[[eh.Campaign], Any]) -> tuple[str, Any]:
        """Do it everywhere; everywhere the same comes of it."""
        self.steps += 1
        first, *others = [outcome(do, campaign) for campaign in self.using]
        for other in others:
            assert other == first
        return first

    @rule(count=st.integers(1, 3), collector=COLLECTORS)
    def ask(self, count: int, collector: str | None) -> None:
        self.each(lambda c: c.ask_many(count, collector))

    @rule(collector=COLLECTORS)
    def ask_one(self, collector: str | None) -> None:
        self.each(lambda c: c.ask(collector))

    @rule(
        pick=PICKS, key=KEYS, size=SIZES, named=st.booleans(), extra=MAYBE, partial=MAYBE, dry_run=MAYBE,
        bad=st.sampled_from([None, None, None, "nan", "label", "class", "id"]), collector=COLLECTORS,
    )  # fmt: skip
    def tell(
        self, pick: int, key: int, size: int, named: bool, extra: bool, partial: bool, dry_run: bool, bad: str | None,
        collector: str | None,
    ) -> None:  # fmt: skip
        number = self.number(pick)
        X, y = rows(key, size)
        ids: list[Any] | None = [f"e{key}-{k}" for k in range(size)] if named else None
        if bad == "nan":
            X[-1, 0] = np.nan
        elif bad == "label":
            y[-1] = " yes"
        elif bad == "class":
            y[-1] = "maybe"
        elif bad == "id" and ids:
            ids[-1] = None
        kind, found = self.each(
            lambda c: c.tell(number, X, y, ids=ids, extra=extra, partial=partial, dry_run=dry_run, collector=collector)
        )
        if kind == "done" and not dry_run:
            again = self.each(lambda c: c.tell(number, X, y, ids=ids, extra=extra, partial=partial))
            assert again[0] == "done"
            assert again[1]["rows"] == 0, "the same delivery told twice stored rows twice"
            assert again[1]["known"] == found["rows"] + found["known"]

    @rule(pick=PICKS, n=st.integers(0, 5), extra=MAYBE, dry_run=MAYBE)
    def tell_count(self, pick: int, n: int, extra: bool, dry_run: bool) -> None:
        number = self.number(pick)
        self.each(lambda c: c.tell(number, n=n, extra=extra, dry_run=dry_run))

    @rule(key=KEYS, size=SIZES, named=st.booleans(), charge=MAYBE)
    def add(self, key: int, size: int, named: bool, charge: bool) -> None:
        X, y = rows(key, size)
        ids = [f"e{key}-{k}" for k in range(size)] if named else None
        groups = [GROUPS[(key + k) % 2] for k in range(size)]
        self.each(lambda c: c.add(X, y, groups, ids=ids, charge=charge, by="ann"))

    @rule(pick=PICKS)
    def abandon(self, pick: int) -> None:
        number = self.number(pick)
        self.each(lambda c: c.abandon(number, by="bob"))

    @rule(pick=PICKS, lease=st.sampled_from(["2m", "10s", None]))
    def extend(self, pick: int, lease: str | None) -> None:
        number = self.number(pick)
        self.each(lambda c: c.extend(number, lease))

    @rule(group=st.sampled_from([*GROUPS, "w"]), back=st.sampled_from([True, True, False]))
    def retire(self, group: str, back: bool) -> None:
        self.each(lambda c: c.retire(group, back))

    @rule(changes=CHANGES)
    def change(self, changes: dict[str, Any]) -> None:
        self.each(lambda c: c.change(**changes))

    @rule()
    def refit(self) -> None:
        self.each(lambda c: c.refit())

    @rule(loss=st.sampled_from([0.1, 0.4]), n=st.integers(0, 40))
    def tell_losses(self, loss: float, n: int) -> None:
        self.each(lambda c: c.tell_losses({"u": (loss, 1 - loss, n), "v": (0.2, 0.8, 5)}))

    @rule(model=st.sampled_from(["final", "current", "best"]), distinct=st.sampled_from([None, True]))
    def certify(self, model: str, distinct: bool | None) -> None:
        self.each(lambda c: c.certify(model=model, distinct=distinct))

    @rule(seconds=st.integers(1, 100))
    def wait(self, seconds: int) -> None:
        self.clock[0] += seconds

    @precondition(lambda self: self.steps > 20)
    @rule()
    def close(self) -> None:
        self.each(lambda c: c.close("enough"))

    @rule()
    def other_process(self) -> None:
        self.process = 1 - self.process

    @rule()
    def reopen(self) -> None:
        self.campaigns = tuple(
            tuple(eh.Campaign.open(ledger, self.name) if k == self.process else c for k, c in enumerate(pair))
            for pair, ledger in zip(self.campaigns, self.ledgers, strict=True)
        )

    @rule(pick=PICKS)
    def look(self, pick: int) -> None:
        number = self.number(pick)
        self.each(lambda c: c.explain(number))
        self.each(lambda c: c.explain())
        self.each(lambda c: c.certificate())
        self.each(lambda c: [part.tolist() for part in c.training_set()])
        self.each(lambda c: [part.tolist() for part in c.validation_set()])

    @invariant()
    def stands_the_same_everywhere(self) -> None:
        first, *others = [_looks(campaign) for campaign in self.using]
        for other in others:
            assert other == first
        for campaign, reader in zip(self.using, self.readers, strict=True):
            again = eh.Campaign.open(reader, self.name)
            assert again.status() == first["status"], f"a new process sees it otherwise in {reader.name}"
            with reader.reading(reader.find(self.name)) as moment:
                events = moment.events()
            state = campaign._refresh()
            assert State().fold(events) == state
            assert State.from_text(state.as_text()) == state
            assert state.labels_used + state.outstanding <= state.settings["budget"]
            assert min(state.missing) >= 0
            ended = len(state.open) + len(state.expired) + state.answered + state.abandoned
            assert state.closed is not None or state.asked == ended

    def teardown(self) -> None:
        for pair in self.campaigns:
            found = pair[0].verify()
            assert found.problems == []
            assert found.ok


def _looks(campaign: eh.Campaign) -> dict[str, Any]:
    found = {name: getattr(campaign, name) for name in ("counts", "mixture", "labels_used", "unspent", "done")}
    found["open"] = [request.as_dict() for request in campaign.open_requests]
    return found | {"status": campaign.status(), "events": campaign.events()}


@pytest.fixture(scope="module")
def machine(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[AnySteps]]:
    """The machine on a memory, an SQLite and a PostgreSQL ledger that share a clock."""
    import psycopg

    clock = [1e9]
    folder: Path = tmp_path_factory.mktemp("any")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS any_steps CASCADE")
        connection.execute("CREATE SCHEMA any_steps")
    urls = [
        f"sqlite:///{folder}/l.db?synchronous=normal",
        f"{postgres_server}&options=-c%20search_path%3Dany_steps&synchronous=normal",
    ]
    memory = MemoryLedger(clock=lambda: clock[0])
    ledgers = [DatabaseLedger(url, create=True, clock=lambda: clock[0]) for url in urls]
    readers = [DatabaseLedger(url, read_only=True, clock=lambda: clock[0]) for url in urls]
    yield type(
        "OnThreeLedgers",
        (AnySteps,),
        {"ledgers": (memory, *ledgers), "readers": (memory, *readers), "clock": clock},
    )
    for ledger in (*ledgers, *readers):
        ledger.close()


def _nobody_to_wait_for(seconds: float) -> None:
    raise AssertionError("ask waits for a refit that nobody is doing")


def play(machine: type[AnySteps], monkeypatch: pytest.MonkeyPatch, examples: int, steps: int) -> None:
    monkeypatch.setattr(campaign_module, "time", SimpleNamespace(sleep=_nobody_to_wait_for), raising=False)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_any_sequence_of_verbs(machine: type[AnySteps], monkeypatch: pytest.MonkeyPatch) -> None:
    play(machine, monkeypatch, 12, 30)


@pytest.mark.soak
def test_any_long_sequence_of_verbs(machine: type[AnySteps], monkeypatch: pytest.MonkeyPatch) -> None:
    play(machine, monkeypatch, 300, 80)
