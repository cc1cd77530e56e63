"""Checks of every request: host, cross-site posts, grant, size of the body; and the headers of every answer."""

from __future__ import annotations

import logging
import re
import time
import uuid
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.campaign.log import user_name
from evenhand.errors import LedgerError
from evenhand.server.incoming import SMALL, Incoming, Room
from evenhand.server.observing import Observer
from evenhand.server.problems import answer, problem
from evenhand.server.settings import Settings, is_loopback
from evenhand.server.tokens import Grant, Role, Tokens

_LOG = logging.getLogger("evenhand.server")
COOKIE = "evenhand_session"
_SAFE = ("GET", "HEAD", "OPTIONS")
_PUBLIC = ("/login", "/static/", "/share/", "/ready")
# how a browser gets a new session, even if the old one is no longer valid
_FRESH = ("/login", "/static/", "/share/")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:@/\\?#\s]+))(?::\d*)?")
# what proxies, tunnels and delivery networks add to a request; all that begins with "forwarded" or "x-forwarded" as well
_PASSED_ON = frozenset({
    "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-original-host", "x-original-forwarded-for", "client-ip",
    "true-client-ip", "cf-connecting-ip", "cf-ray", "cdn-loop", "fastly-client-ip", "x-envoy-external-address",
    "x-proxyuser-ip", "x-arr-log-id", "x-ms-client-principal", "x-goog-iap-jwt-assertion", "tailscale-user-login",
})  # fmt: skip
_UPLOAD = "/pool"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
}


