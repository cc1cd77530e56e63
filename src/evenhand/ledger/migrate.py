"""Brings a database's tables to this version's, and refuses those of a later one."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, inspect, text

from evenhand.errors import InputError
from evenhand.ledger import connection as connections
from evenhand.ledger.connection import begin_sqlite, patiently

__all__ = ["HEAD", "prepare"]

HEAD = "0001"
"""The revision of the tables this version works with."""


def prepare(engine: Engine, name: str, *, create: bool, read_only: bool) -> None:
    """Check the tables, and make or upgrade them where that is allowed; waits while other processes do the same."""
    if engine.dialect.name == "sqlite":
        patiently(lambda: _prepare(engine, name, create=create, read_only=read_only), connections.BUSY_SECONDS)
    else:
        _prepare(engine, name, create=create, read_only=read_only)


def _prepare(engine: Engine, name: str, *, create: bool, read_only: bool) -> None:
    with engine.connect() as connection:
        found = _revision(connection)
    if found is None and not create:
        raise InputError(f"{name} holds no campaigns yet: make one with `evenhand campaign create`")
    if found is not None and found > HEAD:
        raise InputError(f"{name} was made by a later version of Evenhand (tables {found}, here {HEAD}): upgrade")
    if found == HEAD:
        return
    if read_only:
        raise InputError(f"{name} was made by an earlier version of Evenhand: open it once for writing to upgrade it")
    if engine.dialect.name == "sqlite":
        raw = engine.raw_connection()
        try:
            # kept in the file itself; it cannot be changed inside a transaction
            raw.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            raw.close()
    with engine.connect() as connection, connection.begin():
        if engine.dialect.name == "sqlite":
            begin_sqlite(connection, writing=True)
        _upgrade(connection)


def _revision(connection: Connection) -> str | None:
    """The revision of the tables there are; None without any."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


def _upgrade(connection: Connection) -> None:
    """Make or upgrade the tables inside the connection's transaction; one process at a time."""
    if connection.dialect.name == "postgresql":
        # any fixed number will do: two servers
        # that start at once must not both make the tables
        connection.execute(text("SELECT pg_advisory_xact_lock(20261115)"))
    if _revision(connection) == HEAD:
        return
    # only where there is something to do: alembic is slow to import
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "evenhand.ledger:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
