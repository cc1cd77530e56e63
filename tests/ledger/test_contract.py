"""The contract of a ledger, the same for memory, SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, event, text
from tests.helpers import Clock

from evenhand.campaign.state import State
from evenhand.errors import InputError, LedgerError
from evenhand.ledger import Event, Example, Ledger, MemoryLedger, StoredModel, Writer, copy
from evenhand.ledger.database import DatabaseLedger

KINDS = ("memory", "sqlite", "postgresql")
Make = Callable[..., Ledger]


def ledger_of(kind: str, request: pytest.FixtureRequest, folder: Path, clock: Any = None) -> Ledger:
    """A new ledger of a kind."""
    if kind == "memory":
        return MemoryLedger() if clock is None else MemoryLedger(clock=clock)
    url = f"sqlite:///{folder / 'ledger.db'}" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    return DatabaseLedger(url, create=True, clock=clock)


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a ledger of each kind in turn, with a clock of one's own if wanted."""
    made: list[Ledger] = []

    def new(clock: Any = None) -> Ledger:
        made.append(ledger_of(request.param, request, tmp_path, clock))
        return made[-1]

    yield new
    for ledger in made:
        ledger.close()


@pytest.fixture
def ledger(make: Make) -> Ledger:
    return make()


def born(ledger: Ledger, name: str = "survey") -> int:
    with ledger.create(name) as writer:
        writer.append("created", {"groups": ["u", "v"]})
    return ledger.find(name)


def append(ledger: Ledger, campaign: int, kind: str, facts: dict[str, Any] | None = None, **about: Any) -> Event:
    """One event in a step of its own, by somebody who reads all events before."""
    with ledger.writing(campaign) as writer:
        writer.tail(0, 0.0)
        return writer.append(kind, facts or {}, **about)


def events(ledger: Ledger, campaign: int, **only: Any) -> list[Event]:
    with ledger.reading(campaign) as reader:
        return reader.events(**only)


def told(name: str, seq: int, position: int = 0, group: str = "u", label: str = "yes", **more: Any) -> Example:
    given: dict[str, Any] = {
        "role": "train", "request": 1, "origin": "asked", "label": label, "first_label": label, "features": "[1.5,null]",
        "told": seq, "position": position, "changed": seq, "salt": "ab" * 16, **more,
    }  # fmt: skip
    return Example(name, group, **given)


def store(ledger: Ledger, campaign: int, *examples: Example, kind: str = "told") -> None:
    with ledger.writing(campaign) as writer:
        writer.tail(0, 0.0)
        writer.append(kind, {})
        writer.put(examples)


# -------------------------------------------------------------------- events


def test_what_was_appended_is_read_back(ledger: Ledger) -> None:
    campaign = born(ledger)
    facts = {
        "share": 0.1,
        "tiny": 5e-324,
        "large": 2**63 - 1,
        "text": "ä 'b' \"c\"\n",
        "none": None,
        "list": [1, [2.5]],
    }
    first = append(ledger, campaign, "asked", facts, request=7, actor="ann")
    second = append(ledger, campaign, "told", {}, request=7)
    found = events(ledger, campaign)
    assert [(e.seq, e.kind, e.request, e.actor) for e in found] == [
        (1, "created", None, None), (2, "asked", 7, "ann"), (3, "told", 7, None),
    ]  # fmt: skip
    assert found[1:] == [first, second]
    assert found[1].facts == facts
    assert [type(value) for value in found[1].facts.values()] == [type(value) for value in facts.values()]


def test_questions_for_events(ledger: Ledger) -> None:
    campaign = born(ledger)
    for number in range(1, 21):
        append(ledger, campaign, ("asked", "told", "expired")[number % 3], request=number % 4)
    everything = events(ledger, campaign)
    assert len(everything) == 21
    kinds: list[tuple[str, ...]] = [(), ("told",), ("asked", "expired"), ("dreamt",)]
    for after, kind, request, limit in product((0, 1, 10, 21, 99), kinds, (None, 0, 3, 9), (None, 1, 4, 100)):
        expected = [
            e for e in everything
            if e.seq > after and (not kind or e.kind in kind) and (request is None or e.request == request)
        ]  # fmt: skip
        found = events(ledger, campaign, after=after, kinds=kind, request=request, limit=limit)
        assert found == expected[:limit], (after, kind, request, limit)


