"""Links to a PostgreSQL server."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Engine, text

from evenhand.ledger.link import Link, Work

__all__ = ["PostgresLink"]

_TRIED_AFTER = 1.0  # seconds without use after which a connection may have been cut off
_PING: Work = (text("SELECT 1"), {})
_BEGIN: Work = (text("BEGIN"), {})
_COMMIT: Work = (text("COMMIT"), {})
# the server's log is written in order, so a small transaction that waits for the disk covers all before it
_FLUSH = text("SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'evenhand', '')")


class PostgresLink(Link):
    """What can be said at once takes one trip."""

    def __init__(self, engine: Engine, *args: Any) -> None:
        super().__init__(engine, *args)
        self._driver.autocommit = True  # transactions begin and end where we say
        self._errors = engine.dialect.loaded_dbapi
        durable = engine.get_execution_options().get("durable", False)
        self._end: tuple[Work, ...] = (_COMMIT, (_FLUSH, {})) if durable else (_COMMIT,)
        self._used = time.monotonic()

    def run(self, *work: Work) -> list[Any]:
        """Run statements in order, in one trip; gives the rows of the last."""
        error = None
        try:
            with self._driver.pipeline():
                try:
                    for statement, values in work:
                        cursor = self._driver.execute(self._words[statement], values)
                except self._errors.Error as first:  # the pipeline's own way out would log another
                    error = first
        except self._errors.Error as last:
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

    def store(self, lock: Work, *work: Work) -> bool:
        """A whole transaction, in one trip; False, and nothing is stored, where another one was quicker."""
        try:
            self.run(_BEGIN, lock, *work, *self._end)
        except self._errors.IntegrityError:
            self.rollback()
            return False
        return True

    def alive(self) -> bool:
        """Whether the connection still works, tried if it has not been used for a while."""
        if time.monotonic() - self._used > _TRIED_AFTER:
            try:
                self.run(_PING)
            except self._errors.Error:
                return False
        return True

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._used = time.monotonic()
        super().__exit__(kind, error, trace)
