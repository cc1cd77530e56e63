"""Reading events over a link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Integer, bindparam, func, literal_column, select

from evenhand.ledger import schema
from evenhand.ledger.errors import LedgerError
from evenhand.ledger.events import Event
from evenhand.ledger.link import Link, Work
from evenhand.ledger.schema import SPAN
from evenhand.ledger.state import State
from evenhand.ledger.text import from_text

__all__ = ["about", "added", "newer", "read", "read_on", "tail"]

_PAGE, _FAR = 5000, 100  # events read at a time; events behind which a snapshot may spare

# built once: putting a statement together costs as much as running it
_E, _S = schema.events.c, schema.snapshots.c
_WITHIN = (_E.place > bindparam("after"), _E.place < bindparam("end"))
_HEADERS = select(_E.place, _E.kind, _E.at, _E.header, _E.request).where(*_WITHIN).order_by(_E.place)
_PAGE_OF_HEADERS = _HEADERS.limit(bindparam("page", type_=Integer)).offset(literal_column("0"))
_HEADERS_OF = _HEADERS.where(_E.kind == bindparam("kind"))
_ADDED = _HEADERS_OF.where(_E.request.is_(None))
_SNAPSHOT = select(_S.state).where(_S.campaign == bindparam("campaign"), _S.seq > bindparam("after"))
_LAST = select(func.max(_E.place)).where(*_WITHIN)
_NEXT_ASKED = (
    select(_E.place, _E.request)
    .where(*_WITHIN, _E.kind == literal_column("'asked'"))
    .order_by(_E.place)
    .limit(literal_column("1"))
    .offset(literal_column("0"))
)
_ENDED = (  # nothing happens to a request after this
    select(func.min(_E.place))
    .where(*_WITHIN, _E.request == bindparam("request"))
    .where(_E.kind.in_([literal_column("'told'"), literal_column("'abandoned'")]))
)
_ABOUT = (
    select(_E.place, _E.kind, _E.at, _E.header, _E.request, _E.detail)
    .where(*_WITHIN, _E.request == bindparam("request"))
    .where(_E.place <= func.coalesce(_ENDED.scalar_subquery(), bindparam("end")))
    .order_by(_E.place)
)


def read(link: Link, campaign: int, after: int = 0, kind: str | None = None) -> list[Event]:
    """The events that follow event number `after`, in order."""
    within = _within(campaign, after)
    return _events(link.run((_HEADERS, within) if kind is None else (_HEADERS_OF, {**within, "kind": kind})))


def added(link: Link, campaign: int) -> list[Event]:
    """The deliveries that answered no request."""
    return _events(link.run((_ADDED, {**_within(campaign), "kind": "told"})))


def tail(campaign: int, state: State) -> Work:
    """Reads the state's last event and those that follow, up to where a snapshot may spare reading them."""
    return _PAGE_OF_HEADERS, {**_within(campaign, max(state.seq - 1, 0)), "page": _FAR + 1}


def newer(state: State, found: Sequence[Any]) -> Sequence[Any]:
    """What of a tail follows the state; an error if the state's last event is not the ledger's."""
    if state.seq == 0:
        return found
    place, _, at, *_ = found[0] if found else (0, None, 0.0)
    if (place % SPAN, at) != (state.seq, state.at):
        raise LedgerError(
            "the ledger is not the one that was read before: a server crashed, a backup was put back, or reading was cut "
            "short; nothing was stored, open the campaign again"
        )
    return found[1:]


def read_on(
    link: Link, campaign: int, state: State, found: Sequence[Any] | None = None, *, snapshots: bool = True
) -> State:
    """The state with all events since folded in; `found` is what is `newer`, where that was read already.

    One that is far behind goes on from the newest snapshot, and then a page at a time: a long history is never in
    memory at once.
    """
    page = newer(state, link.run(tail(campaign, state))) if found is None else found
    if len(page) < _FAR:
        return state.fold(_events(page)) if page else state
    stored = link.run((_SNAPSHOT, {"campaign": campaign, "after": state.seq + _FAR})) if snapshots else []
    snapshot = State.from_json(stored[0][0]) if stored else None
    if snapshot is None:
        state.fold(_events(page))
    else:
        state.become(snapshot)
    while page := link.run((_PAGE_OF_HEADERS, {**_within(campaign, state.seq), "page": _PAGE})):
        state.fold(_events(page))
    return state


def about(link: Link, campaign: int, request: int) -> list[Event]:
    """What happened to one request, in order and in detail."""
    asked = _place_before(link, campaign, request)
    if asked is None:
        return []
    found = link.run((_ABOUT, {**_within(campaign), "after": asked, "request": request}))
    return [
        Event(place % SPAN, kind, at, from_text(header), number, from_text(detail or "null"))
        for place, kind, at, header, number, detail in found
    ]


def _place_before(link: Link, campaign: int, request: int) -> int | None:
    """A place before the one where a request was made, with no other request made in between.

    Requests are numbered in the order they are made, so halving finds it; None if it was never made.
    """
    within = _within(campaign)
    low, high = within["after"] + request, link.run((_LAST, within))[0][0] or 0
    while low <= high:
        middle = (low + high) // 2
        found = link.run((_NEXT_ASKED, {**within, "after": middle}))
        place, number = found[0] if found else (high, math.inf)
        if number == request:
            return middle
        low, high = (place, high) if number < request else (low, middle - 1)
    return None


def _within(campaign: int, after: int = 0) -> dict[str, int]:
    """The places of a campaign's events after event number `after`."""
    return {"after": campaign * SPAN + after, "end": (campaign + 1) * SPAN}


def _events(found: Sequence[Any]) -> list[Event]:
    first = 1 if found and found[0][1] == "created" else 0
    headers = from_text(f"[{','.join([row[3] for row in found[first:]])}]")  # one call is quicker than many
    if first:
        headers.insert(0, from_text(found[0][3], exact=True))
    return [
        Event(place % SPAN, kind, at, header, request)
        for (place, kind, at, _, request), header in zip(found, headers, strict=True)
    ]
