"""What is new in a campaign, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio.to_thread
import orjson

from evenhand.campaign import Campaign
from evenhand.errors import LedgerError
from evenhand.server.observing import Observer

__all__ = ["MOST_STREAMS", "news"]

MOST_STREAMS = 500
_POLL_SECONDS = 1.0
_ALIVE_SECONDS = 15.0
_AT_ONCE = 200


async def news(campaign: Campaign, after: int, stopping: asyncio.Event, observer: Observer) -> AsyncIterator[bytes]:
    """The events after a number, each as it comes; a comment now and then shows that the stream lives."""
    observer.streams.inc()
    try:
        quiet = 0.0
        yield b": hello\n\n"
        while not stopping.is_set():
            try:
                found = await anyio.to_thread.run_sync(_after, campaign, after)
            except LedgerError:
                found = []  # the database is away: it may come back
            for event in found:
                after = event["seq"]
                yield b"id: %d\nevent: %s\ndata: %s\n\n" % (
                    after,
                    event["kind"].encode(),
                    orjson.dumps(event, default=str),
                )
            if len(found) == _AT_ONCE:
                continue
            quiet = 0.0 if found else quiet + _POLL_SECONDS
            if quiet >= _ALIVE_SECONDS:
                quiet = 0.0
                yield b": still here\n\n"
            try:
                await asyncio.wait_for(stopping.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue
    finally:
        observer.streams.dec()


def _after(campaign: Campaign, after: int) -> list[dict[str, Any]]:
    # the state is shared by all who look: where nothing came, nobody asks for events
    if campaign.store.refresh().seq <= after:
        return []
    return campaign.events(after, _AT_ONCE)
