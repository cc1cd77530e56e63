"""Full disks, read-only places, locked files, servers that go away: nothing is half stored, and the words say what to do."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from sqlalchemy import event, text

import evenhand as eh
from evenhand.campaign.state import State
from evenhand.errors import InputError, LedgerError
from evenhand.ledger import Event, Ledger, connection
from evenhand.ledger.connection import connect
from evenhand.ledger.database import DatabaseLedger


def made(folder: Path) -> str:
    """A campaign with two labels in a file; gives its URL."""
    url = f"sqlite:///{folder / 'ledger.db'}"
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=10**6, refit="background") as c:
        c.tell(c.ask(), np.eye(2), [0, 1])
    return url


def opened(url: str) -> tuple[DatabaseLedger, int]:
    """A new ledger with a campaign in it."""
    ledger = DatabaseLedger(url, create=True)
    with ledger.create("survey") as writer:
        writer.append("created", {"lease": 0})
    return ledger, ledger.find("survey")


def change(ledger: Ledger, campaign: int, lease: int, meanwhile: Callable[[], object] = lambda: None) -> None:
    with ledger.writing(campaign) as writer:
        writer.tail(0, 0.0)
        meanwhile()
        writer.append("changed", {"lease": lease})


def events(ledger: Ledger, campaign: int) -> list[Event]:
    with ledger.reading(campaign) as reader:
        return reader.events()


def leases(ledger: Ledger, campaign: int) -> list[int]:
    """What was stored, after a look that there is no hole."""
    found = events(ledger, campaign)
    assert [e.seq for e in found] == list(range(1, len(found) + 1))
    return [e.facts["lease"] for e in found]


def replay(url: str) -> State:
    """The state folded from the first event on."""
    with DatabaseLedger(url, read_only=True) as ledger:
        return State().fold(events(ledger, ledger.find("survey")))


# -------------------------------------------------------------------- disks


def test_a_full_disk(tmp_path: Path) -> None:
    url = made(tmp_path)
    with DatabaseLedger(url) as ledger:

        @event.listens_for(ledger.engine, "connect")
        def no_more_pages(connection: sqlite3.Connection, record: object) -> None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages + 1}")

        ledger.engine.dispose()
        c = eh.Campaign.open(ledger, "survey")
        before = c.events()
        with pytest.raises(LedgerError, match="disk is full: nothing was stored"):
            c.add(np.ones((5000, 2)), [0, 1] * 2500, ["u"] * 5000)
        assert c.events() == before
        assert len(c.training_set().y) + len(c.validation_set().y) == 2
    with eh.Campaign.open(url, "survey") as c:
        c.tell(c.ask(), np.eye(2) + 1, [0, 1])
        assert c.labels_used == 4
        assert c.verify().problems == []


FULL = """
import resource, sys
import numpy as np
import evenhand as eh
c = eh.Campaign.open(sys.argv[1], "survey")
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    for k in range(1000):
        c.tell(c.ask(), np.full((100, 2), float(k)), [0, 1] * 50, extra=True)
except eh.errors.LedgerError as error:
    print(c.status()["answered"], error)
"""


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    url = made(tmp_path)
    done = subprocess.run([sys.executable, "-c", FULL, url], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answered = int(done.stdout.split()[0])
    assert answered > 1
    assert "the database failed: disk I/O error" in done.stdout
    with eh.Campaign.open(url, "survey") as c:
        assert c.status()["answered"] == answered
        assert c.labels_used == replay(url).labels_used == 2 + 100 * (answered - 1)
        assert len(c.training_set().y) + len(c.validation_set().y) == c.labels_used
        assert c.verify().problems == []
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.db")) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


NOBODY = """
import os, sys
import numpy as np
import evenhand as eh
other = eh.Campaign.open(sys.argv[2], "survey")
other.tell(other.ask(), np.eye(2), [0, 1])
other.refit()
other.status()  # everything is imported now: the interpreter may be out of reach of the user we become
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
seen = eh.Campaign.open(sys.argv[1], "survey", read_only=True)
print("used", seen.status()["used"])
try:
    eh.Campaign.open(sys.argv[1], "survey").ask()
except eh.errors.LedgerError as error:
    print(error)
try:
    eh.Campaign.create(sys.argv[1].replace("ledger.db", "new.db"), "survey", ["u", "v"], budget=10)
except eh.errors.LedgerError as error:
    print(error)
"""


@pytest.fixture
def sealed() -> Iterator[Path]:
    """A folder in which nobody but root can change anything; not in pytest's own, which others may not enter."""
    with tempfile.TemporaryDirectory() as place:
        url = made(Path(place))
        folder = Path(place) / "sealed"
        folder.mkdir()
        shutil.copy(url.removeprefix("sqlite:///"), folder / "ledger.db")
        (folder / "ledger.db").chmod(0o444)
        folder.chmod(0o555)
        Path(place).chmod(0o755)
        yield folder
        folder.chmod(0o755)


