"""Charts as inline SVG: data in, text out. Colours are CSS variables, so that a page can be light or dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from typing import TypeVar
from unicodedata import bidirectional, east_asian_width

__all__ = ["NARROW", "WIDTH", "Interval", "Line", "areas", "intervals", "isolated", "lines"]

WIDTH, NARROW = 760, 360
"""The width of a chart on a page, and on a telephone."""
LEFT, RIGHT = 56, 36
LINE = 18
SIDE = 0.32
"""The share of a chart's width that names beside it may take; longer ones stand above their rows."""
COLOURS = 8
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "6 2 1 2")
MOST_POINTS = 300
MOST_MARKS = 80
# titles of several charts on one page need different ids
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
    # a little slack, or rounding would take the next larger step
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


def width_of(text: str) -> float:
    """About how wide a text is drawn; rather too wide, so that nothing is cut off.

    >>> width_of("abc") < width_of("ABC") < width_of("漢字漢")
    True
    """
    return sum(13.0 if east_asian_width(c) in "WF" or c in "WMmw@%—…" else 9.8 if c.isupper() else 7.5 for c in text)


def isolated(name: str) -> str:
    """A name that is read from right to left, marked off so that the numbers beside it keep their places.

    >>> isolated("women"), len(isolated("نساء"))
    ('women', 6)
    """
    return f"\u2068{name}\u2069" if any(bidirectional(c) in ("R", "AL", "AN") for c in name) else name


def wrapped(text: str, width: float) -> list[str]:
    """A text in lines of at most this width, broken at blanks where there are any.

    >>> wrapped("one two three", 60)
    ['one two', 'three']
    """
    lines, line = list[str](), ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        # browsers do not wrap text in SVG, so it is done here, by estimated widths
        if width_of(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        line = word
        while width_of(line) > width:
            fits = next(i for i in range(len(line), 0, -1) if i == 1 or width_of(line[:i]) <= width)
            lines.append(line[:fits])
            line = line[fits:]
    return [*lines, line] if line or not lines else lines


def _text(kind: str, lines: Sequence[str], x: float, y: float, *, anchor: str = "start", whole: str = "") -> str:
    """Lines of text one below the other; `whole` is shown where the mouse rests on it."""
    tip = f"<title>{escape(whole)}</title>" if whole else ""
    if len(lines) == 1:
        inside = escape(lines[0])
    else:
        spans = (f'<tspan x="{x:.1f}" dy="{LINE * bool(i)}">{escape(line)}</tspan>' for i, line in enumerate(lines))
        inside = "".join(spans)
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{inside}{tip}</text>'


class _Plane:
    """Where data stand in the picture."""

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], top: int, height: int, left: int, width: int
    ) -> None:
        self.x, self.y, self.top, self.bottom, self.left = x, y, top, top + height, left
        self.right = width - RIGHT
        # numbers below the x axis need room: about as many as fit
        self.marks = max(4, (self.right - left) // 100)

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
        up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        return self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join("{:.1f} {:.1f}".format(*self.at(x, y)) for x, y in points)

    def axes(self, x_label: str, y_label: str, y_format: Callable[[float], str]) -> list[str]:
        parts = []
        for value in ticks(*self.y):
            _, y = self.at(self.x[0], value)
            parts.append(f'<line class="grid" x1="{self.left}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(
                f'<text class="tick" x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end">{y_format(value)}</text>'
            )
        for value in ticks(*self.x, about=self.marks):
            x, _ = self.at(value, self.y[0])
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{self.bottom + 18}" text-anchor="middle">{number(value)}</text>'
            )
        parts.append(
            f'<text class="axis" x="{self.right}" y="{self.bottom + 36}" text-anchor="end">{escape(x_label)}</text>'
        )
        parts.append(f'<text class="axis" x="{self.left}" y="{self.top - 8}">{escape(y_label)}</text>')
        return parts


def _svg(title: str, description: str, width: int, height: int, parts: Sequence[str]) -> str:
    key = next(_ids)
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-labelledby="t{key} d{key}">'
        f'<title id="t{key}">{escape(title)}</title><desc id="d{key}">{escape(description)}</desc>{"".join(parts)}</svg>'
    )


def _legend(names: Sequence[str], draw: Callable[[int, float, float], str], room: int) -> tuple[list[str], int]:
    """Names beside their marks, wrapped; and the height they take."""
    parts, x, y, tall = list[str](), 4.0, 14.0, 1
    for i, name in enumerate(names):
        lines = wrapped(name, room - 40)
        width = 46 + max(map(width_of, lines))
        if x + width > room and x > 4:
            x, y, tall = 4.0, y + LINE * tall + 4, 1
        parts.append(draw(i, x, y))
        parts.append(_text("key", lines, x + 28, y + 4))
        x, tall = x + width, max(tall, len(lines))
    return parts, int(y) + LINE * (tall - 1) + 34


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
    width: int = WIDTH,
) -> str:
    """Series against a common axis, told apart by colour and by dashes, bands behind."""
    kept = [
        [p for p in zip(s.x, s.y, s.low or s.y, s.high or s.y, strict=True) if not math.isnan(p[1])] for s in series
    ]
    points = [p for rows in kept for p in rows]
    if not points:
        return ""
    key, top = _legend([s.name for s in series], _line_key, width)
    x_range = (min(p[0] for p in points), max(p[0] for p in points))
    heights = y_range or _padded([v for p in points for v in p[1:]])
    plane = _Plane(x_range, heights, top, 230, _left(heights, y_format), width)
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
    return _svg(title, description, width, plane.bottom + 44, parts)


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    pad = 0.06 * (high - low) or 0.02
    return low - pad, high + pad


