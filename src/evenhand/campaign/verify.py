"""Checks a ledger: is it whole, are the rows those that were told, and does fitting and choosing again agree?

A ledger has no witness outside itself. Whoever removes its newest events together with their rows leaves an earlier stage
of the same campaign, which is as sound as it was then; and whoever writes every event, row and digest anew leaves another
campaign. Keep backups elsewhere, and compare the number and time of the last event with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from evenhand.campaign.deciding import Chooser, offered
from evenhand.campaign.deliveries import digest_of, label_digest
from evenhand.campaign.pools import check_file
from evenhand.campaign.proving import conclude
from evenhand.campaign.refitting import refit_scores
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import LETTERS, State
from evenhand.campaign.verify_proofs import frozen_models, weighed_evidence
from evenhand.errors import EvenhandError
from evenhand.ledger.base import Event, Example, Ledger, Reader
from evenhand.notation import JsonMapping, JsonObject
from evenhand.uniforms import places

__all__ = ["Verification", "verify"]

# other processors and other builds of BLAS round differently
_TOLERANCE = 1e-6
_TINY = 1e-9
# seconds that may pass between computing a lease and writing its event
_LEASE_TOLERANCE = 1.0
_ALTERED = ("corrected", "withdrawn", "erased")


@dataclass
class Verification:
    """What was checked, and `problems`: what differs.

    Attributes:
        events: events replayed.
        examples: rows compared with what was told.
        erased: ids of rows erased on purpose.
        requests_chosen_again: requests chosen again from the scores of that time.
        scores_refitted: scores fitted again, with the labels as they were then.
        scores_skipped: scores that cannot be fitted again: they rest on rows erased since, on a label that a correction
            brought and a later one removed, or on an earlier learner that this process does not have.
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

    def as_dict(self) -> JsonObject:
        """The result as plain values."""
        return {**vars(self), "ok": self.ok}


def verify(ledger: Ledger, campaign: int, parts: Parts) -> Verification:
    """Replay every event, check every row, choose every request again, refit every score.

    It cannot notice that the newest events are gone together with what they brought: nothing outside the ledger knows
    that they were there.
    """
    found = Verification()
    with ledger.reading(campaign) as reader, _damage("the ledger", found):
        events = reader.events()
        found.events = len(events)
        state = State().fold(events)
        # in the same moment as the events: a campaign may go on while it is checked
        rows = reader.changed()
        with _damage("the rows", found):
            _rows(events, rows, found)
        with _damage("the events", found):
            _steps(events, rows, found)
        if not found.problems:
            # what was altered need not be fitted to know that it differs
            with _damage("the scores", found):
                again = refit_scores(events, rows, parts)
                found.scores_refitted, found.scores_skipped = again.refitted, again.skipped
                found.problems += again.problems
        with _damage("the requests", found):
            _choices(events, parts, found)
        with _damage("the snapshot", found):
            _snapshot(reader, events, found)
        with _damage("the pool", found):
            _pool(reader, state, rows, found)
        with _damage("the frozen models", found):
            found.problems += frozen_models(reader, events)
        if not found.problems:
            with _damage("the evidence", found):
                found.problems += weighed_evidence(reader, state, parts)
    return found


@contextmanager
def _damage(what: str, found: Verification) -> Iterator[None]:
    """Whatever cannot be read is a finding: whoever verifies wants to know what is damaged, and goes on."""
    try:
        yield
    except EvenhandError as error:
        found.problems.append(str(error))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        found.problems.append(
            f"{what} cannot be checked, because something is damaged: {type(error).__name__}: {error}"
        )


# -------------------------------------------------------------------- the cache of the state, and the rows


