"""Webhooks of a campaign."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from fastapi.responses import Response
from pydantic import Field

from evenhand.server.access import Leading
from evenhand.server.api.shared import Body, new_router
from evenhand.server.bodies import Json
from evenhand.server.webhooks import KINDS, Webhooks

router = new_router("webhooks")


class NewWebhook(Body):
    """Where to send events, and which kinds of events."""

    url: Annotated[str, Field(max_length=2000)]
    kinds: list[str] = Field(default=list(KINDS), min_length=1, description=", ".join(KINDS))


@router.get("/campaigns/{name}/webhooks")
def webhooks(seat: Leading) -> Response:
    """The campaign's webhooks, the last event each has sent, and its last error."""
    return Json({"webhooks": Webhooks(seat.parts.campaigns.ledger).of(seat.campaign.number)})


@router.post("/campaigns/{name}/webhooks", status_code=201)
def create(body: NewWebhook, seat: Leading) -> Response:
    """Make a webhook for events from now on; its signing secret is shown only once."""
    campaign = seat.campaign
    made = Webhooks(seat.parts.campaigns.ledger).create(
        campaign.number, body.url, body.kinds, campaign.state.seq, allowed=seat.parts.settings.webhook_hosts
    )
    return Json(made, 201)


@router.delete("/campaigns/{name}/webhooks/{id}")
def delete(id: Annotated[int, Path(ge=1, lt=2**31)], seat: Leading) -> Response:
    """Delete a webhook: nothing more is sent to its address."""
    Webhooks(seat.parts.campaigns.ledger).delete(seat.campaign.number, id)
    return Json({"id": id, "deleted": True})
