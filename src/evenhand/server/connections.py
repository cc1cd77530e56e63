"""Limits on connections: slow headers, floods of headers, clients that stop reading, too many at once.

The HTTP server underneath has no limits of its own for these; each limit here is a few lines around it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenhand.server.guarding import HEADERS
from evenhand.server.problems import problem

HEAD_SECONDS = 10.0
"""How long a client may take to send a request's headers."""
HEAD_BYTES = 32_768
"""The most bytes that a request's address and headers may have."""
STALLED_SECONDS = 30.0
"""How long a client may leave an answer unread, or keep sending a body that is no longer read."""
MOST_CONNECTIONS = 4000
"""How many connections at once; beyond it, each new one closes the one that has been idle longest."""

_waiting: OrderedDict[Connection, None] = OrderedDict()


class Connection(HttpToolsProtocol):
    """A connection with limits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._head, self._in_head, self._in_body = 0, True, False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait a limited time for the first request."""
        super().connection_made(transport)
        _waiting[self] = None
        self._timer = self.loop.call_later(HEAD_SECONDS, self._give_up)
        if len(self.connections) > MOST_CONNECTIONS and _waiting:
            next(iter(_waiting)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        _waiting.pop(self, None)
        for timer in (self._timer, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first bytes of a request: its time runs from here."""
        super().on_message_begin()
        self._in_head, self._head = True, 0
        self._start(HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        """Take in bytes, unless the headers they belong to are too long."""
        self._head += len(data) if self._in_head else 0
        super().data_received(data)
        if self._in_head and self._head > HEAD_BYTES:
            self._refuse_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a header."""
        super().on_header(name, value)
        # thousands of short headers in one packet pass the check of incomplete headers
        if len(self.headers) > 200:
            self._refuse_head()

    def on_headers_complete(self) -> None:
        """Pass the request on."""
        self._in_head, self._in_body, self._head = False, True, 0
        self._stop()
        if self.transport.is_closing():
            return
        _waiting.pop(self, None)
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES:
            self._refuse_head()
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take in a part of the body."""
        if self.cycle is not None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The body is whole."""
        self._in_body = False
        self._stop()
        if self.cycle is not None:
            super().on_message_complete()
            if self.cycle.response_complete:
                _waiting[self] = None

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of a body that was not wanted."""
        super().on_response_complete()
        if self._in_body:
            self._start(STALLED_SECONDS)
        elif self.cycle.response_complete:  # the client has not already sent the next request
            _waiting[self] = None

    def pause_writing(self) -> None:
        """The client reads too slowly: give it some time to catch up."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALLED_SECONDS, self._give_up)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def send_400_response(self, msg: str) -> None:
        """Answer something that is not HTTP, in the format of all errors."""
        self._answer(400, "this is not HTTP as it should be")

    def _refuse_head(self) -> None:
        self._answer(431, f"address and headers may have {HEAD_BYTES} bytes and 200 headers at most")

    def _answer(self, status: int, detail: str) -> None:
        if self.transport.is_closing():
            return
        found = problem(status, detail, "input")
        headers = {
            **{key.decode(): value.decode() for key, value in found.raw_headers},
            **HEADERS,
            "Connection": "close",
        }
        head = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
        self.transport.write(f"HTTP/1.1 {status} Error\r\n{head}\r\n".encode() + bytes(found.body))
        self.transport.close()

    def _start(self, seconds: float) -> None:
        self._stop()
        self._timer = self.loop.call_later(seconds, self._give_up)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self._in_head and self.cycle is not None and not self.cycle.response_complete:
            self._start(HEAD_SECONDS)  # the request before this one is still being answered
            return
        # not close(), which would wait for the client to read what it does not read
        self.transport.abort()


class Server(uvicorn.Server):
    """A server that ends its event streams as soon as it is told to stop, so that stopping need not wait for them."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._evenhand = app

    async def shutdown(self, sockets: Any = None) -> None:
        """Take no more requests, finish those under way, end."""
        self._evenhand.state.stopping.set()
        await super().shutdown(sockets)


def allow_connections() -> None:
    """Let this process have as many files open as connections need, where the machine allows it."""
    wanted = 2 * MOST_CONNECTIONS
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
