"""The store of a ledger: SQLite or PostgreSQL, one code path."""

from __future__ import annotations

import time
import weakref
from typing import Any

from sqlalchemy import BindParameter, bindparam, delete, insert, select

from evenhand.ledger import migrate, schema
from evenhand.ledger.connection import connect, sqlite_path
from evenhand.ledger.errors import LedgerError, translated
from evenhand.ledger.events import Draft, Event
from evenhand.ledger.link import Link, Work
from evenhand.ledger.links import Links
from evenhand.ledger.reading import about, newer, read, read_on, tail
from evenhand.ledger.schema import SPAN
from evenhand.ledger.state import State
from evenhand.ledger.writer import Step, Writer

__all__ = ["Ledger"]

_C, _R, _L = schema.campaigns.c, schema.rows.c, schema.leases.c
_OURS: BindParameter[int] = bindparam("campaign")
_CAMPAIGNS = select(_C.name, _C.id).order_by(_C.id)
_NEW = insert(schema.campaigns).values(name=bindparam("name")).returning(_C.id)
_LOCK = select(_C.id).where(_C.id == _OURS).with_for_update()
_ROWS = select(_R.place, _R.data).where(_R.place > bindparam("after"), _R.place <= bindparam("upto")).order_by(_R.place)
_FORGET = delete(schema.snapshots)
_LEASE, _NO_LEASE = (
    select(_L.holder, _L.until).where(_L.campaign == _OURS),
    delete(schema.leases).where(_L.campaign == _OURS),
)
_NEW_LEASE = insert(schema.leases)


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
        self._links = Links(self.engine)
        # campaigns that nobody else wrote to when we last looked, over which link and as which state
        self._quiet: dict[int, tuple[Link, State]] = {}
        weakref.finalize(self, self._links.close)
        self.name = self.engine.url.render_as_string(hide_password=True).partition("?")[0]
        path = sqlite_path(self.engine)
        if path is not None and not path.exists() and (read_only or not create):
            raise ValueError(f"there is no database {str(path)!r}: make one with `evenhand campaign create`")
        try:
            with translated(self.engine):
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
            if self.read_only and found is not None:
                migrate.show_as_new(self.engine, found)
                return
        if self.engine.dialect.name == "sqlite":
            self._use_wal()
        with self.engine.connect().execution_options(writing=True) as connection, connection.begin():
            migrate.upgrade(connection)

    def _use_wal(self) -> None:
        raw = self.engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            raw.close()

    def close(self) -> None:
        """Let go of all connections."""
        self._links.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---------------------------------------------------------------- reading

    def campaigns(self) -> dict[str, int]:
        """The names of all campaigns and their numbers, oldest first."""
        with self._links.take() as link:
            return dict(link.run((_CAMPAIGNS, {})))

    def find(self, name: str) -> int:
        """The number of a campaign."""
        known = self.campaigns()
        if name not in known:
            raise ValueError(f"there is no campaign {name!r} in {self.name}: there are {', '.join(known) or 'none'}")
        return known[name]

    def events(self, campaign: int, after: int = 0, *, kind: str | None = None) -> list[Event]:
        """The events that follow event number `after`, in order."""
        with self._links.take() as link:
            return read(link, campaign, after, kind)

    def about(self, campaign: int, request: int) -> list[Event]:
        """What happened to one request, in order."""
        with self._links.take() as link:
            return about(link, campaign, request)

    def rows(self, campaign: int, after: int = 0, upto: int | None = None) -> dict[int, bytes]:
        """Delivered rows by event number, those of events after `after` and up to `upto`."""
        first = campaign * SPAN
        with self._links.take() as link:
            last = SPAN - 1 if upto is None else upto
            found = link.run((_ROWS, {"after": first + after, "upto": first + last}))
        return {place - first: bytes(data) for place, data in found}

    def state(self, campaign: int, known: State | None = None, *, snapshot: bool = True) -> State:
        """The campaign as it stands: `known`, or the newest snapshot where that is far behind, and the events since."""
        with self._links.take() as link:
            return read_on(link, campaign, known or State(), snapshots=snapshot)

    # ---------------------------------------------------------------- writing

    def create(self, name: str, header: dict[str, Any]) -> int:
        """A new campaign with its first event; gives its number."""
        try:
            with self._links.take() as link:
                [[number]] = link.begin(_lock(), (_NEW, {"name": name}))
                writer = Writer(link, number, State())
                writer.append([Draft("created", header)])
                link.commit(*writer.work)
        except LedgerError as error:
            if not isinstance(error.__cause__, self.engine.dialect.loaded_dbapi.IntegrityError):
                raise
            raise ValueError(f"there is a campaign {name!r} already: choose another name") from error
        return int(number)

    def write(self, campaign: int, state: State, step: Step) -> list[Event]:
        """Take one step of a campaign: what it drafts is stored together or not at all, and folded into the state.

        Where nobody else has written lately the step is taken on the state as it is known, and stored if its number is
        still free; that goes over the link used before, which a server that crashed and forgot steps would have cut.
        Else it is taken again under the campaign's write lock, with what others wrote folded in, so it must depend on
        nothing but what it is given.
        """
        quiet = self._quiet.pop(campaign, (None, None))
        with self._links.take() as link:
            events = self._at_once(link, campaign, state, step) if quiet == (link, state) else None
            alone = events is not None
            if events is None:
                # each statement sees what is stored when it begins, so that after the lock all that was written before
                found = newer(state, link.begin(_lock(campaign), tail(campaign, state)))
                read_on(link, campaign, state, found)
                writer = Writer(link, campaign, state)
                events = writer.append(step(state, writer))
                link.commit(*writer.work)
                alone = not found
        state.fold(events)
        if alone:
            self._quiet[campaign] = link, state
        return events

    def _at_once(self, link: Link, campaign: int, state: State, step: Step) -> list[Event] | None:
        """Take a step on the state as it is known; None where that proves nothing, as somebody may have written since."""
        writer = Writer(link, campaign, state)
        try:
            events = writer.append(step(state, writer))
        except Exception:  # on the state as it is by now it may go well
            events = []
        return events if events and link.store(_lock(campaign), *writer.work) else None

    def lease(self, campaign: int, holder: str, seconds: float) -> bool:
        """Take or renew the campaign's refit lease; False while another holder has it. 0 seconds gives it back."""
        now, ours = time.time(), {"campaign": campaign}
        with self._links.take() as link:
            held = link.begin(_lock(campaign), (_LEASE, ours))
            mine = all(name == holder or until <= now for name, until in held)
            work: list[Work] = [(_NO_LEASE, ours)] if mine else []
            if mine and seconds > 0:
                work.append((_NEW_LEASE, {**ours, "holder": holder, "until": now + seconds}))
            link.commit(*work)
        return mine

    def forget_snapshots(self) -> None:
        """Delete all snapshots; they are a cache and come back by themselves."""
        with self._links.take() as link:
            link.begin(_lock())
            link.commit((_FORGET, {}))


def _lock(campaign: int = 0) -> Work:
    """Waits for the campaign's write lock; without one, for nobody."""
    return _LOCK, {"campaign": campaign}
