"""Errors as pages for people; programs get them as JSON."""

from __future__ import annotations

from urllib.parse import quote

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.server.guarding import route_of
from evenhand.server.pages.shared import PAGES
from evenhand.server.pages.static import versioned

_SENTENCES = {
    401: "You are not signed in",
    403: "You may not do this",
    404: "There is nothing here",
    409: "This does not go together with what is there",
    413: "This is too large",
    421: "This server does not know that name",
    500: "Something went wrong here",
    503: "The database cannot be reached",
}


class ProblemPages:
    """ASGI middleware that turns a problem into a page if a browser asked."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app, self._root = app, root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, except problems that a person would see."""
        person = scope["type"] == "http" and "text/html" in Headers(scope=scope).get("accept", "")
        if not person or route_of(scope).startswith("/api"):
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def as_page(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message["headers"]))
                if headers.get("content-type", "").startswith("application/problem+json"):
                    start = message
                    return
            if start is None:
                await send(message)
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            page = self._page(start["status"], orjson.loads(body), _back(scope))
            headers = MutableHeaders(raw=list(start["headers"]))
            headers["content-type"], headers["content-length"] = "text/html; charset=utf-8", str(len(page))
            await send({**start, "headers": headers.raw})
            await send({"type": "http.response.body", "body": page})

        await self._app(scope, receive, as_page)

    def _page(self, status: int, problem: dict[str, object], back: str | None) -> bytes:
        title = _SENTENCES.get(status, "This did not work")
        context = {
            "root": self._root,
            "who": None,
            "static": versioned,
            "status": status,
            "title": title,
            "problem": problem,
            "back": None if back is None else self._root + back,
        }
        return PAGES.get_template("problem.html").render(**context).encode()


def _back(scope: Scope) -> str | None:
    """The page whose form was sent; the form's own address cannot be opened."""
    if scope["method"] in ("GET", "HEAD"):
        return None
    parts = route_of(scope).split("/")
    # /campaigns/NAME/ask, /campaigns/NAME/requests/7/upload
    kept = 5 if len(parts) > 4 and parts[3] == "requests" else 3
    return quote("/".join(parts[:kept])) if parts[1:2] == ["campaigns"] else "/"
