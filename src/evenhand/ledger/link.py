"""Connections kept between steps, on which a step takes few trips to the database."""

from __future__ import annotations

import time
from typing import Any, Self, cast

from sqlalchemy import Dialect, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.expression import ClauseElement

from evenhand.ledger.errors import in_words

__all__ = ["Link", "Links", "Work"]

Work = tuple[ClauseElement, dict[str, Any]]
"""A statement and its values."""

_TRIED_AFTER = 1.0  # seconds without use after which a connection to a server may have been cut off
_PING, _BEGIN, _COMMIT = ((text(words), dict[str, Any]()) for words in ("SELECT 1", "BEGIN", "COMMIT"))
# PostgreSQL's log is written in order, so a small transaction that waits for the disk covers all before it
_FLUSH = text("SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'evenhand', '')")


class Link:
    """A connection out of SQLAlchemy's pool to an SQLite file, in the driver's own hands; used within a `with`.

    SQLAlchemy builds the statements and puts each into the database's words once; running them through it would take
    longer than the database does. The lock of a transaction that writes is the whole file's.
    """

    def __init__(self, links: Links, engine: Engine) -> None:
        self._connection = engine.raw_connection()
        self._driver = cast(Any, self._connection.driver_connection)
        self._connection.detach()
        self._links, self._words = links, links.words

    def run(self, *work: Work) -> list[Any]:
        """Run statements in order; gives the rows of the last."""
        rows: list[Any] = self._each(work).fetchall()
        return rows

    def begin(self, lock: Work, *work: Work) -> list[Any]:
        """Begin a transaction that writes, once its `lock` is free; gives the rows of the last statement."""
        self._driver.execute("BEGIN IMMEDIATE")
        return self.run(*work) if work else []

    def commit(self, *work: Work) -> None:
        """End the transaction, with its last statements; what it did is on disk then."""
        self._each((*work, _COMMIT))

    def store(self, lock: Work, *work: Work) -> None:
        """A whole transaction; a statement alone is one by itself."""
        if len(work) > 1:
            self._driver.execute("BEGIN IMMEDIATE")
            self.commit(*work)
        else:
            self._each(work)

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""
        self._driver.rollback()

    def alive(self) -> bool:
        """Whether the connection still works."""
        return True

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._links.idle.append(self)
        else:
            self._links.undo(self, error)

    def _each(self, work: tuple[Work, ...]) -> Any:
        execute, words = self._driver.execute, self._words
        for statement, values in work:
            cursor = execute(words[statement], values)
        return cursor


class ServerLink(Link):
    """The same to a PostgreSQL server: what can be said at once takes one trip."""

    def __init__(self, links: Links, engine: Engine) -> None:
        super().__init__(links, engine)
        self._driver.autocommit = True  # transactions begin and end where we say
        self._errors = engine.dialect.loaded_dbapi.Error
        durable = engine.get_execution_options().get("durable", False)
        self._end: tuple[Work, ...] = (_COMMIT, (_FLUSH, {})) if durable else (_COMMIT,)
        self._used = time.monotonic()

    def run(self, *work: Work) -> list[Any]:
        """Run statements in order, in one trip; gives the rows of the last."""
        error = None
        try:
            with self._driver.pipeline():
                try:
                    cursor = self._each(work)
                except self._errors as first:  # the pipeline's own way out would log another
                    error = first
        except self._errors as last:
            raise (error or last) from None
        if error is not None:
            raise error
        return cursor.fetchall() if cursor.description else []

    def begin(self, lock: Work, *work: Work) -> list[Any]:
        """Begin a transaction that writes, once its `lock` is free; gives the rows of the last statement."""
        return self.run(_BEGIN, lock, *work)

    def commit(self, *work: Work) -> None:
        """End the transaction, with its last statements; what it did is on disk then.

        It is not made to wait for the disk while it holds its locks, but right afterwards, so that many writers share
        one write to the disk.
        """
        self.run(*work, *self._end)

    def store(self, lock: Work, *work: Work) -> None:
        """A whole transaction, in one trip."""
        self.run(_BEGIN, lock, *work, *self._end)

    def alive(self) -> bool:
        """Whether the connection still works, tried if it has not been used for a while."""
        if time.monotonic() - self._used > _TRIED_AFTER:
            try:
                self.run(_PING)
            except self._errors:
                return False
        return True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._used = time.monotonic()
        super().__exit__(kind, error, trace)


class Links:
    """The links of a ledger, each used by one thread at a time."""

    def __init__(self, engine: Engine) -> None:
        self.words = _Words(engine.dialect)
        self._engine = engine
        self._kind = ServerLink if engine.dialect.name == "postgresql" else Link
        self._errors = (DBAPIError, engine.dialect.loaded_dbapi.Error)
        self.idle: list[Link] = []

    def take(self) -> Link:
        """A link that nobody else uses, for a `with`; after an error its transaction is undone."""
        while self.idle:
            try:
                link = self.idle.pop()
            except IndexError:  # another thread was quicker
                break
            if link.alive():
                return link
            link.close()
        try:
            return self._kind(self, self._engine)
        except self._errors as error:
            raise in_words(error) from error

    def undo(self, link: Link, error: BaseException) -> None:
        """Undo the link's transaction after an error, which is raised in words where it is the database's."""
        try:
            link.rollback()
        except self._errors:
            link.close()
        else:
            self.idle.append(link)
        if isinstance(error, self._errors):
            raise in_words(error) from error

    def close(self) -> None:
        """Close the links nobody uses, and the engine."""
        while self.idle:
            self.idle.pop().close()
        self._engine.dispose()


class _Words(dict[ClauseElement, str]):
    """Statements in the database's own words."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self._dialect = dialect

    def __missing__(self, statement: ClauseElement) -> str:
        self[statement] = found = str(statement.compile(dialect=self._dialect))
        return found
