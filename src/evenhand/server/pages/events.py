"""The event log, newest first, filtered by kind, person or request."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from evenhand.campaign.events import (
    ADDED,
    CLOSED,
    COUNTED,
    CREATED,
    KINDS,
    ONCE,
    POOLED,
    SCORED,
    SKIPPED,
    answer_in,
    ids_in,
    reason_in,
    request_in,
    rows_in,
)
from evenhand.campaign.status import as_event
from evenhand.ledger import Event
from evenhand.report.campaign_charts import REASONS
from evenhand.server.access import Seat, Viewing
from evenhand.server.pages.shared import address, new_router, render

router = new_router()
_AT_ONCE = 50
_WINDOW = 1000
_MOST_WINDOWS = 20
_LONGEST = 400


@router.get("/campaigns/{name}/events")
def events(
    request: Request,
    seat: Viewing,
    kind: Annotated[str, Query(max_length=20)] = "",
    actor: Annotated[str, Query(max_length=500)] = "",
    about: Annotated[str, Query(pattern=r"^\d{0,9}$")] = "",
    before: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
) -> Response:
    """The event log, fifty events at a time."""
    last = seat.campaign.state.seq
    first = min(before or last + 1, last + 1)
    found, lowest = _newest(seat, first, kind if kind in KINDS else "", actor, int(about) if about else None)
    rows = [{**as_event(event), "said": _said(event)} for event in found]
    return render(
        request, "events.html", rows=rows, kinds=tuple(KINDS), kind=kind, actor=actor, about=about, name=seat.campaign.name,
        base=seat.parts.settings.root_path + address(seat.campaign), older=lowest if lowest > 1 else None, newest=first > last,
    )  # fmt: skip


def _newest(seat: Seat, before: int, kind: str, actor: str, about: int | None) -> tuple[list[Event], int]:
    """Events before a number, newest first, and the number for the next page."""
    found: list[Event] = []
    with seat.campaign.reading() as reader:
        for _ in range(_MOST_WINDOWS):
            low = max(before - 1 - _WINDOW, 0)
            some = reader.events(low, kinds=(kind,) if kind else (), request=about, limit=_WINDOW)
            for event in reversed([event for event in some if event.seq < before]):
                if not actor or event.actor == actor:
                    found.append(event)
                    if len(found) == _AT_ONCE:
                        return found, event.seq
            before = low + 1
            if low == 0:
                break
    return found, before


def _said(event: Event) -> str:
    """An event in a few words."""
    match event.kind:
        case "asked" | "named":
            asked = request_in(event)
            group, kind = asked["decision"]["group"], asked["decision"]["kind"]
            return f"{_some(asked['size'], 'label')} of {group} ({REASONS.get(kind, kind)})"
        case "told" | "labelled" | "counted":
            answer, why = answer_in(event), {} if event.kind == COUNTED.name else rows_in(event)["why"]
            out = f", {sum(why.values())} left out" if why else ""
            return f"{_some(answer['rows'], 'label')} of {answer['group']}{', late' if answer['late'] else ''}{out}"
        case "added":
            return _some(ADDED.facts(event)["rows"], "labelled example")
        case "scored":
            scored = SCORED.facts(event)
            return f"{_some(scored['examples'], 'example')}, {_some(len(scored['groups']), 'group')}"
        case "pooled":
            pooled = POOLED.facts(event)
            return f"{_some(sum(pooled['counts']), 'example')}; {pooled['read']}"
        case "corrected" | "withdrawn" | "erased":
            return f"{_some(len(ids_in(event)), 'example')}{_reason(event)}"
        case "created":
            return f"budget {CREATED.facts(event)['budget']}, {CREATED.facts(event)['strategy']}"
        case "skipped":
            return f"{SKIPPED.facts(event)['id']}{_reason(event)}"
        case "closed":
            return CLOSED.facts(event)["reason"]
    plain = {name: value for name, value in event.facts.items() if name not in ("digests", ONCE)}
    text = json.dumps(plain, ensure_ascii=False, default=str)
    return "" if text == "{}" else text[:_LONGEST]


def _some(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _reason(event: Event) -> str:
    return f": {reason}" if (reason := reason_in(event)) else ""