def test_campaigns_do_not_mix(ledger: Ledger) -> None:
    one, two = born(ledger, "one"), born(ledger, "two")
    store(ledger, one, told("a", 2))
    with ledger.writing(one) as writer:
        writer.put_model(StoredModel(1, "d", "npz", b"model"))
        writer.put_snapshot(2, "{}")
    assert list(ledger.campaigns().items()) == [("one", one), ("two", two)]
    assert [len(events(ledger, number)) for number in (one, two)] == [2, 1]
    with ledger.reading(two) as reader:
        assert (reader.changed(), reader.find(["a"]), reader.told_by(2), reader.class_counts()) == ([], {}, [], {})
        assert (reader.model(1), reader.snapshot()) == (None, None)
    store(ledger, two, told("a", 2, label="no"))
    with ledger.reading(one) as reader:
        assert reader.find(["a"])["a"].label == "yes"
    assert ledger.lease(one, "me", 60)
    assert ledger.lease(two, "you", 60)


def test_times_never_go_back(make: Make) -> None:
    clock = Clock(1000.0)
    ledger = make(clock)
    campaign = born(ledger)
    for now in (1001.0, 900.0, 1000.5, 1002.0):
        clock.now = now
        append(ledger, campaign, "asked")
        with ledger.reading(campaign) as reader:
            assert reader.now == now
    with ledger.writing(campaign) as writer:
        clock.now = 1.0
        assert writer.now == 1002.0  # one moment, also on the clock
        writer.tail(0, 0.0)
        writer.append("asked", {})
    assert [e.at for e in events(ledger, campaign)] == [1000.0, 1001.0, 1001.0, 1001.0, 1002.0, 1002.0]


def test_the_clock_is_that_of_the_ledger(ledger: Ledger) -> None:
    import time

    before = time.time()
    campaign = born(ledger)
    with ledger.reading(campaign) as reader:
        assert before - 1 < reader.events()[0].at <= reader.now < time.time() + 1


def test_many_threads_leave_no_gap(ledger: Ledger) -> None:
    campaign = born(ledger)
    problems: list[Exception] = []

    def work(who: str) -> None:
        seq, at = 0, 0.0
        try:
            for _ in range(15):
                with ledger.writing(campaign) as writer:
                    tail = writer.tail(seq, at)
                    assert [e.seq for e in tail] == list(range(seq + 1, seq + 1 + len(tail)))
                    number = sum(e.kind == "asked" for e in writer.events()) + 1
                    for _ in range(2):
                        event = writer.append("asked", {}, request=number, actor=who)
                seq, at = event.seq, event.at
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    found = events(ledger, campaign)
    assert [e.seq for e in found] == list(range(1, 122))
    assert [e.request for e in found[1:]] == [1 + k - k % 2 for k in range(120)]
    assert all(a.at <= b.at for a, b in pairwise(found))


def test_a_step_waits_for_the_one_before_and_reads_what_it_wrote(ledger: Ledger) -> None:
    campaign = born(ledger)
    second = threading.Thread(target=append, args=(ledger, campaign, "second"))
    with ledger.writing(campaign) as writer:
        writer.tail(0, 0.0)
        writer.append("first", {})
        second.start()
        second.join(0.2)
        assert second.is_alive()
    second.join()
    assert [(e.seq, e.kind) for e in events(ledger, campaign)] == [(1, "created"), (2, "first"), (3, "second")]


def test_a_number_that_is_taken_is_refused(ledger: Ledger) -> None:
    campaign = born(ledger)

    def without_looking() -> None:
        with ledger.writing(campaign) as writer:
            writer.append("asked", {})

    for _ in range(2):
        with pytest.raises(LedgerError, match="nothing was stored"):
            without_looking()
        assert [e.seq for e in events(ledger, campaign)] == [1]
    append(ledger, campaign, "asked")
    assert [e.seq for e in events(ledger, campaign)] == [1, 2]


# -------------------------------------------------------------------- whole or nothing


class Oops(BaseException):
    """Not even an Exception, as Ctrl-C."""


def fill(writer: Writer) -> None:
    """A step with a bit of everything."""
    writer.tail(0, 0.0)
    writer.append("told", {"new": True})
    writer.append("changed", {})
    writer.put([told("a", 2, label="no"), told("b", 2, 1)])
    writer.put_model(StoredModel(1, "d", "npz", b"model"))
    writer.put_snapshot(2, "{}")


def failing(ledger: Ledger, campaign: int, error: BaseException) -> None:
    """Such a step, and an error in its block."""
    with ledger.writing(campaign) as writer:
        fill(writer)
        raise error


def contents(ledger: Ledger, campaign: int) -> list[Any]:
    with ledger.reading(campaign) as reader:
        return [
            reader.events(), reader.changed(), reader.find(["a", "b"]), reader.told_by(2), reader.class_counts(),
            reader.model(1), reader.snapshot(),
        ]  # fmt: skip


