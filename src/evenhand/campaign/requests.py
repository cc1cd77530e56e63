"""What a campaign hands out and takes back: requests, receipts, sets of examples, and what a request can be answered with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import Values
from evenhand.campaign.events import ids_in, request_in
from evenhand.campaign.state import OpenRequest, State
from evenhand.errors import Conflict, InputError, NotFound
from evenhand.ledger.base import Event, Example, Reader
from evenhand.notation import JsonObject
from evenhand.strategies.decision import Decision
from evenhand.strategies.standing import offered as can_give

if TYPE_CHECKING:
    from evenhand.arrays import Features


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
        made: when it was made, which tells it from one of the same number in another campaign; None over HTTP.
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
    made: float | None = field(default=None, compare=False, repr=False)

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
    """The request that an event made."""
    facts = request_in(event)
    scored_at = facts["scored_at"]
    decision = Decision.from_dict(tuple(groups), facts["decision"])
    return Request(
        id=int(event.request or 0),
        group=decision.group,
        size=facts["size"],
        decision=decision,
        examples=tuple(ids_in(event)),
        until=facts["until"],
        collector=event.actor,
        event=event.seq,
        rests_on=facts["rests_on"],
        # never below 0: clocks of two machines may differ
        scores_age=None if scored_at is None else max(0.0, event.at - scored_at),
        behind=facts["behind"],
        made=event.at,
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


class Asker(NamedTuple):
    """What rows are told for: a request's group, its kind (None once it is filled), and whom it was given to."""

    group: str
    kind: str | None
    by: str | None


class Options(NamedTuple):
    """How a delivery is told: by whom, whether good rows are stored without the bad, whether more may come than asked."""

    actor: str | None = None
    partial: bool = False
    extra: bool = False


def outstanding(state: State, number: int) -> int:
    """Labels that a request still waits for; 0 for one that is neither open nor expired."""
    request = state.waiting(number)
    return 0 if request is None else request["size"] - request["told"]


def room_for(state: State, number: int, options: Options) -> int:
    """How many rows a request can take: those outstanding, more with `extra`; after its lease, what the budget has."""
    left = outstanding(state, number)
    # an open request has its labels reserved; one that
    # expired gave them back and competes for what is left
    if number in state.open:
        return left + (max(state.unspent, 0) if options.extra else 0)
    room = max(state.unspent, 0)
    return room if options.extra else min(left, room)


def request_for(state: State, reader: Reader, number: int, options: Options) -> Asker:
    """The request that rows are told for: open, expired, or with `extra` also a filled one."""
    refuse_closed(state)
    found = state.waiting(number)
    if found is not None and found["left"] is not None:
        raise InputError(f"request {number} names its examples: tell their labels by id, tell_labels({{id: label}})")
    if found is not None:
        return Asker(found["group"], found["kind"], found["by"])
    events = reader.events(request=number)
    # a filled request takes more with `extra`; an abandoned
    # one does not: somebody decided to give it up
    if options.extra and events and not any(event.kind == "abandoned" for event in events):
        return Asker(request_in(events[0])["decision"]["group"], None, None)
    raise not_open(state, reader, number)


def refuse_closed(state: State) -> None:
    """Refuse everything once a campaign is closed."""
    if state.closed is not None:
        raise Conflict(f"the campaign is closed ({state.closed}): it takes nothing any more")


def not_open(state: State, reader: Reader, number: int) -> InputError:
    """The error that says why a request is not open."""
    kinds = [event.kind for event in reader.events(request=number)]
    there = f"open requests: {', '.join(map(str, state.open)) or 'none'}"
    if not kinds:
        return NotFound(f"request {number} was never made; {there}")
    if "abandoned" in kinds:
        return Conflict(f"request {number} was abandoned; {there}")
    if number in state.expired:
        return Conflict(f"request {number} has expired; {there}")
    return Conflict(f"request {number} has all its labels: more rows are taken with extra=True; {there}")


def too_many(state: State, number: int, count: int, most: int, *, extra: bool) -> str:
    """The message for more rows than a request takes."""
    if number in state.expired:
        return (
            f"request {number} has expired and its labels went back to the budget, which has {max(state.unspent, 0)} left: "
            f"of these {count} rows {most} would fit"
        )
    left = outstanding(state, number)
    if extra:
        return f"{count} rows for request {number}, which waits for {left}, but the budget has only {max(state.unspent, 0)} more"
    return f"{count} rows for request {number}, which waits for {left}: tell {left}, or take them all with extra=True"


def returned(reader: Reader, request: OpenRequest, seq: int) -> list[Example]:
    """The examples of a request that go back to the pool."""
    found = reader.find(list(request["left"])) if request["left"] is not None else {}
    return [example._replace(held=False, changed=seq) for example in found.values()]


def why_nothing(state: State, size: int) -> str | None:
    """Why no request of `size` labels can be made; None if one can."""
    if state.closed is not None:
        return "closed"
    if not any(offered(state)):
        return "groups used up" if state.groups else "no pool yet"
    if not size:
        return "waiting for open requests" if state.open else "budget spent"
    return None


def offered(state: State) -> list[bool]:
    """Which groups can be asked for: those that are not retired and have enough left."""
    there = can_give(None if state.pool is None else np.array(state.pool), (len(state.groups),)).tolist()
    retired = set(state.retired)
    return [group not in retired and enough for group, enough in zip(state.groups, there, strict=True)]


class Proposal(NamedTuple):
    """A request about to be made: which group and why, and how many labels."""

    decision: Decision
    size: int
