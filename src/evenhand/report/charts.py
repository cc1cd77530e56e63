"""Charts as inline SVG: data in, text out. Colours are CSS variables, so that a page can be light or dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from typing import TypeVar

__all__ = ["Interval", "Line", "areas", "intervals", "lines"]

WIDTH = 760
LEFT, RIGHT = 56, 28
LEGEND = 22
COLOURS = 8
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "6 2 1 2")
MOST_POINTS = 300
MOST_MARKS = 80
LONGEST_NAME = 44
_ids = count(1)
T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """One series; `low` and `high` make a band around it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Interval:
    """A row of marks: a main value with its interval, and others to compare it with."""

    name: str
    value: float
    low: float
    high: float
    others: tuple[float | None, ...] = ()
    note: str = ""


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that span a range.

    >>> ticks(0, 100)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    """
    span = high - low or 1.0
    raw = span / max(about, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def percent(value: float) -> str:
    """A share as whole per cent.

    >>> percent(0.805)
    '80%'
    """
    return f"{100 * value:.0f}%"


def number(value: float) -> str:
    """A number with thousands separated."""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


class _Plane:
    """Where data stand in the picture."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], top: int, height: int, left: int = LEFT) -> None:
        self.x, self.y, self.top, self.bottom, self.left = x, y, top, top + height, left

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
        up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        return self.left + across * (WIDTH - RIGHT - self.left), self.bottom - up * (self.bottom - self.top)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join("{:.1f} {:.1f}".format(*self.at(x, y)) for x, y in points)

    def axes(self, x_label: str, y_label: str, y_format: Callable[[float], str]) -> list[str]:
        parts = []
        for value in ticks(*self.y):
            _, y = self.at(self.x[0], value)
            parts.append(f'<line class="grid" x1="{self.left}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(
                f'<text class="tick" x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end">{y_format(value)}</text>'
            )
        for value in ticks(*self.x, about=6):
            x, _ = self.at(value, self.y[0])
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{self.bottom + 18}" text-anchor="middle">{number(value)}</text>'
            )
        parts.append(
            f'<text class="axis" x="{WIDTH - RIGHT}" y="{self.bottom + 36}" text-anchor="end">{escape(x_label)}</text>'
        )
        parts.append(f'<text class="axis" x="{self.left}" y="{self.top - 8}">{escape(y_label)}</text>')
        return parts


def _svg(title: str, description: str, height: int, parts: Sequence[str]) -> str:
    key = next(_ids)
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t{key} d{key}">'
        f'<title id="t{key}">{escape(title)}</title><desc id="d{key}">{escape(description)}</desc>{"".join(parts)}</svg>'
    )


def _legend(names: Sequence[str], draw: Callable[[int, float, float], str]) -> tuple[list[str], int]:
    """Names beside their marks, wrapped; and the height they take."""
    parts, x, y = [], 4.0, 14.0
    for i, name in enumerate(names):
        width = 46 + 7.2 * len(name)
        if x + width > WIDTH and x > 4:
            x, y = 4.0, y + LEGEND
        parts.append(draw(i, x, y))
        parts.append(f'<text class="key" x="{x + 28:.1f}" y="{y + 4:.1f}">{escape(name)}</text>')
        x += width
    return parts, int(y) + 34


