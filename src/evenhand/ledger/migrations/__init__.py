"""The history of the ledger's tables, for alembic."""
