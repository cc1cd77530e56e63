"""Turns a server's errors into the exceptions that a campaign on this machine raises."""

from __future__ import annotations

import orjson

from evenhand.campaign.requests import Refused
from evenhand.errors import (
    Conflict,
    EvenhandError,
    InputError,
    LearnerError,
    LedgerError,
    NotAllowed,
    NotFound,
    NothingToAsk,
)
from evenhand.notation import JsonObject

_KINDS: dict[str, type[EvenhandError]] = {
    "input": InputError,
    "conflict": Conflict,
    "not_found": NotFound,
    "access": NotAllowed,
    "learner": LearnerError,
    "database": LedgerError,
    "busy": LedgerError,
    "internal": EvenhandError,
}


def as_error(status: int, kind: str, body: bytes, server: str) -> EvenhandError:
    """The exception for an answer: a problem that the server reports, or an error of a proxy in between."""
    problem: JsonObject = {}
    if kind.partition(";")[0] == "application/problem+json":
        problem = orjson.loads(body)
    if problem.get("code") not in (*_KINDS, "nothing_to_ask"):
        # a failing proxy, or an address that is not an Evenhand server: its page helps nobody
        meaning = LedgerError if status >= 500 else InputError
        return meaning(f"{server} answered with status {status}, and not as an Evenhand server does: check the address")
    if problem["code"] == "nothing_to_ask":
        return NothingToAsk(problem["reason"], problem.get("note", ""))
    error = _KINDS[problem["code"]](problem["detail"])
    if isinstance(error, InputError):
        names = Refused._fields
        error.refused = tuple(
            Refused(**{name: row[name] for name in names if name in row}) for row in problem.get("refused", ())
        )
    return error
