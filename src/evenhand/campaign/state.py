"""A campaign as its events leave it: plain numbers and lists, folded without fitting anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.errors import LedgerError
from evenhand.ledger.base import Event
from evenhand.ledger.text import as_text, from_text

__all__ = ["MADE", "State"]

_FORMAT = 1
_BY_NUMBER = ("open", "expired")
MADE = re.compile(r"[ar]\d+-\d+")
"""What ids look like that the campaign makes."""


@dataclass
class State:
    """What the ledger says of one campaign; lists are in the order of the groups.

    Attributes:
        seq, at: the last event folded in, and when that was.
        settings: what the campaign was created with, as changed since.
        closed: why it was closed; None while it is open.
        asked: requests made so far.
        labels_used: labels charged to the budget.
        added: examples that were there before, and surplus: what can be told is budget plus these.
        train, validate: examples of each role, those taken back left out.
        dealt: ordinary examples so far, those taken back included: the next one's role is drawn from this.
        scored, loss_sum, accuracy: validation examples behind the newest scores, their losses, the accuracy.
        recent: recent accuracies, oldest first.
        history: mean losses at the last scores, as far back as the stopping rule looks.
        arrived: the last event that brought or changed examples of a group.
        rests_on: the last event a group's scores rest on.
        scored_at, scored_examples: when the newest scores came, and how many examples there were for them.
        failure: how the learner failed since then: the kind of error, when, and on which examples.
        open: requests waiting for labels, by number.
        expired: requests whose lease ended before all their labels came.
        abandoned, answered: how many requests ended so.
        retired: groups that have nothing left to give.
        columns, label_kind: what rows look like, known from the first delivery on.
        collectors: requests, labels and last activity of every collector.
        running: validation examples and errors of the models so far, each on examples told after it was fitted.
        frozen: the certified model: version, event, labels, and so on.
        missing: labels asked for since then that will not come.
        altered: the last event that changed or took back an example.
        taken: how many labels were corrected, withdrawn and erased.
        pool: how many examples of each group can be handed out, None without a pool; and the files they lie in.
        skipped: examples that nobody can label.
        lookalikes: whether an id that somebody gave looks like one that we make.
    """

    seq: int = 0
    at: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0
    closed: str | None = None
    asked: int = 0
    labels_used: int = 0
    added: int = 0
    train: list[int] = field(default_factory=list)
    validate: list[int] = field(default_factory=list)
    dealt: list[int] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    loss_sum: list[float] = field(default_factory=list)
    accuracy: list[float | None] = field(default_factory=list)
    recent: list[list[float]] = field(default_factory=list)
    history: list[list[float | None]] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    rests_on: list[int] = field(default_factory=list)
    scored_at: float | None = None
    scored_examples: int = 0
    failure: dict[str, Any] | None = None
    open: dict[int, dict[str, Any]] = field(default_factory=dict)
    expired: dict[int, dict[str, Any]] = field(default_factory=dict)
    abandoned: int = 0
    answered: int = 0
    retired: list[str] = field(default_factory=list)
    columns: dict[str, Any] | None = None
    label_kind: str | None = None
    collectors: dict[str, dict[str, Any]] = field(default_factory=dict)
    running: list[list[int]] = field(default_factory=list)
    frozen: dict[str, Any] | None = None
    missing: list[int] = field(default_factory=list)
    altered: int = 0
    taken: dict[str, int] = field(default_factory=lambda: {"corrected": 0, "withdrawn": 0, "erased": 0})
    pool: list[int] | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    skipped: int = 0
    lookalikes: bool = False

    @property
    def groups(self) -> list[str]:
        """The names of the groups."""
        found: list[str] = self.settings["groups"]
        return found

    @property
    def examples(self) -> int:
        """All examples there are, of both roles."""
        return sum(self.train) + sum(self.validate)

    @property
    def scores_rest_on(self) -> int:
        """The last event that the newest scores rest on; 0 without scores."""
        return max(self.rests_on, default=0)

    @property
    def fresh(self) -> list[str]:
        """Groups that received examples since the scores they have."""
        return [g for g, came, rests in zip(self.groups, self.arrived, self.rests_on, strict=True) if came > rests]

    @property
    def outstanding(self) -> int:
        """Labels that open requests still wait for."""
        return sum(request["size"] - request["told"] for request in self.open.values())

    @property
    def unspent(self) -> int:
        """Labels neither spent nor promised to an open request."""
        return int(self.settings["budget"]) - self.labels_used - self.outstanding

    def overdue(self, now: float) -> list[int]:
        """Open requests whose lease has ended."""
        return [number for number, r in self.open.items() if r["until"] is not None and r["until"] <= now]

    def expire(self, now: float) -> State:
        """See requests whose lease has ended as expired, though no event says so yet; gives itself back."""
        for number in self.overdue(now):
            self._expire(number)
        return self

    def fold(self, events: Iterable[Event]) -> State:
        """Take in events, in order; gives itself back."""
        for event in events:
            if event.seq != self.seq + 1:
                raise LedgerError(
                    f"event {event.seq} does not follow event {self.seq}: the ledger has a hole; restore a backup"
                )
            how = _HOW.get(event.kind)
            if how is None:
                raise LedgerError(f"event {event.seq} is {event.kind!r}, which this version does not know: upgrade")
            try:
                how(self, event)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise LedgerError(
                    f"event {event.seq} ({event.kind}) is damaged: {error!r}; restore a backup"
                ) from error
            self.seq, self.at = event.seq, event.at
        return self

    def copy(self) -> State:
        """The same state in lists of its own."""
        found = State.from_text(self.as_text())
        if found is None:
            raise AssertionError("a state reads its own text")
        return found

    def as_text(self) -> str:
        """The state as text, for a snapshot."""
        named = {name: {str(number): facts for number, facts in getattr(self, name).items()} for name in _BY_NUMBER}
        return as_text({"format": _FORMAT, **vars(self), **named})

    @classmethod
    def from_text(cls, text: str) -> State | None:
        """The state of a snapshot; None for one of another version, which is as good as none."""
        found = from_text(text)
        if found.pop("format") != _FORMAT:
            return None
        found |= {name: {int(number): facts for number, facts in found[name].items()} for name in _BY_NUMBER}
        return cls(**found)

    # ---------------------------------------------------------------- one method a kind of event

    def _created(self, event: Event) -> None:
        self.settings = dict(event.facts)
        self.created_at = event.at
        self._begin()

    def _begin(self) -> None:
        m = len(self.groups)
        names = ("train", "validate", "dealt", "scored", "arrived", "rests_on", "missing")
        for name in names:
            setattr(self, name, [0] * m)
        self.loss_sum, self.accuracy = [0.0] * m, [None] * m
        self.recent, self.running = [[] for _ in range(m)], [[0, 0] for _ in range(m)]

    def _asked(self, event: Event) -> None:
        facts = event.facts
        self.asked += 1
        self.open[int(event.request or 0)] = {
            **{name: facts[name] for name in ("size", "until")},
            "group": facts["decision"]["group"],
            "kind": facts["decision"]["kind"],
            "told": 0,
            "by": event.actor,
            "event": event.seq,
            "at": event.at,
        }
        if "ids" in facts:
            z = self.groups.index(facts["decision"]["group"])
            self.open[int(event.request or 0)]["left"] = dict(zip(facts["ids"], facts["roles"], strict=True))
            self.dealt[z] += facts["new"]
            self._fill_pool(z, -len(facts["ids"]))
        self._note(event, "requests", 1)

    def _told(self, event: Event) -> None:
        facts, number = event.facts, int(event.request or 0)
        request = self.open.get(number) or self.expired.get(number)
        z = self.groups.index(facts["group"])
        validating = facts["roles"].count("v") if "roles" in facts else facts["validating"]
        self._deal(z, facts["rows"] - validating, validating, event.seq)
        if "from_pool" in facts:
            self.dealt[z] -= facts["dealt_before"]  # when it was handed out
            self._fill_pool(z, -facts["from_pool"])
        self.labels_used += facts["rows"]
        self.added += facts["surplus"]
        if request is not None:
            filled = facts["rows"] - facts["surplus"]
            request["told"] += filled
            for name in facts["ids"] if "left" in request else ():
                request["left"].pop(name, None)
            if request.get("missing"):
                self.missing[z] -= filled
            if facts.get("closes") or request["told"] >= request["size"]:
                self._end(number, request)
        self._learn(facts)
        self._note(event, "labels", facts["rows"])

    def _end(self, number: int, request: dict[str, Any]) -> None:
        if number in self.open and request["told"] < request["size"] and self.frozen is not None:
            self.missing[self.groups.index(request["group"])] += request["size"] - request["told"]
        self.open.pop(number, None)
        self.expired.pop(number, None)
        self.answered += 1

    def _added(self, event: Event) -> None:
        facts = event.facts
        for z, role in zip(facts["groups"], facts["roles"], strict=True):
            self._deal(z, role == "t", role == "v", event.seq)
        self.labels_used += facts["charged"]
        self.added += len(facts["groups"]) - facts["charged"]
        self._learn(facts)

    def _deal(self, z: int, training: int, validating: int, seq: int) -> None:
        self.train[z] += training
        self.validate[z] += validating
        self.dealt[z] += training + validating
        self.arrived[z] = seq

    def _learn(self, facts: Mapping[str, Any]) -> None:
        """Columns and kind of label come with the first rows."""
        self.lookalikes |= not facts.get("made", True) and any(map(MADE.fullmatch, facts["ids"]))
        self.columns = facts.get("columns", self.columns)
        self.label_kind = facts.get("label_kind", self.label_kind)

    def _scored(self, event: Event) -> None:
        facts = event.facts
        self._take_scores(facts["groups"], set(facts["fresh"]))
        self.rests_on = [facts["rests_on"]] * len(self.groups)
        self.scored_at, self.scored_examples, self.failure = event.at, facts["examples"], None
        for group, (n, errors) in facts["running"].items():
            sums = self.running[self.groups.index(group)]
            sums[0] += n
            sums[1] += errors

    def _losses(self, event: Event) -> None:
        reported = event.facts["groups"]
        self._take_scores(reported, set(self.fresh) & reported.keys())
        for group in reported:
            self.rests_on[self.groups.index(group)] = event.seq
        self.scored_at, self.scored_examples = event.at, self.examples

    def _take_scores(self, scores: Mapping[str, Any], fresh: set[str]) -> None:
        window = self.settings["window"]
        for group, score in scores.items():
            z = self.groups.index(group)
            self.loss_sum[z], self.scored[z], self.accuracy[z] = score["loss_sum"], score["n"], score["accuracy"]
            if group in fresh and score["n"]:
                self.recent[z] = [*self.recent[z], score["accuracy"]][-window:]
        if rounds := self.settings.get("rounds_back"):
            row = [x / n if n else None for x, n in zip(self.loss_sum, self.scored, strict=True)]
            self.history = [*self.history, row][-1 - rounds :]

    def _failed(self, event: Event) -> None:
        self.failure = {"error": event.facts["error"], "at": event.at, "rests_on": event.facts["rests_on"]}

    def _certified(self, event: Event) -> None:
        self.frozen = {**event.facts, "event": event.seq}
        self.missing = [0] * len(self.groups)
        for request in self.expired.values():
            request["missing"] = False

    def _abandoned(self, event: Event) -> None:
        request = self.open.pop(int(event.request or 0))
        self._return(request)
        self.abandoned += 1
        if self.frozen is not None:
            self.missing[self.groups.index(request["group"])] += request["size"] - request["told"]

    def _expired(self, event: Event) -> None:
        self._expire(int(event.request or 0))

    def _expire(self, number: int) -> None:
        request = self.expired[number] = self.open.pop(number)
        self._return(request)
        request["missing"] = self.frozen is not None
        if self.frozen is not None:
            self.missing[self.groups.index(request["group"])] += request["size"] - request["told"]

    def _return(self, request: Mapping[str, Any]) -> None:
        """Examples that were not labelled go back to the pool."""
        self._fill_pool(self.groups.index(request["group"]), len(request.get("left", ())))

    def _fill_pool(self, z: int, count: int) -> None:
        if self.pool is not None:
            self.pool[z] += count

    def _pooled(self, event: Event) -> None:
        facts = event.facts
        if not self.groups:
            self.settings |= {name: facts[name] for name in ("groups", "population")}
            self._begin()
        self.pool = self.pool or [0] * len(self.groups)
        self.pool = [n + more for n, more in zip(self.pool, facts["counts"], strict=True)]
        self.columns = self.columns or facts["columns"]
        self.settings |= {"id": facts["id"]}
        self.lookalikes |= facts["lookalikes"]
        if facts["file"] is not None:
            same = [file for file in self.files if file["path"] != facts["file"]["path"]]
            self.files = [*same, facts["file"]]

    def _skipped(self, event: Event) -> None:
        facts = event.facts
        z, request = facts["group"], self.open.get(int(event.request or 0))
        self.skipped += 1
        if request is None:
            self._fill_pool(z, -1)
        else:
            request["left"].pop(facts["id"], None)
            request["size"] -= 1
            if request["told"] >= request["size"]:
                self._end(int(event.request or 0), request)
        if self.frozen is not None and facts["handed_out"]:
            self.missing[z] += 1

    def _extended(self, event: Event) -> None:
        self.open[int(event.request or 0)]["until"] = event.facts["until"]

    def _corrected(self, event: Event) -> None:
        self.altered = event.seq
        self.taken["corrected"] += len(event.facts["ids"])
        for z in event.facts["groups"]:
            self.arrived[z] = event.seq

    def _withdrawn(self, event: Event) -> None:
        facts = event.facts
        self.altered = event.seq
        self.taken[event.kind] += len(facts["ids"])
        for z, role in zip(facts["groups"], facts["roles"], strict=True):
            if role != "-":
                count = self.train if role == "t" else self.validate
                count[z] -= 1
                self.arrived[z] = event.seq
        self.labels_used -= facts.get("refund", 0)

    def _erased(self, event: Event) -> None:
        self._withdrawn(event)

    def _changed(self, event: Event) -> None:
        facts = dict(event.facts)
        self.retired = facts.pop("retired", self.retired)
        self.settings |= facts
        if "learner" in facts:  # the scores are those of another learner: every group that has examples is due
            self.failure = None
            self.arrived = [event.seq if came else 0 for came in self.arrived]

    def _closed(self, event: Event) -> None:
        self.closed = event.facts["reason"]
        for request in self.open.values():
            if self.frozen is not None:
                self.missing[self.groups.index(request["group"])] += request["size"] - request["told"]
        self.open.clear()

    def _note(self, event: Event, what: str, count: int) -> None:
        if event.actor is not None:
            totals = self.collectors.setdefault(event.actor, {"requests": 0, "labels": 0, "last": event.at})
            totals[what] += count
            totals["last"] = event.at


_KINDS = (
    "created", "asked", "told", "added", "scored", "losses", "failed", "abandoned", "expired", "extended", "corrected",
    "withdrawn", "erased", "pooled", "skipped", "changed", "certified", "closed",
)  # fmt: skip
_HOW: dict[str, Callable[[State, Event], None]] = {kind: getattr(State, f"_{kind}") for kind in _KINDS}
