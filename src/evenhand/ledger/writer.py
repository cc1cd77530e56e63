"""Appending events over a link."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sqlalchemy import bindparam, delete, insert, select

from evenhand.ledger import reading, schema
from evenhand.ledger.events import KINDS, Draft, Event
from evenhand.ledger.link import Link, Work
from evenhand.ledger.schema import SPAN
from evenhand.ledger.state import State
from evenhand.ledger.text import as_text, from_text

__all__ = ["SNAPSHOT_EVERY", "Step", "Writer"]

SNAPSHOT_EVERY = 100
"""Events between two snapshots of a campaign's state; more where many open requests make it large."""

# built once: putting a statement together costs as much as running it
_ROWS = select(schema.rows.c.data).where(schema.rows.c.place == bindparam("place"))
_EVENT, _DELIVERY, _SNAPSHOT = insert(schema.events), insert(schema.rows), insert(schema.snapshots)
_FORGET = delete(schema.snapshots).where(schema.snapshots.c.campaign == bindparam("campaign"))


class Writer:
    """One campaign during a step: what the step may look up, and `append` for what it drafts.

    `work` is what the append does, left to the end of the transaction.
    """

    def __init__(self, link: Link, campaign: int, state: State) -> None:
        self.link, self.campaign, self.state = link, campaign, state
        self.work: list[Work] = []

    def about(self, request: int) -> list[Event]:
        """What happened to one request, in order."""
        return reading.about(self.link, self.campaign, request)

    def added(self) -> list[Event]:
        """The deliveries that answered no request."""
        return reading.added(self.link, self.campaign)

    def rows(self, seq: int) -> bytes:
        """The rows delivered by event number `seq`."""
        [[data]] = self.link.run((_ROWS, {"place": self.campaign * SPAN + seq}))
        return bytes(data)

    def append(self, drafts: Sequence[Draft]) -> list[Event]:
        """Write events down, once; the state is left as it is, for it to be folded when they are stored."""
        at, seq, events = time.time(), self.state.seq, []
        for draft in drafts:
            if draft.kind not in KINDS:
                raise ValueError(f"unknown kind of event {draft.kind!r}: use one of {', '.join(KINDS)}")
            seq += 1
            place, header = self.campaign * SPAN + seq, as_text(draft.header)
            facts = from_text(header, exact=draft.kind == "created")
            if facts != draft.header:
                raise ValueError(f"cannot write down {draft.header}: it takes plain values and finite numbers")
            events.append(Event(seq, draft.kind, at, facts, draft.request))
            record = {"place": place, "kind": draft.kind, "request": draft.request, "at": at, "header": header}
            record["detail"] = None if draft.detail is None else as_text(draft.detail)
            self.work.append((_EVENT, record))
            if draft.rows is not None:
                self.work.append((_DELIVERY, {"place": place, "data": draft.rows}))
        every = SNAPSHOT_EVERY * (1 + len(self.state.open) // 100)
        if seq // every > self.state.seq // every:
            self._snapshot(events)
        return events

    def _snapshot(self, events: list[Event]) -> None:
        after, mine = self.state.copy().fold(events), {"campaign": self.campaign}
        self.work += [(_FORGET, mine), (_SNAPSHOT, {**mine, "seq": after.seq, "state": after.as_json()})]


Step = Callable[[State, Writer], Sequence[Draft]]
"""What to append to a campaign that stands so."""
