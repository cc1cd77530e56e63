"""What a campaign hands out and gives back: requests, receipts, sets of examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import Values
from evenhand.errors import NotFound
from evenhand.ledger.base import Event
from evenhand.notation import JsonObject
from evenhand.strategies.decision import Decision

if TYPE_CHECKING:
    from evenhand.arrays import Features

__all__ = ["Examples", "Receipt", "Refused", "Request", "as_time", "number_of", "request_of"]


@dataclass(frozen=True)
class Request:
    """What to collect: `size` labelled examples of `group`, as the campaign stood when it gave this object.

    Attributes:
        id: the request's number.
        group: the group to collect from.
        size: how many examples to collect.
        decision: which group and why.
        told: how many labels have come.
        examples: the ids to label, where there is a pool.
        until: when its lease ends, in seconds since 1970; None: never.
        collector: whom it was given to.
        event: its place in the ledger.
        rests_on: the last event its scores rest on.
        scores_age: the age of its scores in seconds; None without scores.
        behind: how many labels had come since those scores when the request was made.
    """

    id: int
    group: str
    size: int
    decision: Decision
    told: int = 0
    examples: tuple[str, ...] = ()
    until: float | None = None
    collector: str | None = None
    event: int = 0
    rests_on: int = 0
    scores_age: float | None = None
    behind: int = 0

    @property
    def outstanding(self) -> int:
        """Labels it still waits for."""
        return self.size - self.told

    def as_dict(self) -> JsonObject:
        """The request as plain JSON values."""
        return {
            "request": self.id,
            "group": self.group,
            "size": self.size,
            "outstanding": self.outstanding,
            "examples": list(self.examples),
            "until": as_time(self.until),
            "collector": self.collector,
            "event": self.event,
            "decision": self.decision.as_dict(),
            "scores": {"rest_on": self.rests_on, "age_seconds": self.scores_age, "labels_behind": self.behind},
        }


class Refused(NamedTuple):
    """A row that was not stored: its number in the delivery from 0, its id where it has one, and why.

    `conflict` says that it contradicts what is stored already.
    """

    row: int
    id: str | None
    reason: str
    conflict: bool = False


@dataclass(frozen=True)
class Receipt:
    """What a delivery brought.

    Attributes:
        request: the request it answered; 0 for data added without a request.
        rows: rows stored; `training` and `validation` say how many of them have each role.
        known: rows that had been told before; nothing changed for them.
        refused: rows that were not stored, and why.
        surplus: rows stored beyond what was outstanding.
        outstanding: labels the request still waits for.
        late: whether it came after the request's lease.
        new_classes: labels never seen before.
        event: its place in the ledger; 0 where nothing was stored.
        dry_run: whether it only says what would be stored.
    """

    request: int
    rows: int
    training: int
    validation: int
    known: int = 0
    refused: tuple[Refused, ...] = ()
    surplus: int = 0
    outstanding: int = 0
    late: bool = False
    new_classes: tuple[object, ...] = ()
    event: int = 0
    dry_run: bool = False

    @property
    def repeated(self) -> bool:
        """Whether all its rows had been told before."""
        return self.known > 0 and self.rows == 0

    def as_dict(self) -> JsonObject:
        """The receipt as plain JSON values."""
        found = {**vars(self), "refused": [row._asdict() for row in self.refused], "repeated": self.repeated}
        return {**found, "new_classes": list(self.new_classes)}


class Examples(NamedTuple):
    """Labelled examples in the order they were told: features in the type they came in, labels, group names, ids."""

    X: Features
    y: Values
    groups: NDArray[np.str_]
    ids: NDArray[np.str_]


def request_of(event: Event, groups: Sequence[str]) -> Request:
    """The request that an `asked` event made."""
    facts = event.facts
    scored_at = facts["scored_at"]
    decision = Decision.from_dict(tuple(groups), facts["decision"])
    return Request(
        id=int(event.request or 0),
        group=decision.group,
        size=facts["size"],
        decision=decision,
        examples=tuple(facts.get("ids", ())),
        until=facts["until"],
        collector=event.actor,
        event=event.seq,
        rests_on=facts["rests_on"],
        # never below 0: clocks of two machines may differ
        scores_age=None if scored_at is None else max(0.0, event.at - scored_at),
        behind=facts["behind"],
    )


def as_time(at: float | None) -> str | None:
    """A moment as text, in UTC.

    >>> as_time(0.0)
    '1970-01-01T00:00:00Z'
    """
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def number_of(request: Request | int) -> int:
    """The number of a request."""
    number = request.id if isinstance(request, Request) else request
    # True is an int in Python, and databases hold no larger number than this
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 < number < 2**31:
        raise NotFound(f"request {number!r} was never made: give a request, or its number from 1 up")
    return int(number)
