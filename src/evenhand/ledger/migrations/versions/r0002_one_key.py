"""One whole number as the key of events and rows."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_SPAN = 2**40


def upgrade() -> None:
    """Put campaign and sequence number into one place; requests are found without an index of their own."""
    postgresql = op.get_context().dialect.name == "postgresql"
    if postgresql:  # writers of the version before are kept out from the first copied event on
        op.execute("LOCK TABLE campaigns, events, rows, snapshots, leases IN ACCESS EXCLUSIVE MODE")
    place = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "new_events",
        sa.Column("place", place, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("request", sa.Integer),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("header", sa.Text, nullable=False),
        sa.Column("detail", sa.Text),
    )
    op.create_table(
        "new_rows",
        sa.Column("place", place, primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    for table, columns in (("events", "kind, request, at, header, detail"), ("rows", "data")):
        op.execute(
            f"INSERT INTO new_{table} (place, {columns}) "
            f"SELECT campaign * CAST({_SPAN} AS BIGINT) + seq, {columns} FROM {table} ORDER BY campaign, seq"
        )
        op.execute(f"DROP TABLE {table}{' CASCADE' if postgresql else ''}")  # and what readers look at it through
        op.rename_table(f"new_{table}", table)
    if postgresql:
        for table in ("events", "rows"):
            op.execute(f"ALTER INDEX new_{table}_pkey RENAME TO {table}_pkey")
