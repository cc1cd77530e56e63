"""`evenhand serve`: campaigns over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from evenhand.cli.campaign_shared import DEFAULT, Database, handled


def serve(
    db: Database = DEFAULT,
    host: Annotated[
        str, typer.Option(help="the address to listen on; except on loopback, everybody needs a token")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="the port; 0 takes a free one")] = 8000,
    root_path: Annotated[str, typer.Option(help="the path a proxy serves it under, e.g. /evenhand")] = "",
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="a host name that the server is reached by; repeat")
    ] = None,
    allow_webhook_host: Annotated[
        list[str] | None, typer.Option(help="a host with a private address that webhooks may go to; repeat")
    ] = None,
    workers: Annotated[int, typer.Option(help="processes that fit models", min=1, max=64)] = 1,
    max_wait: Annotated[float, typer.Option(help="how many seconds an ask waits for a refit at most", min=0)] = 30.0,
) -> None:
    """Serve the campaigns of a database: an API and a web page."""
    with handled(False):
        from evenhand.errors import InputError

        try:
            from evenhand.server import running
        except ModuleNotFoundError as error:
            raise InputError(f"the server needs {error.name}: pip install 'evenhand[server]'") from None
        from evenhand.server.settings import Settings

        settings = Settings(
            db, host, port, root_path.rstrip("/"), tuple(allowed_host or ()), tuple(allow_webhook_host or ()),
            workers=workers, max_wait=max_wait,
        )  # fmt: skip
        running.run(settings, lambda url: typer.echo(f"Evenhand is at {url} (Ctrl-C stops it)"))
