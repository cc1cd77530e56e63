"""Reading and appending events on a connection."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from evenhand.ledger import schema
from evenhand.ledger.events import KINDS, Draft, Event
from evenhand.ledger.state import State

__all__ = ["SNAPSHOT_EVERY", "Writer", "about", "read"]

SNAPSHOT_EVERY = 1000
"""Events between two snapshots of a campaign's state."""

_TABLE = schema.events.c


class Writer:
    """Appends to one campaign while its write lock is held."""

    def __init__(self, connection: Connection, campaign: int, last: int) -> None:
        self.connection, self.campaign, self.last = connection, campaign, last

    def tail(self, after: int) -> list[Event]:
        """The events that followed event number `after`."""
        return [] if after == self.last else read(self.connection, self.campaign, after)

    def about(self, request: int) -> list[Event]:
        """What happened to one request, in order."""
        return about(self.connection, self.campaign, request)

    def append(self, drafts: Sequence[Draft], state: State) -> list[Event]:
        """Write events down; `state` is the campaign before them and is left as it is."""
        if state.seq != self.last:
            raise ValueError(f"the state is at event {state.seq}, the ledger at {self.last}: fold the tail first")
        at, events, records, blobs = time.time(), [], [], []
        for seq, draft in enumerate(drafts, start=self.last + 1):
            text = _text(draft)
            place = {"campaign": self.campaign, "seq": seq}
            events.append(Event(seq, draft.kind, at, json.loads(text), draft.request))
            records.append({**place, "kind": draft.kind, "request": draft.request, "at": at, "header": text})
            if draft.rows is not None:
                blobs.append({**place, "data": draft.rows})
        self.connection.execute(insert(schema.events), records)
        if blobs:
            self.connection.execute(insert(schema.rows), blobs)
        self.last += len(events)
        table = schema.campaigns
        self.connection.execute(update(table).where(table.c.id == self.campaign).values(last=self.last))
        if self.last // SNAPSHOT_EVERY > state.seq // SNAPSHOT_EVERY:
            self._snapshot(state, events)
        return events

    def _snapshot(self, state: State, events: list[Event]) -> None:
        table = schema.snapshots
        text = state.copy().fold(events).as_json()
        self.connection.execute(delete(table).where(table.c.campaign == self.campaign))
        self.connection.execute(insert(table).values(campaign=self.campaign, seq=self.last, state=text))


def read(connection: Connection, campaign: int, after: int = 0, kind: str | None = None) -> list[Event]:
    """The events that follow event number `after`, in order."""
    query = _events(campaign).where(_TABLE.seq > after)
    return _fetch(connection, query if kind is None else query.where(_TABLE.kind == kind))


def about(connection: Connection, campaign: int, request: int) -> list[Event]:
    """What happened to one request, in order."""
    return _fetch(connection, _events(campaign).where(_TABLE.request == request))


def _events(campaign: int) -> Select[Any]:
    columns = (_TABLE.seq, _TABLE.kind, _TABLE.at, _TABLE.header, _TABLE.request)
    return select(*columns).where(_TABLE.campaign == campaign).order_by(_TABLE.seq)


def _fetch(connection: Connection, query: Select[Any]) -> list[Event]:
    found = connection.execute(query).all()
    return [Event(row[0], row[1], row[2], json.loads(row[3]), row[4]) for row in found]


def _text(draft: Draft) -> str:
    if draft.kind not in KINDS:
        raise ValueError(f"unknown kind of event {draft.kind!r}: use one of {', '.join(KINDS)}")
    return json.dumps(draft.header, separators=(",", ":"), allow_nan=False)
