"""What the files of the API share."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema

from evenhand.server.bodies import Route
from evenhand.server.problems import PROBLEMS, Problem


def _label(value: object) -> object:
    if not isinstance(value, str | int | float | bool):
        # not a ValueError, all of which would be collected: a body may have a million of them
        raise Problem(422, f"a label or value is text, a number, true or false, not {repr(value)[:50]}")
    return value


Label = Annotated[
    str | int | float | bool,
    PlainValidator(_label),
    WithJsonSchema({"anyOf": [{"type": kind} for kind in ("string", "integer", "number", "boolean")]}),
]
Name = Annotated[str, Field(min_length=1, max_length=500)]
Number = Annotated[int, Path(alias="request", ge=1, lt=2**31, description="the request's number")]
Reason = Annotated[str | None, Field(max_length=500, description="why; put no personal data here")]


class Body(BaseModel):
    """A JSON body in which unknown names are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


def new_router(tag: str) -> APIRouter:
    """A router whose operations may answer with any of the server's problems."""
    return APIRouter(prefix="/api", tags=[tag], route_class=Route, responses=PROBLEMS)
