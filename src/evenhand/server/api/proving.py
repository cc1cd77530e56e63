"""Proofs: freezing a model, and what can be certified about it."""

from __future__ import annotations

from typing import Annotated, Literal

import anyio.to_thread
from fastapi import Query
from fastapi.responses import Response
from pydantic import Field

from evenhand.errors import NotFound
from evenhand.server import jobs
from evenhand.server.access import Leading, Viewing
from evenhand.server.api.shared import Body, new_router
from evenhand.server.bodies import Json

router = new_router("proofs")


class Certify(Body):
    """What to prove about which model, and with how many labels."""

    target: Annotated[float, Field(gt=0, lt=1)] | None = Field(None, description="no group's risk is to be above this")
    model: Literal["final", "current"] = "final"
    most: Annotated[int, Field(ge=1)] | None = None
    delta: Annotated[float, Field(gt=0, le=0.5)] | None = Field(
        None, description="how probably it may be wrong; that of the frozen model, or 0.05"
    )
    distinct: bool | None = Field(None, description="your word that rows told without ids are all different")


@router.post("/campaigns/{name}/certify")
async def certify(body: Certify, seat: Leading) -> Response:
    """Freeze a model: labels that answer requests from now on are evidence about it."""
    settings = {**body.model_dump(exclude={"target"}), "by": seat.grant.name}
    await seat.parts.worker.on(jobs.certify, seat.campaign, body.target, settings)
    return await anyio.to_thread.run_sync(certificate, seat)


@router.get("/campaigns/{name}/certificate")
def certificate(seat: Viewing, delta: Annotated[float | None, Query(gt=0, le=0.5)] = None) -> Response:
    """What is certified about the frozen model now."""
    found = seat.campaign.certificate(delta)
    if found is None:
        raise NotFound("no model is frozen: certify one first")
    return Json({**found.as_dict(), "proof": seat.campaign.status()["proof"]})


@router.get("/campaigns/{name}/running")
def running(seat: Viewing, delta: Annotated[float, Query(gt=0, le=0.5)] = 0.05) -> Response:
    """The running statement: the average risk of the models so far, in every group."""
    return Json(seat.campaign.running(delta).as_dict())
