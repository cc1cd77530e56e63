"""New events of a campaign, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import anyio.to_thread
import orjson

from evenhand.campaign import Campaign
from evenhand.errors import LedgerError
from evenhand.server.access import Seat

__all__ = ["MOST_STREAMS", "Newest", "news"]

MOST_STREAMS = 500
"""Streams that may be open at once."""
_POLL_SECONDS = 1.0
_CHECK_SECONDS = 5.0
_ALIVE_SECONDS = 15.0
_AT_ONCE = 200


class Newest:
    """The newest event of each campaign that somebody follows, looked up once a second for all followers."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[float, int]] = {}
        self._locks: dict[int, asyncio.Lock] = {}

    async def of(self, campaign: Campaign) -> int:
        """The number of the newest event, at most a second old."""
        number, now = campaign.store.number, asyncio.get_running_loop().time()
        async with self._locks.setdefault(number, asyncio.Lock()):
            at, seq = self._found.get(number, (-1.0, 0))
            if at < now - _POLL_SECONDS / 2:
                seq = (await anyio.to_thread.run_sync(campaign.store.refresh)).seq
                self._found[number] = (now, seq)
            return seq


async def news(seat: Seat, after: int, stopping: asyncio.Event, newest: Newest) -> AsyncIterator[bytes]:
    """Yield the events after a number as they come; a comment now and then shows that the stream is alive.

    An event `away`, without a number, says that the database cannot be reached. The stream ends when the server stops,
    or when the grant behind it is no longer valid.
    """
    campaign, streams = seat.campaign, seat.parts.observer.streams
    streams.inc()
    try:
        quiet = since_check = 0.0
        away = False
        yield b": hello\n\n"
        while not stopping.is_set():
            found = []
            try:
                if since_check >= _CHECK_SECONDS:
                    since_check = 0.0
                    if not await anyio.to_thread.run_sync(seat.parts.tokens.still_valid, seat.grant):
                        return
                if await newest.of(campaign) > after:
                    found = await anyio.to_thread.run_sync(campaign.events, after, _AT_ONCE)
                away = False
            except LedgerError:  # it may come back, so the stream goes on
                if not away:
                    away = True
                    yield b"event: away\ndata: {}\n\n"
            for event in found:
                after = event["seq"]
                data = orjson.dumps(event, default=str)
                yield b"id: %d\nevent: %s\ndata: %s\n\n" % (after, event["kind"].encode(), data)
            if len(found) == _AT_ONCE:
                continue
            quiet = 0.0 if found else quiet + _POLL_SECONDS
            if quiet >= _ALIVE_SECONDS:
                quiet = 0.0
                yield b": still here\n\n"
            since_check += _POLL_SECONDS
            try:
                await asyncio.wait_for(stopping.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue
    finally:
        streams.dec()
