"""The parts of a chart: a plane with axes, legends, wrapped text, round numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from itertools import count
from typing import TypeVar
from unicodedata import bidirectional, east_asian_width

from evenhand.report.times import TimeMarks

__all__ = [
    "COLOURS", "LEFT", "LINE", "NARROW", "RIGHT", "WIDTH", "Plane", "isolated", "legend", "number", "padded", "percent",
    "picture", "room_left", "shortened", "text_at", "thinned", "ticks", "width_of", "wrapped",
]  # fmt: skip

WIDTH, NARROW = 760, 360
"""The width of a chart on a page, and on a phone."""
LEFT, RIGHT = 56, 36
LINE = 18
COLOURS = 8
MOST_POINTS = 300
# titles of several charts on one page need different ids
_ids = count(1)
T = TypeVar("T")
# letters of right-to-left scripts, and marks that change the direction of what follows
_TURNING = frozenset({"R", "AL", "AN", "RLO", "RLE", "RLI", "LRO", "LRE", "LRI", "FSI"})


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
    """An estimate of how wide a text is drawn; rather too wide, so that nothing is cut off.

    >>> width_of("abc") < width_of("ABC") < width_of("漢字漢")
    True
    """
    return sum(map(_width, text))


@cache
def _width(c: str) -> float:
    return 13.0 if east_asian_width(c) in "WF" or c in "WMmw@%—…" else 9.8 if c.isupper() else 7.5


def isolated(name: str) -> str:
    """A name; one in a right-to-left script is isolated, so that the numbers beside it keep their places.

    >>> isolated("women"), len(isolated("نساء"))
    ('women', 6)
    """
    return f"\u2068{name}\u2069" if any(bidirectional(c) in _TURNING for c in name) else name


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
        *full, line = _pieces(word, width)
        lines += full
    return [*lines, line] if line or not lines else lines


def _pieces(word: str, width: float) -> list[str]:
    """A long word in pieces of at most this width, in one pass: names may have thousands of characters."""
    pieces, start, used = list[str](), 0, 0.0
    for i, c in enumerate(word):
        if i > start and used + _width(c) > width:
            pieces.append(word[start:i])
            start, used = i, 0.0
        used += _width(c)
    return [*pieces, word[start:]]


def shortened(lines: list[str], most: int = 2) -> list[str]:
    """The first lines of a long text; the whole text is shown when the mouse rests on it, and in the table.

    >>> shortened(["one", "two", "three"])
    ['one', 't…']
    """
    return lines if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1][:-2]}…"]


def text_at(kind: str, lines: Sequence[str], x: float, y: float, *, anchor: str = "start", whole: str = "") -> str:
    """Lines of text one below the other; `whole` is shown when the mouse rests on it."""
    tip = f"<title>{escape(whole)}</title>" if whole else ""
    if len(lines) == 1:
        inside = escape(lines[0])
    else:
        spans = (f'<tspan x="{x:.1f}" dy="{LINE * bool(i)}">{escape(line)}</tspan>' for i, line in enumerate(lines))
        inside = "".join(spans)
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{inside}{tip}</text>'


class Plane:
    """Where data are drawn in the picture."""

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], top: int, height: int, left: int, width: int
    ) -> None:
        self.x, self.y, self.top, self.bottom, self.left = x, y, top, top + height, left
        self.right = width - RIGHT
        # numbers below the x axis need room: about as many as fit
        self.marks = max(5, (self.right - left) // 100)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point is drawn."""
        across = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
        up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        return self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """A line through points."""
        return "M" + "L".join("{:.1f} {:.1f}".format(*self.at(x, y)) for x, y in points)

    def axes(
        self,
        x_label: str,
        y_label: str,
        y_format: Callable[[float], str],
        x_marks: Sequence[tuple[float, str]] | None = None,
    ) -> list[str]:
        """Grid lines with their numbers, numbers below, and the axis labels; `x_marks` replace round numbers."""
        parts = []
        for value in ticks(*self.y):
            _, y = self.at(self.x[0], value)
            parts.append(f'<line class="grid" x1="{self.left}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(
                f'<text class="tick" x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end">{y_format(value)}</text>'
            )
        below = [(value, number(value)) for value in ticks(*self.x, about=self.marks)] if x_marks is None else x_marks
        found = [
            f'<text class="tick" x="{self.at(value, 0)[0]:.1f}" y="{self.bottom + 18}" text-anchor="middle">{escape(text)}</text>'
            for value, text in below
        ]
        found.append(
            f'<text class="axis" x="{self.right}" y="{self.bottom + 36}" text-anchor="end">{escape(x_label)}</text>'
        )
        if isinstance(x_marks, TimeMarks) and x_marks.zoned:
            ends = f'data-from="{self.x[0]:.0f}" data-to="{self.x[1]:.0f}" data-left="{self.left}" data-right="{self.right}"'
            found = [f'<g class="moments" data-step="{x_marks.step:.0f}" {ends}>', *found, "</g>"]
        parts += found
        parts.append(f'<text class="axis" x="{self.left}" y="{self.top - 8}">{escape(y_label)}</text>')
        return parts


def picture(title: str, description: str, width: int, height: int, parts: Sequence[str]) -> str:
    """The finished chart."""
    key = next(_ids)
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-labelledby="t{key} d{key}">'
        f'<title id="t{key}">{escape(title)}</title><desc id="d{key}">{escape(description)}</desc>{"".join(parts)}</svg>'
    )


def legend(names: Sequence[str], draw: Callable[[int, float, float], str], room: int) -> tuple[list[str], int]:
    """Names beside their marks, wrapped; and the height they take."""
    parts, x, y, tall = list[str](), 4.0, 14.0, 1
    for i, name in enumerate(names):
        lines = shortened(wrapped(name, room - 40))
        width = 46 + max(map(width_of, lines))
        if x + width > room and x > 4:
            x, y, tall = 4.0, y + LINE * tall + 4, 1
        parts.append(draw(i, x, y))
        parts.append(text_at("key", lines, x + 28, y + 4, whole=name))
        x, tall = x + width, max(tall, len(lines))
    return parts, int(y) + LINE * (tall - 1) + 34


def thinned(values: Sequence[T], most: int = MOST_POINTS) -> list[T]:
    """At most `most` of the values, evenly spaced, including the first and the last."""
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def padded(values: Sequence[float]) -> tuple[float, float]:
    """The range of values with some room on both sides."""
    low, high = min(values), max(values)
    pad = 0.06 * (high - low) or 0.02
    return low - pad, high + pad


def room_left(heights: tuple[float, float], y_format: Callable[[float], str]) -> int:
    """The space for the numbers beside the y axis."""
    return max(LEFT, 16 + int(max((width_of(y_format(value)) for value in ticks(*heights)), default=0)))
