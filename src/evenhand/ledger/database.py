"""A ledger in SQLite or PostgreSQL, with the same code for both."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Select,
    Table,
    TextClause,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import IntegrityError

from evenhand.errors import Conflict, InputError, LedgerError
from evenhand.ledger import connection as connections
from evenhand.ledger import migrate, schema
from evenhand.ledger.base import Event, Example, Ledger, Reader, RowOrder, StoredModel, Writer
from evenhand.ledger.connection import begin_sqlite, connect, sqlite_path, translated
from evenhand.ledger.text import as_text, from_text

__all__ = ["DatabaseLedger"]

_C, _E, _X, _M, _S, _L, _O = (
    table.c
    for table in (
        schema.campaigns, schema.events, schema.examples, schema.models, schema.snapshots, schema.leases, schema.orders
    )
)  # fmt: skip
_EVENT = (_E.seq, _E.at, _E.kind, _E.request, _E.actor, _E.facts)
_EXAMPLE = tuple(_X["group_name" if name == "group" else name] for name in Example._fields)
_MODEL = (_M.version, _M.digest, _M.format, _M.data)
_MANY = 500  # ids in one query: SQLite takes 32,766 values in a statement, PostgreSQL 65,535
_CHUNK = 5000  # rows written or copied at a time

# built once: putting a statement together costs as much as running it
_NEW_EVENTS = insert(schema.events)
_OURS = select(*_EVENT).where(_E.campaign == bindparam("ours")).order_by(_E.seq)
_EVENTS = _OURS.where(_E.seq > bindparam("after"))
# their numbers first, from the index alone: in one query SQLite would read all events of the campaign instead
_A = schema.events.alias("about").c
_EVENTS_ABOUT = _OURS.where(_E.seq.in_(select(_A.seq).where(
    _A.campaign == bindparam("ours"), _A.request == bindparam("about"), _A.seq > bindparam("after")
)))  # fmt: skip
_EXAMPLES = select(*_EXAMPLE, _X.array).where(_X.campaign == bindparam("ours"))
_LABELLED = _EXAMPLES.where(_X.told.is_not(None)).order_by(_X.told, _X.position)
_CHANGED = _LABELLED.where(
    or_(_X.told > bindparam("after"), and_(schema.altered, _X.changed > bindparam("after", unique=False)))
)
_WITH_IDS = _EXAMPLES.where(_X.id.in_(bindparam("ids", expanding=True)))
_TOLD_BY = _EXAMPLES.where(_X.told == bindparam("seq")).order_by(_X.position)
_NEXT_IN_POOL = (
    _EXAMPLES.where(_X.group_name == bindparam("of"), schema.in_pool).order_by(_X.place, _X.id).limit(bindparam("most"))
)


@cache
def _events_of(kinds: bool, request: bool, limit: bool) -> Select[Any]:
    """The query for events, if wanted only of some kinds, about one request, or up to a limit."""
    question = _EVENTS_ABOUT if request else _EVENTS
    if kinds:
        question = question.where(_E.kind.in_(bindparam("kinds", expanding=True)))
    return question.limit(bindparam("most")) if limit else question


class DatabaseLedger(Ledger):
    """The campaigns of one database.

    Every step is one short transaction under its campaign's write lock: `BEGIN IMMEDIATE` on SQLite, a row lock on
    PostgreSQL. Objects may be shared between threads, not between processes.

    Args:
        url: `sqlite:///file.db` or `postgresql://…`; `?synchronous=normal` is faster and may lose the last
            acknowledged steps when the power fails (never when a process dies).
        create: make the database if it does not exist.
        read_only: never change or block anything.
        clock: gives the time in seconds; by default this machine's for SQLite, the server's for PostgreSQL.
        patience: how many seconds a writer waits for an SQLite file that another process writes; by default two minutes.
    """

    def __init__(
        self,
        url: str,
        *,
        create: bool = False,
        read_only: bool = False,
        clock: Callable[[], float] | None = None,
        patience: float | None = None,
    ) -> None:
        self.read_only, self._clock, self._patience = read_only, clock, patience
        self.engine = connect(url, read_only=read_only)
        self.name = self.engine.url.render_as_string(hide_password=True).partition("?")[0]
        # a campaign that is dropped without release() must not leave its connections open
        weakref.finalize(self, self.engine.dispose)
        self._postgres = self.engine.dialect.name == "postgresql"
        self._upsert = _upsert(schema.examples, self._postgres)
        path = sqlite_path(self.engine)
        if path is not None and not path.exists() and (read_only or not create):
            raise InputError(f"there is no database {str(path)!r}: make one with `evenhand campaign create`")
        with translated():
            migrate.prepare(self.engine, self.name, create=create, read_only=read_only)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def campaigns(self) -> dict[str, int]:
        """The names of all campaigns and their numbers, oldest first."""
        with self.transaction(writing=False) as connection:
            found = connection.execute(select(_C.name, _C.id).order_by(_C.id))
            return {str(row.name): int(row.id) for row in found}

    def newest(self) -> dict[int, int]:
        """The number of the newest event of every campaign."""
        # one look-up in the index for each: a grouped maximum would read all of it
        last = select(func.max(_E.seq)).where(_E.campaign == _C.id).scalar_subquery()
        with self.transaction(writing=False) as connection:
            return {int(number): int(seq or 0) for number, seq in connection.execute(select(_C.id, last))}

    def clock(self) -> float:
        """The time that leases go by."""
        with self.transaction(writing=False) as connection:
            return self._now(connection)

    @contextmanager
    def create(self, name: str) -> Iterator[Writer]:
        """Create a campaign and take its first step."""
        with self.transaction(writing=True) as connection:
            try:
                new = insert(schema.campaigns).values(name=name).returning(_C.id)
                number = int(connection.execute(new).scalar_one())
            except IntegrityError:
                raise Conflict(f"there is a campaign {name!r} already: choose another name") from None
            writer = _DatabaseWriter(connection, number, self._now(connection), self._upsert)
            yield writer
            writer.store()

    @contextmanager
    def reading(self, campaign: int) -> Iterator[Reader]:
        """Read a campaign at one moment."""
        with self.transaction(writing=False) as connection:
            yield _DatabaseWriter(connection, campaign, self._now(connection), self._upsert)

    @property
    def patience(self) -> float:
        """How long a writer waits for its turn, in seconds."""
        return connections.BUSY_SECONDS if self._patience is None else self._patience

    @contextmanager
    def writing(self, campaign: int, *, wait: bool = True) -> Iterator[Writer]:
        """Take a step of a campaign under its write lock."""
        with self.transaction(writing=True, wait=wait) as connection:
            if self._postgres:  # SQLite's write lock is taken with the transaction
                connection.execute(select(_C.id).where(_C.id == campaign).with_for_update())
            writer = _DatabaseWriter(connection, campaign, self._now(connection), self._upsert)
            yield writer
            writer.store()

    def lease(self, campaign: int, holder: str, seconds: float) -> bool:
        """Take or renew the campaign's refit lease; False while another holder has it. 0 seconds gives it back."""
        with self.transaction(writing=True) as connection:
            # the lock of the campaign, so that two processes cannot both find the lease free
            connection.execute(select(_C.id).where(_C.id == campaign).with_for_update())
            now = self._now(connection)
            held = connection.execute(select(_L.holder, _L.until).where(_L.campaign == campaign)).all()
            mine = all(name == holder or until <= now for name, until in held)
            if mine:
                connection.execute(delete(schema.leases).where(_L.campaign == campaign))
                if seconds > 0:
                    values = {"campaign": campaign, "holder": holder, "until": now + seconds}
                    connection.execute(insert(schema.leases).values(values))
        return mine

    def everything(self, campaign: int) -> Iterator[Event | Example | StoredModel | RowOrder]:
        """All that is stored of a campaign at one moment, read a chunk at a time."""
        with self.transaction(writing=False) as connection:
            streamed = connection.execution_options(yield_per=_CHUNK)
            yield from map(_event, streamed.execute(select(*_EVENT).where(_E.campaign == campaign).order_by(_E.seq)))
            examples = select(*_EXAMPLE, _X.array).where(_X.campaign == campaign).order_by(_X.told, _X.position)
            yield from map(_example, streamed.execute(examples))
            yield from map(_model, streamed.execute(select(*_MODEL).where(_M.campaign == campaign)))
            orders = select(_O.event, _O.salt).where(_O.campaign == campaign)
            yield from (RowOrder(int(event), str(salt)) for event, salt in streamed.execute(orders))

    def forget_snapshots(self) -> None:
        """Delete all snapshots, which are a cache; new ones are written in time."""
        with self.transaction(writing=True) as connection:
            connection.execute(delete(schema.snapshots))

    def checkpoint(self) -> None:
        """Move what is in SQLite's log into the database file."""
        if not self._postgres:
            raw = self.engine.raw_connection()
            try:
                raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                raw.close()

    @contextmanager
    def transaction(self, *, writing: bool, wait: bool = True) -> Iterator[Connection]:
        """A transaction; one that only reads sees one moment. Without `wait`, raises `Busy` while another writes."""
        if writing and self.read_only:
            raise InputError(f"{self.name} was opened read-only: open it without read_only to change anything")
        with translated(), self.engine.connect() as connection:
            if self._postgres:
                # a writer has to see what was committed while it waited
                # for its lock; a reader must see one moment only
                connection.execution_options(isolation_level="READ COMMITTED" if writing else "REPEATABLE READ")
            with connection.begin():
                if not self._postgres:
                    begin_sqlite(connection, writing=writing, seconds=self.patience if wait else 0.0)
                yield connection

    def _now(self, connection: Connection) -> float:
        if self._clock is not None:
            return self._clock()
        if self._postgres:
            # the server's clock: machines that share a database need not agree on the time
            return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
        return time.time()


