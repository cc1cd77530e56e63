"""What a server does by itself: ends leases, refits in the background, sends webhooks."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable

import anyio.to_thread

from evenhand.campaign import Campaign
from evenhand.errors import EvenhandError, LedgerError
from evenhand.server.access import Parts
from evenhand.server.webhooks import Due, Webhooks

_LOG = logging.getLogger("evenhand.server")
_SECONDS = 2.0
_SENDERS = 20


async def watch(parts: Parts, stopping: asyncio.Event) -> None:
    """Look after all campaigns every two seconds until the server stops; an unreachable database is tried again."""
    sending, looking = _Sending(parts), _Looking(parts)

    async def look() -> None:
        await anyio.to_thread.run_sync(looking.around)

    # separately, so that a slow receiver of webhooks delays neither leases nor refits
    await asyncio.gather(_often(look, stopping), _often(sending.begin, stopping))
    await sending.end()


async def _often(step: Callable[[], Awaitable[None]], stopping: asyncio.Event) -> None:
    while not stopping.is_set():
        try:
            await step()
        except LedgerError as error:
            _LOG.warning("the database cannot be used: %s", error)
        except Exception:
            _LOG.exception("internal error while looking after campaigns")
        try:
            await asyncio.wait_for(stopping.wait(), _SECONDS)
        except TimeoutError:
            continue


class _Looking:
    """Looks after the leases and refits of all campaigns; a campaign without new events costs nothing."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._quiet: dict[int, tuple[int, float]] = {}  # the newest event of a campaign, and when its next lease ends

    def around(self) -> None:
        """Look at every campaign once."""
        now = self._parts.campaigns.ledger.clock()
        for number, seq in self._parts.campaigns.ledger.newest().items():
            known, until = self._quiet.get(number, (0, 0.0))
            if known == seq and now < until:
                continue
            self._quiet.pop(number, None)
            campaign = self._parts.campaigns.by_number(number)
            try:
                self._look_after(campaign)
            except LedgerError:
                raise
            except EvenhandError as error:
                # a campaign whose strategy or learner this process may not import: others can still be looked after
                _LOG.debug("campaign %r: %s", campaign.name, error)

    def _look_after(self, campaign: Campaign) -> None:
        """Record leases that have ended, and refit if the campaign is refitted in the background."""
        state = campaign.state
        if state.closed is None and state.overdue(campaign.now()):
            campaign.settle()
        if state.settings["refit"] == "background" and self._parts.worker.begin_refit(campaign):
            return  # until the fit is done
        ends = [request["until"] for request in state.open.values() if request["until"] is not None]
        self._quiet[campaign.number] = (
            campaign.seen.seq,
            min(ends, default=math.inf) if state.closed is None else math.inf,
        )


class _Sending:
    """Sends webhooks, one at a time for each receiver."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._webhooks = parts, Webhooks(parts.campaigns.ledger)
        self._under_way: dict[int, asyncio.Task[None]] = {}

    async def begin(self) -> None:
        """Start sending to the webhooks that are due."""
        due = await anyio.to_thread.run_sync(self._webhooks.due)
        self._under_way = {number: task for number, task in self._under_way.items() if not task.done()}
        for one in due:
            if one.id not in self._under_way and len(self._under_way) < _SENDERS:
                self._under_way[one.id] = asyncio.create_task(self._send(one))

    async def end(self) -> None:
        """Cut off what is being sent: the next server sends it again, with the same id."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, due: Due) -> None:
        try:
            campaign = await anyio.to_thread.run_sync(self._parts.campaigns.by_number, due.campaign)
            found = await self._webhooks.send(due, campaign, self._parts.settings.webhook_hosts)
        except LedgerError as error:
            _LOG.warning("the database cannot be used: %s", error)
        except Exception:
            _LOG.exception("internal error while sending a webhook")
        else:
            for outcome, count in zip(("sent", "failed"), found, strict=True):
                if count:
                    self._parts.observer.webhooks.labels(outcome).inc(count)
