"""Reading and appending events on a connection."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from evenhand.ledger import schema
from evenhand.ledger.events import KINDS, Draft, Event
from evenhand.ledger.state import State

__all__ = ["SNAPSHOT_EVERY", "Writer", "about", "read", "read_on"]

SNAPSHOT_EVERY = 1000
"""Events between two snapshots of a campaign's state."""

# built once: putting a statement together costs as much as running it
_E, _R, _S = schema.events.c, schema.rows.c, schema.snapshots.c
_HEADERS = (
    select(_E.seq, _E.kind, _E.at, _E.header, _E.request)
    .where(_E.campaign == bindparam("campaign"), _E.seq > bindparam("after"))
    .order_by(_E.seq)
)
_PAGE = 5000
_PAGE_OF_HEADERS = _HEADERS.limit(bindparam("count"))
_HEADERS_OF = _HEADERS.where(_E.kind == bindparam("kind"))
_ADDED = _HEADERS_OF.where(_E.request.is_(None))
_ABOUT = (
    select(_E.seq, _E.kind, _E.at, _E.header, _E.request, _E.detail)
    .where(_E.campaign == bindparam("campaign"), _E.request == bindparam("request"))
    .order_by(_E.seq)
)
_ROWS = select(_R.data).where(_R.campaign == bindparam("campaign"), _R.seq == bindparam("seq"))
_EVENT, _DELIVERY, _SNAPSHOT = insert(schema.events), insert(schema.rows), insert(schema.snapshots)
_FORGET = delete(schema.snapshots).where(_S.campaign == bindparam("campaign"))


class Writer:
    """Appends to one campaign while its write lock is held; `state` is the campaign before that."""

    def __init__(self, connection: Connection, campaign: int, state: State) -> None:
        self.connection, self.campaign, self.state = connection, campaign, state

    def about(self, request: int) -> list[Event]:
        """What happened to one request, in order."""
        return about(self.connection, self.campaign, request)

    def added(self) -> list[Event]:
        """The deliveries that answered no request."""
        return _events(self.connection.execute(_ADDED, {"campaign": self.campaign, "after": 0, "kind": "told"}).all())

    def rows(self, seq: int) -> bytes:
        """The rows delivered by event number `seq`."""
        return bytes(self.connection.execute(_ROWS, {"campaign": self.campaign, "seq": seq}).scalar_one())

    def append(self, drafts: Sequence[Draft]) -> list[Event]:
        """Write events down, once; the state is left as it is, for it to be folded when they are stored."""
        at, events, records, blobs = time.time(), [], [], []
        for seq, draft in enumerate(drafts, start=self.state.seq + 1):
            if draft.kind not in KINDS:
                raise ValueError(f"unknown kind of event {draft.kind!r}: use one of {', '.join(KINDS)}")
            header, detail = _text(draft.header), _text(draft.detail)
            place = {"campaign": self.campaign, "seq": seq}
            events.append(Event(seq, draft.kind, at, json.loads(header), draft.request, json.loads(detail)))
            record = {**place, "kind": draft.kind, "request": draft.request, "at": at, "header": header}
            records.append({**record, "detail": detail if draft.detail is not None else None})
            if draft.rows is not None:
                blobs.append({**place, "data": draft.rows})
        self.connection.execute(_EVENT, records)
        if blobs:
            self.connection.execute(_DELIVERY, blobs)
        if events[-1].seq // SNAPSHOT_EVERY > self.state.seq // SNAPSHOT_EVERY:
            self._snapshot(events)
        return events

    def _snapshot(self, events: list[Event]) -> None:
        after = self.state.copy().fold(events)
        self.connection.execute(_FORGET, {"campaign": self.campaign})
        self.connection.execute(_SNAPSHOT, {"campaign": self.campaign, "seq": after.seq, "state": after.as_json()})


def read(connection: Connection, campaign: int, after: int = 0, kind: str | None = None) -> list[Event]:
    """The events that follow event number `after`, in order."""
    given = {"campaign": campaign, "after": after}
    if kind is None:
        found = connection.execute(_HEADERS, given)
    else:
        found = connection.execute(_HEADERS_OF, {**given, "kind": kind})
    return _events(found.all())


def read_on(connection: Connection, campaign: int, state: State) -> State:
    """The state with all events since folded in, a page at a time: a long history is never in memory at once."""
    while True:
        given = {"campaign": campaign, "after": state.seq, "count": _PAGE}
        found = connection.execute(_PAGE_OF_HEADERS, given).all()
        state.fold(_events(found))
        if len(found) < _PAGE:
            return state


def about(connection: Connection, campaign: int, request: int) -> list[Event]:
    """What happened to one request, in order and in detail."""
    found = connection.execute(_ABOUT, {"campaign": campaign, "request": request}).all()
    return [
        Event(row.seq, row.kind, row.at, json.loads(row.header), row.request, json.loads(row.detail or "null"))
        for row in found
    ]


def _events(found: Sequence[Any]) -> list[Event]:
    headers = json.loads(f"[{','.join([row[3] for row in found])}]")  # one call is much quicker than many
    return [Event(row[0], row[1], row[2], header, row[4]) for row, header in zip(found, headers, strict=True)]


def _text(given: Mapping[str, Any] | None) -> str:
    return json.dumps(given, separators=(",", ":"), allow_nan=False)
