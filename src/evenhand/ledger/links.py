"""The links of a ledger."""

from __future__ import annotations

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from evenhand.ledger.errors import in_words
from evenhand.ledger.link import Link, Words
from evenhand.ledger.postgresql import PostgresLink
from evenhand.ledger.sqlite import SqliteLink

__all__ = ["Links"]

_KINDS: dict[str, type[Link]] = {"sqlite": SqliteLink, "postgresql": PostgresLink}


class Links:
    """Links to one database, each used by one thread at a time and kept for the next."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._words = engine, Words(engine.dialect)
        self._errors = (DBAPIError, engine.dialect.loaded_dbapi.Error)
        self._idle: list[Link] = []

    def take(self) -> Link:
        """A link that nobody else uses, for a `with`; after an error its transaction is undone."""
        while self._idle:
            try:
                link = self._idle.pop()
            except IndexError:  # another thread was quicker
                break
            if link.alive():
                return link
            link.close()
        try:
            return _KINDS[self._engine.dialect.name](self._engine, self._words, self._give_back)
        except self._errors as error:
            raise in_words(error) from error

    def close(self) -> None:
        """Close the links nobody uses, and the engine."""
        while self._idle:
            self._idle.pop().close()
        self._engine.dispose()

    def _give_back(self, link: Link, error: BaseException | None) -> None:
        if error is None:
            self._idle.append(link)
            return
        try:
            link.rollback()
        except self._errors:
            link.close()
        else:
            self._idle.append(link)
        if isinstance(error, self._errors):
            raise in_words(error) from error
