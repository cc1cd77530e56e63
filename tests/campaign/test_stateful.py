"""Any sequence of verbs: the same answers on all three ledgers, before and after a reopen, read-only too."""

from __future__ import annotations

import itertools
import threading
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
from evenhand.campaign import chooser as campaign_module
from evenhand.campaign.state import State
from evenhand.errors import EvenhandError
from evenhand.ledger import Ledger, MemoryLedger
from evenhand.ledger.database import DatabaseLedger

BUDGET = 30
GROUPS = ("u", "v")
NAMES = itertools.count(1)
RULES = ["optimistic:c1=0.1", "epsilon-greedy:epsilon=0.3,explore=uniform", "greedy", "uniform", "uncurated"]
COLLECTORS = st.sampled_from([None, "ann", "bob"])
KEYS = st.integers(0, 3)
PICKS = st.integers(0, 7)
SIZES = st.integers(1, 4)
MAYBE = st.sampled_from([False, False, True])
CHANGES = st.one_of(
    st.fixed_dictionaries({"budget": st.integers(8, 36)}),
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
        asked = sum(event["kind"] in ("asked", "named") for event in self.using[0].events())
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

    @rule(count=st.integers(1, 2), named=st.booleans(), short=MAYBE)
    def rounds(self, count: int, named: bool, short: bool) -> None:
        """What most people do most of the time: ask, and tell what was asked for, or all but one of it."""
        kind, asked = self.each(lambda c: c.ask_many(count))
        for request in asked if kind == "done" else ():
            number, size = request["request"], request["size"] - short
            X = np.random.default_rng([7, number]).normal(size=(size, 2))
            y = ["yes" if x > 0 else "no" for x in X[:, 0]]
            ids = [f"n{number}-{k}" for k in range(size)] if named else None
            self.each(lambda c, number=number, X=X, y=y, ids=ids: c.tell(number, X, y, ids=ids))

    @rule(count=st.integers(1, 2))
    def more_rounds(self, count: int) -> None:
        self.rounds(count, True, False)

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

    @rule(key=KEYS, k=st.integers(0, 3), label=st.sampled_from(["yes", "no", "No"]))
    def correct(self, key: int, k: int, label: str) -> None:
        self.each(lambda c: c.correct(f"e{key}-{k}", label, reason="looked again", by="cyd"))

    @rule(key=KEYS, k=st.integers(0, 3), refund=st.booleans())
    def withdraw(self, key: int, k: int, refund: bool) -> None:
        self.each(lambda c: c.withdraw(f"e{key}-{k}", refund=refund))

    @rule(key=KEYS, k=st.integers(0, 3))
    def erase(self, key: int, k: int) -> None:
        self.each(lambda c: c.erase([f"e{key}-{k}"], reason="asked to"))

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
            state = campaign.state
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
    events = campaign.events()
    events[0]["facts"].pop("order")  # a seed decides the order of rows in memory only
    return found | {"status": campaign.status(), "events": events}


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
    play(machine, monkeypatch, 9, 25)


@pytest.mark.soak
def test_any_long_sequence_of_verbs(machine: type[AnySteps], monkeypatch: pytest.MonkeyPatch) -> None:
    play(machine, monkeypatch, 300, 80)


# -------------------------------------------------------------------- sequences worth a name


def examples(group: str, k: int, size: int) -> tuple[Any, Any]:
    """The k-th delivery of a group, the same for whoever asks."""
    rng = np.random.default_rng([ord(group[0]), k])
    y = rng.integers(0, 2, size)
    shift = {"u": 0.4, "v": 1.5}[group]
    return rng.normal(size=(size, 2)) + shift * (2 * y - 1)[:, None], y


@pytest.mark.parametrize("strategy", RULES)
def test_it_chooses_as_a_campaign_in_memory(database: str, strategy: str) -> None:
    given: dict[str, Any] = {"budget": 60, "batch": 2, "seed": 5, "population": [0.3, 0.7]}
    plain = eh.Campaign(GROUPS, strategy, eh.Logistic(), **given)
    kept = eh.Campaign.create(database, "survey", GROUPS, strategy, "logistic", **given)
    for k in range(12):
        expected, found = plain.ask(), kept.ask()
        assert (found.id, found.group, found.size, found.decision.as_dict()) == (
            expected.id, expected.group, expected.size, expected.decision.as_dict(),
        )  # fmt: skip
        X, y = examples(found.group, k, found.size)
        a = plain.tell(expected, X, y)
        b = [kept.tell(found, X[i : i + 2], y[i : i + 2]) for i in (0, 2)]
        assert (a.training, a.validation) == (sum(r.training for r in b), sum(r.validation for r in b))
        if k % 4 == 3:  # a new process: everything comes from the ledger
            kept.release()
            kept = eh.Campaign.open(database, "survey")
    assert (kept.counts, kept.labels_used) == (plain.counts, plain.labels_used)
    assert np.array_equal(kept.model().coef_, plain.model().coef_)


def test_an_incremental_learner_goes_through_its_fits_again(tmp_path: Path) -> None:
    from sklearn.linear_model import SGDClassifier

    url = f"sqlite:///{tmp_path / 'l.db'}"
    learner = eh.SklearnLearner(SGDClassifier(random_state=1), update="partial_fit")
    plain = eh.Campaign(GROUPS, eh.Optimistic(), learner, budget=80, batch=4, seed=3)
    text = "sklearn.linear_model.SGDClassifier:random_state=1,update=partial_fit"
    eh.Campaign.create(url, "survey", GROUPS, "optimistic", text, budget=80, batch=4, seed=3).release()
    for k in range(8):
        with eh.Campaign.open(url, "survey") as kept:
            expected, found = plain.ask(), kept.ask()
            assert found.decision.as_dict() == expected.decision.as_dict()
            rows = examples(found.group, k, found.size)
            plain.tell(expected, *rows)
            kept.tell(found, *rows)


def test_losses_reported_by_the_users_own_trainer(tmp_path: Path) -> None:
    plain = eh.Campaign(GROUPS, eh.Optimistic(), budget=100, batch=5)
    kept = eh.Campaign.create(f"sqlite:///{tmp_path / 'l.db'}", "s", GROUPS, eh.Optimistic(), None, budget=100, batch=5)
    for k in range(6):
        expected, found = plain.ask(), kept.ask()
        assert found.decision.as_dict() == expected.decision.as_dict()
        for campaign, request in ((plain, expected), (kept, found)):
            campaign.tell(request, n=10)
            campaign.tell_losses({"u": (0.3 - 0.01 * k, 0.7, 50), "v": (0.2, 0.8, 40)})


def test_two_who_tell_and_ask_at_once(database: str) -> None:
    one = eh.Campaign.create(database, "survey", GROUPS, budget=40)
    two = eh.Campaign.open(database, "survey")
    a, b = one.ask(collector="ann"), two.ask(collector="bob")
    assert (a.id, b.id) == (1, 2)
    assert a.group != b.group
    two.tell(b, *examples(b.group, 0, 2))
    one.tell(a, *examples(a.group, 0, 1))
    two.tell(a, *examples(a.group, 1, 1))
    assert one.events() == two.events()
    assert (one.labels_used, one.open_requests, one.counts) == (4, [], two.counts)


def test_threads_share_one_campaign(database: str) -> None:
    kept = eh.Campaign.create(database, "survey", GROUPS, budget=400, refit=8)
    problems: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(5):
                request = kept.ask()
                kept.tell(request, *examples(request.group, request.id, 2))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    status = kept.status()
    assert (status["answered"], status["used"], status["open"]) == (30, 60, [])
    assert kept.verify().problems == []


def test_the_budget_ends_it(tmp_path: Path) -> None:
    kept = eh.Campaign.create(f"sqlite:///{tmp_path / 'l.db'}", "survey", GROUPS, "uniform", budget=6)
    requests = kept.ask_many(9)
    assert len(requests) == 3
    with pytest.raises(eh.NothingToAsk, match="waiting for open requests"):
        kept.ask()
    for k, request in enumerate(requests):
        kept.tell(request, *examples(request.group, k, 2))
    with pytest.raises(eh.NothingToAsk, match="budget spent"):
        kept.ask()
    assert kept.done
    kept.change(budget=8)
    assert not kept.done
    kept.abandon(kept.ask())
    kept.retire("u")
    assert kept.ask().group == "v"
    with pytest.raises(ValueError, match="less than the 8 labels already used or promised"):
        kept.change(budget=5)
    kept.close("we have enough")
    with pytest.raises(eh.NothingToAsk, match="closed"):
        kept.ask()
    with pytest.raises(ValueError, match=r"closed \(we have enough\)"):
        kept.abandon(5)


def test_a_failing_learner_leaves_the_campaign_usable(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'l.db'}"
    kept = eh.Campaign.create(
        url, "survey", GROUPS, "greedy", "sklearn.neighbors.KNeighborsClassifier:n_neighbors=99", budget=40
    )
    for k in range(2):
        request = kept.ask()
        kept.tell(request, *examples(request.group, k, 2))
    X, y = examples("u", 1, 6)
    kept.add(X, y, ["u", "v"] * 3)
    assert kept.ask().decision.kind == "warm-up"
    assert "failed in fit" in eh.Campaign.open(url, "survey", read_only=True).status()["learner_failed"]["message"]
    failures = [event for event in kept.events() if event["kind"] == "failed"]
    kept.ask()
    assert [event for event in kept.events() if event["kind"] == "failed"] == failures
    kept.change(learner="logistic")
    assert kept.ask().decision.kind != "warm-up"
    assert kept.status()["learner_failed"] is None


@pytest.fixture
def clock() -> list[float]:
    return [1e9]


@pytest.fixture
def campaign(clock: list[float]) -> eh.Campaign:
    ledger = MemoryLedger(clock=lambda: clock[0])
    return eh.Campaign.create(ledger, "s", GROUPS, "uniform", "logistic", budget=40, batch=2, lease="60s")


def told(campaign: eh.Campaign, request: int, names: str) -> eh.campaign.requests.Receipt:
    X, y = examples("u", request, len(names))
    return campaign.tell(request, X, y, ids=list(names))


def missing(campaign: eh.Campaign) -> int:
    return sum(group["missing"] for group in campaign.certificate().as_dict()["groups"].values())


def test_a_late_label_of_a_request_that_expired_before_the_freeze(campaign: eh.Campaign, clock: list[float]) -> None:
    campaign.ask_many(2)
    told(campaign, 2, "abcd")
    clock[0] += 100
    campaign.ask()
    campaign.certify()
    assert missing(campaign) == 0
    told(campaign, 1, "wx")
    assert missing(campaign) == 0


def test_closing_hides_nothing_that_is_missing(campaign: eh.Campaign) -> None:
    campaign.ask()
    told(campaign, 1, "abcd")
    campaign.certify()
    campaign.ask()
    told(campaign, 2, "x")
    before = missing(campaign)
    assert before == 3
    campaign.close()
    assert missing(campaign) >= before


def test_a_learner_after_counts_leaves_ask_working(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign_module, "time", SimpleNamespace(sleep=_nobody_to_wait_for))
    c = eh.Campaign(GROUPS, "greedy", budget=40)
    c.tell(c.ask(), n=2)
    c.change(learner="logistic")
    assert c.ask().id == 2


def test_what_another_process_changed_holds_here(database: str) -> None:
    one = eh.Campaign.create(database, "survey", GROUPS, "greedy", "logistic", budget=60, batch=2, stop="labels=50")
    two = eh.Campaign.open(database, "survey")
    for k in range(4):
        request = two.ask()
        two.tell(request, *examples(request.group, k, 4))
    assert two.model() is not None
    one.change(learner="logistic:C=0.001", stop="labels=17")
    assert np.array_equal(one.model().coef_, two.model().coef_)
    request = two.ask()
    two.tell(request, *examples(request.group, 9, 4))
    with pytest.raises(eh.NothingToAsk, match="stopping rule"):
        two.ask()
    one.change(stop=None, learner=None)
    two.tell(two.ask(), n=4)
    assert two.verify().problems == []
