"""Brings a database's tables to this version's, and refuses those of a later one."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

__all__ = ["HEAD", "check", "upgrade"]

HEAD = "0002"
"""The revision of the tables this version works with."""


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
