"""The tables of a ledger."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Integer, LargeBinary, MetaData, Table, Text

__all__ = ["SPAN", "campaigns", "events", "leases", "metadata", "rows", "snapshots"]

SPAN = 2**40
"""Places a campaign has: its event number `seq` is kept at place `campaign * SPAN + seq`.

One whole number in order is the key that both databases append to quickest: nothing but the last page changes.
"""

metadata = MetaData()
_Place = BigInteger().with_variant(Integer(), "sqlite")

campaigns = Table(
    "campaigns",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

events = Table(
    "events",
    metadata,
    Column("place", _Place, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("request", Integer),
    Column("at", Double, nullable=False),
    Column("header", Text, nullable=False),
    Column("detail", Text),
)

rows = Table(
    "rows",
    metadata,
    Column("place", _Place, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
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
