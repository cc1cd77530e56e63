"""What comes in and goes out: JSON, and tables as CSV, JSON lines or Parquet, never larger than memory bears."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import Header, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.requests import Request as StarletteRequest

from evenhand.campaign.store import Once
from evenhand.errors import InputError
from evenhand.server.problems import Problem

__all__ = ["Json", "Key", "Route", "as_once", "file_kind", "table_body", "unchanged", "with_file"]

_KINDS = {
    "text/csv": ".csv",
    "application/x-ndjson": ".jsonl",
    "application/jsonl": ".jsonl",
    "application/vnd.apache.parquet": ".parquet",
}
_MOST_CELLS = 50_000_000
_MOST_BYTES = 2**31
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200, description="sent again, the step is not taken again"
    ),
]


class Json(Response):
    """Plain values as JSON; numbers read back exactly, and what is no number is null."""

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
        """The handler, given our kind of request."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            found: Response = await handle(_Request(request.scope, request.receive))
            return found

        return answer


def as_once(key: str | None, request: Request, body: object) -> Once | None:
    """The idempotency key with a digest of what is asked for, so that it is not used for two things."""
    if key is None:
        return None
    about = f"{request.method} {request.url.path} {body!r}".encode()
    return Once(key, hashlib.blake2b(about, digest_size=12).hexdigest())


def unchanged(request: Request, tag: str) -> Response | None:
    """The answer that nothing has changed since; None where something has."""
    sent = request.headers.get("if-none-match", "")
    if f'"{tag}"' in sent:
        return Response(status_code=304, headers={"ETag": f'W/"{tag}"', "Cache-Control": "no-cache"})
    return None


def table_body(description: str, *, json: dict[str, Any] | None = None) -> dict[str, Any]:
    """How the OpenAPI document describes a body that is a table, or JSON."""
    content: dict[str, Any] = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in _KINDS}
    if json is not None:
        content = {"application/json": {"schema": json}, **content}
    return {"requestBody": {"required": True, "description": description, "content": content}}


def file_kind(request: Request) -> str | None:
    """The ending of a table's file by its content type; None for JSON."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind == "application/json":
        return None
    if kind not in _KINDS:
        raise Problem(415, f"cannot read {kind!r}: send application/json, {', '.join(_KINDS)}")
    return _KINDS[kind]


@contextmanager
def with_file(data: bytes, kind: str) -> Iterator[Path]:
    """A body as a file, as long as it is read."""
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        path = Path(folder) / f"body{kind}"
        path.write_bytes(data)
        if kind == ".parquet":
            check_parquet(path)
        yield path


def check_parquet(path: Path) -> None:
    """Refuse a Parquet file that would unpack to more than memory bears."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(path)
        unpacked = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"the body cannot be read as Parquet: {error}") from None
    if about.num_rows * about.num_columns > _MOST_CELLS or unpacked > _MOST_BYTES:
        raise Problem(413, f"the table has {about.num_rows} rows of {about.num_columns} columns: send it in parts")
