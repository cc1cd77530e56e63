"""What a campaign's page and its report show, as plain values in the order they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

OTHERS = -1
"""The colour that less important groups share."""
PERCENT = "\u00a0%"
_OWN = 8


@dataclass(frozen=True)
class Alert:
    """Something to know now: `level` is `bad`, `warn` or `good`."""

    level: str
    text: str


@dataclass(frozen=True)
class Next:
    """The request that would be made now, and why.

    `why` is one plain sentence, `words` the full explanation. `terms` has the parts of every group's score; `chances`
    each group's probability if the choice is drawn. `unscored` labels came since the last fit; an ask refits first.
    """

    group: str
    size: int
    kind: str
    why: str
    words: str
    unscored: int
    terms: dict[str, dict[str, float | None]]
    chances: dict[str, float | None] | None


@dataclass(frozen=True)
class GroupRow:
    """One group: its examples, how well it is served, what may be claimed."""

    name: str
    colour: int
    training: int
    validation: int
    evidence: int
    pending: int
    share: float
    population: float | None
    risk: float | None
    n: int
    running: tuple[int, float | None, float, float]
    certified: tuple[int, float | None, float, float] | None
    classes: dict[str, int]
    left: int | None
    retired: bool
    next: bool


@dataclass(frozen=True)
class Collector:
    """Somebody who collects labels: totals, what was left out, and recent labels per day."""

    name: str
    requests: int
    labels: int
    left_out: int
    late: int
    a_day: float
    last: str | None
    days: dict[int, int]


@dataclass(frozen=True)
class CampaignView:
    """Everything that a campaign's page shows.

    Attributes:
        name, status: the campaign's name and `Campaign.status()`.
        now: when this was looked at, in seconds since 1970.
        risk: what "worse off" means, in words; `is_rate`: whether it is a share, shown in per cent.
        next: the next request; None if there is nothing to ask.
        terms: the names of the parts of a score, in words.
        groups: one row per group, in the campaign's order.
        worst: the group worst off by the newest scores; None before there are any.
        points: moments of the past (`evenhand.campaign.history.Point`), oldest first; None while they are being read.
        pace, finish: labels per day, and when the budget will be spent at that pace.
        collectors, decisions, deliveries: who collects, and what happened recently, newest first.
        alerts: what to know now.
        last: the time of the last event.
    """

    name: str
    status: dict[str, Any]
    now: float
    risk: str
    is_rate: bool
    next: Next | None
    groups: list[GroupRow]
    worst: GroupRow | None
    terms: dict[str, str] = field(default_factory=dict)
    points: Sequence[Any] | None = None
    pace: float | None = None
    finish: str | None = None
    collectors: list[Collector] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    deliveries: list[dict[str, Any]] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    last: str | None = None

    @property
    def used_up(self) -> bool:
        """Whether the campaign is over."""
        return self.status["closed"] is not None

    @property
    def beyond(self) -> bool:
        """Whether a group's interval reaches past the bound on the worst-off: two statements that a reader holds together."""
        proven = self.status["certificate"]
        bound = 1.0 if proven is None else proven["worst_at_most"]
        return any(row.certified is not None and row.certified[3] > bound for row in self.groups)

    def value(self, risk: float | None) -> str:
        """A risk as text: per cent, or a number."""
        return written(risk, self.is_rate)

    def colour(self, group: str) -> int:
        """A group's colour, the same in every chart and table."""
        return next((row.colour for row in self.groups if row.name == group), OTHERS)


def written(risk: float | None, is_rate: bool) -> str:
    """A risk as it is written: per cent, or a number.

    >>> written(0.125, False), written(None, True)
    ('0.125', '—')
    """
    if risk is None:
        return "—"
    return f"{100 * risk:.1f}{PERCENT}" if is_rate else f"{risk:.3f}"


def colours_for(groups: Sequence[str], important: Sequence[str]) -> dict[str, int]:
    """A colour for every group: each has its own if there are few groups, else only the most important ones have.

    >>> colours_for(["u", "v"], ["v"])
    {'u': 0, 'v': 1}
    """
    if len(groups) <= _OWN:
        return {group: i for i, group in enumerate(groups)}
    chosen = set(important[: _OWN - 1])
    # in the campaign's order, so that a change among the most important moves few colours
    own = [group for group in groups if group in chosen]
    return {group: own.index(group) if group in chosen else OTHERS for group in groups}
