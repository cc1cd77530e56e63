"""Checks a ledger: is it whole, are the rows those that were told, and would fitting and choosing again come to the same?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evenhand.campaign.deciding import Chooser
from evenhand.campaign.deliveries import digest_of, label_digest
from evenhand.campaign.fitting import Fitter, Still
from evenhand.campaign.pools import check_file
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.errors import EvenhandError
from evenhand.ledger.base import Event, Example, Ledger, Reader

__all__ = ["Verification", "verify"]

_TOLERANCE = 1e-6


@dataclass
class Verification:
    """What was checked, and `problems`: what differs.

    Attributes:
        events: events replayed.
        examples: rows compared with what was told.
        erased: ids of rows erased on purpose.
        requests_chosen_again: requests chosen again from the scores then.
        scores_refitted: scores fitted again.
        scores_skipped: scores that rest on rows corrected or taken back since, which cannot be fitted again.
        problems: what is not as it was recorded.
    """

    events: int = 0
    examples: int = 0
    erased: list[str] = field(default_factory=list)
    requests_chosen_again: int = 0
    scores_refitted: int = 0
    scores_skipped: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything is as it was recorded."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "ok": self.ok}


def verify(ledger: Ledger, campaign: int, parts: Parts) -> Verification:
    """Replay every event, check every row, choose every request again, refit every score."""
    found = Verification()
    with ledger.reading(campaign) as reader:
        events = reader.events()
        found.events = len(events)
        try:
            state = State().fold(events)
        except EvenhandError as error:
            found.problems.append(str(error))
            return found
        _snapshot(reader, events, found)
        _pool(reader, state, found)
        rows = reader.changed()
        _rows(events, rows, found)
        _choices(events, parts, found)
        if not found.problems:  # what was altered need not be fitted to know that it differs
            _scores(events, rows, parts, found)
        _frozen(reader, events, found)
    return found


def _snapshot(reader: Reader, events: list[Event], found: Verification) -> None:
    stored = reader.snapshot()
    known = None if stored is None else State.from_text(stored[1])
    if known is not None and known != State().fold(events[: known.seq]):
        found.problems.append("the snapshot differs from the events: delete the row of the table snapshots")


def _pool(reader: Reader, state: State, found: Verification) -> None:
    """Pools that have other examples than the events say, and files that are gone or changed."""
    if state.pool is None:
        return
    there = reader.pool_counts()
    for group, count in zip(state.groups, state.pool, strict=True):
        if there.get(group, 0) != count:
            found.problems.append(f"the pool of {group!r} has {there.get(group, 0)} examples, the events say {count}")
    for file in state.files:
        try:
            check_file(file, thoroughly=True)
        except EvenhandError as error:
            found.problems.append(str(error))


def _rows(events: list[Event], rows: list[Example], found: Verification) -> None:
    """Rows that are missing or not what was told."""
    kept = {row.id: row for row in rows}
    erased, withdrawn = (
        {name for event in events if event.kind == kind for name in event.facts["ids"]}
        for kind in ("erased", "withdrawn")
    )
    corrected = {
        name: digest
        for event in events
        if event.kind == "corrected"
        for name, digest in zip(event.facts["ids"], event.facts["digests"], strict=True)
    }
    for name, seq, digest in _told(events):
        row = kept.pop(name, None)
        found.examples += 1
        if row is None:
            found.problems.append(f"event {seq}: the example {name!r} is missing")
        elif name in erased:
            found.erased.append(name)
            if row.features is not None or row.label is not None:
                found.problems.append(f"the example {name!r} was erased, but its row is still there")
        elif not row.salt or digest_of(row) != digest:
            found.problems.append(f"event {seq}: the example {name!r} is not what was told")
        elif row.fate != ("withdrawn" if name in withdrawn else None):
            found.problems.append(f"the example {name!r} is {row.fate or 'not withdrawn'}, which no event says")
        elif name in corrected and label_digest(row.salt, row.label) != corrected[name]:
            found.problems.append(f"the label of the example {name!r} is not the one it was corrected to")
        elif name not in corrected and row.label != row.first_label:
            found.problems.append(f"the label of the example {name!r} changed, but nobody corrected it")
    found.problems += [f"the example {name!r} is in no event" for name in kept]


def _told(events: list[Event]) -> Iterator[tuple[str, int, str]]:
    for event in events:
        if event.kind in ("told", "added") and "ids" in event.facts:
            for name, digest in zip(event.facts["ids"], event.facts["digests"], strict=True):
                yield name, event.seq, digest


def _choices(events: list[Event], parts: Parts, found: Verification) -> None:
    """Requests that the strategy would choose otherwise from the recorded scores."""
    chooser, state = Chooser(parts), State()
    for event in events:
        if event.kind == "asked":
            found.requests_chosen_again += 1
            was = event.facts["decision"]["group"]
            try:
                again = chooser.propose(state).decision.group
            except EvenhandError as error:
                found.problems.append(f"event {event.seq}: request {event.request} was made, now: {error}")
            else:
                if again != was:
                    found.problems.append(
                        f"event {event.seq}: request {event.request} was for {was!r}, now it would be for {again!r}"
                    )
        state.fold([event])


def _scores(events: list[Event], rows: list[Example], parts: Parts, found: Verification) -> None:
    """Scores that come out otherwise when the learner is fitted again."""
    scored = [event for event in events if event.kind == "scored"]
    if not scored:
        return
    learners = [event.seq for event in events if event.kind == "changed" and "learner" in event.facts]
    first = max(learners, default=0)
    altered = {row.id: row.told or 0 for row in rows if row.changed > (row.told or 0)}
    earliest = min(altered.values(), default=math.inf)
    fitter, past, seq = Fitter(parts), State(), 0
    for event in scored:
        rests_on = event.facts["rests_on"]
        if rests_on >= earliest or event.seq < first:
            found.scores_skipped += 1
            continue
        past.fold(events[seq:rests_on])
        seq = rests_on
        found.scores_refitted += 1
        past_rows = [row for row in rows if (row.told or 0) <= rests_on]
        now = fitter.scores(Still(past_rows, events[:rests_on]), past)
        other = " (other versions fitted it)" if now["learner"] != event.facts["learner"] else ""
        for group, was in event.facts["groups"].items():
            again = now["groups"][group]
            if (was["n"], was["errors"]) != (again["n"], again["errors"]) or not math.isclose(
                was["loss_sum"], again["loss_sum"], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE
            ):
                found.problems.append(
                    f"event {event.seq}: {group!r} had {was['errors']} errors of {was['n']}, loss {was['loss_sum']:.6g}; "
                    f"now {again['errors']} of {again['n']}, {again['loss_sum']:.6g}{other}"
                )
        if now["running"] != event.facts["running"]:
            found.problems.append(
                f"event {event.seq}: the running errors were {event.facts['running']}, now {now['running']}"
            )


def _frozen(reader: Reader, events: list[Event], found: Verification) -> None:
    """Frozen models that are missing or other than recorded."""
    import hashlib

    for event in events:
        if event.kind == "certified":
            stored = reader.model(event.facts["version"])
            if stored is None or hashlib.sha256(stored.data).hexdigest() != event.facts["digest"]:
                found.problems.append(
                    f"event {event.seq}: the frozen model {event.facts['version']} is missing or altered"
                )
