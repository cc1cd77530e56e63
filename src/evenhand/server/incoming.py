"""Bodies of requests: received whole before they are read, on disk if they are large, a few large ones at a time.

So a slow client holds a file and a connection, never memory or a thread, and the memory that reading takes has a bound.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import BinaryIO

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

SMALL = 2**16
"""Bodies up to this size stay in memory."""
BODY_SECONDS = 30.0
"""How long a body may take, in addition to what its size takes at the slowest allowed rate."""
SLOWEST = 50_000
"""The slowest rate of a large body, in bytes a second."""
_LARGE = 2**20
_SMALL_READERS, _LARGE_READERS = 4, 2
_ON_DISK = 2**30
_WAIT_SECONDS = 60.0
_CHUNK = 2**20


class Room:
    """What all bodies share: disk space, and turns at being read."""

    def __init__(self) -> None:
        self.medium, self.large = asyncio.Semaphore(_SMALL_READERS), asyncio.Semaphore(_LARGE_READERS)
        self.on_disk = 0

    def take(self, count: int) -> None:
        """Use `count` more bytes of disk."""
        if self.on_disk + count > _ON_DISK:
            raise HTTPException(503, "too many large bodies at once: try again", {"Retry-After": "5"})
        self.on_disk += count


class Incoming:
    """The body of one request.

    Args:
        headers, receive: those of the request.
        room: shared by all requests.
        limit: the most bytes it may have; it can be lowered until the body is read.
    """

    def __init__(self, headers: Headers, receive: Receive, room: Room, limit: int) -> None:
        self._headers, self._receive, self._room = headers, receive, room
        self.limit = limit
        self._memory, self._size, self._given, self.whole = bytearray(), 0, False, False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._file: BinaryIO | None = None
        self._turns = AsyncExitStack()

    async def receive(self) -> Message:
        """The next part of the body; after its end, whether the client has gone."""
        if not self.whole:
            await self._take_in()
        if self._given:
            return await self._receive()
        if self._file is None:
            self._given = True
            return {"type": "http.request", "body": bytes(self._memory), "more_body": False}
        part = await anyio.to_thread.run_sync(self._file.read, _CHUNK)
        self._given = len(part) < _CHUNK
        return {"type": "http.request", "body": part, "more_body": not self._given}

    async def path(self, ending: str) -> Path:
        """The whole body as a file; its name is ours, never the client's."""
        if not self.whole:
            await self._take_in()
        if self._file is None:
            await self._move_to_disk()
        if self._file is None or self._folder is None:
            raise RuntimeError("a body that is on disk has a file")
        self._file.flush()
        self._given = True
        return Path(self._file.name).rename(Path(self._folder.name) / f"body{ending}")

    async def close(self) -> None:
        """Give back what the body used."""
        await self._turns.aclose()
        if self._file is not None:
            self._file.close()
            self._room.on_disk -= self._size
        if self._folder is not None:
            self._folder.cleanup()

    async def _take_in(self) -> None:
        length = self._headers.get("content-length", "")
        if length.isdecimal() and int(length) > self.limit:
            raise HTTPException(413, f"the body has {length} bytes: {self.limit} are the most")
        if self._headers.get("content-encoding", "identity").lower() != "identity":
            raise HTTPException(415, "send the body as it is, without a Content-Encoding")
        begun, loop = asyncio.get_running_loop().time(), asyncio.get_running_loop()
        more = True
        while more:
            allowed = BODY_SECONDS + self._size / SLOWEST
            try:
                async with asyncio.timeout_at(begun + allowed):
                    message = await self._receive()
            except TimeoutError:
                raise HTTPException(
                    408, f"the body came too slowly: {self._size} bytes in {loop.time() - begun:.0f} seconds"
                ) from None
            if message["type"] != "http.request":
                raise HTTPException(400, "the client went away before the body was whole")
            await self._keep(message.get("body", b""))
            more = message.get("more_body", False)
        await self._finish()

    async def _keep(self, part: bytes) -> None:
        if self._size + len(part) > self.limit:
            raise HTTPException(413, f"the body has more than {self.limit} bytes, the most there may be")
        if self._file is not None:
            self._room.take(len(part))
        self._size += len(part)
        self._memory += part
        if self._file is None and self._size > SMALL:
            await self._move_to_disk()
        elif self._file is not None and len(self._memory) >= _CHUNK:
            await self._write()

    async def _move_to_disk(self) -> None:
        self._room.take(self._size)
        self._folder = tempfile.TemporaryDirectory(prefix="evenhand-")
        self._file = (Path(self._folder.name) / "body").open("w+b")
        await self._write()

    async def _write(self) -> None:
        if self._file is not None:
            await anyio.to_thread.run_sync(self._file.write, bytes(self._memory))
            self._memory.clear()

    async def _finish(self) -> None:
        """The body is whole: wait for a turn if it is large."""
        self.whole = True
        if self._file is None:
            return
        await self._write()
        self._file.seek(0)
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                turns = self._room.large if self._size > _LARGE else self._room.medium
                await self._turns.enter_async_context(turns)
        except TimeoutError:
            raise HTTPException(503, "other large bodies are being read: try again", {"Retry-After": "5"}) from None
