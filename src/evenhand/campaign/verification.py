"""Checks a ledger: is it whole, are the rows those that were told, and does choosing again from the recorded scores agree?

No past is fitted again: the scores are taken as they were recorded. A ledger has no witness outside itself. Whoever removes
its newest events together with their rows leaves an earlier stage of the same campaign, which is as sound as it was then; and
whoever writes every event, row and digest anew leaves another campaign. Keep backups elsewhere, and compare the number and
time of the last event with them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from evenhand.campaign.chooser import Decider
from evenhand.campaign.deliveries import digest_of, label_digest
from evenhand.campaign.events import (
    ADDED,
    CONCLUDED,
    CORRECTED,
    COUNTED,
    ERASED,
    EXPIRED,
    FROZEN,
    LABELLED,
    NAMED,
    REQUESTS,
    ROWS,
    SCORED,
    TOLD,
    WITHDRAWN,
    Altered,
    answer_in,
    ids_in,
    request_in,
    rows_in,
)
from evenhand.campaign.evidence import FrozenModel
from evenhand.campaign.pool import check_file
from evenhand.campaign.proof import conclude, weighed
from evenhand.campaign.requests import offered
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import LETTERS, State
from evenhand.claims.certificates import spent_by
from evenhand.errors import EvenhandError
from evenhand.ledger.base import Event, Example, Ledger, Reader
from evenhand.notation import JsonObject
from evenhand.strategies.decision import DecisionFacts
from evenhand.uniforms import places

# other processors and other builds of BLAS round differently
_TOLERANCE = 1e-6
_TINY = 1e-9
# seconds that may pass between computing a lease and writing its event
_LEASE_TOLERANCE = 1.0


@dataclass
class Verification:
    """What was checked, and `problems`: what differs.

    Attributes:
        events: events replayed.
        examples: rows compared with what was told.
        erased: ids of rows erased on purpose.
        requests_chosen_again: requests chosen again from the scores of that time.
        problems: what is not as it was recorded.
    """

    events: int = 0
    examples: int = 0
    erased: list[str] = field(default_factory=list)
    requests_chosen_again: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything is as it was recorded."""
        return not self.problems

    def as_dict(self) -> JsonObject:
        """The result as plain values."""
        return {**vars(self), "ok": self.ok}


