"""A campaign as its events leave it: plain numbers and lists, folded without fitting anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.ledger.events import KINDS, Event
from evenhand.ledger.text import as_text, from_text

__all__ = ["State"]

_FORMAT = 3
_BY_NUMBER = ("open", "expired")


@dataclass
class State:
    """What the ledger says of one campaign; lists are in the order of the groups.

    Attributes:
        seq: the last event folded in; below 0 where folding was cut short.
        at: when that was.
        settings: what the campaign was created with, as changed since.
        closed: why it was closed; None while it is open.
        asked: requests made so far.
        labels_used: labels charged to the budget.
        counts, held: training and validation examples.
        scored, loss_sum, accuracy: validation examples behind the newest scores, their losses, the accuracy.
        recent: recent accuracies, oldest first.
        arrived: the last event that brought examples of a group.
        rests_on: the last event a group's scores rest on.
        scored_at, scored_labels: when the newest scores came, and how many examples there were for them.
        open: requests waiting for their answer, by number.
        expired: requests whose lease ran out and that were not answered since.
        abandoned, answered: how many requests ended so.
        unavailable: groups that have nothing left to give.
        classes: the labels seen or allowed.
        first_rows: the first event with delivered rows; 0 before it.
        running: n and errors of the validation examples scored by the model before them.
        history: mean losses of the newest scorings, oldest first, as many as a stopping rule looks back on.
        frozen: the newest certified model, `version`, `rests_on` and the `event` that froze it; None without one.
        since: n and errors of that model on the validation examples told since.
    """

    seq: int = 0
    at: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    closed: str | None = None
    created_at: float = 0.0
    asked: int = 0
    labels_used: int = 0
    counts: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    loss_sum: list[float] = field(default_factory=list)
    accuracy: list[float | None] = field(default_factory=list)
    recent: list[list[float]] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    rests_on: list[int] = field(default_factory=list)
    scored_at: float | None = None
    scored_labels: int = 0
    open: dict[int, dict[str, Any]] = field(default_factory=dict)
    expired: dict[int, dict[str, Any]] = field(default_factory=dict)
    abandoned: int = 0
    answered: int = 0
    unavailable: list[str] = field(default_factory=list)
    classes: list[Any] = field(default_factory=list)
    first_rows: int = 0
    running: list[list[int]] = field(default_factory=list)
    history: list[list[float | None]] = field(default_factory=list)
    frozen: dict[str, Any] | None = None
    since: list[list[int]] = field(default_factory=list)

    @property
    def groups(self) -> list[str]:
        """The names of the groups."""
        found: list[str] = self.settings["groups"]
        return found

    @property
    def examples(self) -> int:
        """All examples there are, of both roles."""
        return sum(self.counts) + sum(self.held)

    @property
    def fresh(self) -> list[str]:
        """Groups that received examples since the scores they have."""
        return [g for g, came, rests in zip(self.groups, self.arrived, self.rests_on, strict=True) if came > rests]

    @property
    def unspent(self) -> int:
        """Labels neither spent nor promised to an open request."""
        return int(self.settings["budget"]) - self.labels_used - sum(int(r["size"]) for r in self.open.values())

    def overdue(self, now: float) -> list[int]:
        """Open requests whose lease has run out."""
        return [number for number, r in self.open.items() if r["until"] is not None and r["until"] <= now]

    def fold(self, events: Iterable[Event]) -> State:
        """Take in events, in order; gives itself back."""
        for event in events:
            if event.seq != self.seq + 1:
                raise ValueError(f"event {event.seq} does not follow event {self.seq}: the ledger has a hole")
            self.seq = -1  # an event half folded in is not folded in again
            _HOW[event.kind](self, event)
            self.seq, self.at = event.seq, event.at
        return self

    def copy(self) -> State:
        """The same state in lists of its own."""
        return _read(from_text(self.as_json(), exact=True))

    def become(self, other: State) -> None:
        """Stand as another state does, whose lists are then shared."""
        self.__dict__ |= other.__dict__

    def as_json(self) -> str:
        """The state as text, for a snapshot."""
        named = {name: {str(number): header for number, header in getattr(self, name).items()} for name in _BY_NUMBER}
        return as_text({"format": _FORMAT, **vars(self), **named})

    @classmethod
    def from_json(cls, text: str) -> State | None:
        """The state of a snapshot; None for one of another version, which is as good as none."""
        found = from_text(text, exact=True)
        return _read(found) if found["format"] == _FORMAT else None

    # ---------------------------------------------------------------- one method a kind of event

    def _created(self, event: Event) -> None:
        self.settings = dict(event.header)
        self.created_at = event.at
        self.classes = list(event.header.get("classes") or [])
        m = len(self.groups)
        self.counts, self.held, self.scored, self.arrived, self.rests_on = ([0] * m for _ in range(5))
        self.loss_sum, self.accuracy, self.recent = [0.0] * m, [None] * m, [[] for _ in range(m)]
        self.running, self.since = self._no_evidence(), self._no_evidence()

    def _asked(self, event: Event) -> None:
        self.asked += 1
        self.open[int(event.request or 0)] = event.header

    def _told(self, event: Event) -> None:
        header, number = event.header, event.request
        groups = self.settings["groups"]
        for group, (training, validation) in header["groups"].items():
            z = groups.index(group)
            self.counts[z] += training
            self.held[z] += validation
            self.arrived[z] = event.seq
        self.labels_used += header["charged"]
        if number is not None:
            self.answered += 1
            self.open.pop(number, None)
            self.expired.pop(number, None)
        if header.get("classes"):
            self.classes = sorted([*self.classes, *header["classes"]])
        if header["stored"] and not self.first_rows:
            self.first_rows = event.seq

    def _scored(self, event: Event) -> None:
        header = event.header
        self._take_scores(header["groups"], set(header["fresh"]))
        self.rests_on = [header["rests_on"]] * len(self.groups)
        self.scored_at, self.scored_labels = event.at, header["examples"]
        if evidence := header.get("evidence"):  # earlier versions recorded none
            self._take_evidence(self.running, evidence["running"])
            if self.frozen is not None and evidence["version"] == self.frozen["version"]:
                self._take_evidence(self.since, evidence["frozen"])

    def _certified(self, event: Event) -> None:
        self.frozen = {**event.header, "event": event.seq}
        self.since = self._no_evidence()

    def _losses(self, event: Event) -> None:
        reported = event.header["groups"]
        self._take_scores(reported, set(self.fresh) & reported.keys())
        for group in reported:
            self.rests_on[self.groups.index(group)] = event.seq
        self.scored_at, self.scored_labels = event.at, self.examples

    def _take_scores(self, scores: Mapping[str, Any], fresh: set[str]) -> None:
        window = self.settings["window"]
        for group, score in scores.items():
            z = self.groups.index(group)
            self.loss_sum[z], self.scored[z], self.accuracy[z] = score["loss_sum"], score["n"], score["accuracy"]
            if group in fresh and score["n"]:
                self.recent[z] = [*self.recent[z], score["accuracy"]][-window:]
        if rounds := self.settings.get("rounds"):
            row = [x / n if n else None for x, n in zip(self.loss_sum, self.scored, strict=True)]
            self.history = [*self.history, row][-1 - rounds :]

    def _take_evidence(self, sums: list[list[int]], found: Mapping[str, list[int]]) -> None:
        for group, (n, errors) in found.items():
            z = self.groups.index(group)
            sums[z] = [sums[z][0] + n, sums[z][1] + errors]

    def _no_evidence(self) -> list[list[int]]:
        return [[0, 0] for _ in self.groups]

    def _abandoned(self, event: Event) -> None:
        self.open.pop(int(event.request or 0))
        self.abandoned += 1

    def _expired(self, event: Event) -> None:
        number = int(event.request or 0)
        self.expired[number] = self.open.pop(number)

    def _changed(self, event: Event) -> None:
        header = dict(event.header)
        self.unavailable = header.pop("unavailable", self.unavailable)
        self.settings |= header

    def _closed(self, event: Event) -> None:
        self.closed = event.header["reason"]
        self.open.clear()


def _read(found: dict[str, Any]) -> State:
    """The state whose values these are, as they come from JSON."""
    found |= {name: {int(number): header for number, header in found[name].items()} for name in _BY_NUMBER}
    del found["format"]
    return State(**found)


_HOW: dict[str, Callable[[State, Event], None]] = {kind: getattr(State, f"_{kind}") for kind in KINDS}
