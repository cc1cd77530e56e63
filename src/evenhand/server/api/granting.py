"""Tokens and share links."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Request
from fastapi.responses import Response
from pydantic import Field

from evenhand.campaign.settings import as_seconds
from evenhand.errors import Conflict, NotFound
from evenhand.notation import JsonObject
from evenhand.server.access import Admin, Leading, Seat, grant_of, parts_of
from evenhand.server.api.shared import Body, Name, new_router
from evenhand.server.bodies import Json
from evenhand.server.tokens import Role

router = new_router("access")
TokenId = Annotated[str, Path(pattern=r"^[0-9a-f]{12}$")]


class NewToken(Body):
    """A token to make: a name, a role, for one campaign or all, and for how long."""

    name: Name
    role: Literal["viewer", "collector", "lead", "admin"]
    campaign: Name | None = Field(None, description="one campaign; all of them by default")
    expires: str | float | None = Field("90d", description="90m, 24h, 7d, never")


class NewShare(Body):
    """A link with which anybody can look at the campaign, and how long it works."""

    name: Name = "share link"
    expires: str | float | None = "30d"


@router.get("/me")
def me(request: Request) -> Response:
    """Who you are, and what you may do."""
    grant = grant_of(request)
    return Json({"name": grant.name, "role": grant.role.name, "kind": grant.kind, "campaign": grant.campaign})


@router.get("/tokens")
def tokens(grant: Admin, request: Request) -> Response:
    """All tokens, without their secrets."""
    return Json({"tokens": parts_of(request).tokens.known()})


@router.post("/tokens", status_code=201)
def create_token(body: NewToken, grant: Admin, request: Request) -> Response:
    """Make a token; its text is shown only once."""
    parts = parts_of(request)
    campaign = None if body.campaign is None else parts.campaigns.number(body.campaign)
    text, about = parts.tokens.create(body.name, Role[body.role], campaign=campaign, seconds=as_seconds(body.expires))
    return Json({**about, "campaign": body.campaign, "token": text}, 201)


@router.delete("/tokens/{id}")
def revoke_token(id: TokenId, grant: Admin, request: Request) -> Response:
    """Revoke a token at once, together with the sessions that were started with it."""
    parts_of(request).tokens.revoke(id)
    return Json({"id": id, "revoked": True})


@router.get("/campaigns/{name}/shares")
def shares(seat: Leading) -> Response:
    """The share links of a campaign, without their secrets."""
    return Json({"shares": seat.parts.tokens.known(seat.campaign.number, ("share",))})


@router.post("/campaigns/{name}/shares", status_code=201)
def share(body: NewShare, seat: Leading) -> Response:
    """Make a link with which this campaign can be viewed, and nothing else; it is shown only once."""
    about, path = new_share(seat, body.name, body.expires)
    return Json({**about, "path": path}, 201)


def new_share(seat: Seat, name: str, expires: str | float | None) -> tuple[JsonObject, str]:
    """Make a share link: what is known of it, and its path, which is shown only once."""
    if seat.grant.kind == "local":  # whoever follows it from elsewhere could do everything without it, too
        raise Conflict(
            "nobody but this machine reaches this server, so nobody could follow a link: make a token first, "
            "`evenhand token create NAME --role admin`, after which everybody needs one"
        )
    text, about = seat.parts.tokens.create(
        name, Role.viewer, campaign=seat.campaign.number, seconds=as_seconds(expires), kind="share"
    )
    return about, f"{seat.parts.settings.root_path}/share/{text}"


@router.delete("/campaigns/{name}/shares/{id}")
def revoke_share(id: TokenId, seat: Leading) -> Response:
    """End a share link."""
    known = seat.parts.tokens.known(seat.campaign.number, ("share",))
    if not any(one["id"] == id for one in known):
        raise NotFound(f"this campaign has no share link {id!r}")
    seat.parts.tokens.revoke(id)
    return Json({"id": id, "revoked": True})
