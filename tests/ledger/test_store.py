"""The contract of a ledger, the same for SQLite and PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from evenhand.ledger import Draft, Ledger, LedgerError, State, migrate, reading, schema, writer

HEADER = {"groups": ["u", "v"], "budget": 1000, "window": 20, "classes": None}


def asked(number: int, group: str = "u") -> Draft:
    return Draft("asked", {"group": group, "size": 2, "until": None}, number)


def told(number: int, rows: bytes | None = b"rows") -> Draft:
    header = {"groups": {"u": [1, 1]}, "charged": 2, "stored": rows is not None, "digest": "d", "classes": []}
    return Draft("told", header, number, rows=rows)


@pytest.fixture
def ledger(database: str) -> Iterator[Ledger]:
    with Ledger(database, create=True) as found:
        yield found


def append(ledger: Ledger, campaign: int, *drafts: Draft) -> State:
    state = ledger.state(campaign)
    ledger.write(campaign, state, lambda *_: drafts)
    return state


def test_what_was_appended_is_read_back(ledger: Ledger) -> None:
    campaign = ledger.create("survey", HEADER)
    state = append(ledger, campaign, asked(1), asked(2, "v"))
    state = append(ledger, campaign, told(1))
    events = ledger.events(campaign)
    assert [(e.seq, e.kind, e.request) for e in events] == [
        (1, "created", None), (2, "asked", 1), (3, "asked", 2), (4, "told", 1),
    ]  # fmt: skip
    assert events[0].header == HEADER
    assert ledger.rows(campaign) == {4: b"rows"}
    assert [e.kind for e in ledger.about(campaign, 1)] == ["asked", "told"]
    assert [e.seq for e in ledger.events(campaign, after=2)] == [3, 4]
    assert [e.seq for e in ledger.events(campaign, kind="asked")] == [2, 3]
    assert ledger.state(campaign) == state == State().fold(events)
    assert list(state.open) == [2]
    assert state.counts == [1, 0]


def test_what_happened_to_any_request(ledger: Ledger) -> None:
    other, campaign, last = (ledger.create(name, HEADER) for name in ("one", "two", "three"))
    append(ledger, other, *(asked(number) for number in range(1, 40)))
    fates: dict[int, list[str]] = {number: ["asked"] for number in range(1, 31)}
    for first in range(1, 31, 6):
        append(ledger, campaign, *(asked(number) for number in range(first, first + 6)))
        append(ledger, campaign, told(first + 3), Draft("abandoned", {}, first + 1), Draft("expired", {}, first))
        append(ledger, campaign, Draft("changed", {"lease": first}))
        fates[first + 3].append("told")
        fates[first + 1].append("abandoned")
        fates[first].append("expired")
    append(ledger, campaign, told(1), told(30))
    fates[1].append("told")
    fates[30].append("told")
    assert {number: [e.kind for e in ledger.about(campaign, number)] for number in fates} == fates
    assert [e.request for number in fates for e in ledger.about(campaign, number)] == [
        number for number, kinds in fates.items() for _ in kinds
    ]
    assert [ledger.about(campaign, number) for number in (-1, 0, 31, 10**9)] == [[]] * 4
    assert ledger.about(last, 1) == []


def test_campaigns_do_not_mix(ledger: Ledger) -> None:
    one, two = ledger.create("one", HEADER), ledger.create("two", HEADER)
    append(ledger, one, asked(1))
    assert ledger.campaigns() == {"one": one, "two": two}
    assert len(ledger.events(one)) == 2
    assert len(ledger.events(two)) == 1


def test_a_name_is_taken_once(ledger: Ledger) -> None:
    ledger.create("survey", HEADER)
    with pytest.raises(ValueError, match="there is a campaign 'survey' already"):
        ledger.create("survey", HEADER)
    with pytest.raises(ValueError, match=r"no campaign 'other' in .*: there are survey"):
        ledger.find("other")


def test_an_append_is_whole_or_nothing(ledger: Ledger) -> None:
    campaign = ledger.create("survey", HEADER)
    before = ledger.events(campaign)
    with pytest.raises(TypeError):
        append(ledger, campaign, asked(1), Draft("asked", {"group": object()}))
    assert ledger.events(campaign) == before
    append(ledger, campaign, asked(1))
    assert len(ledger.events(campaign)) == 2


def test_a_stale_state_is_brought_up_to_date_under_the_lock(ledger: Ledger) -> None:
    campaign = ledger.create("survey", HEADER)
    stale = ledger.state(campaign)
    append(ledger, campaign, asked(1))

    def step(state: State, _: object) -> list[Draft]:
        assert list(state.open) == [1]
        return [asked(2)]

    assert [e.seq for e in ledger.write(campaign, stale, step)] == [3]
    assert list(stale.open) == [1, 2]


def test_a_step_whose_number_is_taken_is_taken_again(ledger: Ledger, database: str) -> None:
    campaign = ledger.create("survey", HEADER)
    mine, seen = ledger.state(campaign), list[list[int]]()

    def step(state: State, _: object) -> list[Draft]:
        seen.append(list(state.open))
        return [asked(state.asked + 1), asked(state.asked + 2)]

    ledger.write(campaign, mine, step)
    ledger.write(campaign, mine, step)  # nobody else has written: it is stored as it is
    assert seen == [[], [1, 2]]
    with Ledger(database) as other:
        append(other, campaign, asked(5))
    assert [e.seq for e in ledger.write(campaign, mine, step)] == [7, 8]
    assert seen[2:] == [[1, 2, 3, 4], [1, 2, 3, 4, 5]]
    assert [e.request for e in ledger.events(campaign, kind="asked")] == list(range(1, 8))
    assert ledger.state(campaign, snapshot=False) == mine


def test_a_step_is_refused_only_on_what_is_stored_by_then(ledger: Ledger, database: str) -> None:
    campaign = ledger.create("survey", HEADER)
    mine = append(ledger, campaign)
    with Ledger(database) as other:
        append(other, campaign, asked(1))

    def answer(state: State, _: object) -> list[Draft]:
        if 1 not in state.open:
            raise ValueError("request 1 is not open")
        return [told(1)]

    def answer_if_open(state: State, _: object) -> list[Draft]:
        return [told(1)] if 1 in state.open else []

    assert [e.kind for e in ledger.write(campaign, mine, answer)] == ["told"]
    with pytest.raises(ValueError, match="not open"):
        ledger.write(campaign, mine, answer)
    mine = append(ledger, campaign)
    with Ledger(database) as other:
        append(other, campaign, asked(1))
    assert [e.kind for e in ledger.write(campaign, mine, answer_if_open)] == ["told"]
    assert ledger.write(campaign, mine, answer_if_open) == []


def test_a_number_that_is_taken_is_refused(ledger: Ledger) -> None:
    campaign = ledger.create("survey", HEADER)

    def step(_: State, w: writer.Writer) -> list[Draft]:
        w.append([asked(1)])
        return [asked(1)]

    with pytest.raises(LedgerError):
        ledger.write(campaign, ledger.state(campaign), step)
    assert ledger.state(campaign).seq == 1


def test_a_step_that_fails_halfway_leaves_no_hole(ledger: Ledger) -> None:
    campaign = ledger.create("survey", HEADER)
    mine = append(ledger, campaign)  # nobody else writes: steps are taken at once

    def step(_: State, w: writer.Writer) -> list[Draft]:
        w.append([asked(1)])
        return [asked(1)]

    for _ in range(2):
        with pytest.raises(LedgerError):
            ledger.write(campaign, mine, step)
        assert mine.seq == ledger.state(campaign).seq == 1
    assert ledger.write(campaign, mine, lambda *_: [asked(1)])[0].seq == 2
    assert ledger.state(campaign, snapshot=False) == mine


def test_the_same_number_is_never_given_twice(ledger: Ledger) -> None:
    campaign = ledger.create("survey", HEADER)

    def work() -> None:
        for _ in range(20):
            ledger.write(campaign, State(), lambda state, _: [asked(state.asked + 1)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.request for e in ledger.events(campaign, kind="asked")] == list(range(1, 81))


def snapshots(ledger: Ledger) -> list[int]:
    with ledger.engine.connect() as connection:
        return list(connection.execute(text("SELECT seq FROM snapshots")).scalars())


def test_snapshots_are_a_cache(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 10)
    monkeypatch.setattr(reading, "_FAR", 5)
    campaign = ledger.create("survey", HEADER)
    for number in range(1, 18):
        append(ledger, campaign, asked(number), told(number))
    assert snapshots(ledger) == [31]
    with_cache = ledger.state(campaign)
    assert with_cache == ledger.state(campaign, snapshot=False)
    ledger.forget_snapshots()
    assert snapshots(ledger) == []
    assert ledger.state(campaign) == with_cache


def test_who_is_far_behind_goes_on_from_a_snapshot(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 10)
    monkeypatch.setattr(reading, "_FAR", 5)
    campaign = ledger.create("survey", HEADER)
    behind, near = ledger.state(campaign), ledger.state(campaign)
    for number in range(1, 18):
        append(ledger, campaign, asked(number), told(number))
        if number == 16:
            ledger.state(campaign, near)
    expected = ledger.state(campaign, snapshot=False)
    with ledger.engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(text("DELETE FROM events WHERE kind = 'told' AND request < 10"))
    assert ledger.state(campaign, behind.copy()) == ledger.state(campaign, near) == expected
    assert ledger.write(campaign, behind, lambda *_: [asked(18)])[0].seq == 36
    assert list(behind.open) == [18]
    with pytest.raises(ValueError, match="the ledger has a hole"):
        ledger.state(campaign, snapshot=False)


def test_one_holder_at_a_time_has_the_lease(ledger: Ledger) -> None:
    campaign = ledger.create("survey", HEADER)
    assert ledger.lease(campaign, "a", 60)
    assert ledger.lease(campaign, "a", 60)
    assert not ledger.lease(campaign, "b", 60)
    assert ledger.lease(campaign, "a", 0)
    assert ledger.lease(campaign, "b", 1e-9)
    assert ledger.lease(campaign, "a", 60)


def test_reading_only_sees_all_and_changes_nothing(ledger: Ledger, database: str) -> None:
    campaign = ledger.create("survey", HEADER)
    append(ledger, campaign, asked(1))
    with Ledger(database, read_only=True) as reader:

        def step(*_: object) -> list[Draft]:  # a writer at work does not block the reader, nor the reader the writer
            assert len(reader.events(campaign)) == 2
            return []

        ledger.write(campaign, State(), step)
        with pytest.raises(LedgerError, match="read-only"):
            reader.write(campaign, State(), lambda *_: [asked(2)])
    assert len(ledger.events(campaign)) == 2


def test_the_migrations_make_the_tables_of_the_code(ledger: Ledger) -> None:
    with ledger.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
        assert migrate.revision(connection) == migrate.HEAD


def test_tables_of_a_later_version_are_refused(ledger: Ledger, database: str) -> None:
    with ledger.engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ValueError, match="later version of Evenhand"):
        Ledger(database)


def test_many_may_create_the_database_at_once(database: str) -> None:
    problems: list[Exception] = []

    def work(name: str) -> None:
        try:
            with Ledger(database, create=True) as found:
                found.create(name, HEADER)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(f"c{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with Ledger(database) as found:
        assert len(found.campaigns()) == 6


def test_an_unknown_kind_is_refused(ledger: Ledger) -> None:
    campaign = ledger.create("survey", HEADER)
    with pytest.raises(ValueError, match="unknown kind of event 'dreamt'"):
        append(ledger, campaign, Draft("dreamt", {}))


def test_a_hole_is_noticed() -> None:
    from evenhand.ledger import Event

    with pytest.raises(ValueError, match="event 2 does not follow event 0"):
        State().fold([Event(2, "created", 0.0, dict(HEADER))])
