"""What a server looks after by itself: leases that end, background refits, webhooks."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import anyio.to_thread

from evenhand.campaign import Campaign
from evenhand.errors import EvenhandError, LedgerError
from evenhand.server.access import Parts
from evenhand.server.webhooks import Due, Webhooks

__all__ = ["watch"]

_LOG = logging.getLogger("evenhand.server")
_SECONDS = 2.0
_SENDERS = 4


async def watch(parts: Parts, stopping: asyncio.Event) -> None:
    """Look around every two seconds until the server stops; a database that is away is tried again."""
    webhooks = Webhooks(parts.campaigns.ledger)
    # slow receivers wait for each other, never for those who ask and tell
    senders = anyio.CapacityLimiter(_SENDERS)
    while not stopping.is_set():
        try:
            await anyio.to_thread.run_sync(_look, parts)
            due = await anyio.to_thread.run_sync(webhooks.due)
            await asyncio.gather(
                *(anyio.to_thread.run_sync(partial(_send, parts, webhooks, one), limiter=senders) for one in due)
            )
        except LedgerError as error:
            _LOG.warning("the database cannot be used: %s", error)
        except Exception:
            _LOG.exception("internal error while looking after campaigns")
        try:
            await asyncio.wait_for(stopping.wait(), _SECONDS)
        except TimeoutError:
            continue


def _look(parts: Parts) -> None:
    for number in parts.campaigns.ledger.campaigns().values():
        campaign = parts.campaigns.by_number(number)
        try:
            _look_after(campaign, parts)
        except LedgerError:
            raise
        except EvenhandError as error:
            # a campaign whose strategy or learner this process may not import: others can still be looked after
            _LOG.debug("campaign %r: %s", campaign.name, error)


def _look_after(campaign: Campaign, parts: Parts) -> None:
    """Write down leases that have ended, and refit where that is left to the background."""
    store = campaign.store
    state = store.refresh()
    if state.closed is not None:
        return
    if state.overdue(store.now()):
        store.write(lambda state, writer: None)
    if state.settings["refit"] == "background" and state.settings["learner"] is not None and state.fresh:
        failed = state.failure is not None and state.failure["rests_on"] >= max(state.arrived)
        if state.columns is not None and not failed:
            parts.worker.refit_soon(campaign)


def _send(parts: Parts, webhooks: Webhooks, due: Due) -> None:
    sent, failed = webhooks.send(due, parts.campaigns.by_number(due.campaign), parts.settings.webhook_hosts)
    for outcome, count in (("sent", sent), ("failed", failed)):
        if count:
            parts.observer.webhooks.labels(outcome).inc(count)
