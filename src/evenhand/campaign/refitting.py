"""Fits past scores again, on the rows and with the labels as they were then."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from evenhand.campaign.past import Past
from evenhand.campaign.scores import Fitter, FixedReader
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.errors import EvenhandError
from evenhand.ledger.base import Event, Example

__all__ = ["Refitted", "refit_scores"]

_TOLERANCE = 1e-6


class Refitted(NamedTuple):
    """How many scores were fitted again, how many could not be, and what differs."""

    refitted: int
    skipped: int
    problems: list[str]


def refit_scores(events: Sequence[Event], rows: Sequence[Example], parts: Parts) -> Refitted:
    """Fit every score again on the rows as they were then."""
    past, state = Past(events, rows, parts.settings["classes"]), State()
    newest = max((e.seq for e in events if e.kind == "changed" and "learner" in e.facts), default=0)
    fitter: Fitter | None = None
    learner, lost, refitted, skipped = None, False, 0, 0
    problems: list[str] = []
    for event in events:
        if event.kind != "scored":
            continue
        new = events[state.seq : event.facts["rests_on"]]
        past.fold(new)
        state.fold(new)
        if fitter is None or learner != state.settings["learner"]:
            learner, fitter = state.settings["learner"], _fitter(parts, state, newest)
        # running errors are those of the model before, so they
        # can be compared only if that one could be fitted too
        lost, lost_before = bool(past.lost), lost
        if lost or fitter is None:
            skipped += 1
            continue
        refitted += 1
        fixed = FixedReader(list(past.rows.values()), events[: state.seq])
        sure = not lost_before and past.knows(state.scores_rest_on, state.seq)
        try:
            found = list(_unlike(event, fitter, fixed, state, sure=sure))
        except EvenhandError as error:
            # the next score starts with a new fitter
            found, fitter = [f"it cannot be fitted again: {error}"], None
        problems += [f"event {event.seq}: {problem}" for problem in found]
    return Refitted(refitted, skipped, problems)


def _fitter(parts: Parts, state: State, newest: int) -> Fitter | None:
    """The fitter of that time; None for an earlier learner that this process does not have."""
    text = state.settings["learner"]
    if state.seq >= newest or (text == parts.settings["learner"] and not text.startswith("own:")):
        return Fitter(parts)
    if text is None or text.startswith("own:"):
        return None
    try:
        return Fitter(Parts({**parts.settings, "learner": text}, parts.given))
    except (EvenhandError, ImportError):
        return None


def _unlike(event: Event, fitter: Fitter, fixed: FixedReader, state: State, *, sure: bool) -> Iterator[str]:
    """What differs when the scores are made again; `sure` if the model before is fully known."""
    was, now = event.facts, fitter.scores(fixed, state)
    other = " (other versions fitted it)" if now["learner"] != was["learner"] else ""
    for group, again in now["groups"].items():
        old = was["groups"].get(group)
        if old is None:
            yield f"it has no scores of {group!r}"
        elif any(old.get(name) != again.get(name) for name in ("n", "errors", "relevant")) or not all(
            math.isclose(old[name], again[name], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
            for name in ("accuracy", "loss_sum")
        ):
            yield (
                f"{group!r} had {old['errors']} errors of {old['n']}, accuracy {old['accuracy']:.6g}, loss "
                f"{old['loss_sum']:.6g}; now {again['errors']} of {again['n']}, {again['accuracy']:.6g}, "
                f"{again['loss_sum']:.6g}{other}"
            )
    for name in ("examples", "fresh", "trained", "risk"):
        if was.get(name) != now[name]:
            yield f"its scores have {name} {was.get(name)!r}, now {now[name]!r}"
    if sure and not _same_running(was["running"], now["running"]):
        yield f"the running errors were {was['running']}, now {now['running']}{other}"


def _same_running(was: Mapping[str, Sequence[float]], now: Mapping[str, Sequence[float]]) -> bool:
    """Whether two counts of the running losses are the same, except for rounding on another machine."""
    return was.keys() == now.keys() and all(
        math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
        for group in was
        for a, b in zip(was[group], now[group], strict=True)
    )
