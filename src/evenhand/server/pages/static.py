"""Style sheets and scripts as files that browsers cache until they change."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from fastapi import Request
from fastapi.responses import Response

from evenhand.errors import NotFound
from evenhand.report.pages import TEMPLATES
from evenhand.server.pages.shared import HERE, new_router

router = new_router()
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FILES: dict[str, Path] = {
    "look.css": TEMPLATES / "look.css",
    **{path.name: path for path in sorted((HERE / "static").iterdir()) if path.suffix in _TYPES},
}


@cache
def _content(name: str) -> tuple[bytes, str]:
    data = _FILES[name].read_bytes()
    return data, hashlib.blake2b(data, digest_size=6).hexdigest()


def versioned(name: str) -> str:
    """A file's address with its version, so that a browser may keep it for ever."""
    return f"/static/{name}?v={_content(name)[1]}"


@router.get("/static/{name}")
def static(name: str, request: Request) -> Response:
    """A file of the pages."""
    if name not in _FILES:
        raise NotFound(f"there is no file {name!r}")
    data, version = _content(name)
    if f'"{version}"' in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"ETag": f'"{version}"'})
    keep = "public, max-age=31536000, immutable" if request.query_params.get("v") == version else "no-cache"
    return Response(data, 200, {"Cache-Control": keep, "ETag": f'"{version}"'}, _TYPES[_FILES[name].suffix])