def test_a_read_only_place(sealed: Path) -> None:
    before = (sealed / "ledger.db").read_bytes()
    url = f"sqlite:///{sealed / 'ledger.db'}"
    done = subprocess.run(
        [sys.executable, "-c", NOBODY, url, f"sqlite:///{sealed.parent / 'ledger.db'}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "used 2" in done.stdout
    assert "read-only: nothing was stored" in done.stdout
    assert "cannot be opened: check the path and its permissions" in done.stdout
    assert (sealed / "ledger.db").read_bytes() == before
    assert os.listdir(sealed) == ["ledger.db"]


def test_looking_changes_nothing(tmp_path: Path) -> None:
    url = made(tmp_path)
    file = tmp_path / "ledger.db"
    before = file.read_bytes()
    with eh.Campaign.open(url, "survey", read_only=True) as seen:
        assert seen.propose().decision.group
        assert seen.labels_used == 2
        assert seen.status()["used"] == 2
        assert seen.model() is not None
        for verb in (seen.ask, lambda: seen.tell(1, np.eye(2), [0, 1]), seen.close, lambda: seen.abandon(1)):
            with pytest.raises(InputError, match="read-only"):
                verb()
    assert file.read_bytes() == before


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened: check the path"):
        DatabaseLedger(f"sqlite:///{tmp_path / 'nowhere' / 'l.db'}", create=True)


@pytest.mark.parametrize("options", [{}, {"create": True}, {"read_only": True}])
@pytest.mark.parametrize("content", [b"no database at all, " * 400, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes, options: dict[str, Any]) -> None:
    path = tmp_path / "l.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"not a usable SQLite database|not a database"):
        DatabaseLedger(f"sqlite:///{path}", **options)
    assert path.read_bytes() == content


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened: check the path"):
        DatabaseLedger(f"sqlite:///{tmp_path}")


# -------------------------------------------------------------------- files that others hold


@contextlib.contextmanager
def held(path: Path, seconds: float | None = None, *how: str) -> Iterator[None]:
    """The file in the hands of another program, for that long or while the block lasts."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for statement in how or ("BEGIN IMMEDIATE",):
        other.execute(statement).fetchall()
    timer = None if seconds is None else threading.Timer(seconds, other.close)
    if timer is not None:
        timer.start()
    try:
        yield
    finally:
        if timer is not None:
            timer.join()
        other.close()


def test_a_step_waits_while_another_program_holds_the_file(tmp_path: Path) -> None:
    ledger, campaign = opened(f"sqlite:///{tmp_path / 'ledger.db'}")
    with ledger:
        with held(tmp_path / "ledger.db", 0.3):
            began = time.monotonic()
            change(ledger, campaign, 7)
            assert time.monotonic() - began > 0.2
        with held(tmp_path / "ledger.db", 0.3):
            assert ledger.lease(campaign, "me", 60)
        with held(tmp_path / "ledger.db", 0.3):
            ledger.forget_snapshots()
        assert leases(ledger, campaign) == [0, 7]


def test_who_waited_for_the_file_reads_no_label_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenhand.ledger import database

    url, seen, changed = made(tmp_path), [], database._DatabaseWriter.changed

    def counted(reader: Any, after: int = 0) -> list[Any]:
        seen.append(after)
        return changed(reader, after)

    with eh.Campaign.open(url, "survey") as c:
        c.tell(c.ask(), np.eye(2) + 1, [0, 1])
        request = c.ask()
        monkeypatch.setattr(database._DatabaseWriter, "changed", counted)
        with held(tmp_path / "ledger.db", 0.2):
            c.tell(request, np.eye(2) + 2, [0, 1])
    assert 0 not in seen  # with many collectors every step would read all labels


def test_a_file_that_is_held_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.1)
    ledger, campaign = opened(f"sqlite:///{tmp_path / 'ledger.db'}")
    with ledger:
        with held(tmp_path / "ledger.db"):
            with pytest.raises(LedgerError, match="held the database for too long: nothing was stored"):
                change(ledger, campaign, 1)
            assert leases(ledger, campaign) == [0]  # reading waits for nobody
        change(ledger, campaign, 2)
        assert leases(ledger, campaign) == [0, 2]


def test_a_file_that_is_taken_away_takes_nothing_and_comes_back(tmp_path: Path) -> None:
    path, away = tmp_path / "ledger.db", tmp_path / "away"
    ledger, campaign = opened(f"sqlite:///{path}")
    with ledger:
        change(ledger, campaign, 1)
        ledger.checkpoint()
        away.mkdir()
        for file in tmp_path.glob("ledger.db*"):
            file.rename(away / file.name)
        with pytest.raises(LedgerError, match="cannot be opened"):
            change(ledger, campaign, 2)
        assert not path.exists()  # no empty file stands in its place
        for file in away.iterdir():
            file.rename(tmp_path / file.name)
        change(ledger, campaign, 3)
        assert leases(ledger, campaign) == [0, 1, 3]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Has Ctrl-C heard; a job in the background is started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_wait_for_a_file(tmp_path: Path) -> None:
    ledger, campaign = opened(f"sqlite:///{tmp_path / 'ledger.db'}")
    with ledger:
        with held(tmp_path / "ledger.db"):
            began = time.monotonic()
            threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
            with pytest.raises(KeyboardInterrupt):
                change(ledger, campaign, 1)
            assert time.monotonic() - began < 5
        change(ledger, campaign, 2)
        assert leases(ledger, campaign) == [0, 2]


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_step_given_up_leaves_nothing_behind(database: str) -> None:
    ledger, campaign = opened(database)
    with ledger:
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                change(ledger, campaign, 1, interrupt)
        change(ledger, campaign, 2)
        assert leases(ledger, campaign) == [0, 2]


def test_after_ctrl_c_a_campaign_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it came: before anything was stored, or after everything was."""
    url = made(tmp_path)
    fold = State.fold
    with eh.Campaign.open(url, "survey") as c:
        request = c.ask()
        for at in range(6):
            calls = 0

            def cut_short(state: State, events: Any, at: int = at) -> State:
                nonlocal calls
                calls += 1
                if calls == at + 1:
                    raise KeyboardInterrupt
                return fold(state, events)

            monkeypatch.setattr(State, "fold", cut_short)
            with contextlib.suppress(KeyboardInterrupt):
                c.tell(request, np.eye(2) + 1, [0, 1])
            monkeypatch.setattr(State, "fold", fold)
            c.tell(request, np.eye(2) + 1, [0, 1])  # told again as a person would
            assert c.labels_used == replay(url).labels_used == 4 + 2 * at
            request = c.ask()
        assert c.verify().problems == []


def test_an_event_half_folded_in_is_not_folded_in_twice(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenhand.campaign import state as module

    with eh.Campaign.create(database, "survey", ["u", "v"], "uniform", None, budget=100) as c:
        c.tell(c.ask(), n=2)
        request = c.ask()
        real = module._HOW["counted"]

        def told(state: State, event: Event) -> None:
            real(state, event)
            raise KeyboardInterrupt

        monkeypatch.setitem(module._HOW, "counted", told)
        with pytest.raises(KeyboardInterrupt):
            c.tell(request, n=2)
        monkeypatch.setitem(module._HOW, "counted", real)
        assert c.labels_used == replay(database).labels_used == 4
        assert sum(c.counts.values()) == sum(replay(database).train)
        assert c.ask().id == 3


# -------------------------------------------------------------------- servers and backups


def cut_off(url: str) -> None:
    """End all other connections to the server's database."""
    with psycopg.connect(url, autocommit=True) as one:
        others = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        one.execute(f"SELECT pg_terminate_backend(pid) FROM ({others}) AS other")


def test_a_connection_cut_off_while_nobody_used_it(postgres_url: str) -> None:
    ledger, campaign = opened(postgres_url)
    with ledger:
        change(ledger, campaign, 1)
        cut_off(postgres_url)
        change(ledger, campaign, 2)
        cut_off(postgres_url)
        assert leases(ledger, campaign) == [0, 1, 2]
        cut_off(postgres_url)
        assert ledger.lease(campaign, "me", 60)


def test_a_connection_cut_off_in_the_middle_of_a_step(postgres_url: str) -> None:
    ledger, campaign = opened(postgres_url)
    with ledger:
        with pytest.raises(LedgerError, match="whether it stored the last step is not known, repeat it"):
            change(ledger, campaign, 1, lambda: cut_off(postgres_url))
        change(ledger, campaign, 2)
        assert leases(ledger, campaign) == [0, 2]


def test_a_campaign_cut_off_in_the_middle_of_a_delivery(postgres_url: str) -> None:
    with DatabaseLedger(postgres_url, create=True) as ledger:
        c = eh.Campaign.create(ledger, "survey", ["u", "v"], "uniform", budget=20)
        request = c.ask()

        @event.listens_for(ledger.engine, "before_cursor_execute", once=True)
        def gone(*_: Any) -> None:
            cut_off(postgres_url)

        with pytest.raises(LedgerError, match="repeat it"):
            c.tell(request, np.eye(2), [0, 1])
        assert c.tell(request, np.eye(2), [0, 1]).rows == 2
        assert c.labels_used == 2
        assert c.verify().problems == []


@pytest.mark.parametrize("options", [{}, {"create": True}, {"read_only": True}])
def test_a_server_that_is_not_there(options: dict[str, Any]) -> None:
    with pytest.raises(LedgerError, match="the database failed: connection failed"):
        DatabaseLedger("postgresql://127.0.0.1:1/none", **options)


def lose(url: str, count: int) -> None:
    """Take the last events away, as a server does that crashes before they are on disk, or a backup put back."""
    engine = connect(url)
    with engine.connect().execution_options(writing=True) as one, one.begin():
        for _ in range(count):
            one.execute(text("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)"))
        one.execute(text("DELETE FROM examples WHERE told > (SELECT max(seq) FROM events)"))
    engine.dispose()


@pytest.mark.parametrize("again", [0, 1, 3])
def test_events_that_are_gone_leave_no_hole(database: str, again: int) -> None:
    """A process that knows events the ledger lost stores nothing more, however many have come since."""
    c = eh.Campaign.create(database, "survey", ["u", "v"], "uniform", None, budget=100)
    for _ in range(2):
        c.tell(c.ask(), n=2)
    assert replay(database).seq == 5
    lose(database, 2)
    if database.startswith("postgresql"):
        cut_off(database)  # as a crash does
    with eh.Campaign.open(database, "survey") as other:
        for lease in range(again):
            other.change(lease=10.0 + lease)
    with c:
        for _ in range(2):
            with pytest.raises(LedgerError, match="nothing was stored, open the campaign again"):
                c.change(lease=7.0)
    with eh.Campaign.open(database, "survey") as fresh:
        fresh.change(lease=7.0)
        state = replay(database)
        assert (state.seq, state.settings["lease"], fresh.labels_used) == (4 + again, 7.0, 2)


@pytest.mark.parametrize("again", [0, 1, 3])
def test_who_looks_notices_events_that_are_gone(database: str, again: int) -> None:
    with eh.Campaign.create(database, "survey", ["u", "v"], "uniform", None, budget=100) as c:
        for _ in range(2):
            c.tell(c.ask(), n=2)
        lose(database, 2)
        with eh.Campaign.open(database, "survey") as other:
            for lease in range(again):
                other.change(lease=10.0 + lease)
        with pytest.raises(LedgerError, match="open the campaign again"):
            c.status()


@pytest.mark.parametrize("how", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_new_file_that_another_process_is_setting_up(tmp_path: Path, how: str) -> None:
    """Also to look at it and to switch its log on, which SQLite refuses at once while somebody else writes."""
    path = tmp_path / "new.db"
    with held(path, 0.4, how):
        eh.Campaign.create(f"sqlite:///{path}", "c", ["u", "v"], "uniform", None, budget=8).release()


def test_a_file_that_another_process_is_letting_go_of(tmp_path: Path) -> None:
    """The last process to close a file has it to itself for a moment: who opens or reads it then waits."""
    url = made(tmp_path)
    path, alone = tmp_path / "ledger.db", ("PRAGMA locking_mode=EXCLUSIVE", "BEGIN EXCLUSIVE")
    with held(path, 0.4, *alone), eh.Campaign.open(url, "survey") as c:
        assert c.labels_used == 2
    with held(path, 0.4, *alone):
        assert eh.campaign.campaigns(url) == ["survey"]
    ledger = DatabaseLedger(url)
    ledger.engine.dispose()
    with held(path, 0.4, *alone):
        ledger.clock()
        assert ledger.newest() != {}
    ledger.close()


def begin_at_once(url: str, name: str, start: float) -> str | None:
    """Make a campaign in a file that many others make at this moment, work in it and let go; the error, if there is one."""
    time.sleep(max(0.0, start - time.time()))
    try:
        for _ in range(3):
            with eh.Campaign.create(url, f"{name} {time.monotonic_ns()}", ["u", "v"], "uniform", None, budget=8) as c:
                c.tell(c.ask(), n=2)
            with eh.Campaign.open(url, c.name) as again:
                again.status()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("round", range(3))
def test_many_processes_make_one_new_file_at_once(tmp_path: Path, round: int) -> None:
    """Each waits for its turn, as writers do: also to set the file up, and to open what somebody is just letting go of."""
    url, start, many = f"sqlite:///{tmp_path / 'new.db'}", time.time() + 0.5, 16
    children = []
    for k in range(many):
        pid = os.fork()
        if not pid:
            found = begin_at_once(url, f"c{k}", start)
            (tmp_path / f"{k}.said").write_text(found or "well")
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    said = [(tmp_path / f"{k}.said").read_text() for k in range(many)]
    assert [text for text in said if text != "well"] == []
    with DatabaseLedger(url, read_only=True) as ledger:
        assert len(ledger.campaigns()) == 3 * many
