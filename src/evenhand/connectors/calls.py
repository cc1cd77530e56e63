"""Calls to Label Studio's HTTP API: access tokens, retries, and errors that say what to do."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError, ToolError

if TYPE_CHECKING:
    from datetime import datetime

    import httpx


_TRIES = 6
# Label Studio on SQLite answers with 500 while its database is locked
_RETRIED = (429, 500, 502, 503, 504)
_SETTINGS = "Account & Settings in Label Studio"


class Gone(ToolError):
    """What was asked for no longer exists."""


class Calls:
    """A connection to a Label Studio server.

    Args:
        url: where the server is.
        key: an access token, legacy or personal.
        timeout: seconds to wait for an answer.

    Attributes:
        url: where the server is.
        clock: the server's time when it last answered; None if it does not say.
    """

    def __init__(self, url: str, key: str, timeout: float) -> None:
        try:
            import httpx
        except ModuleNotFoundError:
            raise InputError("Label Studio needs httpx: pip install 'evenhand[label-studio]'") from None
        if not url.startswith(("http://", "https://")):
            raise InputError(f"the address {url!r} must begin with http:// or https://")
        self.url, self._key = url.rstrip("/"), key
        self.clock: datetime | None = None
        if not key.isascii() or not key.isprintable():
            raise InputError("the access token has characters that no token has: copy it again")
        self._http = httpx.Client(base_url=self.url, timeout=timeout, trust_env=False)
        # a personal token is a JSON web token, three parts with dots between them
        self._personal = key.count(".") == 2
        if not self._personal:
            self._http.headers["Authorization"] = f"Token {key}"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __call__(self, method: str, path: str, **options: Any) -> Any:
        """Call the server until there is an answer; returns its JSON."""
        if self._personal and "Authorization" not in self._http.headers:
            self._authorize()
        answer = self._tried(lambda: self._http.request(method, path, **options))
        if answer.status_code == 401 and self._personal:  # the short-lived token has ended
            self._authorize()
            answer = self._tried(lambda: self._http.request(method, path, **options))
        return self._read(answer, f"{method} {path}")

    def _authorize(self) -> None:
        """Exchange a personal token for one that lasts minutes."""
        answer = self._tried(lambda: self._http.post("/api/token/refresh/", json={"refresh": self._key}))
        if answer.status_code == 401:
            raise InputError(f"Label Studio does not know this access token: make a new one under {_SETTINGS}")
        self._http.headers["Authorization"] = f"Bearer {self._read(answer, 'the access token')['access']}"

    def _read(self, answer: httpx.Response, what: str) -> Any:
        status, said = answer.status_code, _said(answer)
        if status == 401:
            raise InputError(f"Label Studio does not accept this access token: see {_SETTINGS}; it says {said}")
        if status == 404:
            raise Gone(f"Label Studio has nothing for {what}: {said}")
        if 300 <= status < 400:
            raise InputError(
                f"{self.url} redirects to {answer.headers.get('location')}: give the address that it leads to"
            )
        if status >= 400:
            raise ToolError(f"Label Studio answered {what} with {status}: {said}")
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise ToolError(f"{self.url} answers {what} with something that is not JSON: is it Label Studio?") from None

    def _tried(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """Send until there is an answer; waits a little longer each time."""
        import httpx

        for attempt in range(_TRIES):
            try:
                answer = send()
            except httpx.TransportError as error:
                failure = f"{type(error).__name__}: {error}".rstrip(": ")
            else:
                self.clock = _date(answer)
                if answer.status_code not in _RETRIED or attempt == _TRIES - 1:
                    return answer
            if attempt < _TRIES - 1:
                time.sleep(min(0.2 * 2**attempt, 5.0) * random.uniform(0.5, 1.0))
        raise ToolError(f"Label Studio at {self.url} cannot be reached: {failure}")


def _said(answer: httpx.Response) -> str:
    """The message in an answer: Label Studio puts it into one of several fields."""
    try:
        words = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        words = answer.text
    return " ".join(str(words)[:200].split())


def _date(answer: httpx.Response) -> datetime | None:
    try:
        return parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        return None