@pytest.mark.parametrize("error", [ValueError("no"), Oops()])
def test_after_an_error_nothing_is_stored(ledger: Ledger, error: BaseException) -> None:
    campaign = born(ledger)
    before = contents(ledger, campaign)
    for _ in range(3):
        with pytest.raises(type(error)):
            failing(ledger, campaign, error)
        assert contents(ledger, campaign) == before
    with ledger.writing(campaign) as writer:
        fill(writer)
    after = contents(ledger, campaign)
    assert all(a != b for a, b in zip(before, after, strict=True))


def test_after_what_cannot_be_written_down_nothing_is_stored(ledger: Ledger) -> None:
    campaign = born(ledger)
    before = contents(ledger, campaign)

    def half_written(bad: Any) -> None:
        with ledger.writing(campaign) as writer:
            fill(writer)
            writer.append("changed", {"bad": bad})

    for bad in (object(), 2**70, {1: 2}, "\ud800"):
        with pytest.raises(InputError, match="cannot be stored"):
            half_written(bad)
        assert contents(ledger, campaign) == before


def test_a_step_sees_the_examples_it_has_put(ledger: Ledger) -> None:
    campaign = born(ledger)
    store(ledger, campaign, told("a", 2))
    with ledger.writing(campaign) as writer:
        events, model, snapshot = writer.events(), writer.model(1), writer.snapshot()
        fill(writer)
        writer.put([told("a", 2, label="other"), told("z", 9)])
        assert (writer.events(), writer.model(1), writer.snapshot()) == (events, model, snapshot)
        assert writer.find(["a", "z"]).keys() == {"a", "z"}
        assert writer.find(["a"])["a"].label == "other"
        assert {example.id for example in writer.changed(8)} == {"z"}
        assert [example.id for example in writer.told_by(9)] == ["z"]
        seen = writer.changed(), writer.class_counts(), writer.pool_counts()
    with ledger.reading(campaign) as reader:
        assert (reader.changed(), reader.class_counts(), reader.pool_counts()) == seen


def waiting(name: str, place: int, position: int, **more: Any) -> Example:
    """An example in a pool."""
    return Example(id=name, group="u", place=place, position=position, features="[1]", changed=2, **more)


def pool_of(ledger: Ledger, campaign: int) -> tuple[Any, ...]:
    with ledger.reading(campaign) as reader:
        return reader.next_in_pool("u", 99), reader.next_in_pool("v", 99), reader.pool_counts(), reader.changed()


def test_a_pool_is_handed_out_in_the_order_of_its_places(ledger: Ledger) -> None:
    campaign = born(ledger)
    store(ledger, campaign, waiting("c", 3, 1), waiting("a", 1, 2), waiting("b", 2, 3), told("d", 2))
    store(ledger, campaign, waiting("b", 2, 3, held=True, role="train"), waiting("e", 0, 4, fate="skipped"))
    assert [e.id for e in pool_of(ledger, campaign)[0]] == ["a", "c"]
    assert pool_of(ledger, campaign)[2] == {"u": 2}
    with ledger.writing(campaign) as writer:
        writer.put([waiting("b", 2, 3, role="train"), waiting("a", 1, 2)._replace(group="v")])
        assert [e.id for e in writer.next_in_pool("u", 99)] == ["b", "c"]
        assert [e.id for e in writer.next_in_pool("u", 1)] == ["b"]
        assert writer.pool_counts() == {"u": 2, "v": 1}
        assert writer.pool_counts(1, 2) == {"u": 1, "v": 1}
        assert [e.id for e in writer.came_back(1, 9)] == ["b"]
        assert writer.came_back(4, 9) == []
        assert writer.leave_pool(2, 9) == {"v": 1}, "what was handed out, is held, told or skipped stays"
        assert writer.find(["a"])["a"] == waiting("a", 1, 2, fate="gone")._replace(group="v"), "it keeps its place"
        writer.put([waiting("a", 7, 9)])
        assert [e.id for e in writer.next_in_pool("u", 99)] == ["b", "c", "a"]
    assert [e.id for e in pool_of(ledger, campaign)[0]] == ["b", "c", "a"]


