"""Puts the server together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI
from fastapi.responses import Response

from evenhand.errors import LedgerError
from evenhand.ledger.database import DatabaseLedger
from evenhand.server import pages
from evenhand.server.access import Everywhere, Parts
from evenhand.server.api import ROUTERS
from evenhand.server.bodies import Json
from evenhand.server.campaigns import Campaigns
from evenhand.server.guarding import Guard, UnderPath
from evenhand.server.login import router as login
from evenhand.server.observing import Observer
from evenhand.server.pages.past import Histories
from evenhand.server.pages.problems import ProblemPages
from evenhand.server.problems import handle_errors, problem
from evenhand.server.settings import Settings
from evenhand.server.stream import Newest
from evenhand.server.streams import Streams
from evenhand.server.tokens import Tokens
from evenhand.server.watching import watch
from evenhand.server.worker import Worker

_LOG = logging.getLogger("evenhand.server")
_THREADS = 40
_PATIENCE = 15.0
"""Seconds that a step waits while another process writes to the database: somebody is waiting for the page."""


def create_app(settings: Settings) -> FastAPI:
    """An ASGI application for the campaigns of a database; the database is made if it does not exist."""
    ledger = DatabaseLedger(settings.url, create=True, patience=_PATIENCE)
    observer, tokens = Observer(), Tokens(ledger)

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        app.state.stopping, app.state.newest = asyncio.Event(), Newest()
        app.state.histories, app.state.verified = Histories(), {}
        worker = Worker(settings.url, settings.workers, observer)
        app.state.parts = Parts(settings, Campaigns(ledger), tokens, worker, observer, Streams(observer.streams))
        watcher = asyncio.create_task(watch(app.state.parts, app.state.stopping))
        try:
            yield
        finally:
            app.state.stopping.set()
            await watcher
            worker.shutdown()
            app.state.histories.shutdown()
            ledger.close()

    from importlib.metadata import version

    app = FastAPI(
        title="Evenhand",
        version=version("evenhand"),
        description="Which group to label next, so that your budget serves the worst-off group best.",
        lifespan=running,
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.ledger = ledger
    handle_errors(app)
    for router in (*ROUTERS, login, *pages.ROUTERS):
        app.include_router(router)
    _operators(app, ledger, observer)
    app.add_middleware(Guard, settings=settings, tokens=tokens, observer=observer)
    app.add_middleware(ProblemPages, root_path=settings.root_path)
    app.add_middleware(UnderPath, root_path=settings.root_path)
    return app


def _operators(app: FastAPI, ledger: DatabaseLedger, observer: Observer) -> None:
    """Routes for operators: health, readiness, metrics."""

    @app.get("/health", tags=["operation"], include_in_schema=False)
    async def health() -> Response:
        """The process answers."""
        return Json({"status": "ok"})

    @app.get("/ready", tags=["operation"], include_in_schema=False)
    def ready() -> Response:
        """The database answers too."""
        try:
            ledger.campaigns()
        except LedgerError as error:
            _LOG.warning("not ready: %s", error)  # anybody may ask this: the details stay in the log
            return problem(503, "the database does not answer", "database", {"Retry-After": "2"})
        return Json({"status": "ready"})

    @app.get("/metrics", tags=["operation"], include_in_schema=False)
    def metrics(grant: Everywhere) -> Response:
        """Metrics as Prometheus reads them; they count the requests and labels of all campaigns."""
        return Response(observer.text(), media_type="text/plain; version=0.0.4")
