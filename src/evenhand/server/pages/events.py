"""The event log, newest first, filtered by kind, person or request."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from evenhand.campaign.status import as_event
from evenhand.report.campaign_charts import REASONS
from evenhand.server.access import Seat, Viewing
from evenhand.server.pages.shared import address, new_router, render

__all__ = ["KINDS", "router"]

router = new_router()
KINDS = (
    "created", "pooled", "asked", "told", "added", "scored", "losses", "failed", "abandoned", "expired", "extended",
    "corrected", "withdrawn", "erased", "skipped", "changed", "frozen", "proving", "weighed", "concluded", "closed",
)  # fmt: skip
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
    last = seat.campaign.store.refresh().seq
    first = min(before or last + 1, last + 1)
    found, lowest = _newest(seat, first, kind if kind in KINDS else "", actor, int(about) if about else None)
    rows = [{**as_event(event), "said": _said(event.kind, event.facts)} for event in found]
    return render(
        request, "events.html", rows=rows, kinds=KINDS, kind=kind, actor=actor, about=about, name=seat.campaign.name,
        base=seat.parts.settings.root_path + address(seat.campaign), older=lowest if lowest > 1 else None, newest=first > last,
    )  # fmt: skip


def _newest(seat: Seat, before: int, kind: str, actor: str, about: int | None) -> tuple[list[Any], int]:
    """Events before a number, newest first, and the number for the next page."""
    found: list[Any] = []
    store = seat.campaign.store
    with store.ledger.reading(store.number) as reader:
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


def _said(kind: str, facts: dict[str, Any]) -> str:
    """An event in a few words."""
    match kind:
        case "asked":
            kind = facts["decision"]["kind"]
            return f"{_some(facts['size'], 'label')} of {facts['decision']['group']} ({REASONS.get(kind, kind)})"
        case "told":
            out = f", {sum(facts['why'].values())} left out" if facts.get("why") else ""
            return f"{_some(facts['rows'], 'label')} of {facts['group']}{', late' if facts.get('late') else ''}{out}"
        case "added":
            return _some(len(facts["groups"]), "labelled example")
        case "scored":
            return f"{_some(facts['examples'], 'example')}, {_some(len(facts['groups']), 'group')}"
        case "pooled":
            return f"{_some(sum(facts['counts']), 'example')}; {facts['read']}"
        case "corrected" | "withdrawn" | "erased":
            return f"{_some(len(facts['ids']), 'example')}{_reason(facts)}"
        case "created":
            return f"budget {facts['budget']}, {facts['strategy']}"
        case "skipped":
            return f"{facts['id']}{_reason(facts)}"
        case "closed":
            return str(facts["reason"])
    plain = {name: value for name, value in facts.items() if name not in ("digests", "once")}
    text = json.dumps(plain, ensure_ascii=False, default=str)
    return "" if text == "{}" else text[:_LONGEST]


def _some(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _reason(facts: dict[str, Any]) -> str:
    return f": {facts['reason']}" if facts.get("reason") else ""