@pytest.mark.parametrize("many", [1, 3000])
def test_after_an_error_the_pool_is_as_it_was(ledger: Ledger, many: int) -> None:
    campaign = born(ledger)
    store(ledger, campaign, *(waiting(f"p{k}", 7 * k % many, k + 1) for k in range(many)), told("d", 2))
    before = pool_of(ledger, campaign)

    def spoil() -> None:
        with ledger.writing(campaign) as writer:
            writer.put([e._replace(held=True, role="train") for e in writer.next_in_pool("u", many)])
            writer.put([told("p0", 3), told("new", 4)])
            writer.put([waiting("more", 1, many + 1), waiting("d", 1, many + 2)])
            writer.leave_pool(0, many + 1)
            raise RuntimeError("cut off")

    with pytest.raises(RuntimeError, match="cut off"):
        spoil()
    assert pool_of(ledger, campaign) == before


def test_what_append_gave_back_is_what_is_stored(ledger: Ledger) -> None:
    campaign, given = born(ledger), {"list": [1]}
    with ledger.writing(campaign) as writer:
        writer.tail(0, 0.0)
        event = writer.append("asked", given)
        given["list"].append(2)  # too late
    assert events(ledger, campaign)[-1] == event
    assert event.facts == {"list": [1]}


# -------------------------------------------------------------------- one moment