def verify(ledger: Ledger, campaign: int, parts: Parts) -> Verification:
    """Replay every event, check every row, choose every request again.

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
        {name for event in events if event.kind == kind for name in ids_in(event)} for kind in ("erased", "withdrawn")
    )
    corrected = {
        name: digest
        for event in events
        if event.kind == "corrected"
        for name, digest in zip(ids_in(event), CORRECTED.facts(event)["digests"], strict=False)
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
        if event.kind in ROWS:
            for name, digest in zip(ids_in(event), rows_in(event)["digests"], strict=False):
                yield name, event.seq, digest


# -------------------------------------------------------------------- every event, from the state before it


class _Before:
    """What is known just before an event: the state, the rows by id, and which of them were taken back by then."""

    def __init__(self, rows: Iterable[Example]) -> None:
        self.state, self.rows = State(), {row.id: row for row in rows}
        self.gone: set[str] = set()

    def known(self, names: Iterable[str]) -> list[Example]:
        """The rows with these ids, as they are now."""
        return [self.rows[name] for name in names if name in self.rows]

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
            self.gone |= set(ids_in(event))


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
    decider, state = Decider(parts), State()
    for event in events:
        if event.kind in REQUESTS:
            found.requests_chosen_again += 1
            wrong = [*_chosen(event, decider, state), *_asked(event, state)]
            found.problems += [f"event {event.seq}: request {event.request} {problem}" for problem in wrong]
        state.fold([event])


def _chosen(event: Event, decider: Decider, state: State) -> Iterator[str]:
    """How a request differs from the one that would be made."""
    try:
        again = decider.propose(state)
    except EvenhandError as error:
        yield f"was made, now: {error}"
        return
    asked = request_in(event)
    yield from _other_choice(asked["decision"], again.decision.as_dict())
    if asked["size"] != again.size:
        yield f"was for {asked['size']} labels, now it would be for {again.size}"


def _asked(event: Event, state: State) -> Iterator[str]:
    """What a request says of its number, its scores and its lease."""
    facts, behind = request_in(event), state.examples - state.scored_examples
    if event.request != state.asked + 1:
        yield f"follows request {state.asked}"
    if event.kind == NAMED.name and len(ids_in(event)) != facts["size"]:
        yield f"names {len(ids_in(event))} examples, but asks for {facts['size']}"
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


def _other_choice(was: DecisionFacts, again: DecisionFacts) -> Iterator[str]:
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
    """Rows that answer a request: what it says of them, and how many of them were asked for."""
    facts = TOLD.facts(event)
    yield from _answered(event, before)
    yield from _about_rows(facts["ids"], facts["digests"], facts["made"], before.known(facts["ids"]))


def _labelled(event: Event, before: _Before) -> Iterator[str]:
    """Labels of pool examples by id."""
    facts = LABELLED.facts(event)
    yield from _answered(event, before)
    yield from _about_rows(facts["ids"], facts["digests"], False, before.known(facts["ids"]))


def _counted(event: Event, before: _Before) -> Iterator[str]:
    """A number of rows that somebody else keeps."""
    facts = COUNTED.facts(event)
    request = before.state.waiting(event.request)
    left = 0 if request is None else request["size"] - request["told"]
    of_roles = facts["train"] + facts["validate"] + facts["certify"] + facts["test"]
    yield from _unlike(facts, {**_asked_for(event, before), "surplus": max(0, facts["rows"] - left), "rows": of_roles})


def _answered(event: Event, before: _Before) -> Iterator[str]:
    """What an answer with rows says of their group, roles and number."""
    facts, names = answer_in(event), ids_in(event)
    rows = before.known(names)
    follows = {**_asked_for(event, before), "rows": len(names), "roles": before.letters(names)}
    follows["surplus"] = sum(row.origin == "extra" for row in rows)
    if any(row.group != facts["group"] for row in rows):
        yield f"it says that its rows are of {facts['group']!r}, and they are not"
    yield from _unlike(event.facts, follows)


def _asked_for(event: Event, before: _Before) -> dict[str, object]:
    """What follows from the request that an answer is for."""
    request, late = before.state.waiting(event.request), event.request in before.state.expired
    return {"late": late} if request is None else {"late": late, "group": request["group"]}


def _added(event: Event, before: _Before) -> Iterator[str]:
    """Labelled data that the user already had."""
    facts = ADDED.facts(event)
    names, rows = facts["ids"], before.known(facts["ids"])
    charged = sum(row.origin == "charged" for row in rows)
    follows = {"roles": before.letters(names), "charged": charged, "groups": _groups_of(before, names)}
    yield from _unlike(facts, follows)
    yield from _about_rows(names, facts["digests"], facts["made"], rows)


def _about_rows(ids: Sequence[str], digests: Sequence[str], made: bool, rows: Sequence[Example]) -> Iterator[str]:
    if len(digests) != len(ids):
        yield f"it has {len(digests)} digests for {len(ids)} rows"
    if any(row.made != made for row in rows):
        yield "it does not say who made the ids of its rows"


def _corrected(event: Event, before: _Before) -> Iterator[str]:
    """Other labels: whose they are."""
    facts = CORRECTED.facts(event)
    yield from _of_groups(facts, before)
    if len(facts["digests"]) != len(facts["ids"]):
        yield f"it has {len(facts['digests'])} digests for {len(facts['ids'])} rows"


def _withdrawn(event: Event, before: _Before) -> Iterator[str]:
    """Rows taken back: whose they were, and what went back to the budget."""
    facts = WITHDRAWN.facts(event)
    yield from _of_groups(facts, before)
    yield from _unlike(facts, {"roles": before.letters(facts["ids"])})
    paid = sum(row.origin in ("asked", "extra", "charged") for row in before.known(facts["ids"]))
    # a refund that was never paid would let a campaign spend more than its budget
    if facts["refund"] not in (0, paid):
        yield f"it gives {facts['refund']} labels back to the budget, which was charged {paid} for them"


def _erased(event: Event, before: _Before) -> Iterator[str]:
    """Rows deleted for good: whose they were."""
    facts = ERASED.facts(event)
    yield from _of_groups(facts, before)
    yield from _unlike(facts, {"roles": before.letters(facts["ids"])})


def _of_groups(facts: Altered, before: _Before) -> Iterator[str]:
    told = [name for name in facts["ids"] if name in before.rows]  # others are pool examples that have no label
    groups = [z for name, z in zip(facts["ids"], facts["groups"], strict=False) if name in before.rows]
    yield from _unlike({"groups": groups}, {"groups": _groups_of(before, told)})


def _groups_of(before: _Before, names: Iterable[str]) -> list[int]:
    groups = before.state.groups
    return [groups.index(before.rows[n].group) for n in names if n in before.rows and before.rows[n].group in groups]


def _scored(event: Event, before: _Before) -> Iterator[str]:
    """Scores: which events they may rest on, and which examples they are about; the losses themselves are taken as they are."""
    facts, state = SCORED.facts(event), before.state
    earliest, rests_on = state.scores_rest_on, facts["rests_on"]
    # scores never go back to older labels, and cannot rest on labels that had not come
    if not earliest <= rests_on < event.seq:
        yield f"its scores rest on event {rests_on}, which is not between {earliest} and {event.seq - 1}"
    if missing := [group for group in state.groups if group not in facts["groups"]]:
        yield f"it has no scores of {missing[0]!r}"
    follows: dict[str, object] = {"risk": state.settings["risk"]}
    if rests_on == state.seq:
        follows |= {"examples": state.examples, "trained": sum(state.train)}
        for group, validate, certify in zip(state.groups, state.validate, state.certify, strict=True):
            # fewer where there was nothing to train a model on yet
            if group in facts["groups"] and facts["groups"][group]["n"] > validate + certify:
                yield f"it scores {facts['groups'][group]['n']} examples of {group!r}, and there were {validate + certify}"
    yield from _unlike(facts, follows)


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
        yield f"it says {CONCLUDED.facts(event)['outcome']!r}, but the evidence does not end the phase"
    else:
        same = {"outcome": again["outcome"], "target": again["target"], "delta": again["delta"]}
        yield from _unlike(event.facts, {**same, "labels": again["labels"]})


def _unlike(facts: Mapping[str, object], follows: Mapping[str, object]) -> Iterator[str]:
    """Facts that are not what the events before say."""
    for name, value in follows.items():
        if name not in facts or facts[name] != value:
            yield f"{name} {facts.get(name)!r}, but the events and rows say {value!r}"


_CHECKS: dict[str, Callable[[Event, _Before], Iterator[str]]] = {
    TOLD.name: _told, LABELLED.name: _labelled, COUNTED.name: _counted, ADDED.name: _added, CORRECTED.name: _corrected,
    WITHDRAWN.name: _withdrawn, ERASED.name: _erased, SCORED.name: _scored, EXPIRED.name: _expired,
    FROZEN.name: _frozen_then, CONCLUDED.name: _concluded,
}  # fmt: skip


def frozen_models(reader: Reader, events: Sequence[Event]) -> Iterator[str]:
    """Frozen models that are missing or differ from what was recorded."""
    for event in events:
        if event.kind == "frozen":
            facts = FROZEN.facts(event)
            stored = reader.model(facts["version"])
            named = (facts["digest"], facts["digest"], facts["format"])
            if stored is None or (stored.digest, hashlib.sha256(stored.data).hexdigest(), stored.format) != named:
                yield f"event {event.seq}: the frozen model {facts['version']} is missing or altered"


def weighed_evidence(reader: Reader, state: State, parts: Parts) -> Iterator[str]:
    """Evidence of a certify phase that differs from what the frozen model and the rows give, if no label came since."""
    facts = state.weighed
    # labels that came since have not been weighed yet: there is nothing to compare with
    if facts is None or state.frozen is None or facts["rests_on"] < state.evidenced:
        return
    phase = state.proving or state.outcome
    if phase is None:
        return
    spent = spent_by(state.frozen["version"], phase["delta"])
    again = weighed(FrozenModel(parts).findings(reader, state), state, spent)
    # counts and sums, not bounds: bounds follow from them, and would differ by rounding
    names = ("first", "now", "labels", "doubtful")
    yield from (
        f"the evidence as weighed has {what}" for what in _unlike(facts, {n: v for n, v in again.items() if n in names})
    )
