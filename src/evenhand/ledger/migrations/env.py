"""Runs migrations on the connection that `evenhand.ledger.migrate` hands over."""

from alembic import context

from evenhand.ledger.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