def test_within_reading_everything_belongs_to_one_moment(ledger: Ledger) -> None:
    campaign, stop, problems = born(ledger), threading.Event(), list[Exception]()

    def write() -> None:
        try:
            while not stop.is_set():
                with ledger.writing(campaign) as writer:
                    last = len(writer.tail(0, 0.0))
                    writer.append("told", {})
                    writer.put([told(f"e{last + 1}", last + 1)])
                    writer.put_snapshot(last + 1, str(last + 1))
                stop.wait(0.001)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    sizes = []
    while len(sizes) < 12 and not problems:
        with ledger.reading(campaign) as reader:
            seen = reader.events()
            threading.Event().wait(0.01)
            assert [e.told for e in reader.changed()] == [e.seq for e in seen if e.kind == "told"]
            assert reader.class_counts() == ({"u": {"yes": len(seen) - 1}} if len(seen) > 1 else {})
            assert reader.snapshot() == ((len(seen), str(len(seen))) if len(seen) > 1 else None)
            assert reader.told_by(len(seen) + 1) == []
            assert reader.events() == seen
        sizes.append(len(seen))
        threading.Event().wait(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(set(sizes)) > 3
    assert sizes == sorted(sizes)


def test_a_moment_of_a_database_lasts_while_its_own_thread_writes(database: str) -> None:
    ledger: Ledger = DatabaseLedger(database, create=True)
    campaign = born(ledger)
    store(ledger, campaign, told("a", 2))
    with ledger.reading(campaign) as reader:
        before = [reader.events(), reader.changed(), reader.class_counts()]
        store(ledger, campaign, told("b", 3))
        assert [reader.events(), reader.changed(), reader.class_counts()] == before
    assert len(events(ledger, campaign)) == 3


# -------------------------------------------------------------------- tail


def test_tail_gives_what_came_since(ledger: Ledger) -> None:
    campaign = born(ledger)
    known = [append(ledger, campaign, "asked") for _ in range(3)]
    with ledger.writing(campaign) as writer:
        assert [e.seq for e in writer.tail(0, 0.0)] == [1, 2, 3, 4]
        assert [e.seq for e in writer.tail(known[0].seq, known[0].at)] == [3, 4]
        assert writer.tail(known[-1].seq, known[-1].at) == []
        assert writer.append("asked", {}).seq == 5


def test_tail_refuses_a_ledger_that_lost_events(ledger: Ledger) -> None:
    campaign = born(ledger)

    def go_on_from(seq: int, at: float) -> None:
        with ledger.writing(campaign) as writer:
            writer.put([told("a", 5)])
            writer.tail(seq, at)
            writer.append("asked", {})

    for _ in range(3):
        last = append(ledger, campaign, "asked")
    for seq, at in ((last.seq + 1, last.at), (last.seq + 9, last.at), (last.seq, last.at + 1), (1, last.at - 1)):
        with pytest.raises(LedgerError, match="nothing was stored, open the campaign again"):
            go_on_from(seq, at)
        assert len(events(ledger, campaign)) == 4
        with ledger.reading(campaign) as reader:
            assert reader.find(["a"]) == {}


# -------------------------------------------------------------------- examples


def test_an_example_is_read_back_as_it_was_put(ledger: Ledger) -> None:
    campaign = born(ledger)
    whole = Example(
        "id 'ä' %(x)s",
        "u",
        "validate",
        2**40,
        3,
        False,
        "extra",
        True,
        "yes\n",
        "no",
        '[0.1,"x",null]',
        2,
        5,
        2,
        "ff",
        "withdrawn",
    )
    bare = Example("bare", "v")
    array = told("array", 2, 1, features=b"\x93NUMPY\x00\xff")
    store(ledger, campaign, whole, bare, array)
    with ledger.reading(campaign) as reader:
        found = reader.find(["bare", "array", whole.id, "other"])
    assert found == {e.id: e for e in (whole, bare, array)}
    assert all(type(a) is type(b) for e in (whole, bare, array) for a, b in zip(e, found[e.id], strict=True))
    assert [whole.counts, bare.counts, found["array"].counts] == [False, False, True]


def test_an_example_takes_the_place_of_the_one_with_its_id(ledger: Ledger) -> None:
    campaign = born(ledger)
    store(ledger, campaign, told("a", 2), told("b", 2, 1, features=b"array"))
    erased = told("b", 2, 1)._replace(label=None, first_label=None, features=None, salt=None, fate="erased", changed=3)
    store(ledger, campaign, erased, told("a", 2, label="no", changed=3), kind="erased")
    with ledger.reading(campaign) as reader:
        assert reader.changed() == [told("a", 2, label="no", changed=3), erased]
        assert reader.find(["b"])["b"].features is None
        assert reader.class_counts() == {"u": {"no": 1}}
    with ledger.writing(campaign) as writer:
        writer.put([told("c", 4), told("c", 4, label="no")])  # the last one counts, within a step as well
    with ledger.reading(campaign) as reader:
        assert reader.find(["c"])["c"].label == "no"
        assert [e.id for e in reader.changed()] == ["a", "b", "c"]


def test_changed_gives_labelled_examples_in_the_order_they_were_told(ledger: Ledger) -> None:
    campaign = born(ledger)
    pool = [Example(f"p{k}", "u", place=k) for k in range(4)]
    store(ledger, campaign, *pool, kind="pooled")
    store(ledger, campaign, told("p3", 3), told("p1", 3, 1))
    store(ledger, campaign, told("p0", 4, 0), told("z", 4, 1))
    with ledger.reading(campaign) as reader:
        assert [[e.id for e in reader.changed(after)] for after in range(6)] == [
            ["p3", "p1", "p0", "z"], ["p3", "p1", "p0", "z"], ["p3", "p1", "p0", "z"], ["p0", "z"], [], [],
        ]  # fmt: skip
        assert [[e.id for e in reader.told_by(seq)] for seq in range(6)] == [
            [], [], [], ["p3", "p1"], ["p0", "z"], [],
        ]  # fmt: skip


@pytest.mark.parametrize("kind", ["corrected", "withdrawn", "erased", "moved"])
def test_changed_gives_what_a_later_event_changed(ledger: Ledger, kind: str) -> None:
    """Whatever the event is called: a ledger knows nothing of campaigns' rules."""
    campaign = born(ledger)
    store(ledger, campaign, told("a", 2), told("b", 2, 1))
    store(ledger, campaign, told("c", 3))
    store(ledger, campaign, told("b", 2, 1, label="no", changed=4), kind=kind)
    store(ledger, campaign, told("d", 5))
    with ledger.reading(campaign) as reader:
        found = [[e.id for e in reader.changed(after)] for after in range(6)]
    assert found == [["a", "b", "c", "d"], ["a", "b", "c", "d"], ["b", "c", "d"], ["b", "d"], ["d"], []]


def test_thousands_of_ids_are_found(ledger: Ledger) -> None:
    campaign = born(ledger)
    store(ledger, campaign, *(told(f"e{k}", 2, k, group="uv"[k % 2]) for k in range(6001)))
    wanted = [f"e{k}" for k in range(0, 12_000, 2)]
    with ledger.reading(campaign) as reader:
        found = reader.find([*wanted, *wanted])
        assert found.keys() == {f"e{k}" for k in range(0, 6001, 2)}
        assert found["e6000"] == told("e6000", 2, 6000)
        assert reader.find([]) == {}
        assert reader.find({"e1"}).keys() == {"e1"}
        assert [e.position for e in reader.told_by(2)] == list(range(6001))
        assert reader.class_counts() == {"u": {"yes": 3001}, "v": {"yes": 3000}}


def test_class_counts_leave_out_what_was_taken_back_or_has_no_label(ledger: Ledger) -> None:
    campaign = born(ledger)
    rows = [told("a", 2), told("b", 2, 1), told("c", 2, 2, group="v"), told("d", 2, 3, label="no")]
    gone = [told("e", 2, 4, fate="withdrawn"), told("f", 2, 5, label="other", fate="skipped"), Example("g", "w")]
    store(ledger, campaign, *rows, *gone)
    with ledger.reading(campaign) as reader:
        assert reader.class_counts() == {"u": {"yes": 2, "no": 1}, "v": {"yes": 1}}


# -------------------------------------------------------------------- models, snapshots, leases, names


def test_models_are_kept_as_they_are(ledger: Ledger) -> None:
    campaign = born(ledger)
    models = [StoredModel(k, f"digest {k}", "npz", bytes(range(256)) * k) for k in (1, 2)]
    for model in models:
        with ledger.writing(campaign) as writer:
            writer.put_model(model)
    with ledger.reading(campaign) as reader:
        assert [reader.model(k) for k in (0, 1, 2, 3)] == [None, *models, None]
        assert isinstance(models[0].data, bytes)


def test_a_frozen_model_is_never_replaced(ledger: Ledger) -> None:
    campaign = born(ledger)
    with ledger.writing(campaign) as writer:
        writer.put_model(StoredModel(1, "d", "npz", b"one"))
    with pytest.raises(LedgerError), ledger.writing(campaign) as writer:
        writer.put_model(StoredModel(1, "d", "npz", b"two"))
    with ledger.reading(campaign) as reader:
        assert reader.model(1) == StoredModel(1, "d", "npz", b"one")


def test_the_newest_snapshot_is_kept(ledger: Ledger) -> None:
    campaign = born(ledger)
    with ledger.reading(campaign) as reader:
        assert reader.snapshot() is None
    for seq in (3, 7):
        with ledger.writing(campaign) as writer:
            writer.put_snapshot(seq, f'{{"ä": {seq}}}')
    append(ledger, campaign, "asked")  # a step without one leaves it there
    with ledger.reading(campaign) as reader:
        assert reader.snapshot() == (7, '{"ä": 7}')


def test_one_holder_at_a_time_has_the_lease(make: Make) -> None:
    clock = Clock()
    ledger = make(clock)
    campaign = born(ledger)
    assert ledger.lease(campaign, "a", 60)
    clock.now += 59
    assert not ledger.lease(campaign, "b", 60)
    assert ledger.lease(campaign, "a", 60)  # renewed
    clock.now += 59
    assert not ledger.lease(campaign, "b", 60)
    assert not ledger.lease(campaign, "b", 0)  # nobody gives back what another has
    assert not ledger.lease(campaign, "b", 60)
    clock.now += 1
    assert ledger.lease(campaign, "b", 60)
    assert not ledger.lease(campaign, "a", 60)
    assert ledger.lease(campaign, "b", 0)
    assert ledger.lease(campaign, "a", 60)


def test_of_many_who_want_the_lease_one_has_it(ledger: Ledger) -> None:
    campaign, found = born(ledger), list[bool]()
    start = threading.Barrier(6)

    def work(who: str) -> None:
        start.wait()
        found.append(ledger.lease(campaign, who, 60))

    threads = [threading.Thread(target=work, args=(f"t{k}",)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [False] * 5 + [True]


def test_a_name_is_taken_once(ledger: Ledger) -> None:
    campaign = born(ledger)
    with pytest.raises(InputError, match="there is a campaign 'survey' already"):
        born(ledger)
    with pytest.raises(InputError, match=r"no campaign 'other' in .*: there are 'survey'"):
        ledger.find("other")
    assert ledger.campaigns() == {"survey": campaign}
    assert len(events(ledger, campaign)) == 1


def test_of_many_who_want_a_name_one_has_it(ledger: Ledger) -> None:
    found: list[str] = []
    start = threading.Barrier(5)

    def work() -> None:
        start.wait()
        try:
            born(ledger)
            found.append("made")
        except InputError as error:
            found.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["made", *["there is a campaign 'survey' already: choose another name"] * 4]
    assert len(events(ledger, ledger.find("survey"))) == 1


def test_there_is_no_campaign_after_a_first_step_that_failed(ledger: Ledger) -> None:
    def give_up() -> None:
        with ledger.create("survey") as writer:
            writer.append("created", {})
            writer.put([told("a", 1)])
            raise Oops

    with pytest.raises(Oops):
        give_up()
    assert ledger.campaigns() == {}
    with pytest.raises(InputError, match="there are none"):
        ledger.find("survey")
    with ledger.reading(born(ledger)) as reader:
        assert reader.find(["a"]) == {}


# -------------------------------------------------------------------- copies


def fill_up(ledger: Ledger, names: list[str]) -> None:
    """Campaigns with everything a ledger can hold."""
    for name in names:
        campaign = born(ledger, name)
        store(ledger, campaign, *(Example(f"p{k}", "v", place=k) for k in range(5)), kind="pooled")
        store(ledger, campaign, told("p3", 3), told("p1", 3, 1, label="no", features=b"\x00\xff"))
        store(ledger, campaign, told("p0", 4, 0, first_label="first"), told(f"of {name}", 4, 1, made=True))
        store(ledger, campaign, told("p3", 3, changed=5, label=None, features=None, fate="erased"), kind="erased")
        with ledger.writing(campaign) as writer:
            writer.tail(0, 0.0)
            writer.append("certified", {"version": 1, "share": 0.1}, request=2, actor="ann")
            writer.put_model(StoredModel(1, "d", "npz", bytes(range(256))))
            writer.put_snapshot(5, "{}")


def seen(ledger: Ledger, name: str) -> list[Any]:
    """Everything that can be read of a campaign but its snapshot, which is a cache."""
    with ledger.reading(ledger.find(name)) as reader:
        rows = [reader.events(), *([*reader.changed(after)] for after in range(8)), reader.model(1), reader.model(2)]
        ids = [f"p{k}" for k in range(5)] + [f"of {name}"]
        return [*rows, sorted(reader.find(ids).items()), *map(reader.told_by, range(8)), reader.class_counts()]


@pytest.mark.parametrize(("source", "target"), list(product(KINDS, KINDS)))
def test_a_copy_is_equal(source: str, target: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    if source == target == "postgresql":
        one, two = (DatabaseLedger(url, create=True) for url in _two_schemas(request))
    else:
        one, two = ledger_of(source, request, tmp_path / "a"), ledger_of(target, request, tmp_path / "b")
    with one, two:
        fill_up(one, ["first", "second", "third"])
        born(two, "before")
        assert copy(one, two, ["third", "first"]) == ["third", "first"]
        assert list(two.campaigns()) == ["before", "third", "first"]
        for name in ("first", "third"):
            assert seen(two, name) == seen(one, name)
        with pytest.raises(InputError, match="there is a campaign 'third' already"):
            copy(one, two, ["third", "second"])
        assert seen(two, "third") == seen(one, "third")
        with pytest.raises(InputError, match="there is no campaign 'fourth'"):
            copy(one, two, ["fourth"])
        assert "fourth" not in two.campaigns()
        campaign, last = two.find("first"), seen(one, "first")[0][-1]
        with two.writing(campaign) as writer:  # and it goes on
            assert writer.tail(last.seq, last.at) == []
            writer.append("asked", {})
        assert [e.seq for e in events(two, campaign)] == list(range(1, last.seq + 2))


def _two_schemas(request: pytest.FixtureRequest) -> tuple[str, str]:
    import psycopg

    url = request.getfixturevalue("postgres_url")
    server, _, name = url.partition("&options=-c%20search_path%3D")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}b")
    return url, f"{url}b"


def test_all_the_way_round(postgres_url: str, tmp_path: Path) -> None:
    start, end = MemoryLedger(), MemoryLedger()
    fill_up(start, ["one", "two"])
    with (
        DatabaseLedger(f"sqlite:///{tmp_path / 'l.db'}", create=True) as file,
        DatabaseLedger(postgres_url, create=True) as server,
    ):
        assert copy(start, file) == copy(file, server) == copy(server, end) == ["one", "two"]
    for name in ("one", "two"):
        assert seen(end, name) == seen(start, name)
        kept = [sorted(map(repr, ledger.everything(ledger.find(name)))) for ledger in (start, end)]
        assert kept[0] == kept[1]


def test_a_copy_is_of_one_moment_while_others_write(ledger: Ledger) -> None:
    campaign, stop, problems = born(ledger), threading.Event(), list[Exception]()

    def write() -> None:
        try:
            while not stop.is_set():
                with ledger.writing(campaign) as writer:
                    last = len(writer.tail(0, 0.0))
                    writer.append("told", {})
                    writer.put([told(f"e{last + 1}", last + 1)])
        except Exception as error:
            problems.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(5):
            target = MemoryLedger()
            copy(ledger, target)
            found = list(target.everything(0))
            of_events = [e.seq for e in found if isinstance(e, Event) and e.kind == "told"]
            assert sorted(e.told or 0 for e in found if isinstance(e, Example)) == of_events
            threading.Event().wait(0.01)
    finally:
        stop.set()
        thread.join()
    assert problems == []


# -------------------------------------------------------------------- databases


def test_reading_only_sees_all_and_changes_nothing(database: str) -> None:
    with DatabaseLedger(database, create=True) as ledger:
        campaign = born(ledger)
        with DatabaseLedger(database, read_only=True) as reader:
            assert reader.read_only
            with ledger.writing(campaign) as writer:  # a writer does not block the reader, nor the reader the writer
                writer.tail(0, 0.0)
                writer.append("asked", {})
                assert len(events(reader, campaign)) == 1
            with reader.reading(campaign) as moment:
                assert len(moment.events()) == 2
                append(ledger, campaign, "asked")
                assert len(moment.events()) == 2
            for change in (
                lambda: append(reader, campaign, "asked"),
                lambda: born(reader, "other"),
                lambda: reader.lease(campaign, "me", 60),
            ):
                with pytest.raises(InputError, match="was opened read-only"):
                    change()
        assert len(events(ledger, campaign)) == 3
        assert list(ledger.campaigns()) == ["survey"]


def test_the_migrations_make_the_tables_of_the_code(database: str) -> None:
    from evenhand.ledger import migrate, schema

    with DatabaseLedger(database, create=True) as ledger, ledger.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.complete()) == []
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == [migrate.HEAD]


def test_many_may_create_the_database_at_once(database: str) -> None:
    problems: list[Exception] = []
    start = threading.Barrier(6)

    def work(name: str) -> None:
        try:
            start.wait()
            with DatabaseLedger(database, create=True) as found:
                born(found, name)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(f"c{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with DatabaseLedger(database) as found:
        assert len(found.campaigns()) == 6


def test_a_database_without_campaigns_is_not_made_by_looking(database: str, tmp_path: Path) -> None:
    for read_only in (False, True):
        with pytest.raises(InputError, match=r"there is no database|holds no campaigns yet"):
            DatabaseLedger(database, read_only=read_only)
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    with DatabaseLedger(f"sqlite:///{tmp_path / 'l.db'}?synchronous=normal", create=True) as ledger:
        assert ledger.name == f"sqlite:///{tmp_path / 'l.db'}"
    with pytest.raises(LedgerError) as raised:
        DatabaseLedger("postgresql://ann:secret@127.0.0.1:1/none")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("survey.db", "cannot read the database URL 'survey.db'"),
        ("mysql://host/db", "cannot use a mysql database"),
        ("sqlite://", "name a file"),
        ("sqlite:///:memory:", "name a file"),
        ("sqlite:///x.db?synchronous=off", "synchronous must be full or normal"),
    ],
)
def test_urls_that_cannot_be_used(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DatabaseLedger(url, create=True)


def test_snapshots_are_deleted_and_nothing_else(database: str) -> None:
    with DatabaseLedger(database, create=True) as ledger:
        fill_up(ledger, ["survey"])
        before = seen(ledger, "survey")
        ledger.forget_snapshots()
        with ledger.reading(ledger.find("survey")) as reader:
            assert reader.snapshot() is None
        assert seen(ledger, "survey") == before


# -------------------------------------------------------------------- the fold refuses what is broken


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(LedgerError, match="'dreamt', which this version does not know: upgrade"):
        State().fold([Event(1, 0.0, "dreamt", None, None, {})])


def test_a_hole_is_noticed() -> None:
    with pytest.raises(LedgerError, match="event 2 does not follow event 0"):
        State().fold([Event(2, 0.0, "created", None, None, {"groups": ["u"]})])


def test_events_of_one_request_are_found_without_reading_all_of_a_campaign(tmp_path: Path) -> None:
    asked: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    file = tmp_path / "ledger.db"
    event.listen(Engine, "before_cursor_execute", note)
    try:
        with DatabaseLedger(f"sqlite:///{file}", create=True) as ledger:
            with ledger.create("c") as writer:
                writer.append("created", {})
                for k in range(1, 5):
                    writer.append("asked", {}, request=k)
                    writer.append("told", {}, request=k)
            with ledger.reading(ledger.campaigns()["c"]) as reader:
                assert [e.kind for e in reader.events(request=3)] == ["asked", "told"]
                assert [e.seq for e in reader.events(8, kinds=("told",), request=4)] == [9]
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    found = [statement for statement in asked if "request = :about" in statement]
    assert len(found) == 2
    values = {"ours": 1, "about": 3, "after": 0, "kinds_1": "told"}
    with sqlite3.connect(file) as connection:
        for statement in found:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
            steps = [step[-1] for step in plan if "events" in step[-1] or "about" in step[-1]]
            assert any("events_by_request" in step for step in steps), steps
            assert all("events_by_request" in step or "seq=?" in step for step in steps), steps
    connection.close()
