"""The verbs of a campaign over HTTP, one file per subject."""

from evenhand.server.api import altering, asking, granting, looking, proving, running, telling, webhooks

__all__ = ["ROUTERS"]

ROUTERS = [part.router for part in (running, asking, telling, altering, looking, proving, webhooks, granting)]