def _snapshot(reader: Reader, events: list[Event], found: Verification) -> None:
    stored = reader.snapshot()
    if stored is None:
        return
    try:
        known = State.from_text(stored[1])
        # as text: read back, what was a tuple is a list
        same = known is None or (
            known.seq == stored[0] and known.as_text() == State().fold(events[: known.seq]).as_text()
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        same = False
    if not same:
        found.problems.append("the snapshot differs from the events: delete the row of the table snapshots")


def _pool(reader: Reader, state: State, rows: list[Example], found: Verification) -> None:
    """Pools that have other examples than the events say, another order than was drawn, and files gone or changed."""
    if state.pool is None:
        return
    salts = reader.orders()
    for row in rows:
        if row.place is not None and [row.place] != places(salts.get(row.registered or 0, ""), [row.id]):
            found.problems.append(f"the example {row.id!r} was moved in the secret order of its pool")
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
        for name, digest in zip(event.facts["ids"], event.facts["digests"], strict=False)
    }
    for name, seq, digest in _told_rows(events):
        # the rows that are left in the end are in no event
        row = kept.pop(name, None)
        found.examples += 1
        if row is None:
            found.problems.append(f"event {seq}: the example {name!r} is missing")
        elif name in erased:
            found.erased.append(name)
            if any(value is not None for value in (row.features, row.label, row.first_label, row.salt)):
                found.problems.append(f"the example {name!r} was erased, but its row is still there")
        elif row.features is None:
            found.problems.append(f"event {seq}: the example {name!r} has no features")
        # digests in events cannot be changed without changing the event: they are what rows are held against
        elif not row.salt or digest_of(row) != digest:
            found.problems.append(f"event {seq}: the example {name!r} is not what was told")
        elif row.fate != ("withdrawn" if name in withdrawn else None):
            found.problems.append(f"the example {name!r} is {row.fate or 'not withdrawn'}, which no event says")
        elif name in corrected and label_digest(row.salt, row.label) != corrected[name]:
            found.problems.append(f"the label of the example {name!r} is not the one it was corrected to")
        elif name not in corrected and row.label != row.first_label:
            found.problems.append(f"the label of the example {name!r} changed, but nobody corrected it")
    # rows that somebody put in by hand
    found.problems += [f"the example {name!r} is in no event" for name in kept]


def _told_rows(events: list[Event]) -> Iterator[tuple[str, int, str]]:
    for event in events:
        if event.kind in ("told", "added") and "ids" in event.facts:
            for name, digest in zip(event.facts["ids"], event.facts["digests"], strict=False):
                yield name, event.seq, digest


# -------------------------------------------------------------------- every event, from the state before it


class _Before:
    """What is known just before an event: the state, the rows by id, and which of them were taken back by then."""

    def __init__(self, rows: Iterable[Example]) -> None:
        self.state, self.rows = State(), {row.id: row for row in rows}
        self.gone: set[str] = set()

    def letters(self, names: Iterable[str]) -> str:
        """The roles of examples, `-` for those that did not count any more."""
        rows = [(name, self.rows.get(name)) for name in names]
        return "".join(
            "-" if row is None or name in self.gone else LETTERS.get(row.role or "", "-") for name, row in rows
        )

    def fold(self, event: Event) -> None:
        """Continue with the next event."""
        self.state.fold([event])
        if event.kind in ("withdrawn", "erased"):
            # letters of later events say that these no longer count
            self.gone |= set(event.facts["ids"])


def _steps(events: list[Event], rows: list[Example], found: Verification) -> None:
    """Events that do not follow from those before them."""
    before, at = _Before(rows), -math.inf
    for event in events:
        check = _CHECKS.get(event.kind)
        wrong = []
        if check is not None:
            try:
                wrong = list(check(event, before))
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
                wrong = [f"it is damaged: {type(error).__name__}: {error}"]
        # written so that a time that is no number fails as well
        if not event.at >= at:
            wrong.append("it is dated before the event that it follows")
        found.problems += [f"event {event.seq} ({event.kind}): {problem}" for problem in wrong]
        at = event.at
        before.fold(event)


