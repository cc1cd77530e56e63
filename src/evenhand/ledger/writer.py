"""Reading and appending events over a link."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, delete, insert, literal_column, select

from evenhand.ledger import schema
from evenhand.ledger.events import KINDS, Draft, Event
from evenhand.ledger.link import Link, Work
from evenhand.ledger.state import State

__all__ = ["SNAPSHOT_EVERY", "Writer", "about", "next_page", "read", "read_on"]

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
_PAGE_OF_HEADERS = _HEADERS.limit(literal_column(str(_PAGE))).offset(literal_column("0"))
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
_text = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Writer:
    """Appends to one campaign while its write lock is held; `state` is the campaign before that.

    `work` is what the append does, left to the end of the transaction.
    """

    def __init__(self, link: Link, campaign: int, state: State) -> None:
        self.link, self.campaign, self.state = link, campaign, state
        self.work: list[Work] = []

    def about(self, request: int) -> list[Event]:
        """What happened to one request, in order."""
        return about(self.link, self.campaign, request)

    def added(self) -> list[Event]:
        """The deliveries that answered no request."""
        return _events(self.link.run((_ADDED, {"campaign": self.campaign, "after": 0, "kind": "told"})))

    def rows(self, seq: int) -> bytes:
        """The rows delivered by event number `seq`."""
        [[data]] = self.link.run((_ROWS, {"campaign": self.campaign, "seq": seq}))
        return bytes(data)

    def append(self, drafts: Sequence[Draft]) -> list[Event]:
        """Write events down, once; the state is left as it is, for it to be folded when they are stored."""
        at, events = time.time(), []
        for seq, draft in enumerate(drafts, start=self.state.seq + 1):
            if draft.kind not in KINDS:
                raise ValueError(f"unknown kind of event {draft.kind!r}: use one of {', '.join(KINDS)}")
            header, detail = _text(draft.header), draft.detail
            if detail is not None and not isinstance(detail, str):
                detail = _text(detail)
            events.append(Event(seq, draft.kind, at, json.loads(header), draft.request))
            record = {"kind": draft.kind, "request": draft.request, "at": at, "header": header, "detail": detail}
            self.work.append((_EVENT, {"campaign": self.campaign, "seq": seq, **record}))
            if draft.rows is not None:
                self.work.append((_DELIVERY, {"campaign": self.campaign, "seq": seq, "data": draft.rows}))
        if events[-1].seq // SNAPSHOT_EVERY > self.state.seq // SNAPSHOT_EVERY:
            self._snapshot(events)
        return events

    def _snapshot(self, events: list[Event]) -> None:
        after, mine = self.state.copy().fold(events), {"campaign": self.campaign}
        self.work += [(_FORGET, mine), (_SNAPSHOT, {**mine, "seq": after.seq, "state": after.as_json()})]


def read(link: Link, campaign: int, after: int = 0, kind: str | None = None) -> list[Event]:
    """The events that follow event number `after`, in order."""
    given = {"campaign": campaign, "after": after}
    return _events(link.run((_HEADERS, given) if kind is None else (_HEADERS_OF, {**given, "kind": kind})))


def next_page(campaign: int, state: State) -> Work:
    """Reads the events that follow the state."""
    return _PAGE_OF_HEADERS, {"campaign": campaign, "after": state.seq}


def read_on(link: Link, campaign: int, state: State, found: list[Any] | None = None) -> State:
    """The state with all events since folded in, a page at a time: a long history is never in memory at once.

    `found` is the first page, where it was read already.
    """
    while True:
        page = link.run(next_page(campaign, state)) if found is None else found
        if page:
            state.fold(_events(page))
        if len(page) < _PAGE:
            return state
        found = None


def about(link: Link, campaign: int, request: int) -> list[Event]:
    """What happened to one request, in order and in detail."""
    found = link.run((_ABOUT, {"campaign": campaign, "request": request}))
    return [
        Event(seq, kind, at, json.loads(header), number, json.loads(detail or "null"))
        for seq, kind, at, header, number, detail in found
    ]


def _events(found: Sequence[Any]) -> list[Event]:
    headers = json.loads(f"[{','.join([row[3] for row in found])}]")  # one call is much quicker than many
    return [Event(row[0], row[1], row[2], header, row[4]) for row, header in zip(found, headers, strict=True)]
