"""A connection kept between steps, on which a step takes few trips to the database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, cast

from sqlalchemy import Dialect, Engine
from sqlalchemy.sql.expression import ClauseElement

__all__ = ["Link", "Words", "Work"]

Work = tuple[ClauseElement, dict[str, Any]]
"""A statement and its values."""


class Words(dict[ClauseElement, str]):
    """Statements in a database's own words, each put into them once."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self._dialect = dialect

    def __missing__(self, statement: ClauseElement) -> str:
        self[statement] = found = str(statement.compile(dialect=self._dialect))
        return found


class Link(ABC):
    """A connection out of SQLAlchemy's pool, in the driver's own hands; used within a `with`, by one thread at a time.

    SQLAlchemy builds the statements; running them through it would take longer than the database does.

    Args:
        engine: where to.
        words: its statements.
        done: called when the `with` ends, with the error it ended with.
    """

    def __init__(self, engine: Engine, words: Words, done: Callable[[Link, BaseException | None], None]) -> None:
        connection = engine.raw_connection()
        self._driver = cast(Any, connection.driver_connection)
        connection.detach()
        self._words, self._done = words, done

    @abstractmethod
    def run(self, *work: Work) -> list[Any]:
        """Run statements in order; gives the rows of the last."""

    @abstractmethod
    def begin(self, lock: Work, *work: Work) -> list[Any]:
        """Begin a transaction that writes, once its `lock` is free; gives the rows of the last statement."""

    @abstractmethod
    def commit(self, *work: Work) -> None:
        """End the transaction, with its last statements; what it did is on disk then."""

    @abstractmethod
    def store(self, lock: Work, *work: Work) -> bool:
        """A whole transaction; False, and nothing is stored, where its number is taken or another has the lock."""

    @abstractmethod
    def alive(self) -> bool:
        """Whether the connection still works."""

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""
        self._driver.rollback()

    def close(self) -> None:
        """Let go of the connection."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._done(self, error)
