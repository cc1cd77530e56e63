"""The charts of a campaign: each drawn for a page or a phone, and its numbers as a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from evenhand.report.bars import Bar, bars
from evenhand.report.charts import TONE, Interval, Line, areas, intervals, lines
from evenhand.report.plane import NARROW, number, percent
from evenhand.report.times import time_marks
from evenhand.report.view import OTHERS, PERCENT, CampaignView, GroupRow

_MOST_ROWS = 12
_MOST_LINES = 8
_MOST_PEOPLE = 6
_POINTS = 6000
_DAY = 86400.0
HERO, HALF, FULL = 430, 490, 980
"""The widths of charts: in the box of the next request, beside another chart, and alone."""
Table = tuple[list[str], list[list[Any]]]
REASONS = {
    "warm-up": "first examples of every group", "forced": "too few examples so far", "explore": "drawn to explore",
    "score": "largest score", "fewest": "fewest examples", "population": "drawn by population share",
    "certify": "asked for the proof", "test": "test labels",
}  # fmt: skip
"""Why requests are made, in the order of the charts."""


@dataclass(frozen=True)
class Chart:
    """A chart: its title, a function that draws it at a width, its numbers, and its width on a page."""

    title: str
    draw: Callable[[CampaignView, int], str]
    numbers: Callable[[CampaignView], Table]
    width: int = HALF


# ---------------------------------------------------------------- why this group


def _shown(view: CampaignView, score: Callable[[str], float]) -> list[str]:
    order = sorted((row.name for row in view.groups), key=lambda g: -score(g))
    return order[:_MOST_LINES]


def _why(view: CampaignView, width: int) -> str:
    coming = view.next
    if coming is None:
        return ""
    parts = _parts(view)
    total = {row.name: sum(values.get(row.name, 0.0) for values in parts.values()) for row in view.groups}
    fewest = set(parts) & {"count", "training examples"}
    if not any(total.values()):
        return ""
    order = _shown(view, lambda g: -total[g] if fewest else total[g])
    if coming.group not in order:
        order = [coming.group, *order[:-1]]
    form = number if fewest else (lambda v: percent(v)) if set(parts) == {"chance"} else (lambda v: f"{v:.3f}")
    rows = [
        Bar(
            g, tuple(values.get(g, 0.0) for values in parts.values()), form(total[g]), g == coming.group, view.colour(g)
        )
        for g in order
    ]
    said = "; ".join(f"{row.name} {row.note}" for row in rows)
    return bars(
        rows,
        [view.terms.get(name, name) for name in parts],
        title=f"Why {coming.group} is next",
        description=said,
        form=form,
        width=width,
    )


def _parts(view: CampaignView) -> dict[str, dict[str, float]]:
    """What decides on the next group: the terms of the score, probabilities, or how many examples every group has."""
    coming = view.next
    if coming is None:
        return {}
    terms = coming.terms or ({"chance": coming.chances} if coming.chances else {})
    if not terms:
        terms = {"training examples": {row.name: float(row.training) for row in view.groups}}
    return {name: _plain(name, values) for name, values in terms.items()}


def _plain(name: str, values: dict[str, float | None]) -> dict[str, float]:
    """A term's numbers; counts change their sign, since rules that want the fewest score by the negative count."""
    found = {group: 0.0 if value is None else value for group, value in values.items()}
    return {group: -value for group, value in found.items()} if name == "count" else found


def _why_numbers(view: CampaignView) -> Table:
    parts = _parts(view)
    names = [view.terms.get(name, name) for name in parts]
    return ["group", *names], [[row.name, *(values.get(row.name) for values in parts.values())] for row in view.groups]


# ---------------------------------------------------------------- over labels and time


