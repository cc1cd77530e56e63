"""Correcting labels and taking them back."""

from __future__ import annotations

from typing import Annotated

from fastapi.responses import Response
from pydantic import Field

from evenhand.server.access import Leading
from evenhand.server.api.shared import Body, Label, Name, Reason, new_router
from evenhand.server.bodies import Json

router = new_router("corrections")
Ids = Annotated[list[Name], Field(min_length=1, max_length=100_000)]


class Correct(Body):
    """Other labels, by id; all or none."""

    labels: Annotated[dict[str, Label | None], Field(min_length=1)]
    reason: Reason = None


class Withdraw(Body):
    """Examples to take back; `refund` gives their labels back to the budget."""

    ids: Ids
    reason: Reason = None
    refund: bool = False


class Erase(Body):
    """Examples whose features and labels are deleted for good."""

    ids: Ids
    reason: Reason = None


@router.post("/campaigns/{name}/correct")
def correct(body: Correct, seat: Leading) -> Response:
    """Give examples other labels; the first label is kept as well."""
    return Json({"changed": seat.campaign.correct(body.labels, reason=body.reason, by=seat.grant.name)})


@router.post("/campaigns/{name}/withdraw")
def withdraw(body: Withdraw, seat: Leading) -> Response:
    """Take examples back: they no longer count."""
    changed = seat.campaign.withdraw(body.ids, body.reason, body.refund, by=seat.grant.name)
    return Json({"changed": changed})


@router.post("/campaigns/{name}/erase")
def erase(body: Erase, seat: Leading) -> Response:
    """Delete features and labels from storage; the answer names stored models that may have learned from them."""
    return Json({"may_remember": seat.campaign.erase(body.ids, body.reason, by=seat.grant.name)})
