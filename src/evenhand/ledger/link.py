"""Connections kept between steps, on which a step takes few trips to the database."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.expression import ClauseElement

from evenhand.ledger.errors import in_words

__all__ = ["Link", "Links", "Work"]

Work = tuple[ClauseElement, dict[str, Any]]
"""A statement and its values."""

_TRIED_AFTER = 1.0  # seconds without use after which a connection may have been cut off
_PING, _BEGIN, _BEGIN_IMMEDIATE, _COMMIT = map(text, ("SELECT 1", "BEGIN", "BEGIN IMMEDIATE", "COMMIT"))
# PostgreSQL's log is written in order, so a small transaction that waits for the disk covers all before it
_FLUSH = text("SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'evenhand', '')")


class Link:
    """A connection out of SQLAlchemy's pool, in the driver's own hands.

    SQLAlchemy builds the statements and puts each into the database's words once; running them through it would take
    longer than the database does.
    """

    def __init__(self, engine: Engine, words: dict[ClauseElement, str]) -> None:
        self._connection = engine.raw_connection()
        self._driver = cast(Any, self._connection.driver_connection)
        self._connection.detach()
        self._dialect, self._words = engine.dialect, words
        self._begin = _BEGIN_IMMEDIATE
        self._late: tuple[Work, ...] = ()
        self._changes = 0
        self._end: list[Work] = [(_COMMIT, {})]
        self._trips = False  # whether a statement takes a trip to a server
        if engine.dialect.name == "postgresql":
            self._driver.autocommit = True  # transactions begin and end where we say
            self._begin, self._trips = _BEGIN, True
            if engine.get_execution_options().get("durable", False):
                self._end.append((_FLUSH, {}))
        self.used = time.monotonic()

    def run(self, *work: Work) -> list[Any]:
        """Run statements in order, in one trip where the driver can; gives the rows of the last."""
        cursor = self._each(work) if not self._trips else self._in_one_trip(work)
        return cursor.fetchall() if cursor.description else []

    def begin(self, *work: Work, lock: Work | None = None) -> list[Any]:
        """Begin a transaction that writes, or go on with it; on SQLite the whole file is its `lock`."""
        return self.run(*self._beginning(lock), *work)

    def begin_late(self, lock: Work) -> None:
        """Begin a transaction that writes when it is committed; on SQLite at once, where that takes no trip."""
        if not self._trips:
            self.begin()
            self._changes = self._driver.total_changes
        else:
            self._late = self._beginning(lock)

    def commit(self, *work: Work) -> None:
        """End the transaction, with its last statements; what it did is on disk then.

        PostgreSQL is not made to wait for the disk while the transaction holds its locks, but right afterwards, so that
        many writers share one write to the disk.
        """
        late, self._late = self._late, ()
        self.run(*late, *work, *self._end)

    def start_over(self) -> None:
        """Undo what the transaction did; one on SQLite that did nothing keeps its turn."""
        if self._trips or self._driver.total_changes != self._changes:
            self.rollback()

    def alive(self) -> bool:
        """Whether the connection still works, tried if it has not been used for a while."""
        if time.monotonic() - self.used > _TRIED_AFTER:
            try:
                self.run((_PING, {}))
            except self._dialect.loaded_dbapi.Error:
                return False
        return True

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""
        self._late = ()
        self._driver.rollback()

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _beginning(self, lock: Work | None) -> tuple[Work, ...]:
        if not self._trips and self._driver.in_transaction:
            return ()
        begin: Work = (self._begin, {})
        return (begin,) if lock is None or not self._trips else (begin, lock)

    def _each(self, work: Sequence[Work]) -> Any:
        for statement, values in work:
            cursor = self._driver.execute(self._words.get(statement) or self._word(statement), values)
        return cursor

    def _in_one_trip(self, work: Sequence[Work]) -> Any:
        error = None
        try:
            with self._driver.pipeline():
                try:
                    cursor = self._each(work)
                except self._dialect.loaded_dbapi.Error as first:  # the pipeline's own way out would log another
                    error = first
        except self._dialect.loaded_dbapi.Error as last:
            raise (error or last) from None
        if error is not None:
            raise error
        return cursor

    def _word(self, statement: ClauseElement) -> str:
        self._words[statement] = found = str(statement.compile(dialect=self._dialect))
        return found


class Links:
    """The links of a ledger, each used by one thread at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._errors = (DBAPIError, engine.dialect.loaded_dbapi.Error)
        self._idle: list[Link] = []
        self._words: dict[ClauseElement, str] = {}

    def one(self) -> _Use:
        """A link for a while; after an error its transaction is undone."""
        return _Use(self)

    def close(self) -> None:
        """Close the links nobody uses, and the engine."""
        while self._idle:
            self._idle.pop().close()
        self._engine.dispose()

    def take(self) -> Link:
        """A link that nobody else uses."""
        while self._idle:
            try:
                link = self._idle.pop()
            except IndexError:  # another thread was quicker
                break
            if link.alive():
                return link
            link.close()
        try:
            return Link(self._engine, self._words)
        except self._errors as error:
            raise in_words(error) from error

    def give_back(self, link: Link) -> None:
        """Let others use the link."""
        link.used = time.monotonic()
        self._idle.append(link)

    def undo(self, link: Link, error: BaseException) -> None:
        """Undo the link's transaction after an error, which is raised in words where it is the database's."""
        try:
            link.rollback()
        except self._errors:
            link.close()
        else:
            self.give_back(link)
        if isinstance(error, self._errors):
            raise in_words(error) from error


class _Use:
    """A link within a `with`."""

    __slots__ = ("_link", "_links")

    def __init__(self, links: Links) -> None:
        self._links = links

    def __enter__(self) -> Link:
        self._link = self._links.take()
        return self._link

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._links.give_back(self._link)
        else:
            self._links.undo(self._link, error)
