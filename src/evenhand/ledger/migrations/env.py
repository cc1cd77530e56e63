"""Runs migrations on the connection that `evenhand.ledger.migrate` hands over."""

from alembic import context

from evenhand.ledger.schema import complete

if hasattr(context, "config"):  # only while alembic runs; documentation tools and doctest import this too
    context.configure(connection=context.config.attributes["connection"], target_metadata=complete())
    context.run_migrations()
