"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables of version 0.1."""

    def campaign() -> sa.Column[int]:
        return sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True, autoincrement=False)

    op.create_table(
        "campaigns",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "events",
        campaign(),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("request", sa.Integer),
        sa.Column("actor", sa.Text),
        sa.Column("facts", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("events_by_request", "events", ["campaign", "request"])
    op.create_table(
        "examples",
        campaign(),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("group_name", sa.Text, nullable=False),
        sa.Column("role", sa.Text),
        sa.Column("place", sa.BigInteger),
        sa.Column("request", sa.Integer),
        sa.Column("held", sa.Boolean, nullable=False),
        sa.Column("origin", sa.Text),
        sa.Column("made", sa.Boolean, nullable=False),
        sa.Column("label", sa.Text),
        sa.Column("first_label", sa.Text),
        sa.Column("features", sa.Text),
        sa.Column("array", sa.LargeBinary),
        sa.Column("told", sa.Integer),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("changed", sa.Integer, nullable=False),
        sa.Column("salt", sa.Text),
        sa.Column("fate", sa.Text),
        sa.Column("registered", sa.Integer),
    )
    altered = sa.text("changed > told")
    op.create_index(
        "examples_altered", "examples", ["campaign", "changed"], sqlite_where=altered, postgresql_where=altered
    )
    op.create_index("examples_by_delivery", "examples", ["campaign", "told", "position"])
    in_pool = sa.text("place IS NOT NULL AND NOT held AND label IS NULL AND fate IS NULL")
    pool = ["campaign", "group_name", "place", "id"]
    op.create_index("examples_in_pool", "examples", pool, sqlite_where=in_pool, postgresql_where=in_pool)
    op.create_table(
        "models",
        campaign(),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("format", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "orders",
        campaign(),
        sa.Column("event", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("salt", sa.Text, nullable=False),
    )
    op.create_table(
        "snapshots",
        campaign(),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_table(
        "leases",
        campaign(),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id")),
        sa.Column("parent", sa.Text, sa.ForeignKey("tokens.id")),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("expires", sa.Double),
        sa.Column("revoked", sa.Double),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.Text, nullable=False),
        sa.Column("kinds", sa.Text, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("next_try", sa.Double, nullable=False),
        sa.Column("last_error", sa.Text),
        sa.Column("holder", sa.Text),
        sa.Column("until", sa.Double),
    )
