"""The list of all campaigns that the user may see."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

from fastapi import Header, Query, Request
from fastapi.responses import Response

from evenhand.campaign import Campaign
from evenhand.campaign.requests import as_time
from evenhand.campaign.settings import Limits
from evenhand.campaign.state import State
from evenhand.campaign.status import running
from evenhand.campaign.view import SOON
from evenhand.errors import InputError
from evenhand.notation import JsonObject
from evenhand.report.view import written
from evenhand.risks import RATES
from evenhand.server.access import grant_of, parts_of
from evenhand.server.pages.shared import address, new_router, render
from evenhand.server.stream import events_in, news_of_all, open_stream

router = new_router()
_AT_ONCE = 100


@dataclass(frozen=True)
class Line:
    """A campaign in the list."""

    number: int
    name: str
    path: str
    used: int
    promised: int
    budget: int
    closed: str | None
    last: str | None
    worst: str | None
    shown: str
    n: int
    claimed: bool
    low: float
    high: float
    proving: bool
    alerts: list[str]


@router.get("/")
def listing(
    request: Request, q: Annotated[str, Query(max_length=500)] = "", page: Annotated[int, Query(ge=1, le=10_000)] = 1
) -> Response:
    """The campaigns: progress, the worst-off group, last activity, alerts."""
    parts, grant = parts_of(request), grant_of(request)
    # before anything else is read: what happens in between is told once more
    events = events_in(parts.campaigns.ledger.newest(), grant)
    known = parts.campaigns.ledger.campaigns()
    seen = {name: number for name, number in known.items() if grant.campaign in (None, number)}
    found = {name: number for name, number in seen.items() if q.casefold() in name.casefold()}
    numbers = list(found.values())[::-1]
    lines = [_line(parts.campaigns.by_number(number)) for number in numbers[(page - 1) * _AT_ONCE : page * _AT_ONCE]]
    lines.sort(key=lambda line: line.last or "", reverse=True)
    lines.sort(key=lambda line: line.closed is not None)
    more = len(numbers) > page * _AT_ONCE
    return render(request, "listing.html", lines=lines, q=q, total=len(seen), page=page, more=more, events=events)


@router.get("/stream")
async def stream(
    request: Request,
    after: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    last: Annotated[str | None, Header(alias="Last-Event-ID", pattern=r"^\d{1,18}$")] = None,
) -> Response:
    """Whether something happened in the campaigns that one may see."""
    stopping: asyncio.Event = request.app.state.stopping
    first = after if last is None else int(last)
    grant = grant_of(request)
    news = news_of_all(parts_of(request), grant, first, stopping, request.app.state.newest)
    return open_stream(request, news, Limits().streams)  # it follows campaigns whose limits may differ


def _line(campaign: Campaign) -> Line:
    state = campaign.state
    risks = {z: x / n for z, (x, n) in enumerate(zip(state.loss_sum, state.relevant, strict=True)) if n}
    worst = max(risks, key=lambda z: risks[z]) if risks else None
    low, high, claimed = 0.0, 1.0, False
    if worst is not None:
        # a union bound over the groups, so that the worst one may be picked out
        average = running(state, 0.05 / len(state.groups))
        low, high, claimed = average.low[worst], average.high[worst], bool(state.running[worst][0])
    about: JsonObject = {
        "number": campaign.number, "name": campaign.name, "path": address(campaign), "used": state.labels_used, "promised": state.outstanding,
        "budget": int(state.settings["budget"]), "closed": state.closed, "last": as_time(state.at),
        "worst": None if worst is None else state.groups[worst], "shown": written(None if worst is None else risks[worst], state.settings["risk"] in RATES),
        "n": 0 if worst is None else state.relevant[worst], "low": low, "high": high, "alerts": _alerts(campaign, state),
        "claimed": claimed, "proving": state.proving is not None,
    }  # fmt: skip
    return Line(**about)


def _alerts(campaign: Campaign, state: State) -> list[str]:
    """What needs attention, as far as that can be computed quickly for many campaigns."""
    found = [] if state.failure is None else ["learner failed"]
    if state.closed is None:
        if state.settings["stop"] is not None and _is_met(campaign):
            found.append("stopping rule met")
        now = campaign.now()
        overdue, soon = state.overdue(now), now + SOON * (state.settings["lease"] or 86400.0)
        if late := len(state.expired) + len(overdue):
            found.append(f"{late} expired")
        if ending := len(state.overdue(soon)) - len(overdue):
            found.append(f"{ending} will expire soon")
    return found if state.outcome is None else [*found, str(state.outcome["outcome"])]


def _is_met(campaign: Campaign) -> bool:
    try:
        return campaign.reason_to_stop() is not None
    except InputError:  # a user's rule may not be importable here
        return False
