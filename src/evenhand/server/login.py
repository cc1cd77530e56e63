"""Signing in: a token is exchanged for a browser session; and links that share a campaign.

Wrong tokens are not counted: a token has 256 random bits, which nobody guesses however often they try, and a lock would
shut out everybody who comes through the same proxy.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from evenhand.server.access import parts_of
from evenhand.server.guarding import COOKIE, is_tls
from evenhand.server.pages.shared import render
from evenhand.server.problems import Problem
from evenhand.server.tokens import SESSION_SECONDS, Grant

router = APIRouter(include_in_schema=False)


@router.get("/login")
def login_page(request: Request, next: Annotated[str, Query(max_length=2000)] = "") -> Response:
    """The page where a token is typed in; `next` is the page to return to."""
    return _page(request, None, next=_own(next))


@router.post("/login")
def login(
    request: Request,
    token: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    """Exchange a token for a session."""
    grant = parts_of(request).tokens.find(token.strip())
    # a session that could begin another one would never have to end
    if grant is None or grant.kind == "session":
        return _page(request, "This token is not valid, or not any more.", 401, _own(next))
    return _begin(request, grant, _own(next))


@router.post("/logout")
def logout(request: Request) -> Response:
    """End the session."""
    parts, grant = parts_of(request), request.state.grant
    if grant is not None and grant.kind == "session":
        parts.tokens.revoke(grant.id)
    answer = RedirectResponse(f"{parts.settings.root_path}/login", 303)
    answer.delete_cookie(COOKIE, path=parts.settings.root_path or "/")
    return answer


@router.get("/share/{token}")
def shared(request: Request, token: str) -> Response:
    """Follow a link that shares a campaign: start a session that can view it and do nothing else."""
    parts = parts_of(request)
    grant = parts.tokens.find(token)
    if grant is None or grant.kind != "share" or grant.campaign is None:
        raise Problem(401, "this link is not valid, or not any more", "access")
    name = parts.campaigns.by_number(grant.campaign).name
    path = f"/campaigns/{quote(name, safe='')}"
    mine = request.state.grant
    # somebody who may view it anyway keeps the present session and its rights
    if mine is not None and mine.campaign in (None, grant.campaign):
        return RedirectResponse(f"{parts.settings.root_path}{path}", 303)
    return _begin(request, grant, path)


def _begin(request: Request, grant: Grant, path: str) -> Response:
    """Set the session's cookie and go on to a page."""
    parts = parts_of(request)
    answer = RedirectResponse(f"{parts.settings.root_path}{path}", 303)
    answer.set_cookie(
        COOKIE,
        parts.tokens.session(grant),
        max_age=int(SESSION_SECONDS),
        path=parts.settings.root_path or "/",
        secure=is_tls(request),
        httponly=True,
        samesite="lax",  # strict would forget the session on the way from a link in a mail
    )
    return answer


def _own(path: str) -> str:
    """The path if it is one of this server's pages; anything else might lead to another site."""
    return path if path.startswith("/campaigns/") and "\\" not in path and path.isprintable() else "/"


def _page(request: Request, error: str | None, status: int = 200, next: str = "/") -> Response:
    return render(request, "login.html", status, error=error, next=next)
