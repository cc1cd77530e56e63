"""A campaign's course so far: its events are folded once more, and some of the moments on the way are kept."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.campaign.events import ADDED, ANSWERS, COUNTED, LABELLED, REQUESTS, TOLD, answer_in, request_in, rows_in
from evenhand.campaign.requests import as_time
from evenhand.campaign.state import State
from evenhand.ledger.base import Event, Reader
from evenhand.notation import JsonObject

_MOST = 400
"""Moments kept; when there are more, every second one is dropped and the distance between new ones doubles."""
_RECENT = 60
_DAYS = 30
_DAY = 86400.0
_PAGE = 2000
_KEPT = frozenset({"created", *ANSWERS, "added", "scored", "losses", "withdrawn", "erased", "changed", "closed"})


class Point(NamedTuple):
    """How a campaign stood after an event; lists are in the order of the groups.

    Attributes:
        seq, at: the event and its time.
        labels: labels charged to the budget; `budget` is its size at that time.
        train: training examples of each group.
        risk: each group's mean loss by the newest scores; None without any.
        n: the validation examples behind it, those that the risk is about.
        kinds: how many requests of each kind there had been.
    """

    seq: int
    at: float
    labels: int
    budget: int
    train: tuple[int, ...]
    risk: tuple[float | None, ...]
    n: tuple[int, ...]
    kinds: dict[str, int]


@dataclass(frozen=True)
class Past:
    """What is kept of a campaign's past.

    Attributes:
        points: moments from the first to the newest, evenly spaced in events.
        decisions, deliveries: the newest of each, newest first, as plain values.
        collectors: for every collector, the rows left out, late deliveries, and labels by day.
    """

    points: list[Point]
    decisions: list[JsonObject]
    deliveries: list[JsonObject]
    collectors: dict[str, JsonObject]

    def pace(self, now: float, days: float = 7.0) -> float | None:
        """Labels per day over the last `days`, or since the beginning; None on the first day and before any label."""
        earlier = [point for point in self.points if point.at <= now - days * _DAY]
        first = earlier[-1] if earlier else next(iter(self.points), None)
        if first is None or self.points[-1].labels <= first.labels or now - first.at < _DAY:
            return None
        return (self.points[-1].labels - first.labels) * _DAY / (now - first.at)


class History:
    """Folds a campaign's events into its past, as they come.

    Attributes:
        state: the fold of the events so far.
    """

    def __init__(self) -> None:
        self.state = State()
        self._kinds: Counter[str] = Counter()
        self._decisions: deque[JsonObject] = deque(maxlen=_RECENT)
        self._deliveries: deque[JsonObject] = deque(maxlen=_RECENT)
        self._collectors: dict[str, JsonObject] = {}
        self._points: list[Point] = []
        self._stride, self._since = 1, 0

    def follow(self, reader: Reader) -> History:
        """Take in the events that came since; returns itself."""
        while found := reader.tail(self.state.seq, self.state.at, _PAGE):
            self.fold(found)
        return self

    def fold(self, events: Iterable[Event]) -> History:
        """Take in events, in order; returns itself."""
        for event in events:
            self.state.fold((event,))
            if event.kind in REQUESTS:
                self._asked(event)
            elif event.kind in (*ANSWERS, ADDED.name):
                self._delivered(event)
            if event.kind in _KEPT:
                self._keep()
        return self

    def past(self) -> Past:
        """A copy of what is kept up to now, which later events do not change."""
        newest = (
            [] if not self.state.seq or (self._points and self._points[-1].seq == self.state.seq) else [self._now()]
        )
        people = {who: {**about, "days": dict(about["days"])} for who, about in self._collectors.items()}
        return Past([*self._points, *newest], list(self._decisions), list(self._deliveries), people)

    # ---------------------------------------------------------------- within

    def _now(self) -> Point:
        state = self.state
        # a campaign whose groups come with the first pool has none before it
        risk = tuple(x / n if n else None for x, n in zip(state.loss_sum, state.relevant, strict=True))
        budget = int(state.settings["budget"])
        return Point(
            state.seq,
            state.at,
            state.labels_used,
            budget,
            tuple(state.train),
            risk,
            tuple(state.relevant),
            dict(self._kinds),
        )

    def _keep(self) -> None:
        self._since += 1
        if self._since < self._stride:
            return
        self._since = 0
        self._points.append(self._now())
        if len(self._points) > _MOST:
            # the first one stays, whatever happens to the others
            self._points = self._points[::2]
            self._stride *= 2

    def _asked(self, event: Event) -> None:
        facts = request_in(event)
        decision = facts["decision"]
        self._kinds[decision["kind"]] += 1
        terms = {name: values[decision["group"]] for name, values in decision["terms"].items()}
        self._decisions.appendleft(
            {
                "request": event.request, "group": decision["group"], "kind": decision["kind"], "terms": terms,
                "size": facts["size"], "collector": event.actor, "at": as_time(event.at), "event": event.seq,
                "behind": facts["behind"],
            }
        )  # fmt: skip

    def _delivered(self, event: Event) -> None:
        about = answer_in(event) if event.kind in ANSWERS else None
        rows = len(ADDED.facts(event)["groups"]) if about is None else about["rows"]
        out = [] if event.kind in (LABELLED.name, COUNTED.name) else TOLD.facts(event)["left_out"]
        why = {} if event.kind == COUNTED.name else rows_in(event)["why"]
        self._deliveries.appendleft(
            {
                "request": event.request, "group": about and about["group"], "rows": rows,
                "left_out": [row + 1 for row in out], "surplus": 0 if about is None else about["surplus"],
                "late": about is not None and about["late"], "collector": event.actor, "at": as_time(event.at),
                "event": event.seq, "kind": event.kind, "why": dict(why),
            }
        )  # fmt: skip
        if event.actor is not None and about is not None:
            known = self._collectors.setdefault(event.actor, {"left_out": 0, "late": 0, "days": Counter()})
            known["left_out"] += max(len(out), sum(why.values()))
            known["late"] += about["late"]
            known["days"][int(event.at // _DAY)] += rows
            if len(known["days"]) > 2 * _DAYS:
                for day in sorted(known["days"])[:-_DAYS]:
                    del known["days"][day]
