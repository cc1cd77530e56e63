"""Copies campaigns from one ledger into another, for saving, backup and restore."""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.ledger.base import Event, Example, Ledger, RowOrder


def copy(source: Ledger, target: Ledger, names: Iterable[str] | None = None) -> list[str]:
    """Copy campaigns, all by default, each as it is at one moment; returns their names.

    A name that the target has already is refused, and that campaign is not copied at all.
    """
    known = source.campaigns()
    chosen = list(known if names is None else names)
    for name in chosen:
        with target.create(name) as writer:
            for each in source.everything(source.find(name)):
                if isinstance(each, Event):
                    # as it is, not through `append`, which would give it a new number and today's time
                    writer.appended.append(each)
                elif isinstance(each, Example):
                    writer.put([each])
                elif isinstance(each, RowOrder):
                    writer.put_order(each)
                else:
                    writer.models.append(each)
    return chosen
