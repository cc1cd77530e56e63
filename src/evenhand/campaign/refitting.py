"""Scores of the past fitted again, on the rows and with the labels as they were then."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from evenhand.campaign.deliveries import label_digest
from evenhand.campaign.fitting import Fitter, Still
from evenhand.campaign.labels import label_text
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.errors import EvenhandError
from evenhand.ledger.base import Event, Example

__all__ = ["Past", "Refitted", "refit_scores"]

_TOLERANCE = 1e-6
_ALTERED = ("corrected", "withdrawn", "erased")


class Past:
    """The rows as they stood after an event: with the label of then, and those that were taken back only later.

    `lost` are rows that counted then and cannot be had any more: erased since, or with a label that nobody has now.
    """

    def __init__(self, events: Iterable[Event], rows: Sequence[Example], classes: Collection[Any] | None) -> None:
        self.rows: dict[str, Example] = {}
        self.lost: set[str] = set()
        self._coming: dict[int, list[Example]] = {}
        for row in rows:
            self._coming.setdefault(row.told or 0, []).append(row)
        self._labels = {"true", "false", *(label_text(label) for label in classes or ())}
        self._labels |= {label for row in rows for label in (row.label, row.first_label) if label is not None}
        self._erased = {name: event.seq for event in events if event.kind == "erased" for name in event.facts["ids"]}

    def fold(self, events: Iterable[Event]) -> None:
        """Go on to later events."""
        for event in events:
            for row in self._coming.get(event.seq, ()):
                self.rows[row.id] = row._replace(changed=event.seq)
                if row.fate == "erased":
                    self.lost.add(row.id)
                else:
                    self.rows[row.id] = row._replace(label=row.first_label, fate=None, changed=event.seq)
            if event.kind in _ALTERED:
                for k, name in enumerate(event.facts["ids"]):
                    if name in self.rows:
                        self._alter(event, self.rows[name], k)

    def _alter(self, event: Event, row: Example, k: int) -> None:
        self.rows[row.id] = row._replace(changed=event.seq)
        if event.kind != "corrected":
            self.lost.discard(row.id)
            self.rows[row.id] = row._replace(changed=event.seq, fate=row.fate or event.kind)
        elif row.fate is None:
            digest = event.facts["digests"][k]
            label = next((label for label in self._labels if label_digest(row.salt, label) == digest), None)
            (self.lost.add if label is None else self.lost.discard)(row.id)
            self.rows[row.id] = row._replace(changed=event.seq, label=label)

    def knows(self, last: int, now: int) -> bool:
        """Whether no row told since `last` was erased after `now`: the running errors may have counted it."""
        return not any((self.rows[n].told or 0) > last for n, at in self._erased.items() if at > now and n in self.rows)


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
        lost, lost_before = bool(past.lost), lost
        if lost or fitter is None:
            skipped += 1
            continue
        refitted += 1
        still = Still(list(past.rows.values()), events[: state.seq])
        sure = not lost_before and past.knows(state.scores_rest_on, state.seq)
        try:
            found = list(_unlike(event, fitter, still, state, sure=sure))
        except EvenhandError as error:
            found, fitter = [f"it cannot be fitted again: {error}"], None
        problems += [f"event {event.seq}: {problem}" for problem in found]
    return Refitted(refitted, skipped, problems)


def _fitter(parts: Parts, state: State, newest: int) -> Fitter | None:
    """What fitted then; None for an earlier learner that this process does not have."""
    text = state.settings["learner"]
    if state.seq >= newest or (text == parts.settings["learner"] and not text.startswith("own:")):
        return Fitter(parts)
    if text is None or text.startswith("own:"):
        return None
    try:
        return Fitter(Parts({**parts.settings, "learner": text}, parts.given))
    except (EvenhandError, ImportError):
        return None


def _unlike(event: Event, fitter: Fitter, still: Still, state: State, *, sure: bool) -> Iterator[str]:
    """What differs when the scores are made again; `sure` where the model before is known to the last row."""
    was, now = event.facts, fitter.scores(still, state)
    other = " (other versions fitted it)" if now["learner"] != was["learner"] else ""
    for group, again in now["groups"].items():
        old = was["groups"].get(group)
        if old is None:
            yield f"it has no scores of {group!r}"
        elif (old["n"], old["errors"]) != (again["n"], again["errors"]) or not all(
            math.isclose(old[name], again[name], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
            for name in ("accuracy", "loss_sum")
        ):
            yield (
                f"{group!r} had {old['errors']} errors of {old['n']}, accuracy {old['accuracy']:.6g}, loss "
                f"{old['loss_sum']:.6g}; now {again['errors']} of {again['n']}, {again['accuracy']:.6g}, "
                f"{again['loss_sum']:.6g}{other}"
            )
    for name in ("examples", "fresh", "trained", "loss"):
        if was.get(name) != now[name]:
            yield f"its scores have {name} {was.get(name)!r}, now {now[name]!r}"
    if sure and now["running"] != was["running"] and not _began_anew(was["running"], fitter, still, state):
        yield f"the running errors were {was['running']}, now {now['running']}{other}"


def _began_anew(running: object, fitter: Fitter, still: Still, state: State) -> bool:
    """Whether a process that began anew comes to these: after a second correction it fits the model before on first labels."""
    if state.altered <= state.scores_rest_on:
        return False
    return bool(Fitter(fitter.parts).scores(still, state)["running"] == running)
