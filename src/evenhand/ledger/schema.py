"""The tables of a ledger."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, Text

__all__ = ["campaigns", "events", "leases", "metadata", "rows", "snapshots"]

metadata = MetaData()

campaigns = Table(
    "campaigns",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

events = Table(
    "events",
    metadata,
    Column("campaign", Integer, ForeignKey("campaigns.id"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("request", Integer),
    Column("at", Double, nullable=False),
    Column("header", Text, nullable=False),
    Column("detail", Text),
    Index("events_by_request", "campaign", "request"),
    sqlite_with_rowid=False,
)

rows = Table(
    "rows",
    metadata,
    Column("campaign", Integer, ForeignKey("campaigns.id"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("campaign", Integer, ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
    Column("seq", Integer, nullable=False),
    Column("state", Text, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("campaign", Integer, ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
    Column("holder", Text, nullable=False),
    Column("until", Double, nullable=False),
)