def _choices(events: list[Event], parts: Parts, found: Verification) -> None:
    """Requests that would be made differently from the recorded scores."""
    chooser, state = Chooser(parts), State()
    for event in events:
        if event.kind == "asked":
            found.requests_chosen_again += 1
            wrong = [*_chosen(event, chooser, state), *_asked(event, state)]
            found.problems += [f"event {event.seq}: request {event.request} {problem}" for problem in wrong]
        state.fold([event])


def _chosen(event: Event, chooser: Chooser, state: State) -> Iterator[str]:
    """How a request differs from the one that would be made."""
    try:
        again = chooser.propose(state)
    except EvenhandError as error:
        yield f"was made, now: {error}"
        return
    yield from _other_choice(event.facts["decision"], again.decision.as_dict())
    if event.facts["size"] != again.size:
        yield f"was for {event.facts['size']} labels, now it would be for {again.size}"


def _asked(event: Event, state: State) -> Iterator[str]:
    """What a request says of its number, its scores and its lease."""
    facts, behind = event.facts, state.examples - state.scored_examples
    if event.request != state.asked + 1:
        yield f"follows request {state.asked}"
    if "ids" in facts and len(facts["ids"]) != facts["size"]:
        yield f"names {len(facts['ids'])} examples, but asks for {facts['size']}"
    follows = {"rests_on": state.scores_rest_on, "scored_at": state.scored_at, "behind": behind}
    yield from (f"has {problem}" for problem in _unlike(facts, follows))
    until, lease = facts["until"], state.settings["lease"]
    if until is None or lease is None:
        as_long = until is lease
    else:  # where the clock went back, an event is dated like the one before it, and its lease began earlier
        late = until - event.at - lease
        as_long = late <= _LEASE_TOLERANCE and (late >= -_LEASE_TOLERANCE or event.at == state.at)
    if not as_long:
        yield f"waits until {until}, which is not its time and the lease of {lease} seconds"


def _other_choice(was: JsonMapping, again: JsonMapping) -> Iterator[str]:
    if was["group"] != again["group"]:
        yield f"was for {was['group']!r}, now it would be for {again['group']!r}"
    elif was["kind"] != again["kind"]:
        yield f"was made because of {was['kind']!r}, now it would be because of {again['kind']!r}"
    elif was["terms"].keys() != again["terms"].keys():
        yield f"was chosen by the terms {sorted(was['terms'])}, now by {sorted(again['terms'])}"
    else:
        columns = [(f"the term {name!r}", was["terms"][name], again["terms"][name]) for name in again["terms"]]
        for what, old, new in [*columns, ("the chances", was["probability"], again["probability"])]:
            if not _alike(old, new):
                yield f"was chosen with {what} {old}, now with {new}"


def _alike(one: Mapping[str, float | None] | None, other: Mapping[str, float | None] | None) -> bool:
    """Whether two columns of numbers are the same, except for rounding on another machine."""
    if one is None or other is None:
        return one is other
    return one.keys() == other.keys() and all(_close(one[name], other[name]) for name in one)


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TINY)


def _told(event: Event, before: _Before) -> Iterator[str]:
    """A delivery: what it says of its rows, and how many of them were asked for."""
    facts, state, number = event.facts, before.state, event.request or 0
    request = state.open.get(number) or state.expired.get(number)
    left = 0 if request is None else request["size"] - request["told"]
    follows: JsonObject = {"late": number in state.expired}
    if "from_pool" not in facts:
        follows["surplus"] = max(0, facts["rows"] - left)
    if request is not None:
        follows["group"] = request["group"]
    if "ids" in facts:
        rows = [before.rows[name] for name in facts["ids"] if name in before.rows]
        follows |= {"rows": len(facts["ids"]), "roles": before.letters(facts["ids"])}
        follows["surplus"] = sum(row.origin == "extra" for row in rows)
        if any(row.group != facts["group"] for row in rows):
            yield f"it says that its rows are of {facts['group']!r}, and they are not"
        yield from _about_rows(facts, rows)
    yield from _unlike(facts, follows)


