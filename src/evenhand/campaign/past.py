"""Rows as they stood in the past, before later corrections and withdrawals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from evenhand.campaign.deliveries import label_digest
from evenhand.campaign.labels import label_text
from evenhand.ledger.base import Event, Example

__all__ = ["ALTERED", "Past"]

ALTERED = ("corrected", "withdrawn", "erased")
"""The events that change or take back what was told."""


class Past:
    """The rows as they stood after an event: with their labels at that time, and with rows that were taken back later.

    `lost` are rows that counted then and cannot be recovered: erased since, or with a label that is stored nowhere now.
    """

    def __init__(self, events: Iterable[Event], rows: Sequence[Example], classes: Collection[Any] | None) -> None:
        self.rows: dict[str, Example] = {}
        self.lost: set[str] = set()
        self._coming: dict[int, list[Example]] = {}
        for row in rows:
            self._coming.setdefault(row.told or 0, []).append(row)
        # events have digests only: a past label is found by trying all labels in use
        self._labels = {"true", "false", *(label_text(label) for label in classes or ())}
        self._labels |= {label for row in rows for label in (row.label, row.first_label) if label is not None}
        self._erased = {name: event.seq for event in events if event.kind == "erased" for name in event.facts["ids"]}

    def fold(self, events: Iterable[Event]) -> None:
        """Continue with later events."""
        for event in events:
            for row in self._coming.get(event.seq, ()):
                self.rows[row.id] = row._replace(changed=event.seq)
                if row.fate == "erased":
                    self.lost.add(row.id)
                else:
                    self.rows[row.id] = row._replace(label=row.first_label, fate=None, changed=event.seq)
            if event.kind in ALTERED:
                for k, name in enumerate(event.facts["ids"]):
                    if name in self.rows:
                        self._alter(event, self.rows[name], k)

    def _alter(self, event: Event, row: Example, k: int) -> None:
        self.rows[row.id] = row._replace(changed=event.seq)
        if event.kind != "corrected":
            # taken back by then, so it did not count and nothing is lacking
            self.lost.discard(row.id)
            self.rows[row.id] = row._replace(changed=event.seq, fate=row.fate or event.kind)
        elif row.fate is None:
            digest = event.facts["digests"][k]
            label = next((label for label in self._labels if label_digest(row.salt, label) == digest), None)
            (self.lost.add if label is None else self.lost.discard)(row.id)
            self.rows[row.id] = row._replace(changed=event.seq, label=label)

    def knows(self, last: int, now: int) -> bool:
        """Whether no row told since `last` was erased after `now`: the running errors may have counted it."""
        return not any((self.rows[n].told or 0) > last for n, at in self._erased.items() if at > now and n in self.rows)
