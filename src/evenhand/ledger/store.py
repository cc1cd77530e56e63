"""The store of a ledger: SQLite or PostgreSQL, one code path."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlalchemy.exc import IntegrityError

from evenhand.ledger import migrate, schema
from evenhand.ledger.connection import connect, flush, sqlite_path
from evenhand.ledger.errors import LedgerError, translated
from evenhand.ledger.events import Draft, Event
from evenhand.ledger.state import State
from evenhand.ledger.writer import Writer, about, read, read_on

__all__ = ["Ledger"]

_LOCK = select(schema.campaigns.c.id).where(schema.campaigns.c.id == bindparam("campaign")).with_for_update()


class Ledger:
    """The ledgers of all campaigns in one database.

    Events are only ever appended, each under its campaign's write lock and with the next sequence number, in one short
    transaction; what `append` returned from is durable. Objects may be shared between threads, not between processes.

    Args:
        url: `sqlite:///file.db` or `postgresql://…`; `?synchronous=normal` is faster and may lose the last
            acknowledged events when the power fails (never when a process dies).
        create: make the database if it is not there.
        read_only: never change nor block anything.
    """

    def __init__(self, url: str, *, create: bool = False, read_only: bool = False) -> None:
        self.read_only = read_only
        self.engine = connect(url, read_only=read_only)
        weakref.finalize(self, self.engine.dispose)
        self.name = self.engine.url.render_as_string(hide_password=True).partition("?")[0]
        path = sqlite_path(self.engine)
        if path is not None and not path.exists() and (read_only or not create):
            raise ValueError(f"there is no database {str(path)!r}: make one with `evenhand campaign create`")
        try:
            with translated():
                self._prepare(create)
        except BaseException:
            self.close()
            raise

    def _prepare(self, create: bool) -> None:
        with self.engine.connect() as connection:
            found = migrate.revision(connection)
        if not create or found is not None:
            if migrate.check(found, self.name):
                return
            if self.read_only:
                raise ValueError(f"{self.name} has tables of an earlier version: open it once for writing")
        if self.engine.dialect.name == "sqlite":
            self._use_wal()
        with self._transaction(writing=True) as connection:
            migrate.upgrade(connection)

    def _use_wal(self) -> None:
        raw = self.engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            raw.close()

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---------------------------------------------------------------- reading

    def campaigns(self) -> dict[str, int]:
        """The names of all campaigns and their numbers, oldest first."""
        with self._transaction() as connection:
            found = connection.execute(select(schema.campaigns.c.name, schema.campaigns.c.id).order_by("id"))
            return {row.name: row.id for row in found}

    def find(self, name: str) -> int:
        """The number of a campaign."""
        known = self.campaigns()
        if name not in known:
            raise ValueError(f"there is no campaign {name!r} in {self.name}: there are {', '.join(known) or 'none'}")
        return known[name]

    def events(self, campaign: int, after: int = 0, *, kind: str | None = None) -> list[Event]:
        """The events that follow event number `after`, in order."""
        with self._transaction() as connection:
            return read(connection, campaign, after, kind)

    def about(self, campaign: int, request: int) -> list[Event]:
        """What happened to one request, in order."""
        with self._transaction() as connection:
            return about(connection, campaign, request)

    def rows(self, campaign: int, after: int = 0, upto: int | None = None) -> dict[int, bytes]:
        """Delivered rows by event number, those of events after `after` and up to `upto`."""
        table = schema.rows
        query = select(table.c.seq, table.c.data).where(table.c.campaign == campaign, table.c.seq > after)
        if upto is not None:
            query = query.where(table.c.seq <= upto)
        with self._transaction() as connection:
            return {seq: bytes(data) for seq, data in connection.execute(query.order_by(table.c.seq))}

    def state(self, campaign: int, known: State | None = None, *, snapshot: bool = True) -> State:
        """The campaign as it stands: `known` or the newest snapshot, and the events since."""
        state = known or (self._snapshot(campaign) if snapshot else None) or State()
        with self._transaction() as connection:
            return read_on(connection, campaign, state)

    def _snapshot(self, campaign: int) -> State | None:
        with self._transaction() as connection:
            text = connection.execute(
                select(schema.snapshots.c.state).where(schema.snapshots.c.campaign == campaign)
            ).scalar()
        return None if text is None else State.from_json(text)

    # ---------------------------------------------------------------- writing

    def create(self, name: str, header: dict[str, Any]) -> int:
        """A new campaign with its first event; gives its number."""
        try:
            with self._transaction(writing=True) as connection:
                made = connection.execute(insert(schema.campaigns).values(name=name))
                number = int(made.inserted_primary_key[0]) if made.inserted_primary_key else 0
                Writer(connection, number, State()).append([Draft("created", header)])
            with translated():
                flush(self.engine)
        except LedgerError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
            raise ValueError(f"there is a campaign {name!r} already: choose another name") from error
        return number

    @contextmanager
    def writing(self, campaign: int, state: State) -> Iterator[Writer]:
        """Hold the campaign's write lock, with what others wrote folded into the state.

        Everything appended is stored together at the end, or nothing is.
        """
        with self._transaction(writing=True) as connection:
            _lock(connection, campaign)
            read_on(connection, campaign, state)
            yield Writer(connection, campaign, state)
        with translated():
            flush(self.engine)

    def lease(self, campaign: int, holder: str, seconds: float) -> bool:
        """Take or renew the campaign's refit lease; False while another holder has it. 0 seconds gives it back."""
        table, now = schema.leases, time.time()
        with self._transaction(writing=True) as connection:
            _lock(connection, campaign)
            held = connection.execute(select(table.c.holder, table.c.until).where(table.c.campaign == campaign)).first()
            if held is not None and held.holder != holder and held.until > now:
                return False
            connection.execute(delete(table).where(table.c.campaign == campaign))
            if seconds > 0:
                connection.execute(insert(table).values(campaign=campaign, holder=holder, until=now + seconds))
            return True

    def forget_snapshots(self) -> None:
        """Delete all snapshots; they are a cache and come back by themselves."""
        with self._transaction(writing=True) as connection:
            connection.execute(delete(schema.snapshots))

    @contextmanager
    def _transaction(self, *, writing: bool = False) -> Iterator[Connection]:
        with translated(), self.engine.connect().execution_options(writing=writing) as connection, connection.begin():
            yield connection


def _lock(connection: Connection, campaign: int) -> None:
    """Wait for the campaign's write lock; on SQLite `BEGIN IMMEDIATE` has taken the whole file's."""
    if connection.dialect.name != "sqlite":
        connection.execute(_LOCK, {"campaign": campaign}).scalar_one()