def _thin(values: Sequence[T], most: int = MOST_POINTS) -> list[T]:
    """At most so many of the values, evenly spaced, first and last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def lines(
    series: Sequence[Line],
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    y_format: Callable[[float], str] = percent,
    y_range: tuple[float, float] | None = None,
) -> str:
    """Series against a common axis, told apart by colour and by dashes, bands behind."""
    kept = [
        [p for p in zip(s.x, s.y, s.low or s.y, s.high or s.y, strict=True) if not math.isnan(p[1])] for s in series
    ]
    points = [p for rows in kept for p in rows]
    if not points:
        return ""
    key, top = _legend([s.name for s in series], _line_key)
    x_range = (min(p[0] for p in points), max(p[0] for p in points))
    plane = _Plane(x_range, y_range or _padded([v for p in points for v in p[1:]]), top, 230)
    parts = [*key, *plane.axes(x_label, y_label, y_format)]
    for i, rows in enumerate(map(_thin, kept)):
        if not rows:
            continue
        if series[i].low is not None:
            edge = [(x, high) for x, _, _, high in rows] + [(x, low) for x, _, low, _ in reversed(rows)]
            parts.append(f'<path class="band s{i % COLOURS}" d="{plane.path(edge)}Z"/>')
        parts.append(f'<path class="line s{i % COLOURS}" {_dash(i)} d="{plane.path([p[:2] for p in rows])}"/>')
        for x, y, *_ in rows if len(rows) <= MOST_MARKS else ():
            a, b = plane.at(x, y)
            tip = (
                f"{series[i].name}: {100 * y:.1f}% at {number(x)}"
                if y_format is percent
                else f"{series[i].name}: {y:.3g}"
            )
            parts.append(f'<circle class="hover" cx="{a:.1f}" cy="{b:.1f}" r="6"><title>{escape(tip)}</title></circle>')
    return _svg(title, description, plane.bottom + 44, parts)


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    pad = 0.06 * (high - low) or 0.02
    return low - pad, high + pad


def _dash(i: int) -> str:
    pattern = DASHES[i % COLOURS]
    return f'stroke-dasharray="{pattern}"' if pattern else ""


def _line_key(i: int, x: float, y: float) -> str:
    return f'<line class="line s{i % COLOURS}" {_dash(i)} x1="{x:.1f}" x2="{x + 22:.1f}" y1="{y}" y2="{y}"/>'


def areas(
    names: Sequence[str],
    x: Sequence[float],
    values: Sequence[Sequence[float]],
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    y_format: Callable[[float], str] = percent,
) -> str:
    """Parts of a whole over time, stacked; `values` has a row for every x."""
    if not x:
        return ""
    rows = _thin(list(zip(x, values, strict=True)))
    key, top = _legend(names, _area_key)
    highest = max(sum(v) for _, v in rows) or 1.0
    plane = _Plane((rows[0][0], rows[-1][0]), (0.0, highest), top, 230)
    floor = [0.0] * len(rows)
    parts = list(key)
    for i, name in enumerate(names):
        ceiling = [low + v[i] for low, (_, v) in zip(floor, rows, strict=True)]
        upper = [(at, y) for (at, _), y in zip(rows, ceiling, strict=True)]
        lower = [(at, y) for (at, _), y in zip(rows, floor, strict=True)]
        d = plane.path([*upper, *reversed(lower)])
        parts.append(f'<path class="area s{i % COLOURS}" d="{d}Z"><title>{escape(name)}</title></path>')
        floor = ceiling
    parts += plane.axes(x_label, y_label, y_format)
    return _svg(title, description, plane.bottom + 44, parts)


def _area_key(i: int, x: float, y: float) -> str:
    return f'<rect class="area s{i % COLOURS}" x="{x:.1f}" y="{y - 6}" width="20" height="12" rx="2"/>'


def intervals(rows: Sequence[Interval], marks: Sequence[str], *, title: str, description: str, x_label: str) -> str:
    """A row for each name: the value as a dot with its interval, others as hollow shapes."""
    shown = [row for row in rows if not math.isnan(row.value)]
    if not shown:
        return ""
    key, top = _legend(marks, _mark_key)
    left = 24 + int(7.2 * max(len(_short(row.name)) for row in shown))
    values = [v for row in shown for v in (row.low, row.high, *row.others) if v is not None]
    plane = _Plane(_padded(values), (0, len(shown)), top, 42 * len(shown), left)
    parts = list(key)
    for value in ticks(*plane.x, about=6):
        x, _ = plane.at(value, 0)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{plane.top}" y2="{plane.bottom}"/>')
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{plane.bottom + 18}" text-anchor="middle">{percent(value)}</text>'
        )
    for i, row in enumerate(shown):
        _, y = plane.at(0, len(shown) - i - 0.5)
        parts += _interval(plane, row, marks, y)
    parts.append(
        f'<text class="axis" x="{WIDTH - RIGHT}" y="{plane.bottom + 36}" text-anchor="end">{escape(x_label)}</text>'
    )
    return _svg(title, description, plane.bottom + 44, parts)


def _interval(plane: _Plane, row: Interval, marks: Sequence[str], y: float) -> list[str]:
    low, middle, high = (plane.at(value, 0)[0] for value in (row.low, row.value, row.high))
    above, below = (y - 6, y + 8) if row.others else (y, y)
    tip = f"{row.name}: {100 * row.value:.1f}%, 95% interval {100 * row.low:.1f}% to {100 * row.high:.1f}%"
    parts = [
        f'<text class="name" x="{plane.left - 12}" y="{y - 2:.1f}" text-anchor="end">{escape(_short(row.name))}'
        f"<title>{escape(row.name)}</title></text>",
        f'<text class="tick" x="{plane.left - 12}" y="{y + 13:.1f}" text-anchor="end">{escape(row.note)}</text>',
        f'<g><title>{escape(tip)}</title><line class="whisker s0" x1="{low:.1f}" x2="{high:.1f}" y1="{above:.1f}" y2="{above:.1f}"/>',
        f'<circle class="dot s0" cx="{middle:.1f}" cy="{above:.1f}" r="5.5"/></g>',
    ]
    for i, value in enumerate(row.others, start=1):
        if value is not None:
            x, _ = plane.at(value, 0)
            tip = f"{row.name}, {marks[i]}: {100 * value:.1f}%"
            parts.append(f"<g><title>{escape(tip)}</title>{_shape(i, x, below)}</g>")
    return parts


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _shape(i: int, x: float, y: float) -> str:
    r = 5.5
    corners = ((0, -r), (r, 0), (0, r), (-r, 0)) if i % 2 else ((0, -r), (r, r * 0.8), (-r, r * 0.8))
    return f'<polygon class="mark s{i % COLOURS}" points="{" ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners)}"/>'


def _mark_key(i: int, x: float, y: float) -> str:
    return f'<circle class="dot s0" cx="{x + 12:.1f}" cy="{y}" r="5.5"/>' if i == 0 else _shape(i, x + 12, y)
