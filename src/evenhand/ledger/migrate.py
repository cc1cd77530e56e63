"""Brings a database's tables to this version's, and refuses those of a later one."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, event, inspect, text
from sqlalchemy.exc import DBAPIError

from evenhand.ledger.schema import SPAN

__all__ = ["HEAD", "check", "show_as_new", "upgrade"]

HEAD = "0002"
"""The revision of the tables this version works with."""
_PLACE = f"campaign * CAST({SPAN} AS BIGINT) + seq AS place"
_AS_NEW = {"0001": {"events": f"{_PLACE}, kind, request, at, header, detail", "rows": f"{_PLACE}, data"}}


def revision(connection: Connection) -> str | None:
    """The revision of the tables there are; None without any."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found


def check(found: str | None, where: str) -> bool:
    """Whether the tables are up to date; an error when there are none or when they are newer than this version."""
    if found is None:
        raise ValueError(f"{where} holds no campaigns yet: make one with `evenhand campaign create`")
    if found > HEAD:
        raise ValueError(f"{where} was made by a later version of Evenhand (tables {found}, here {HEAD}): upgrade")
    return found == HEAD


def upgrade(connection: Connection) -> None:
    """Make or bring up to date the tables, inside the connection's transaction; one process at a time."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(20261115)"))
    if revision(connection) == HEAD:
        return
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "evenhand.ledger:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def show_as_new(engine: Engine, found: str) -> None:
    """Have the engine's connections see the tables of an earlier version as this one's; the tables stay as they are."""
    name = engine.url.render_as_string(hide_password=True).partition("?")[0]
    sqlite = engine.dialect.name == "sqlite"
    views = [
        f"CREATE TEMPORARY VIEW {table} AS SELECT {columns} FROM {'main.' if sqlite else ''}{table}"
        for table, columns in _AS_NEW[found].items()
    ]

    @event.listens_for(engine, "connect")
    def show(connection: Any, _: object) -> None:
        cursor = connection.cursor()
        for statement in views if sqlite else ["SET TRANSACTION READ WRITE", *views]:
            cursor.execute(statement)
        connection.commit()

    engine.dispose()
    try:
        engine.connect().close()
    except DBAPIError as error:
        raise ValueError(f"{name} has tables of an earlier version: open it once for writing ({error.orig})") from error