def _past(view: CampaignView) -> list[Any]:
    """The past moments that have the present groups, with labels that never decrease; there are none before a pool.

    After a refund there are fewer labels than before: moments with more labels than now are left out.
    """
    found: list[Any] = []
    for point in reversed(view.points or ()):
        if len(point.train) == len(view.groups) and (not found or point.labels <= found[-1].labels):
            found.append(point)
    return found[::-1]


def _mixture(view: CampaignView, width: int) -> str:
    points = [point for point in _past(view) if sum(point.train)]
    if not points:
        return ""
    own = [z for z, row in enumerate(view.groups) if row.colour != OTHERS]
    rest = [z for z, row in enumerate(view.groups) if row.colour == OTHERS]
    shares = [[point.train[z] / sum(point.train) for z in own] for point in points]
    expected = [view.groups[z].population for z in own]
    names, colours = [view.groups[z].name for z in own], [view.groups[z].colour for z in own]
    if rest:
        shares = [[*row, 1 - sum(row)] for row in shares]
        names, colours = [*names, f"{len(rest)} other groups"], [*colours, OTHERS]
    marks, height = [], 0.0
    for share in expected if None not in expected else ():
        height += share or 0.0
        marks.append(height)
    said = "; ".join(f"{name} {percent(share)}" for name, share in zip(names, shares[-1], strict=True))
    return areas(
        names, [point.labels for point in points], shares, title="Mixture of the training examples",
        description=f"Now: {said}", x_label="labels", y_label="share of training examples", colours=colours,
        marks=[mark for mark in marks if mark < 0.999], width=width,
    )  # fmt: skip


def _mixture_numbers(view: CampaignView) -> Table:
    return ["labels", *(row.name for row in view.groups)], [[p.labels, *p.train] for p in _past(view)]


