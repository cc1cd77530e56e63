"""How a campaign came to where it is: its events folded once more, with some of the moments on the way kept."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from evenhand.campaign.requests import as_time
from evenhand.campaign.state import State
from evenhand.ledger.base import Event, Reader

__all__ = ["History", "Point"]

_MOST = 400
"""Moments kept; when there are more, every second one goes and the distance between new ones doubles."""
_RECENT = 60
_DAYS = 30
_DAY = 86400.0
_PAGE = 2000
_KEPT = frozenset({"created", "told", "added", "scored", "losses", "withdrawn", "erased", "changed", "closed"})


class Point(NamedTuple):
    """How a campaign stood after an event; lists are in the order of the groups.

    Attributes:
        seq, at: the event and its time.
        labels: labels charged to the budget; `budget` is what there was of it.
        train: training examples of each group.
        risk: each group's mean loss by the newest scores; None without any.
        n: the validation examples behind it.
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


class History:
    """A campaign's past in a bounded number of points, brought up to date event by event.

    Attributes:
        state: the fold of the events so far.
        points: moments from the first to the newest, evenly spaced in events.
        kinds: how many requests of each kind there were.
        decisions, deliveries: the newest of each, newest first, as plain values.
        collectors: for every collector rows left out, late deliveries, and labels a day.
    """

    def __init__(self) -> None:
        self.state = State()
        self.kinds: Counter[str] = Counter()
        self.decisions: deque[dict[str, Any]] = deque(maxlen=_RECENT)
        self.deliveries: deque[dict[str, Any]] = deque(maxlen=_RECENT)
        self.collectors: dict[str, dict[str, Any]] = {}
        self._points: list[Point] = []
        self._stride, self._since = 1, 0

    def follow(self, reader: Reader) -> History:
        """Take in the events that came since; gives itself back."""
        while found := reader.tail(self.state.seq, self.state.at, _PAGE):
            self.fold(found)
        return self

    def fold(self, events: Iterable[Event]) -> History:
        """Take in events, in order; gives itself back."""
        for event in events:
            self.state.fold((event,))
            if event.kind == "asked":
                self._asked(event)
            elif event.kind in ("told", "added"):
                self._delivered(event)
            if event.kind in _KEPT:
                self._keep()
        return self

    @property
    def points(self) -> list[Point]:
        """Moments from the first to the newest."""
        if not self.state.seq or (self._points and self._points[-1].seq == self.state.seq):
            return list(self._points)
        return [*self._points, self._now()]

    def pace(self, now: float, days: float = 7.0) -> float | None:
        """Labels a day over the last days, or since the beginning; None before anything came."""
        points = self.points
        used = self.state.labels_used
        earlier = [point for point in points if point.at <= now - days * _DAY]
        first = earlier[-1] if earlier else next((p for p in points if p.seq >= 1), None)
        if first is None or used <= first.labels:
            return None
        return (used - first.labels) * _DAY / max(now - first.at, 3600.0)

    # ---------------------------------------------------------------- within

    def _now(self) -> Point:
        state = self.state
        # a campaign whose groups come with the first pool has none before
        risk = tuple(x / n if n else None for x, n in zip(state.loss_sum, state.relevant, strict=True))
        budget = int(state.settings["budget"])
        return Point(
            state.seq,
            state.at,
            state.labels_used,
            budget,
            tuple(state.train),
            risk,
            tuple(state.scored),
            dict(self.kinds),
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
        decision = event.facts["decision"]
        self.kinds[decision["kind"]] += 1
        terms = {name: values[decision["group"]] for name, values in decision["terms"].items()}
        self.decisions.appendleft(
            {
                "request": event.request, "group": decision["group"], "kind": decision["kind"], "terms": terms,
                "size": event.facts["size"], "collector": event.actor, "at": as_time(event.at), "event": event.seq,
                "behind": event.facts["behind"],
            }
        )  # fmt: skip

    def _delivered(self, event: Event) -> None:
        facts = event.facts
        rows, out = int(facts["rows"]) if "rows" in facts else len(facts["groups"]), facts.get("left_out", ())
        late, why = bool(facts.get("late")), dict(facts.get("why", {}))
        self.deliveries.appendleft(
            {
                "request": event.request, "group": facts.get("group"), "rows": rows, "left_out": [row + 1 for row in out],
                "surplus": facts.get("surplus", 0), "late": late, "collector": event.actor, "at": as_time(event.at),
                "event": event.seq, "kind": event.kind, "why": why,
            }
        )  # fmt: skip
        if event.actor is not None and event.kind == "told":
            known = self.collectors.setdefault(event.actor, {"left_out": 0, "late": 0, "days": Counter()})
            known["left_out"] += max(len(out), sum(why.values()))
            known["late"] += late
            known["days"][int(event.at // _DAY)] += rows
            if len(known["days"]) > 2 * _DAYS:
                for day in sorted(known["days"])[:-_DAYS]:
                    del known["days"][day]
