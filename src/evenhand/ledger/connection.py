"""Connections to SQLite and PostgreSQL that keep the ledger's promises, and errors that say what to do."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, OperationalError

from evenhand.errors import InputError, LedgerError
from evenhand.ledger.base import Busy

__all__ = ["BUSY_SECONDS", "begin_sqlite", "connect", "patiently", "sqlite_path", "translated"]

T = TypeVar("T")

BUSY_SECONDS = 120
"""How long a writer waits for its turn."""
_SYNCHRONOUS = ("full", "normal")
_BUSY_MILLISECONDS = 50  # how long a statement waits inside SQLite, where Ctrl-C has no effect
_LOG_PAGES = 4000  # pages in SQLite's log (16 MB) before they are moved into the database
_CACHE_PAGES = 16_000  # at most 64 MB of cache: a pool of a million rows is sorted into its indexes in one transaction
_MEANINGS = (
    (
        ("disk is full", "no space left"),
        "the disk is full: nothing was stored and nothing is lost; free space, try again",
    ),
    (("readonly", "read-only"), "the database is read-only: nothing was stored; open it where it can be written"),
    (("locked", "busy"), "another process held the database for too long: nothing was stored; try again"),
    (("unable to open",), "the database file cannot be opened: check the path and its permissions"),
    (("not a database", "malformed"), "the file is not a usable SQLite database"),
)


@contextmanager
def translated() -> Iterator[None]:
    """Turn the errors of the database's driver into a `LedgerError` that says what to do."""
    try:
        yield
    except DBAPIError as error:
        raise LedgerError(*in_words(error.orig)) from error


def in_words(error: BaseException | None) -> tuple[str, str]:
    """What the database's error means, and what to do: with the database's own words, and without them."""
    raw = str(error).strip()
    for marks, meaning in _MEANINGS:
        if any(mark in raw.lower() for mark in marks):
            return f"{meaning} ({raw})", meaning
    then = "whether it stored the last step is not known, repeat it"
    return f"the database failed: {raw}; {then}", f"the database failed; {then}"


def connect(url: str, *, read_only: bool = False) -> Engine:
    """An engine for `sqlite:///file.db` or `postgresql://…`; `?synchronous=normal` trades durability for speed."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InputError(f"cannot read the database URL {url!r}: use sqlite:///file.db or postgresql://…") from None
    query = dict(parsed.query)
    # taken out of the URL: PostgreSQL's driver refuses parameters that it does not know
    synchronous = str(query.pop("synchronous", "full")).lower()
    if synchronous not in _SYNCHRONOUS:
        raise InputError(f"synchronous must be full or normal, not {synchronous!r}")
    parsed = parsed.set(query=query)
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        return _sqlite(parsed, synchronous, read_only)
    if backend in ("postgresql", "postgres"):
        return _postgresql(parsed, synchronous, read_only)
    raise InputError(f"cannot use a {backend} database: use sqlite:///file.db or postgresql://…")


def sqlite_path(engine: Engine) -> Path | None:
    """The file of an SQLite engine."""
    return Path(str(engine.url.database)) if engine.dialect.name == "sqlite" else None


def _sqlite(url: URL, synchronous: str, read_only: bool) -> Engine:
    if not url.database or url.database == ":memory:":
        raise InputError("a campaign must outlive the process: name a file, sqlite:///file.db")
    path, opened = Path(url.database), False

    def open_file() -> sqlite3.Connection:
        nonlocal opened
        # made only once: a file that is removed later must not come back empty
        mode = "ro" if read_only else "rw" if opened else "rwc"
        # isolation_level None: the driver begins no transactions by itself, `begin_sqlite` does
        options: dict[str, Any] = {"uri": True, "check_same_thread": False, "isolation_level": None}
        connection: sqlite3.Connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}", timeout=BUSY_SECONDS, **options
        )
        if read_only:
            try:
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            except sqlite3.OperationalError:
                connection.close()
                log = path.with_name(f"{path.name}-wal")
                # the log has steps that the file lacks: reading
                # the file alone would show an earlier stage
                if log.exists() and log.stat().st_size:
                    raise
                # WAL needs a writable folder even for reading; where nobody can write, the file alone is the truth
                connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", **options)
        else:
            settings = (
                f"busy_timeout={_BUSY_MILLISECONDS}",
                f"synchronous={synchronous}",
                f"wal_autocheckpoint={_LOG_PAGES}",
                f"cache_size={_CACHE_PAGES}",
                "secure_delete=ON",  # what is erased leaves no bytes behind
            )
            patiently(lambda: [connection.execute(f"PRAGMA {setting}") for setting in settings], BUSY_SECONDS)
        opened = True
        return connection

    engine = create_engine(url, creator=open_file, paramstyle="named")
    _follow_file(engine, path)
    return engine


def _follow_file(engine: Engine, path: Path) -> None:
    """Close connections to a file that was deleted or replaced: SQLite would go on writing to the old one."""

    def which() -> tuple[int, int] | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @event.listens_for(engine, "connect")
    def note(connection: Any, record: Any) -> None:
        record.info["file"] = which()

    @event.listens_for(engine, "checkout")
    def check(connection: Any, record: Any, proxy: Any) -> None:
        if record.info["file"] != which():
            raise DisconnectionError(f"{path} is gone, or is a different file now")


def begin_sqlite(connection: Connection, *, writing: bool, seconds: float | None = None) -> None:
    """Begin a transaction; it waits for the file here, where Ctrl-C works, not inside SQLite."""
    run = connection.connection.cursor().execute

    def begin() -> None:
        # the lock is taken now: a plain BEGIN would be refused only after the step was decided
        run("BEGIN IMMEDIATE" if writing else "BEGIN")
        if not writing:
            try:
                run("SELECT 1 FROM sqlite_master").fetchone()
            except sqlite3.OperationalError:
                run("ROLLBACK")
                raise

    patiently(begin, BUSY_SECONDS if seconds is None else seconds)


def patiently(work: Callable[[], T], seconds: float) -> T:
    """Do what needs an SQLite file, and try again while another process holds it."""
    tried_until = time.monotonic() + seconds
    while True:
        try:
            return work()
        except (sqlite3.OperationalError, OperationalError) as error:
            raw = error.orig if isinstance(error, OperationalError) else error
            if not any(mark in str(raw) for mark in ("locked", "busy")):
                raise LedgerError(*in_words(raw)) from error
            if time.monotonic() >= tried_until:
                raise Busy(*in_words(raw)) from error
            time.sleep(random.uniform(0.01, 0.1))  # long enough that the process that has the file takes several steps


def _postgresql(url: URL, synchronous: str, read_only: bool) -> Engine:
    if find_spec("psycopg") is None:
        raise InputError("PostgreSQL needs psycopg: pip install 'evenhand[postgres]'")
    options = ["-c synchronous_commit=off"] if synchronous == "normal" else []
    options += ["-c default_transaction_read_only=on"] if read_only else []
    given = str(url.query.get("options", ""))
    url = url.set(drivername="postgresql+psycopg").update_query_dict(
        {"options": " ".join(filter(None, [given, *options]))}
    )
    # many threads of a server may write at once, while a script keeps no more than two connections idle
    return create_engine(url, pool_size=2, max_overflow=30, pool_pre_ping=True)