class _DatabaseWriter(Writer):
    def __init__(self, connection: Connection, campaign: int, now: float, upsert: Insert) -> None:
        super().__init__()
        self._connection, self._campaign, self.now, self._upsert = connection, campaign, now, upsert
        self._waiting: list[Example] = []  # put, but not written to the database yet

    def events(
        self, after: int = 0, *, kinds: Collection[str] = (), request: int | None = None, limit: int | None = None
    ) -> list[Event]:
        values: dict[str, object] = {"ours": self._campaign, "after": after}
        question = _EVENTS
        if kinds or request is not None or limit is not None:
            question = _events_of(bool(kinds), request is not None, limit is not None)
            values |= {"kinds": list(kinds)} if kinds else {}
            values |= {"about": request} if request is not None else {}
            values |= {"most": limit} if limit is not None else {}
        return [_event(row) for row in self._connection.execute(question, values)]

    def snapshot(self) -> tuple[int, str] | None:
        found = self._connection.execute(select(_S.seq, _S.state).where(_S.campaign == self._campaign)).first()
        return None if found is None else (found[0], found[1])

    def changed(self, after: int = 0) -> list[Example]:
        return self._read(_CHANGED if after else _LABELLED, {"after": after} if after else {})

    def find(self, ids: Collection[str]) -> dict[str, Example]:
        # no id has a NUL, and PostgreSQL cannot even look for one
        wanted, found = [name for name in ids if "\0" not in name], dict[str, Example]()
        for first in range(0, len(wanted), _MANY):
            some = self._read(_WITH_IDS, {"ids": wanted[first : first + _MANY]})
            found |= {example.id: example for example in some}
        return found

    def told_by(self, seq: int) -> list[Example]:
        return self._read(_TOLD_BY, {"seq": seq})

    def class_counts(self) -> dict[str, dict[str, int]]:
        question = (
            select(_X.group_name, _X.label, func.count())
            # `told` has an index: the rows of a large pool are not looked at
            .where(_X.campaign == self._campaign, _X.told.is_not(None), _X.label.is_not(None), _X.fate.is_(None))
            .group_by(_X.group_name, _X.label)
        )
        # what this step has put must be seen by its own reads
        self._put_examples()
        found: dict[str, dict[str, int]] = {}
        for group, label, count in self._connection.execute(question):
            found.setdefault(group, {})[label] = count
        return found

    def next_in_pool(self, group: str, count: int) -> list[Example]:
        return self._read(_NEXT_IN_POOL, {"of": group, "most": count})

    def pool_counts(self, first: int = 0, last: int | None = None) -> dict[str, int]:
        self._put_examples()
        return self._counted(schema.in_pool, *_at(first, last))

    def came_back(self, first: int, last: int) -> list[Example]:
        return self._read(_EXAMPLES.where(schema.in_pool, _X.role.is_not(None), *_at(first, last)), {})

    def leave_pool(self, first: int, last: int) -> dict[str, int]:
        self._put_examples()
        never: tuple[ColumnElement[bool] | TextClause, ...] = (schema.in_pool, _X.role.is_(None), *_at(first, last))
        found = self._counted(*never)
        gone = update(schema.examples).where(_X.campaign == self._campaign, *never).values(fate="gone")
        self._connection.execute(gone)
        return found

    def _counted(self, *only: ColumnElement[bool] | TextClause) -> dict[str, int]:
        """How many examples of every group meet these conditions."""
        question = select(_X.group_name, func.count()).where(_X.campaign == self._campaign, *only)
        found = self._connection.execute(question.group_by(_X.group_name))
        return {str(group): int(count) for group, count in found}

    def put(self, examples: Iterable[Example]) -> None:
        self._waiting += examples
        if len(self._waiting) > _CHUNK:  # a pool may be larger than memory
            self._put_examples()

    def orders(self) -> dict[int, str]:
        question = select(_O.event, _O.salt).where(_O.campaign == self._campaign)
        stored = {int(event): str(salt) for event, salt in self._connection.execute(question)}
        return {**stored, **dict(self.new_orders)}

    def model(self, version: int) -> StoredModel | None:
        question = select(*_MODEL).where(_M.campaign == self._campaign, _M.version == version)
        row = self._connection.execute(question).first()
        return None if row is None else _model(row)

    def store(self) -> None:
        """Store what was appended and put, in the order that readers expect."""
        ours, run = {"campaign": self._campaign}, self._connection.execute
        try:
            if self.appended:
                run(_NEW_EVENTS, [{**ours, **e._asdict(), "facts": as_text(e.facts)} for e in self.appended])
        except IntegrityError as error:
            raise LedgerError("another process wrote the same event: nothing was stored, try again") from error
        self._put_examples()
        if self.new_orders:
            run(insert(schema.orders), [{**ours, **order._asdict()} for order in self.new_orders])
        try:
            if self.models:
                run(insert(schema.models), [{**ours, **model._asdict()} for model in self.models])
        except IntegrityError as error:
            raise LedgerError("there is a frozen model of this version already: nothing was stored") from error
        if self.new_snapshot is not None:
            run(delete(schema.snapshots).where(_S.campaign == self._campaign))
            run(insert(schema.snapshots), [{**ours, "seq": self.new_snapshot[0], "state": self.new_snapshot[1]}])

    def _put_examples(self) -> None:
        examples, self._waiting = self._waiting, []
        for first in range(0, len(examples), _CHUNK):
            self._connection.execute(self._upsert, _rows(self._campaign, examples[first : first + _CHUNK]))

    def _read(self, question: Select[Any], values: Mapping[str, object]) -> list[Example]:
        self._put_examples()
        return [_example(row) for row in self._connection.execute(question, {"ours": self._campaign, **values})]


