"""What can go wrong with the database, in words its user can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

__all__ = ["LedgerError", "in_words", "translated"]

_MEANINGS = (
    (
        ("disk is full", "no space left"),
        "the disk is full: nothing was stored and nothing is lost; free space, try again",
    ),
    (("readonly", "read-only"), "the database is read-only: nothing was stored; open it where it can be written"),
    (("locked", "busy"), "another process held the database for too long: nothing was stored; try again"),
    (("no such column: campaign",), "the database was brought up to date meanwhile: open it again"),
    (("unable to open",), "the database file cannot be opened: check the path and its permissions"),
    (("not a database", "malformed"), "the file is not a usable SQLite database"),
)


class LedgerError(RuntimeError):
    """The database could not do what was asked; what was acknowledged before is intact."""


@contextmanager
def translated(engine: Engine) -> Iterator[None]:
    """Turn the errors of the database's driver into a `LedgerError` that says what to do."""
    try:
        yield
    except (DBAPIError, engine.dialect.loaded_dbapi.Error) as error:
        raise in_words(error) from error


def in_words(error: Exception) -> LedgerError:
    """What the error of a driver means."""
    raw = str(getattr(error, "orig", error)).strip()
    for marks, meaning in _MEANINGS:
        if any(mark in raw.lower() for mark in marks):
            return LedgerError(f"{meaning} ({raw})")
    return LedgerError(f"the database failed: {raw}; whether it stored the last step is open, repeat it")
