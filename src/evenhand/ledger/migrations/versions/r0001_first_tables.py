"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables of version 0.1."""
    op.create_table(
        "campaigns",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "events",
        sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("request", sa.Integer),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("header", sa.Text, nullable=False),
        sa.Column("detail", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_index("events_by_request", "events", ["campaign", "request"])
    op.create_table(
        "rows",
        sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "snapshots",
        sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("campaign", sa.Integer, sa.ForeignKey("campaigns.id"), primary_key=True, autoincrement=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
