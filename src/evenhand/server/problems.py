"""Errors as `application/problem+json`, including the exit code that the command line would have."""

from __future__ import annotations

import logging
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from evenhand.errors import Conflict, EvenhandError, InputError, LearnerError, LedgerError, NotFound, NothingToAsk
from evenhand.notation import JsonObject
from evenhand.server.tokens import Grant, Role

_LOG = logging.getLogger("evenhand.server")
_TITLES = {
    400: "bad request", 401: "who are you?", 403: "not allowed", 404: "not there", 405: "no such method", 408: "too slow",
    409: "conflict", 413: "too large", 415: "unknown kind of body", 421: "unknown host", 422: "bad input",
    424: "the learner failed", 429: "too many at once", 431: "too many headers", 500: "internal error",
    503: "not available now",
}  # fmt: skip
_MOST_REFUSED = 10_000
_SHAPE = {
    "type": "object",
    "required": ["title", "status", "detail", "code"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what was wrong, which value, what to do"},
        "code": {
            "type": "string",
            "enum": [
                "input",
                "conflict",
                "not_found",
                "nothing_to_ask",
                "learner",
                "database",
                "busy",
                "access",
                "internal",
            ],
        },
        "exit_code": {"type": "integer", "description": "what the command line would exit with"},
        "reason": {"type": "string", "description": "why there is nothing to ask"},
        "note": {"type": "string", "description": "more about that reason, and what to do; may be empty"},
        "refused": {
            "type": "array",
            "items": {"type": "object"},
            "description": "rows that were refused, from 0; the first 10,000",
        },
        "request_id": {"type": "string"},
    },
}
PROBLEMS: dict[int | str, JsonObject] = {
    status: {"description": title, "content": {"application/problem+json": {"schema": _SHAPE}}}
    for status, title in _TITLES.items()
    if status not in (405, 500)
}
"""What every operation may answer with, for the OpenAPI document."""


class Problem(EvenhandError):
    """An error to answer with: a status, a message for people, and a code for programs."""

    def __init__(self, status: int, detail: str, code: str = "input", headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.headers = status, code, headers or {}


def problem(status: int, detail: str, code: str, headers: dict[str, str] | None = None, **more: Any) -> Response:
    """The error as a response of type `application/problem+json`."""
    body = {"title": _TITLES.get(status, "error"), "status": status, "detail": detail, "code": code, **more}
    return Response(orjson.dumps(body, default=str), status, headers, "application/problem+json")


def answer(error: EvenhandError, grant: Grant | None = None) -> Response:
    """The HTTP response for an error that Evenhand raised; only leads see the database's own words."""
    detail = str(error)
    if isinstance(error, Problem):
        return problem(error.status, detail, error.code, error.headers)
    if isinstance(error, NothingToAsk):
        return problem(
            409, f"nothing to ask: {error}", "nothing_to_ask", reason=error.reason, note=error.note, exit_code=3
        )
    if isinstance(error, InputError):
        refused = [row._asdict() for row in error.refused[:_MOST_REFUSED]]
        more: JsonObject = {"exit_code": 2, **({"refused": refused} if refused else {})}
        if isinstance(error, NotFound):
            return problem(404, detail, "not_found", **more)
        if isinstance(error, Conflict):
            return problem(409, detail, "conflict", **more)
        return problem(422, detail, "input", **more)
    if isinstance(error, LearnerError):
        return problem(424, detail, "learner", exit_code=1)
    if isinstance(error, LedgerError):
        if grant is None or not grant.may(Role.lead):
            _LOG.warning("the database cannot be used: %s", detail)
            detail = error.plain
        return problem(503, detail, "database", {"Retry-After": "2"}, exit_code=1)
    raise error


def status_of(error: EvenhandError) -> int:
    """The HTTP status of an error."""
    return answer(error).status_code


def handle_errors(app: FastAPI) -> None:
    """Make the application answer every error as `application/problem+json`."""

    @app.exception_handler(EvenhandError)
    async def ours(request: Request, error: EvenhandError) -> Response:
        return answer(error, getattr(request.state, "grant", None))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        parts = [
            f"{'.'.join(str(part) for part in found['loc'] if part != 'body') or 'the body'}: {found['msg']}"
            for found in error.errors()[:5]
        ]
        return problem(422, "; ".join(parts), "input", exit_code=2)

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        code = {401: "access", 403: "access", 404: "not_found", 503: "busy"}.get(error.status_code, "input")
        return problem(error.status_code, str(error.detail), code, dict(error.headers or {}))