def _left(heights: tuple[float, float], y_format: Callable[[float], str]) -> int:
    """Room for the numbers beside the y axis."""
    return max(LEFT, 16 + int(max((width_of(y_format(value)) for value in ticks(*heights)), default=0)))


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
    width: int = WIDTH,
) -> str:
    """Parts of a whole over time, stacked; `values` has a row for every x."""
    if not x:
        return ""
    rows = _thin(list(zip(x, values, strict=True)))
    key, top = _legend(names, _area_key, width)
    highest = max(sum(v) for _, v in rows) or 1.0
    plane = _Plane((rows[0][0], rows[-1][0]), (0.0, highest), top, 230, _left((0.0, highest), y_format), width)
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
    return _svg(title, description, width, plane.bottom + 44, parts)


def _area_key(i: int, x: float, y: float) -> str:
    return f'<rect class="area s{i % COLOURS}" x="{x:.1f}" y="{y - 6}" width="20" height="12" rx="2"/>'


def intervals(
    rows: Sequence[Interval],
    marks: Sequence[str],
    *,
    title: str,
    description: str,
    x_label: str,
    width: int = WIDTH,
) -> str:
    """A row for each name: the value as a dot with its interval, others as hollow shapes.

    Names stand beside their rows, or above them where one is too long for that; none is cut off.
    """
    shown = [row for row in rows if not math.isnan(row.value)]
    if not shown:
        return ""
    key, top = _legend(marks, _mark_key, width)
    longest = max(width_of(text) for row in shown for text in (row.name, row.note))
    beside = longest <= SIDE * width
    left = 24 + int(longest) if beside else 12
    above = [
        [] if beside else wrapped(f"{isolated(row.name)} ({row.note})" if row.note else row.name, width - 24)
        for row in shown
    ]
    heights = [42 + LINE * len(lines) for lines in above]
    values = [v for row in shown for v in (row.low, row.high, *row.others) if v is not None]
    plane = _Plane(_padded(values), (0, 1), top, sum(heights), left, width)
    parts = [*key, *_columns(plane, x_label)]
    y = float(plane.top)
    for row, lines, height in zip(shown, above, heights, strict=True):
        if lines:
            parts.append(_text("name", lines, left, y + LINE, whole=row.name))
        else:
            middle = y + height / 2
            parts.append(_text("name", [row.name], left - 12, middle - 2, anchor="end"))
            parts.append(_text("tick", [row.note], left - 12, middle + 13, anchor="end"))
        parts += _interval(plane, row, marks, y + height - 21)
        y += height
    return _svg(title, description, width, plane.bottom + 44, parts)


def _columns(plane: _Plane, x_label: str) -> list[str]:
    """Upright lines with their numbers below."""
    parts = []
    for value in ticks(*plane.x, about=plane.marks):
        x, _ = plane.at(value, 0)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{plane.top}" y2="{plane.bottom}"/>')
        parts.append(_text("tick", [percent(value)], x, plane.bottom + 18, anchor="middle"))
    return [*parts, _text("axis", [x_label], plane.right, plane.bottom + 36, anchor="end")]


def _interval(plane: _Plane, row: Interval, marks: Sequence[str], y: float) -> list[str]:
    low, middle, high = (plane.at(value, 0)[0] for value in (row.low, row.value, row.high))
    above, below = (y - 6, y + 8) if row.others else (y, y)
    tip = f"{row.name}: {100 * row.value:.1f}%, interval {100 * row.low:.1f}% to {100 * row.high:.1f}%"
    parts = [
        f'<g><title>{escape(tip)}</title><line class="whisker s0" x1="{low:.1f}" x2="{high:.1f}" y1="{above:.1f}" y2="{above:.1f}"/>',
        f'<circle class="dot s0" cx="{middle:.1f}" cy="{above:.1f}" r="5.5"/></g>',
    ]
    for i, value in enumerate(row.others, start=1):
        if value is not None:
            x, _ = plane.at(value, 0)
            tip = f"{row.name}, {marks[i]}: {100 * value:.1f}%"
            parts.append(f"<g><title>{escape(tip)}</title>{_shape(i, x, below)}</g>")
    return parts


def _shape(i: int, x: float, y: float) -> str:
    r = 5.5
    corners = ((0, -r), (r, 0), (0, r), (-r, 0)) if i % 2 else ((0, -r), (r, r * 0.8), (-r, r * 0.8))
    return f'<polygon class="mark s{i % COLOURS}" points="{" ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in corners)}"/>'


def _mark_key(i: int, x: float, y: float) -> str:
    return f'<circle class="dot s0" cx="{x + 12:.1f}" cy="{y}" r="5.5"/>' if i == 0 else _shape(i, x + 12, y)