def _risk(view: CampaignView, width: int) -> str:
    points = [point for point in _past(view) if any(value is not None for value in point.risk)]
    if not points:
        return ""
    # the limit is for all lines together: with many groups every line has fewer points
    changed = [
        p for before, p in zip([None, *points[:-1]], points, strict=True) if before is None or p.risk != before.risk
    ]
    step = max(1, -(-len(changed) * len(view.groups) // _POINTS))
    kept = changed[::step]
    kept += [p for p in points[-1:] if p.labels > kept[-1].labels]
    series = []
    for z, row in enumerate(view.groups):
        there = [p for p in kept if p.risk[z] is not None]
        tips = [f"{row.name}: {view.value(p.risk[z])} of {p.n[z]:,} at {p.labels:,} labels" for p in there]
        series.append(
            Line(
                row.name, [p.labels for p in there], [float(p.risk[z]) for p in there], colour=row.colour,
                faint=row.colour == OTHERS, tips=tips, note=f"(n = {row.n:,})",
            )
        )  # fmt: skip
    return lines(
        series, title="Risk of every group over labels",
        description="; ".join(f"{row.name}: {view.value(row.risk)} of {row.n:,}" for row in view.groups[:30]),
        x_label="labels", y_label=f"{view.risk} on validation examples (indication)",
        y_format=percent if view.is_rate else (lambda v: f"{v:.2f}"), y_range=_from_zero(series), ends=True,
        width=width,
    )  # fmt: skip


def _from_zero(series: Sequence[Line]) -> tuple[float, float]:
    top = max((y for line in series for y in line.y), default=1.0)
    return 0.0, max(top * 1.06, 0.02)


def _risk_numbers(view: CampaignView) -> Table:
    names = [f"{row.name}: {what}" for row in view.groups for what in ("risk", "n")]
    return ["labels", *names], [
        [p.labels, *(x for pair in zip(p.risk, p.n, strict=True) for x in pair)] for p in _past(view)
    ]


def _burn_down(view: CampaignView, width: int) -> str:
    points = list(view.points or ())
    if len(points) < 2:
        return ""
    x, y = [p.at for p in points], [float(p.budget - p.labels) for p in points]
    if view.used_up is False:
        x, y = [*x, view.now], [*y, y[-1]]
    series = [Line("labels left", x, y, colour=TONE)]
    end = x[-1]
    if view.finish is not None:
        at = datetime.strptime(view.finish, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
        # a far end would squeeze the past into a corner
        shown = min(at, view.now + 2 * (view.now - x[0]) + _DAY)
        left = y[-1] * (1 - (shown - view.now) / (at - view.now)) if at > view.now else 0.0
        series.append(Line("at the present pace", [view.now, shown], [y[-1], left], colour=TONE + 2, dashed=True))
        end = shown
    return lines(
        series, title="Budget left", description=f"{view.status['used']:,} of {view.status['budget']:,} labels are used",
        x_label="time (UTC)", y_label="labels left", y_format=number, y_range=(0.0, max(y) * 1.02 or 1.0),
        x_marks=time_marks(x[0], end, 5 if width > NARROW else 3), width=width,
    )  # fmt: skip


def _burn_down_numbers(view: CampaignView) -> Table:
    rows = [[_iso(p.at), p.budget, p.labels, p.budget - p.labels] for p in view.points or ()]
    return ["time", "budget", "used", "left"], rows


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _reasons(view: CampaignView, width: int) -> str:
    points = [p for p in _past(view) if sum(p.kinds.values())]
    kinds = [kind for kind in REASONS if points and kind in points[-1].kinds]
    if len(points) < 3:
        return ""
    step = max(1, len(points) // 40)
    kept = [*points[:-1:step], points[-1]]
    x, rows, before = list[float](), list[list[float]](), dict[str, int]()
    for earlier, point in zip([None, *kept[:-1]], kept, strict=True):
        new = [point.kinds.get(kind, 0) - before.get(kind, 0) for kind in kinds]
        if sum(new):
            row = [n / sum(new) for n in new]
            x += [earlier.labels if earlier else point.labels, point.labels]
            rows += [row, row]
            before = point.kinds
    total = points[-1].kinds
    return areas(
        [REASONS[kind] for kind in kinds], x, rows, title="Why groups were chosen",
        description="; ".join(f"{REASONS[kind]}: {total[kind]:,} requests" for kind in kinds),
        x_label="labels", y_label="share of requests", colours=[TONE + i for i in range(len(kinds))], width=width,
    )  # fmt: skip


def _reasons_numbers(view: CampaignView) -> Table:
    points = view.points or ()
    kinds = [kind for kind in REASONS if any(kind in p.kinds for p in points)]
    names = [f"requests so far: {REASONS[kind]}" for kind in kinds]
    return ["labels", *names], [[p.labels, *(p.kinds.get(kind, 0) for kind in kinds)] for p in points]


def _throughput(view: CampaignView, width: int) -> str:
    everybody = [c for c in view.collectors if c.days]
    if not everybody:
        return ""
    # a campaign that is over ends with its last delivery, not today
    last = max(max(c.days) for c in everybody) if view.used_up else int(view.now // _DAY)
    first = min(min(c.days) for c in everybody)
    days = list(range(min(max(first, last - 29), last - 1), last + 1))
    people = everybody if len(everybody) <= _MOST_PEOPLE else everybody[: _MOST_PEOPLE - 1]
    rest = everybody[len(people) :]
    names = [*(c.name for c in people), *([f"{len(rest)} others"] if rest else [])]
    x = [edge * _DAY for day in days for edge in (day, day + 1)]
    a_day = [
        [
            *(float(c.days.get(day, 0)) for c in people),
            *([float(sum(c.days.get(day, 0) for c in rest))] if rest else []),
        ]
        for day in days
    ]
    return areas(
        names, x, [row for row in a_day for _ in range(2)], title="Labels a day", y_format=number, x_label="day (UTC)",
        description="; ".join(f"{c.name}: {c.labels:,} labels in all" for c in people), y_label="labels a day",
        colours=[TONE + i for i in range(len(names))], x_marks=time_marks(x[0], x[-1], 5 if width > NARROW else 3, shortest=_DAY, zoned=False), width=width,
    )  # fmt: skip


def _throughput_numbers(view: CampaignView) -> Table:
    rows = [[c.name, _iso(day * _DAY)[:10], n] for c in view.collectors for day, n in sorted(c.days.items())]
    return ["collector", "day", "labels"], rows


# ---------------------------------------------------------------- indication and claims


def _ordered(view: CampaignView, key: Callable[[GroupRow], float | None]) -> list[GroupRow]:
    known = [row for row in view.groups if key(row) is not None]
    return sorted(known, key=lambda row: -(key(row) or 0.0))[:_MOST_ROWS]


def _indication(view: CampaignView, width: int) -> str:
    rows = _ordered(view, lambda row: row.risk)
    form = percent if view.is_rate else (lambda v: f"{v:.3f}")
    shown = [Bar(r.name, (r.risk or 0.0,), f"{view.value(r.risk)}  n = {r.n:,}", False, r.colour) for r in rows]
    said = "; ".join(f"{row.name} {row.note}" for row in shown)
    return bars(
        shown, [view.risk], title="Indication: risk on validation examples", description=said, form=form, width=width
    )


def _indication_numbers(view: CampaignView) -> Table:
    return ["group", "risk", "n"], [[row.name, row.risk, row.n] for row in view.groups]


def _claim(which: str, view: CampaignView, width: int) -> str:
    def about(row: GroupRow) -> tuple[int, float | None, float, float]:
        return row.running if which == "running" else row.certified or (0, None, 0.0, 1.0)

    rows = _ordered(view, lambda row: about(row)[1])
    if not rows or (which == "certificate" and view.status["certificate"] is None):
        return ""
    shown = [_statement(row, about(row), view) for row in rows]
    said = "; ".join(f"{i.name} {view.value(i.low)} to {view.value(i.high)}" for i in shown)
    what = "the models so far, on average" if which == "running" else "the frozen model"
    aim = (view.status["proof"] or {}).get("target") if which == "certificate" else None
    return intervals(
        shown, [], title=f"Claim: {view.risk} of {what}", description=said, x_label=view.risk, width=width,
        target=None if aim is None else (aim, f"target {view.value(aim)}"),
    )  # fmt: skip


def _statement(row: GroupRow, about: tuple[int, float | None, float, float], view: CampaignView) -> Interval:
    n, mean, low, high = about
    ends = f"{view.value(low).removesuffix(PERCENT)} to {view.value(high)}"
    return Interval(row.name, math.nan if mean is None else mean, low, high, (), f"n = {n:,}", row.colour, ends)


def _claim_numbers(which: str, view: CampaignView) -> Table:
    found = []
    for row in view.groups:
        about = row.running if which == "running" else row.certified
        if about is not None:
            found.append([row.name, about[0], about[1], about[2], about[3]])
    return ["group", "n", "mean", "low, all groups at once", "high, all groups at once"], found


CHARTS: dict[str, Chart] = {
    "why": Chart("Why this group", _why, _why_numbers, HERO),
    "budget": Chart("Budget left", _burn_down, _burn_down_numbers),
    "mixture": Chart("Mixture of the training examples", _mixture, _mixture_numbers),
    "risk": Chart("Risk of every group", _risk, _risk_numbers, FULL),
    "indication": Chart("Indication", _indication, _indication_numbers),
    "running": Chart("Claim about the models so far", partial(_claim, "running"), partial(_claim_numbers, "running")),
    "certificate": Chart(
        "Claim about the frozen model", partial(_claim, "certificate"), partial(_claim_numbers, "certificate")
    ),
    "reasons": Chart("Why groups were chosen", _reasons, _reasons_numbers),
    "throughput": Chart("Labels a day", _throughput, _throughput_numbers),
}
"""Every chart of a campaign by its name in addresses."""