def route_of(scope: Scope) -> str:
    """The path inside the application, without the path that a proxy puts before it."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


class UnderPath:
    """ASGI middleware that notes the path prefix under which a proxy serves the application."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app, self._root = app, root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note the prefix; the proxy passes paths on unchanged, so they stay as they are."""
        await self._app({**scope, "root_path": self._root}, receive, send)


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, settings: Settings, tokens: Tokens, observer: Observer) -> None:
        self._app, self._settings, self._tokens, self._observer = app, settings, tokens, observer
        self._room = Room()
        self._hosts = {host.lower() for host in settings.allowed_hosts}
        self._tokens_are_used = False
        if settings.host not in ("0.0.0.0", "::"):
            self._hosts.add(settings.host.lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on or refuse it, and complete the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, headers = time.perf_counter(), Headers(scope=scope)
        number = uuid.uuid4().hex[:16]
        scope.setdefault("state", {})
        scope["state"] |= {"request_id": number, "grant": None}
        status, begun = 500, False
        limit = self._settings.max_upload if route_of(scope).endswith(_UPLOAD) else self._settings.max_body
        body = Incoming(headers, receive, self._room, limit)
        scope["state"]["incoming"] = body

        async def complete(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                given = {name.lower() for name, _ in message.get("headers", ())}
                extra = {**HEADERS, "X-Request-Id": number}
                if route_of(scope).startswith("/share/"):  # the address is the secret
                    extra["Referrer-Policy"] = "no-referrer"
                if b"cache-control" not in given:
                    extra["Cache-Control"] = "no-store"
                message["headers"] = [
                    *message.get("headers", ()),
                    *((k.encode(), v.encode()) for k, v in extra.items() if k.lower().encode() not in given),
                ]
            await send(message)

        try:
            refusal = await self._refusal(scope, headers)
            if refusal is not None:
                await refusal(scope, receive, complete)
            else:
                grant = scope["state"]["grant"]
                if grant is None or not grant.may(Role.collector):
                    # a form to sign in is all they have to send: the disk is for those who bring data
                    body.limit = SMALL
                await self._app(scope, body.receive, complete)
        except Exception:
            _LOG.exception("internal error in request %s", number)
            if not begun:
                detail = f"this is our mistake, not yours; its details are in the server's log under {number}"
                mistake = problem(500, detail, "internal", exit_code=1, request_id=number)
                await mistake(scope, receive, complete)
        finally:
            await body.close()
            self._observer.answered(scope, status, time.perf_counter() - started)

    async def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that is refused; None lets it pass."""
        path, host = route_of(scope), _host(headers)
        if len(headers.getlist("host")) > 1:  # a proxy in front may have gone by the other one
            return problem(400, "the request has several Host headers: send one", "input")
        if path == "/health":
            return None
        # health probes use an IP address as host, and whether the server is ready is not a secret
        if path != "/ready" and host not in self._hosts and not is_loopback(host):
            detail = f"this server is not known as {headers.get('host', '')[:200]!r}: start it with --allowed-host"
            return problem(421, detail, "access")
        bearer, cookie = _bearer(headers), _cookie(headers)
        if scope["method"] not in _SAFE and (bearer is None or cookie is not None) and _is_cross_site(headers):
            return problem(403, "a page of another site may not do this", "access")
        try:
            grant = await self._grant(scope, headers, bearer, cookie)
        except LedgerError as error:
            return answer(error)
        scope["state"]["grant"] = grant
        if grant is not None:
            return None
        page = scope["method"] == "GET" and "text/html" in headers.get("accept", "") and not path.startswith("/api")
        if bearer is None and (_is_one_of(path, _FRESH) or (cookie is None and _is_one_of(path, _PUBLIC))):
            return None
        if bearer is None and page:
            wanted = f"?next={quote(path, safe='')}" if path.startswith("/campaigns/") else ""
            refused: Response = RedirectResponse(f"{self._settings.root_path}/login{wanted}", 303)
        else:
            given = bearer is not None or cookie is not None
            detail = (
                "this token is not valid, or not any more" if given else "give a token: Authorization: Bearer evh_…"
            )
            refused = problem(401, detail, "access", {"WWW-Authenticate": "Bearer"})
        if cookie is not None:
            refused.delete_cookie(COOKIE, path=self._settings.root_path or "/")
        return refused

    async def _grant(self, scope: Scope, headers: Headers, bearer: str | None, cookie: str | None) -> Grant | None:
        """The grant of a request: by token, by session, or because it comes from this machine."""
        for text in (bearer, cookie):
            if text is not None:
                return await anyio.to_thread.run_sync(self._tokens.find, text)
        if self._is_local(scope, headers) and not await self._uses_tokens():
            return Grant(None, user_name() or "somebody", Role.admin, None, "local")
        return None

    def _is_local(self, scope: Scope, headers: Headers) -> bool:
        """Whether a request comes from this machine itself, as far as it shows.

        A proxy on this machine that leaves no trace looks the same: that is why local access ends with the first token.
        """
        client = scope.get("client")
        return (
            self._settings.is_local
            and client is not None
            and is_loopback(client[0])
            and is_loopback(_host(headers))
            # nginx speaks HTTP/1.0 to what it stands before unless told otherwise, and browsers never do
            and scope["http_version"] != "1.0"
            and not any(name in _PASSED_ON or name.startswith(("forwarded", "x-forwarded")) for name in headers)
        )

    async def _uses_tokens(self) -> bool:
        """Whether anybody was ever given a token: others reach this server then, also once all tokens have ended."""
        if not self._tokens_are_used:  # tokens are revoked, never deleted: once is enough
            self._tokens_are_used = await anyio.to_thread.run_sync(self._tokens.ever)
        return self._tokens_are_used


def _is_one_of(path: str, known: tuple[str, ...]) -> bool:
    return any(path == one or (one.endswith("/") and path.startswith(one)) for one in known)


def _host(headers: Headers) -> str:
    """The name a request was sent to, without the port; empty if it is none."""
    found = _HOST.fullmatch(headers.get("host", "").lower())
    return "" if found is None else str(found[1] or found[2])


def _bearer(headers: Headers) -> str | None:
    given = headers.get("authorization")
    if given is None:
        return None
    kind, _, token = given.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _cookie(headers: Headers) -> str | None:
    with suppress(CookieError):
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        return None if found is None else found.value
    return None


def _is_cross_site(headers: Headers) -> bool:
    """Whether a browser sent this from another site's page; other programs send neither header."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is None:
        return False
    return origin.partition("://")[2].lower() != headers.get("host", "").lower()


def is_tls(request: HTTPConnection) -> bool:
    """Whether the browser used TLS; a proxy's header is trusted here, since it can only make things stricter."""
    forwarded = request.headers.get("x-forwarded-proto", "") + request.headers.get("forwarded", "")
    return request.url.scheme == "https" or "https" in forwarded.lower()
