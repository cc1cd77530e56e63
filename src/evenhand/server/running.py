"""Runs a server until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from evenhand.errors import InputError
from evenhand.ledger.database import DatabaseLedger
from evenhand.server.app import create_app
from evenhand.server.connections import Connection, Server, allow_connections
from evenhand.server.observing import log_as_json
from evenhand.server.settings import Settings
from evenhand.server.tokens import Tokens

_GRACE_SECONDS = 10


def run(settings: Settings, ready: Callable[[str], None]) -> None:
    """Run the server; `ready` is called with the address. Without a token it refuses to listen beyond this machine."""
    if settings.root_path and not settings.root_path.startswith("/"):
        raise InputError(f"--root-path {settings.root_path!r} must begin with /")
    with DatabaseLedger(settings.url, create=True) as ledger:
        if not settings.is_local and not Tokens(ledger).any():
            raise InputError(
                f"anybody who reaches {settings.host} could do anything: make a token first, `evenhand token create NAME "
                "--role admin`, or listen on 127.0.0.1 without --root-path"
            )
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        raise InputError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}; choose --port"
        ) from None
    log_as_json()
    allow_connections()
    app = create_app(settings)
    # a proxy's headers are not trusted: everybody who comes through one needs a token anyway
    config = uvicorn.Config(
        app, http=Connection, ws="none", log_config=None, access_log=False, proxy_headers=False, server_header=False,
        timeout_keep_alive=30, timeout_graceful_shutdown=_GRACE_SECONDS, backlog=512,
    )  # fmt: skip
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    ready(f"http://{shown}:{listener.getsockname()[1]}{settings.root_path}/")
    Server(config, app).run([listener])
