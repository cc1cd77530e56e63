"""What a request can be answered with: whether it takes rows, how many, and if not why."""

from __future__ import annotations

from typing import NamedTuple

from evenhand.campaign.state import State
from evenhand.errors import Conflict, InputError, NotFound
from evenhand.ledger.base import Reader
from evenhand.notation import JsonObject

__all__ = ["Options", "not_open", "outstanding", "refuse_closed", "request_for", "room_for", "too_many"]


class Options(NamedTuple):
    """How a delivery is told: by whom, whether good rows are stored without the bad, whether more may come than asked."""

    actor: str | None = None
    partial: bool = False
    extra: bool = False


def outstanding(state: State, number: int) -> int:
    """Labels that a request still waits for; 0 for one that is neither open nor expired."""
    request = state.open.get(number) or state.expired.get(number)
    return 0 if request is None else int(request["size"] - request["told"])


def room_for(state: State, number: int, options: Options) -> int:
    """How many rows a request can take: those outstanding, more with `extra`; after its lease, what the budget has."""
    left = outstanding(state, number)
    # an open request has its labels reserved; one that
    # expired gave them back and competes for what is left
    if number in state.open:
        return left + (max(state.unspent, 0) if options.extra else 0)
    room = max(state.unspent, 0)
    return room if options.extra else min(left, room)


def request_for(state: State, reader: Reader, number: int, options: Options) -> JsonObject:
    """The request that rows are told for: open, expired, or with `extra` also a filled one."""
    refuse_closed(state)
    found = state.open.get(number) or state.expired.get(number)
    if found is not None and "left" in found:
        raise InputError(f"request {number} names its examples: tell their labels by id, tell_labels({{id: label}})")
    if found is not None:
        return found
    events = reader.events(request=number)
    # a filled request takes more with `extra`; an abandoned
    # one does not: somebody decided to give it up
    if options.extra and events and not any(event.kind == "abandoned" for event in events):
        return {"group": events[0].facts["decision"]["group"], "size": 0, "told": 0}
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