def _added(event: Event, before: _Before) -> Iterator[str]:
    """Labelled data that the user already had."""
    facts, names = event.facts, event.facts["ids"]
    rows = [before.rows[name] for name in names if name in before.rows]
    charged = sum(row.origin == "charged" for row in rows)
    follows = {"roles": before.letters(names), "charged": charged, "groups": _groups_of(before, names)}
    yield from _unlike(facts, follows)
    yield from _about_rows(facts, rows)


def _about_rows(facts: JsonMapping, rows: Sequence[Example]) -> Iterator[str]:
    if len(facts["digests"]) != len(facts["ids"]):
        yield f"it has {len(facts['digests'])} digests for {len(facts['ids'])} rows"
    if any(row.made != facts["made"] for row in rows):
        yield "it does not say who made the ids of its rows"


def _altered(event: Event, before: _Before) -> Iterator[str]:
    """A correction, or rows taken back: whose they were, and what went back to the budget."""
    facts, names = event.facts, event.facts["ids"]
    told = [name for name in names if name in before.rows]  # others are pool examples that have no label
    groups = [z for name, z in zip(names, facts["groups"], strict=False) if name in before.rows]
    yield from _unlike({"groups": groups}, {"groups": _groups_of(before, told)})
    if event.kind == "corrected":
        if len(facts["digests"]) != len(names):
            yield f"it has {len(facts['digests'])} digests for {len(names)} rows"
        return
    yield from _unlike(facts, {"roles": before.letters(names)})
    paid = sum(before.rows[name].origin in ("asked", "extra", "charged") for name in told)
    # a refund that was never paid would let a campaign spend more than its budget
    if facts.get("refund", 0) not in (0, paid):
        yield f"it gives {facts['refund']} labels back to the budget, which was charged {paid} for them"


def _groups_of(before: _Before, names: Iterable[str]) -> list[int]:
    groups = before.state.groups
    return [groups.index(before.rows[n].group) for n in names if n in before.rows and before.rows[n].group in groups]


def _scored(event: Event, before: _Before) -> Iterator[str]:
    """Scores: which events they may rest on; `refit_scores` fits them again."""
    earliest, rests_on = before.state.scores_rest_on, event.facts["rests_on"]
    # scores never go back to older labels, and cannot rest on labels that had not come
    if not earliest <= rests_on < event.seq:
        yield f"its scores rest on event {rests_on}, which is not between {earliest} and {event.seq - 1}"


def _expired(event: Event, before: _Before) -> Iterator[str]:
    """A lease that ended."""
    request = before.state.open[event.request or 0]
    if request["until"] is None or request["until"] > event.at:
        yield f"request {event.request} expired before its lease ended"


def _frozen_then(event: Event, before: _Before) -> Iterator[str]:
    """A frozen model: its number, and the labels there were."""
    frozen = before.state.frozen
    follows = {"version": 1 + (frozen["version"] if frozen else 0), "labels": before.state.labels_used}
    yield from _unlike(event.facts, follows)


def _concluded(event: Event, before: _Before) -> Iterator[str]:
    """The end of a certify phase, concluded once more from the evidence as weighed."""
    state = before.state
    again = None if state.proving is None else conclude(state, offered(state))
    if again is None:
        yield f"it says {event.facts['outcome']!r}, but the evidence does not end the phase"
    else:
        yield from _unlike(event.facts, {name: again[name] for name in ("outcome", "target", "delta", "labels")})


def _unlike(facts: Mapping[str, object], follows: Mapping[str, object]) -> Iterator[str]:
    """Facts that are not what the events before say."""
    for name, value in follows.items():
        if name not in facts or facts[name] != value:
            yield f"{name} {facts.get(name)!r}, but the events and rows say {value!r}"


_CHECKS: dict[str, Callable[[Event, _Before], Iterator[str]]] = {
    "told": _told, "added": _added, "scored": _scored, "expired": _expired, "frozen": _frozen_then, "concluded": _concluded,
    **dict.fromkeys(_ALTERED, _altered),
}  # fmt: skip
