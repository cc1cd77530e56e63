"""Looking at a campaign: status, reasons, events, the stream of new events, data sets and models."""

from __future__ import annotations

import asyncio
import base64
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from fastapi import Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from evenhand.campaign.settings import Limits
from evenhand.notation import JsonObject
from evenhand.server import jobs
from evenhand.server.access import Leading, Viewing
from evenhand.server.api.shared import new_router
from evenhand.server.bodies import Json, unchanged
from evenhand.server.problems import Problem
from evenhand.server.stream import news, open_stream

router = new_router("looking")
_CHUNK = 2**16
_TYPES = {"csv": "text/csv", "jsonl": "application/x-ndjson", "parquet": "application/vnd.apache.parquet"}
After = Annotated[int, Query(ge=0, lt=2**31)]


def status_of(seat: Viewing) -> JsonObject:
    """A campaign's status, without the server's paths."""
    found = seat.campaign.status()
    if found["pool"] is not None:
        found["pool"]["files"] = [Path(path).name for path in found["pool"]["files"]]
    return found


@router.get("/campaigns/{name}", responses={304: {"description": "not changed"}})
def status(seat: Viewing, request: Request) -> Response:
    """Budget, groups, requests, collectors, scores, claims. Send the `ETag` back to learn whether anything changed."""
    state = seat.campaign.state
    overdue = state.overdue(seat.campaign.now())
    # the last event's number shows every change except leases that ended, since time passes without events
    tag = f"{seat.campaign.number}-{state.seq}-{len(overdue)}"
    if (answer := unchanged(request, tag)) is not None:
        return answer
    return Json(status_of(seat), headers={"ETag": f'W/"{tag}"', "Cache-Control": "no-cache"})


@router.get("/campaigns/{name}/settings")
def settings(seat: Viewing) -> Response:
    """The campaign's current settings."""
    return Json(seat.campaign.settings)


@router.get("/campaigns/{name}/explain")
def explain(seat: Viewing, request: Annotated[int | None, Query(ge=1, lt=2**31)] = None) -> Response:
    """Why a request was made, or why the next one would be."""
    return Json(seat.campaign.explain(request))


@router.get("/campaigns/{name}/events", responses={304: {"description": "not changed"}})
def events(
    seat: Viewing, request: Request, after: After = 0, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000
) -> Response:
    """The events after an event's number."""
    tag = f"{seat.campaign.number}-{seat.campaign.state.seq}-{after}-{limit}"
    if (answer := unchanged(request, tag)) is not None:
        return answer
    found = {"events": seat.campaign.events(after, limit)}
    return Json(found, headers={"ETag": f'W/"{tag}"', "Cache-Control": "no-cache"})


@router.get(
    "/campaigns/{name}/stream", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}}
)
async def stream(
    seat: Viewing,
    request: Request,
    after: After = 0,
    last: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """New events as server-sent events; a client that was cut off continues where it was."""
    # browsers send it by themselves when they reconnect, so it takes precedence over the address
    first = int(last) if last is not None and last.isdecimal() and int(last) < 2**31 else after
    stopping: asyncio.Event = request.app.state.stopping
    most = Limits.of(seat.campaign.seen.settings).streams
    return open_stream(request, news(seat, first, stopping, request.app.state.newest), most)


@router.get(
    "/campaigns/{name}/export",
    response_class=Response,
    responses={200: {"content": {kind: {} for kind in _TYPES.values()}}},
)
def export(seat: Leading, format: Literal["csv", "jsonl", "parquet"] = "csv") -> Response:
    """The data set gathered so far, as a stream."""
    # written to a file first: an export that fails in the middle must not look complete
    folder = tempfile.TemporaryDirectory(prefix="evenhand-")
    path = Path(folder.name) / f"export.{format}"
    try:
        rows = seat.campaign.export(path)
    except BaseException:
        folder.cleanup()
        raise

    def parts() -> Iterator[bytes]:
        with folder, path.open("rb") as file:
            while part := file.read(_CHUNK):
                yield part

    headers = {"Content-Disposition": f'attachment; filename="campaign.{format}"', "Evenhand-Rows": str(rows)}
    return StreamingResponse(parts(), 200, headers, _TYPES[format])


@router.get("/campaigns/{name}/examples")
def examples(seat: Leading, role: Literal["train", "validate", "test"] = "train") -> Response:
    """The labelled examples of one role: rows as they are stored, labels, groups and ids."""
    from evenhand.ledger.text import from_text

    with seat.campaign.moment() as (reader, state):
        # read at one moment, so that rows and columns belong to the same state
        rows = [row for row in reader.changed() if row.counts and row.role == role]
    columns = state.columns
    if columns is not None and columns["kind"] == "array":
        raise Problem(422, "this campaign's rows are arrays, which JSON cannot hold: open its database instead")
    return Json(
        {
            "columns": columns,
            "label_kind": state.label_kind,
            "rows": [from_text(str(row.features)) for row in rows],
            "labels": [row.label for row in rows],
            "groups": [row.group for row in rows],
            "ids": [row.id for row in rows],
        }
    )


@router.get("/campaigns/{name}/model")
async def model(seat: Leading, which: Literal["final", "plain", "current", "certified"] = "final") -> Response:
    """A model in a form that is safe to load: its format, its bytes in base64, and why it was chosen."""
    found = await seat.parts.worker.on(jobs.dump, seat.campaign, which)
    if found is None:
        return Json({"model": None})
    form, data, choice = found
    return Json({"model": {"format": form, "data": base64.b64encode(data).decode(), "choice": choice}})


@router.get("/campaigns/{name}/verify")
async def verify(seat: Leading) -> Response:
    """Replay every event, choose every request again from the recorded scores, check every row."""
    return Json(await seat.parts.worker.on(jobs.verify, seat.campaign))