def _at(first: int, last: int | None) -> list[ColumnElement[bool]]:
    """The condition that an example's row stands at positions `first` to `last` of the pool's files."""
    return [_X.position >= first] if last is None else [_X.position.between(first, last)]


def _event(row: Sequence[Any]) -> Event:
    try:
        facts = from_text(row[5])
    except ValueError as error:
        raise LedgerError(f"event {row[0]} cannot be read: {error}; restore a backup") from error
    return Event(row[0], row[1], row[2], row[3], row[4], facts)


def _example(row: Sequence[Any]) -> Example:
    *values, array = row
    found = Example(*values)
    return found if array is None else found._replace(features=bytes(array))


def _model(row: Sequence[Any]) -> StoredModel:
    return StoredModel(row[0], row[1], row[2], bytes(row[3]))


def _rows(campaign: int, examples: Sequence[Example]) -> list[dict[str, object]]:
    """Examples as rows of the table, without the columns that are empty in all of them, which a pool has many of."""
    columns: dict[str, Sequence[object]] = dict(zip(Example._fields, zip(*examples, strict=True), strict=True))
    columns["group_name"] = columns.pop("group")
    columns["array"] = [f if isinstance(f, bytes) else None for f in columns["features"]]
    columns["features"] = [f if isinstance(f, str) else None for f in columns["features"]]
    # the statement is the same for every row, so a column is left out only where no row has it
    used = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    used["campaign"] = [campaign] * len(examples)
    names = tuple(used)
    return [dict(zip(names, row, strict=True)) for row in zip(*used.values(), strict=True)]


def _upsert(table: Table, is_postgres: bool) -> Insert:
    """The statement that stores rows in place of those with the same key."""
    keys = [column.name for column in table.primary_key]
    rest = [column.name for column in table.columns if column.name not in keys]
    # each database has its own `insert`, and a command on SQLite should not wait for PostgreSQL's to be imported
    if is_postgres:
        from sqlalchemy.dialects import postgresql

        theirs = postgresql.insert(table)
        return theirs.on_conflict_do_update(index_elements=keys, set_={name: theirs.excluded[name] for name in rest})
    ours = sqlite.insert(table)
    return ours.on_conflict_do_update(index_elements=keys, set_={name: ours.excluded[name] for name in rest})
