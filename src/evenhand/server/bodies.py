"""What comes in and goes out: JSON, and tables as CSV, JSON lines or Parquet, of limited size."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
import orjson
from fastapi import Header, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.requests import Request as StarletteRequest

from evenhand.campaign.log import Once
from evenhand.notation import JsonObject
from evenhand.server.incoming import Incoming
from evenhand.server.parquet import Limits, rehearse
from evenhand.server.problems import Problem
from evenhand.server.tokens import Grant

_KINDS = {
    "text/csv": ".csv",
    "application/x-ndjson": ".jsonl",
    "application/jsonl": ".jsonl",
    "application/vnd.apache.parquet": ".parquet",
}
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200, description="sent again, the step is not taken again"
    ),
]


class Json(Response):
    """Plain values as JSON; numbers read back exactly, and NaN and infinities become null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The bytes."""
        return orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)


class _Request(StarletteRequest):
    async def json(self) -> Any:
        # Python's own reader fails on deep nesting in a way that looks like a bug; this one refuses it
        return orjson.loads(await self.body())


class Route(APIRoute):
    """A route whose JSON bodies are read safely."""

    def get_route_handler(self) -> Any:
        """The handler, which is given this module's kind of request."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            found: Response = await handle(_Request(request.scope, request.receive))
            return found

        return answer


def as_once(key: str | None, grant: Grant, request: Request, body: object) -> Once | None:
    """The idempotency key under the user's name, with a digest of the request, so that it serves one purpose only."""
    if key is None:
        return None
    # a key that comes again with another body is a client's mistake, not a repetition
    about = f"{request.method} {request.url.path} {body!r}".encode()
    # under the user's name: two clients may choose the same key
    return Once(f"{grant.name}: {key}", hashlib.blake2b(about, digest_size=12).hexdigest())


def unchanged(request: Request, tag: str) -> Response | None:
    """The answer 304 if nothing has changed; None if something has."""
    sent = request.headers.get("if-none-match", "")
    # may be a list, and weak or strong: proxies change W/ as they like
    if f'"{tag}"' in sent:
        return Response(status_code=304, headers={"ETag": f'W/"{tag}"', "Cache-Control": "no-cache"})
    return None


def table_body(description: str, *, json: JsonObject | None = None) -> JsonObject:
    """How the OpenAPI document describes a body that is a table, or JSON."""
    content: JsonObject = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in _KINDS}
    if json is not None:
        content = {"application/json": {"schema": json}, **content}
    return {"requestBody": {"required": True, "description": description, "content": content}}


def file_kind(request: Request) -> str | None:
    """The file ending for a table's content type; None for JSON."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind == "application/json":
        return None
    if kind not in _KINDS:
        raise Problem(415, f"cannot read {kind!r}: send application/json, {', '.join(_KINDS)}")
    return _KINDS[kind]


async def table_file(request: Request, kind: str, limits: Limits) -> Path:
    """The body as a file, deleted once the request is answered; a Parquet file is checked for readability and size."""
    incoming: Incoming = request.state.incoming
    path = await incoming.path(kind)
    if kind == ".parquet":
        # in another process first: a forged Parquet file can take all memory or crash the reader
        await anyio.to_thread.run_sync(rehearse, path, limits)
    return path
