"""Requests to a server, which are sent again if no answer came and that is safe."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import orjson

from evenhand.client.problems import as_error
from evenhand.errors import EvenhandError, InputError, LedgerError
from evenhand.ledger.text import as_text
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    import httpx


Repeat = Literal["safe", "key", "never"]
"""What a request sent twice does: nothing more, nothing more thanks to its key, or a second step."""
_AGAIN = (502, 503, 504)
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0


class Connection:
    """Connections to one server; may be used from many threads.

    Args:
        url: where the server is.
        token: says who asks; it is kept out of texts, logs and errors.
        timeout: seconds to wait for an answer that needs no fit.
        patience: for how many seconds a request that gets no answer is sent again.
    """

    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise InputError(f"connect needs {error.name}: pip install 'evenhand[client]'") from None
        self.url, self._patience = _checked(url), patience
        headers = {"User-Agent": "evenhand"}
        if token is not None:
            headers["Authorization"] = f"Bearer {_checked_token(token)}"
        # a proxy named in the environment could not reach this machine
        self._client = httpx.Client(
            base_url=self.url, headers=headers, timeout=timeout, trust_env=not _is_here(self.url)
        )
        self._lost: type[Exception] = httpx.TransportError
        self._not_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, path: str, *, timeout: float | None = None, **params: object) -> Any:
        """The server's answer to a GET request, as plain values."""
        return orjson.loads(self.send("GET", path, params=params, timeout=timeout).content)

    def post(
        self, path: str, body: object = None, *, repeat: Repeat = "safe", timeout: float | None = None, **params: object
    ) -> Any:
        """Send plain values, and return the server's answer."""
        content = as_text({} if body is None else body).encode()
        found = self.send("POST", path, content=content, repeat=repeat, params=params, timeout=timeout)
        return orjson.loads(found.content)

    def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        kind: str = "application/json",
        repeat: Repeat = "safe",
        params: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> httpx.Response:
        """The server's answer; one that is an error is raised."""
        given = {**(headers or {}), **({} if content is None else {"Content-Type": kind})}
        if repeat == "key":
            # made once, before the first try: by it the server recognises a second one
            given["Idempotency-Key"] = uuid.uuid4().hex
        options: JsonObject = {} if timeout is None else {"timeout": timeout}
        request = self._client.build_request(
            method, path, content=content, headers=given, params=_plain(params or {}), **options
        )
        found = self._answer(request, repeat)
        # redirects are errors too: following one would send the token to another host
        if found.status_code >= 300 and found.status_code != 304:
            raise self._error(found)
        return found

    @contextmanager
    def stream(self, path: str, timeout: float, **params: object) -> Iterator[httpx.Response]:
        """An answer whose body is read as it arrives."""
        try:
            with self._client.stream("GET", path, params=_plain(params), timeout=timeout) as found:
                if not found.is_success:
                    found.read()
                    raise self._error(found)
                yield found
        except self._lost as error:
            raise self._unreachable(error) from None

    def _answer(self, request: httpx.Request, repeat: Repeat) -> httpx.Response:
        """Send a request, again and again while nobody answers and patience lasts."""
        until, wait = time.monotonic() + self._patience, _FIRST_WAIT
        while True:
            try:
                found = self._client.send(request)
            except self._lost as error:
                # a random wait, so that many clients of a server that restarts do not all come back at once
                pause = random.uniform(wait / 2, wait)
                # what never left this machine can always be sent again
                again = repeat != "never" or isinstance(error, self._not_sent)
                if not again or time.monotonic() + pause > until:
                    # not `from error`: it holds the request, and the request the token
                    raise self._unreachable(error) from None
            else:
                pause = max(random.uniform(wait / 2, wait), _asked_to_wait(found))
                if found.status_code not in _AGAIN or repeat == "never" or time.monotonic() + pause > until:
                    return found
            time.sleep(pause)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _error(self, found: httpx.Response) -> EvenhandError:
        if found.is_redirect:
            return InputError(f"{self.url} redirects to another address: connect to that one")
        return as_error(found.status_code, found.headers.get("content-type", ""), found.content, self.url)

    def _unreachable(self, error: Exception) -> LedgerError:
        return LedgerError(f"no answer from {self.url}: {type(error).__name__}: {error}")


def _plain(params: Mapping[str, object]) -> JsonObject:
    return {name: value for name, value in params.items() if value is not None}


def _asked_to_wait(found: httpx.Response) -> float:
    text = found.headers.get("retry-after", "")
    return min(float(text), _LONGEST_WAIT) if text.isdecimal() else 0.0


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise InputError("the address of a server is like https://host or http://127.0.0.1:8000")
    if parts.username is not None or parts.query or parts.fragment:
        raise InputError("the address of a server has no name, password, query or fragment: give the token as token=")
    return url.rstrip("/")


def _checked_token(token: str) -> str:
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token or " " in token:
        raise InputError("this is not a token: give the text that `evenhand token create` printed, evh_…")
    return token


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
