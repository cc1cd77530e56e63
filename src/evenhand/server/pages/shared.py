"""How every page is rendered: templates, the user, addresses, messages about the last step."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from evenhand.campaign import Campaign
from evenhand.report.pages import environment
from evenhand.server.access import Seat, parts_of
from evenhand.server.tokens import Grant, Role

__all__ = ["DONE", "PAGES", "Who", "address", "new_router", "render", "see_other", "who_is"]

HERE = Path(__file__).parent.parent
PAGES = environment(HERE / "templates")
DONE = {
    "created": "The campaign is made.",
    "pooled": "The pool is registered.",
    "abandoned": "The request was given up; what was outstanding went back to the budget.",
    "extended": "The lease was extended.",
    "stored": "The labels are stored.",
    "known": "These labels are stored already; nothing changed.",
    "corrected": "The label was corrected; the first one is kept beside it.",
    "withdrawn": "The examples were taken back.",
    "changed": "The settings were changed.",
    "certified": "A model is frozen: labels that answer requests from now on are evidence on it.",
    "closed": "The campaign is closed.",
    "retired": "The group will not be asked any more.",
    "back": "The group will be asked again.",
    "verified": "The ledger was verified: everything comes out the same.",
    "skipped": "The example was taken out of the request.",
}
"""What a page says after a step; addresses hold only the key, so that nobody can put other words on a page."""


def on_page(message: str) -> str:
    """A message written for Python users, reworded for a page."""
    for option, words in _OPTIONS.items():
        message = message.replace(option, words)
    # a message may begin with the name of a file or a column, which stays as its owner writes it
    return f"{message[0].upper()}{message[1:]}" if _WORD.match(message) else message


_WORD = re.compile(r"[a-z]+(?=[ ,]|$)")
_OPTIONS = {
    "give a token: Authorization: Bearer evh_…": "sign in, and do it once more",
    "give positive=...": "write it under “Positive class”",
    "take it all the same with extra=True": "tick “Take more rows than were asked for”",
    "extra=True": "“Take more rows than were asked for”",
    "certify(distinct=True)": "“Rows told without ids are all different”",
    "distinct=True": "“Rows told without ids are all different”",
}
PAGES.filters["on_page"] = on_page


@dataclass(frozen=True)
class Who:
    """The user of a page, and what they may do."""

    name: str
    role: str
    collect: bool
    lead: bool
    create: bool
    session: bool


def who_is(grant: Grant | None) -> Who | None:
    """The user that a grant belongs to, and what they may do on a page."""
    if grant is None:
        return None
    everywhere = grant.campaign is None and grant.may(Role.lead)
    return Who(
        grant.name,
        grant.role.name,
        grant.may(Role.collector),
        grant.may(Role.lead),
        everywhere,
        grant.kind == "session",
    )


def new_router() -> APIRouter:
    """A router for pages, which are not part of the API."""
    return APIRouter(include_in_schema=False)


def address(campaign: Campaign) -> str:
    """A campaign's path below the root, with its number if a path cannot hold the name."""
    name = campaign.name
    odd = "/" in name or "\\" in name or name.startswith("~") or name in (".", "..")
    return f"/campaigns/{f'~{campaign.store.number}' if odd else quote(name, safe='')}"


def render(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """Render a page from its template."""
    from evenhand.server.pages.static import versioned

    root = parts_of(request).settings.root_path
    done = DONE.get(request.query_params.get("done", ""))
    about: dict[str, Any] = {
        "root": root,
        "who": who_is(request.state.grant),
        "done": done,
        "error": None,
        "static": versioned,
    }
    about |= {"key": secrets.token_hex(8), "panel": None, "typed": {}}
    return HTMLResponse(PAGES.get_template(template).render(**(about | context)), status)


def see_other(seat: Seat, path: str = "", done: str = "") -> Response:
    """Redirect to a page of the campaign after a step."""
    root = seat.parts.settings.root_path
    return RedirectResponse(f"{root}{address(seat.campaign)}{path}{f'?done={done}' if done else ''}", 303)
