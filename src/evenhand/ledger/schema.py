"""The tables of a ledger, for a person with SQL to read."""

from __future__ import annotations

from functools import cache

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)

metadata = MetaData()


def _campaign() -> Column[int]:
    return Column("campaign", Integer, ForeignKey("campaigns.id"), primary_key=True, autoincrement=False)


campaigns = Table(
    "campaigns",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

events = Table(
    "events",
    metadata,
    _campaign(),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("request", Integer),
    Column("actor", Text),
    # text, not JSONB: its numbers would not read back exactly
    Column("facts", Text, nullable=False),
    Index("events_by_request", "campaign", "request"),
    # kept in the order of the key, campaign and seq, in which events are always read
    sqlite_with_rowid=False,
)

examples = Table(
    "examples",
    metadata,
    _campaign(),
    Column("id", Text, primary_key=True),
    Column("group_name", Text, nullable=False),
    Column("role", Text),
    Column("place", BigInteger),
    Column("request", Integer),
    # whether an open request has it: a pool example must not be handed out twice
    Column("held", Boolean, nullable=False),
    Column("origin", Text),
    Column("made", Boolean, nullable=False),
    Column("label", Text),
    Column("first_label", Text),
    Column("features", Text),
    Column("array", LargeBinary),
    Column("told", Integer),
    Column("position", Integer, nullable=False),
    Column("changed", Integer, nullable=False),
    # digests in events are of salt and row: once the salt is erased nobody can guess a label back from its digest
    Column("salt", Text),
    Column("fate", Text),
    Column("registered", Integer),
    Index("examples_by_delivery", "campaign", "told", "position"),
)
altered = text("changed > told")
"""Examples that were changed after they were told; few, so that their index costs little."""
in_pool = text("place IS NOT NULL AND NOT held AND label IS NULL AND fate IS NULL")
"""Examples that can be handed out."""

models = Table(
    "models",
    metadata,
    _campaign(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("digest", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

orders = Table(
    "orders",
    metadata,
    _campaign(),
    Column("event", Integer, primary_key=True, autoincrement=False),
    Column("salt", Text, nullable=False),
)
"""The secret salts that decide the order of rows, by the event that drew them; apart from the events, which people read."""

snapshots = Table(
    "snapshots",
    metadata,
    _campaign(),
    Column("seq", Integer, nullable=False),
    Column("state", Text, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    _campaign(),
    Column("holder", Text, nullable=False),
    Column("until", Double, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("campaign", Integer, ForeignKey("campaigns.id")),
    # a session ends with the token it was opened with
    Column("parent", Text, ForeignKey("tokens.id")),
    Column("created", Double, nullable=False),
    Column("expires", Double),
    Column("revoked", Double),
)
"""Who may use a server: tokens, share links and sessions, as digests of secrets that nobody can read back."""

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("campaign", Integer, ForeignKey("campaigns.id"), nullable=False),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("kinds", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("next_try", Double, nullable=False),
    Column("last_error", Text),
    Column("holder", Text),
    Column("until", Double),
)
"""Where a server sends news of a campaign's events; those up to `seq` were sent."""


@cache
def complete() -> MetaData:
    """The tables with all their indexes, for migrations.

    Queries need no index declared, and an argument named after PostgreSQL imports its whole dialect, which a command on an
    SQLite file should not wait for.
    """
    e = examples.c
    Index("examples_altered", e.campaign, e.changed, sqlite_where=altered, postgresql_where=altered)
    in_order = (e.campaign, e.group_name, e.place, e.id)
    Index("examples_in_pool", *in_order, sqlite_where=in_pool, postgresql_where=in_pool)
    return metadata
