"""Links to an SQLite file."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

from sqlalchemy import text

from evenhand.ledger.connection import BUSY_SECONDS
from evenhand.ledger.link import Link, Work

__all__ = ["SqliteLink"]

_BEGIN: Work = (text("BEGIN IMMEDIATE"), {})
_COMMIT: Work = (text("COMMIT"), {})
_NAPS = (0.001, 0.025, 0.05, 0.1)  # seconds; long ones let who has the lock take several steps in a row
_CHANCE = random.SystemRandom()


class SqliteLink(Link):
    """The lock of a transaction that writes is the whole file's.

    Waiting for it is ours, not SQLite's: that does not hear Ctrl-C, and tries so often that processes which write at
    once keep changing places, each time to read what the others wrote.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._driver.execute("PRAGMA busy_timeout=0")

    def run(self, *work: Work) -> list[Any]:
        """Run statements in order; gives the rows of the last."""
        rows: list[Any] = self._each(work).fetchall()
        return rows

    def begin(self, lock: Work, *work: Work) -> list[Any]:
        """Begin a transaction that writes, once the file is free; gives the rows of the last statement."""
        return self.run(_BEGIN, *work)

    def commit(self, *work: Work) -> None:
        """End the transaction, with its last statements; what it did is on disk then."""
        self._each((*work, _COMMIT))

    def store(self, lock: Work, *work: Work) -> bool:
        """A whole transaction, a statement alone being one by itself; False where another has the lock or was quicker."""
        (first, values), *rest = work if len(work) == 1 else (_BEGIN, *work, _COMMIT)
        try:
            self._driver.execute(self._words[first], values)
            if rest:
                self._each(rest)
        except (sqlite3.IntegrityError, sqlite3.OperationalError) as error:
            self.rollback()
            if isinstance(error, sqlite3.OperationalError) and not _is_busy(error):
                raise
            return False
        return True

    def alive(self) -> bool:
        """A file does not go away."""
        return True

    def _each(self, work: Iterable[Work]) -> sqlite3.Cursor:
        execute, words = self._driver.execute, self._words
        for statement, values in work:
            try:
                cursor: sqlite3.Cursor = execute(words[statement], values)
            except sqlite3.OperationalError as error:
                cursor = self._later(error, words[statement], values)
        return cursor

    def _later(self, error: sqlite3.OperationalError, words: str, values: dict[str, Any]) -> sqlite3.Cursor:
        """Run a statement that another process kept from running, once it can."""
        tried_until = time.monotonic() + BUSY_SECONDS
        for nap in chain(_NAPS, repeat(_NAPS[-1])):
            if not _is_busy(error) or time.monotonic() > tried_until:
                break
            time.sleep(nap * _CHANCE.uniform(0.5, 1.5))
            try:
                cursor: sqlite3.Cursor = self._driver.execute(words, values)
            except sqlite3.OperationalError as again:
                error = again
            else:
                return cursor
        raise error


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY  # the rest of the code says why
