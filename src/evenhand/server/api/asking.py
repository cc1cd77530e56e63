"""Handing out requests, giving them up, extending them, and the rows they name."""

from __future__ import annotations

import csv
import io
from typing import Annotated, Any

import anyio.to_thread
from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import Field

from evenhand.campaign.answering import not_open
from evenhand.campaign.requests import as_time
from evenhand.server.access import Collecting, Viewing
from evenhand.server.api.shared import Body, Name, Number, Reason, new_router
from evenhand.server.bodies import Json, Key, as_once
from evenhand.tables.writing import guarded_cell

__all__ = ["router"]

router = new_router("requests")


class Ask(Body):
    """How many requests to make, for whom, and how long to wait for fresh scores."""

    count: Annotated[int, Field(ge=1, le=1000)] = 1
    collector: Name | None = Field(None, description="only a lead may ask for others")
    max_wait: Annotated[float, Field(ge=0, le=600)] | None = Field(
        None, description="seconds; the server has its own limit"
    )


class Extend(Body):
    """How long a request waits from now on: seconds, or `90m`, `24h`, `7d`, `never`."""

    lease: str | float


class Skip(Body):
    """An example that nobody can label."""

    id: Name
    reason: Reason = None


@router.post("/campaigns/{name}/ask")
async def ask(body: Ask, seat: Collecting, request: Request, key: Key = None) -> Response:
    """The next requests: whom to label, how many, which examples, and why.

    Sent again with the same `Idempotency-Key`, it returns the same requests. If fits run in the background, the scores
    may be old: `scores` says how old, and how many labels came since.
    """
    worker, limit = seat.parts.worker, seat.parts.settings.max_wait
    limit = limit if body.max_wait is None else min(body.max_wait, limit)
    once = as_once(key, seat.grant, request, body)

    def requests() -> list[dict[str, Any]]:
        found = seat.campaign.ask_many(
            body.count, seat.collector(body.collector), refit=False, once=once, limited=seat.limited
        )
        seat.parts.observer.asked.inc(len(found))
        return [request.as_dict() for request in found]

    def first_try() -> list[dict[str, Any]] | int:
        wanted = worker.wanted(seat.campaign)
        return requests() if wanted is None or limit == 0 else wanted

    found = await anyio.to_thread.run_sync(first_try)
    if isinstance(found, int):
        await worker.wait_for_scores(seat.campaign, found, limit)
        found = await anyio.to_thread.run_sync(requests)
    return Json({"requests": found})


@router.get("/campaigns/{name}/requests")
def open_requests(seat: Viewing) -> Response:
    """The requests that wait for labels."""
    return Json({"requests": [request.as_dict() for request in seat.campaign.open_requests]})


@router.get(
    "/campaigns/{name}/requests/{request}/rows", response_class=Response, responses={200: {"content": {"text/csv": {}}}}
)
def rows(
    request: Number, seat: Collecting, show: Annotated[list[str] | None, Query(description="only these columns")] = None
) -> Response:
    """The rows of a pool request that have no label yet, as CSV with an empty column for it first."""
    seat.check_own(request)
    found = [one for one in seat.campaign.open_requests if one.id == request]
    if not found:
        with seat.campaign.store.moment() as (reader, state):
            raise not_open(state, reader, request)
    if not found[0].examples:
        return Response("", 200, media_type="text/csv")
    names, cells = seat.campaign.to_label(found, show)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([guarded_cell(name) for name in names])
    writer.writerows([guarded_cell(cell) for cell in row] for row in cells)
    headers = {"Content-Disposition": f'attachment; filename="request-{request}.csv"'}
    return Response(text.getvalue(), 200, headers, "text/csv")


@router.post("/campaigns/{name}/requests/{request}/abandon")
def abandon(request: Number, seat: Collecting, http: Request, key: Key = None) -> Response:
    """Give up a request: what is outstanding goes back to the budget."""
    seat.check_own(request)
    seat.campaign.abandon(request, by=seat.grant.name, once=as_once(key, seat.grant, http, request))
    return Json({"request": request, "unspent": seat.campaign.unspent})


@router.post("/campaigns/{name}/requests/{request}/extend")
def extend(request: Number, body: Extend, seat: Collecting) -> Response:
    """Let a request wait longer."""
    seat.check_own(request)
    seat.check_lease(body.lease)
    return Json({"request": request, "until": as_time(seat.campaign.extend(request, body.lease, by=seat.grant.name))})


@router.post("/campaigns/{name}/skip")
def skip(body: Skip, seat: Collecting) -> Response:
    """Take an example that nobody can label out of its request and the pool."""
    seat.check_own_examples([body.id])
    seat.campaign.skip(body.id, body.reason, by=seat.grant.name)
    return Json({"id": body.id, "skipped": True})
