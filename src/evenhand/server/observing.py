"""Metrics for Prometheus, and a line of JSON in the log for every request."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import Scope

_LOG = logging.getLogger("evenhand.server")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_SECRET = re.compile(r"evh_[^/]*")


class Observer:
    """Counts requests, labels, refits and webhooks, and logs one line per request."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        names = ["method", "route", "status"]
        self.requests = Counter("evenhand_requests", "answered requests", names, registry=self.registry)
        self.seconds = Histogram("evenhand_request_seconds", "time to answer", ["route"], registry=self.registry)
        self.labels = Counter("evenhand_labels", "labels stored through this server", registry=self.registry)
        self.asked = Counter("evenhand_asked", "requests handed out through this server", registry=self.registry)
        self.refits = Counter("evenhand_refits", "refits done by this server", ["outcome"], registry=self.registry)
        self.webhooks = Counter("evenhand_webhooks", "webhooks sent", ["outcome"], registry=self.registry)
        self.streams = Gauge("evenhand_streams", "open event streams", registry=self.registry)

    def answered(self, scope: Scope, status: int, seconds: float) -> None:
        """Count and log a request that was answered."""
        # the route, not the path: names of campaigns and share links stay out of metrics
        route = getattr(scope.get("route"), "path", "none")
        self.requests.labels(scope["method"] if scope["method"] in _METHODS else "other", route, status).inc()
        self.seconds.labels(route).observe(seconds)
        grant = scope["state"].get("grant")
        about = {
            "request": scope["state"]["request_id"],
            "method": scope["method"],
            "path": _SECRET.sub("evh_…", scope["path"]),
            "status": status,
            "ms": round(1000 * seconds, 1),
            "who": None if grant is None else grant.name,
        }
        _LOG.info("answered", extra={"about": about})

    def text(self) -> bytes:
        """The metrics as Prometheus reads them."""
        return generate_latest(self.registry)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "about", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def log_as_json() -> None:
    """Write the log to standard error, one JSON object per line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json())
    for name in ("evenhand.server", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
