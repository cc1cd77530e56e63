"""Taking a request, viewing it, giving it up, extending it."""

from __future__ import annotations

from typing import Annotated, Any

import anyio.to_thread
import orjson
from fastapi import Form, Request
from fastapi.responses import Response

from evenhand.campaign.features import feature_names
from evenhand.campaign.requests import as_time
from evenhand.campaign.viewing import colours_of, why_of
from evenhand.errors import EvenhandError, InputError, LedgerError, NotFound, NothingToAsk
from evenhand.server.access import Collecting, Seat
from evenhand.server.api.asking import Ask, ask
from evenhand.server.api.shared import Number
from evenhand.server.pages.campaign import show
from evenhand.server.pages.shared import address, new_router, render, see_other
from evenhand.server.problems import status_of

__all__ = ["router", "show_request"]

router = new_router()
Text = Annotated[str, Form(max_length=500)]


def show_request(
    request: Request, seat: Seat, number: int, status: int = 200, panel: str | None = None, **context: Any
) -> Response:
    """A request's page; what went wrong in a form is shown in that form's panel, if it is on the page."""
    seat.check_own(number)
    plain = seat.campaign.explain(number)
    campaign = seat.campaign.status()
    waiting = {r["request"]: r for r in (*campaign["open"], *campaign["expired"])}
    with seat.campaign.store.ledger.reading(seat.campaign.store.number) as reader:
        asked = reader.events(kinds=("asked",), request=number)
        told = reader.events(kinds=("told",), request=number)
    if not asked:
        raise NotFound(f"request {number} was never made")
    panels = {"skip": campaign["pool"] is not None, "extend": number not in {r["request"] for r in campaign["expired"]}}
    is_there = number in waiting and campaign["closed"] is None and panels.get(panel or "", False)
    root = seat.parts.settings.root_path
    settings, columns = seat.campaign.settings, seat.campaign.store.state.columns
    about = {
        "number": number, "name": seat.campaign.name, "words": plain["words"], "why": why_of(seat.campaign, plain["decision"]), "group": plain["decision"]["group"],
        "size": asked[0].facts["size"], "collector": asked[0].actor, "asked": as_time(asked[0].at),
        "open": waiting.get(number), "expired": number in {r["request"] for r in campaign["expired"]},
        "came": sum(event.facts["rows"] for event in told), "pool": campaign["pool"] is not None,
        "deliveries": [{"at": as_time(e.at), "by": e.actor, "rows": e.facts["rows"], "why": e.facts.get("why", {})} for e in told],
        "base": root + address(seat.campaign), "api": f"{root}/api{address(seat.campaign)}", "settings": settings,
        "columns": feature_names(columns), "closed": campaign["closed"],
        "colour": colours_of(campaign)[plain["decision"]["group"]], "after": campaign["events"],
        "trains": settings["learner"] is not None, "panel": panel if is_there else None,
        "ids": [id for one in seat.campaign.open_requests if one.id == number for id in one.examples],
    }  # fmt: skip
    return render(request, "request.html", status, **about, **context)


@router.get("/campaigns/{name}/requests/{request}")
def one(request: Number, seat: Collecting, http: Request) -> Response:
    """A request: what to collect, why, and where to deliver it."""
    return show_request(http, seat, request)


@router.post("/campaigns/{name}/ask")
async def take(http: Request, seat: Collecting, collector: Text = "", key: Text = "") -> Response:
    """Take the next request; thanks to the page's key, a double click takes only one."""
    try:
        answer = await ask(
            Ask(collector=collector.strip() or None, max_wait=None), seat, http, f"page {key}" if key else None
        )
    except LedgerError:
        raise
    except EvenhandError as error:
        said, status = str(error), status_of(error)
        if isinstance(error, NothingToAsk):
            said = f"nothing to ask now: {said}"
        return await anyio.to_thread.run_sync(lambda: show(http, seat, status, error=said))
    number = orjson.loads(bytes(answer.body))["requests"][0]["request"]
    return see_other(seat, f"/requests/{number}")


@router.post("/campaigns/{name}/requests/{request}/abandon")
def abandon(request: Number, seat: Collecting, http: Request) -> Response:
    """Give up a request."""
    seat.check_own(request)
    return _step(http, seat, request, "abandoned", lambda: seat.campaign.abandon(request, by=seat.grant.name), "")


@router.post("/campaigns/{name}/requests/{request}/extend")
def extend(request: Number, seat: Collecting, http: Request, lease: Text = "1d") -> Response:
    """Let a request wait longer."""
    seat.check_own(request)

    def step() -> None:
        seat.check_lease(lease.strip())
        seat.campaign.extend(request, lease.strip(), by=seat.grant.name)

    return _step(http, seat, request, "extended", step, panel="extend", typed={"lease": lease})


@router.post("/campaigns/{name}/requests/{request}/skip")
def skip(request: Number, seat: Collecting, http: Request, id: Text = "", reason: Text = "") -> Response:
    """Take an example that nobody can label out of a request."""
    seat.check_own(request)
    seat.check_own_examples([id])

    def step() -> None:
        seat.campaign.skip(id, reason or None, by=seat.grant.name)

    return _step(http, seat, request, "skipped", step, panel="skip", typed={"id": id, "reason": reason})


@router.post("/campaigns/{name}/requests/{request}/count")
def count(request: Number, seat: Collecting, http: Request, n: Text = "", extra: Text = "") -> Response:
    """Tell how many rows came, for campaigns that train elsewhere; this closes the request."""
    seat.check_own(request)

    def step() -> None:
        if not n.strip().isdecimal():
            raise InputError(f"give the number of rows that came, not {n!r}")
        receipt = seat.campaign.tell(request, n=int(n), collector=seat.collector(None), extra=extra == "yes")
        seat.parts.observer.labels.inc(receipt.rows)

    return _step(http, seat, request, "stored", step, "")


def _step(
    http: Request, seat: Seat, number: int, done: str, step: Any, path: str | None = None, **wrong: Any
) -> Response:
    """Take a step on a request; an error is shown on the request's page, together with what was typed."""
    try:
        step()
    except LedgerError:
        raise
    except EvenhandError as error:
        return show_request(http, seat, number, status_of(error), error=str(error), **wrong)
    return see_other(seat, f"/requests/{number}" if path is None else path, done)
