"""New events of a campaign, or of all campaigns, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio.to_thread
import orjson
from fastapi import Request
from fastapi.responses import Response, StreamingResponse

from evenhand.campaign import Campaign
from evenhand.errors import LedgerError
from evenhand.ledger.database import DatabaseLedger
from evenhand.notation import JsonObject
from evenhand.server.access import Parts, Seat, grant_of, parts_of
from evenhand.server.tokens import Grant

_POLL_SECONDS = 1.0
_LIST_SECONDS = 3.0
"""The list of campaigns is followed more slowly: it is long, and each time it is made anew."""
_CHECK_SECONDS = 5.0
_ALIVE_SECONDS = 15.0
_AT_ONCE = 200
News = AsyncIterator[bytes]


class Newest:
    """The newest events that somebody follows, looked up once for all followers."""

    def __init__(self) -> None:
        self._found: dict[int | None, tuple[float, Any]] = {}
        self._locks: dict[int | None, asyncio.Lock] = {}

    async def of(self, campaign: Campaign) -> int:
        """The number of the newest event, at most a second old."""
        found: int = await self._fresh(campaign.number, _POLL_SECONDS, lambda: campaign.state.seq)
        return found

    async def of_all(self, ledger: DatabaseLedger) -> dict[int, int]:
        """The number of the newest event of every campaign, at most a few seconds old."""
        found: dict[int, int] = await self._fresh(None, _LIST_SECONDS, ledger.newest)
        return found

    async def _fresh(self, key: int | None, seconds: float, look: Callable[[], Any]) -> Any:
        now = asyncio.get_running_loop().time()
        async with self._locks.setdefault(key, asyncio.Lock()):
            at, found = self._found.get(key, (-seconds, None))
            if at < now - seconds / 2:
                found = await anyio.to_thread.run_sync(look)
                self._found[key] = (now, found)
            return found


def events_in(newest: dict[int, int], grant: Grant) -> int:
    """How many events there are in the campaigns that somebody may see: more of them say that something happened."""
    return sum(seq for number, seq in newest.items() if grant.campaign in (None, number))


def open_stream(request: Request, news: News, most: int) -> Response:
    """Answer with a stream, unless too many are open: `most` is for one token or share link."""
    parts_of(request).streams.check(grant_of(request), most)
    # nginx would hold events back until its buffer is full
    return StreamingResponse(news, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def news(seat: Seat, after: int, stopping: asyncio.Event, newest: Newest) -> News:
    """The events of a campaign after a number, each as it comes."""

    async def look(after: int) -> list[JsonObject]:
        if await newest.of(seat.campaign) <= after:
            return []
        return await anyio.to_thread.run_sync(seat.campaign.events, after, _AT_ONCE)

    return _following(seat.parts, seat.grant, after, stopping, look, _POLL_SECONDS)


def news_of_all(parts: Parts, grant: Grant, after: int, stopping: asyncio.Event, newest: Newest) -> News:
    """An event `moved` whenever something happened in the campaigns that somebody may see, numbered by all their events."""

    async def look(after: int) -> list[JsonObject]:
        now = events_in(await newest.of_all(parts.campaigns.ledger), grant)
        return [{"seq": now, "kind": "moved"}] if now > after else []

    return _following(parts, grant, after, stopping, look, _LIST_SECONDS)


async def _following(
    parts: Parts,
    grant: Grant,
    after: int,
    stopping: asyncio.Event,
    look: Callable[[int], Awaitable[list[JsonObject]]],
    seconds: float,
) -> News:
    """Yield what `look` finds after a number as it comes; a comment now and then shows that the stream is alive.

    An event `away`, without a number, says that the database cannot be reached. The stream ends when the server stops,
    or when the grant behind it is no longer valid.
    """
    with parts.streams.counted(grant):
        quiet = since_check = 0.0
        away = False
        yield b": hello\n\n"
        while not stopping.is_set():
            found = []
            try:
                if since_check >= _CHECK_SECONDS:
                    since_check = 0.0
                    if not await anyio.to_thread.run_sync(parts.tokens.still_valid, grant):
                        return
                found = await look(after)
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
            quiet = 0.0 if found else quiet + seconds
            if quiet >= _ALIVE_SECONDS:
                quiet = 0.0
                yield b": still here\n\n"
            since_check += seconds
            try:
                await asyncio.wait_for(stopping.wait(), seconds)
            except TimeoutError:
                continue
