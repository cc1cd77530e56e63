"""Connections kept between steps: cut off, in the middle of a step, used by several threads."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from evenhand.ledger import Draft, Event, Ledger, LedgerError, State, postgresql, sqlite
from evenhand.ledger.connection import connect
from evenhand.ledger.state import _HOW
from evenhand.ledger.writer import SNAPSHOT_EVERY

HEADER = {"groups": ["u", "v"], "budget": 1000, "window": 20, "classes": None}


def change(
    ledger: Ledger, campaign: int, state: State, lease: int, meanwhile: Callable[[], object] = lambda: None
) -> None:
    def step(*_: object) -> list[Draft]:
        meanwhile()
        return [Draft("changed", {"lease": lease})]

    ledger.write(campaign, state, step)


def interrupt() -> None:
    raise KeyboardInterrupt


def cut_off(url: str) -> None:
    """End all other connections to the server's database."""
    with psycopg.connect(url, autocommit=True) as connection:
        others = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM ({others}) AS other")


def test_a_connection_cut_off_while_nobody_used_it(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "_TRIED_AFTER", 0.0)
    with Ledger(postgres_url, create=True) as ledger:
        campaign, state = ledger.create("survey", HEADER), State()
        change(ledger, campaign, state, 1)
        cut_off(postgres_url)
        change(ledger, campaign, state, 2)
        assert ledger.state(campaign) == state
        assert state.settings["lease"] == 2


def test_a_connection_cut_off_in_the_middle_of_a_step(postgres_url: str) -> None:
    with Ledger(postgres_url, create=True) as ledger:
        campaign, state = ledger.create("survey", HEADER), State()
        with pytest.raises(LedgerError, match="whether it stored the last step is open"):
            change(ledger, campaign, state, 1, lambda: cut_off(postgres_url))
        change(ledger, campaign, state, 2)
        assert [e.header.get("lease") for e in ledger.events(campaign)] == [None, 2]


def lose(url: str, count: int) -> None:
    """Take the last events away, as a server does that crashes before they are on disk, or a backup put back."""
    engine = connect(url)
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        for _ in range(count):
            connection.execute(text("DELETE FROM events WHERE place = (SELECT max(place) FROM events)"))
    engine.dispose()


@pytest.mark.parametrize("again", [0, 1, 3])
def test_events_that_are_gone_leave_no_hole(database: str, monkeypatch: pytest.MonkeyPatch, again: int) -> None:
    monkeypatch.setattr(postgresql, "_TRIED_AFTER", 0.0)
    with Ledger(database, create=True) as ledger, Ledger(database) as other:
        campaign, state = ledger.create("survey", HEADER), State()
        for lease in range(4):
            change(ledger, campaign, state, lease)
        lose(database, 2)
        if database.startswith("postgresql"):
            cut_off(database)  # as a crash does
        else:
            ledger.close()
        for lease in range(again):
            change(other, campaign, other.state(campaign, snapshot=False), 10 + lease)
        for _ in range(2):
            with pytest.raises(LedgerError, match="nothing was stored, open the campaign again"):
                change(ledger, campaign, state, 7)
            with pytest.raises(LedgerError, match="open the campaign again"):
                ledger.state(campaign, state)
        fresh = ledger.state(campaign)
        change(ledger, campaign, fresh, 7)
        assert [e.seq for e in ledger.events(campaign)] == list(range(1, 5 + again))
        assert ledger.state(campaign) == fresh


def test_an_event_half_folded_in_is_not_folded_in_twice(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(state: State, event: Event) -> None:
        real(state, event)
        raise KeyboardInterrupt

    with Ledger(database, create=True) as ledger:
        campaign, mine = ledger.create("survey", HEADER), State()
        change(ledger, campaign, mine, 1)
        real = _HOW["changed"]
        monkeypatch.setitem(_HOW, "changed", changed)
        with pytest.raises(KeyboardInterrupt):
            change(ledger, campaign, mine, 2)
        monkeypatch.setitem(_HOW, "changed", real)
        with pytest.raises(LedgerError, match="reading was cut short; nothing was stored, open the campaign again"):
            change(ledger, campaign, mine, 3)
        assert [e.header.get("lease") for e in ledger.events(campaign)] == [None, 1, 2]
        assert ledger.state(campaign).settings["lease"] == 2


def test_a_step_given_up_leaves_nothing_behind(database: str) -> None:
    with Ledger(database, create=True) as ledger:
        campaign, state = ledger.create("survey", HEADER), State()
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                change(ledger, campaign, state, 1, interrupt)
        change(ledger, campaign, state, 2)
        assert [e.seq for e in ledger.events(campaign)] == [1, 2]


def test_a_step_waits_for_the_one_before_and_reads_what_it_wrote(database: str) -> None:
    with Ledger(database, create=True) as ledger:
        campaign, mine, other = ledger.create("survey", HEADER), State(), State()
        second = threading.Thread(target=change, args=(ledger, campaign, other, 2))

        def wait() -> None:
            second.start()
            second.join(0.2)
            assert second.is_alive()

        change(ledger, campaign, mine, 1, wait)
        second.join()
        assert [e.header.get("lease") for e in ledger.events(campaign)] == [None, 1, 2]
        assert other == ledger.state(campaign, mine)


@pytest.mark.parametrize("quiet", [False, True], ids=["under the lock", "at once"])
def test_a_step_waits_while_another_program_holds_the_file(tmp_path: Path, quiet: bool) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(f"sqlite:///{path}", create=True) as ledger:
        campaign, state = ledger.create("survey", HEADER), State()
        for lease in range(2 if quiet else 0):
            change(ledger, campaign, state, lease)
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.2, other.execute, ["ROLLBACK"]).start()
        change(ledger, campaign, state, 7)
        assert ledger.state(campaign).settings["lease"] == 7
        assert ledger.state(campaign) == state
        other.close()


def test_snapshots_are_deleted_once_the_file_is_free(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(f"sqlite:///{path}", create=True) as ledger:
        campaign, state = ledger.create("survey", HEADER), State()
        ledger.write(campaign, state, lambda *_: [Draft("changed", {"lease": i}) for i in range(SNAPSHOT_EVERY)])
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        assert other.execute("SELECT count(*) FROM snapshots").fetchone() == (1,)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.2, other.execute, ["ROLLBACK"]).start()
        ledger.forget_snapshots()
        assert other.execute("SELECT count(*) FROM snapshots").fetchone() == (0,)
        other.close()


def test_a_file_that_is_held_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    path = tmp_path / "ledger.db"
    with Ledger(f"sqlite:///{path}", create=True) as ledger:
        campaign, state = ledger.create("survey", HEADER), State()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerError, match="held the database for too long: nothing was stored"):
                change(ledger, campaign, state, 1)
            assert ledger.state(campaign).seq == 1  # reading waits for nobody
        change(ledger, campaign, state, 2)
        assert ledger.state(campaign).settings["lease"] == 2


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Has Ctrl-C heard; a job in the background is started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_wait_for_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(f"sqlite:///{path}", create=True) as ledger:
        campaign, state = ledger.create("survey", HEADER), State()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
            with pytest.raises(KeyboardInterrupt):
                change(ledger, campaign, state, 1)
        change(ledger, campaign, state, 2)
        assert [e.seq for e in ledger.events(campaign)] == [1, 2]
