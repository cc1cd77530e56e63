"""Bar charts: a row for every name, with the parts of its bar one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from evenhand.report.charts import TONE, colour_of
from evenhand.report.plane import (
    WIDTH,
    Plane,
    isolated,
    legend,
    picture,
    shortened,
    text_at,
    ticks,
    width_of,
    wrapped,
)

_ROW = 26
_MOST_NAME = 0.42


@dataclass(frozen=True)
class Bar:
    """A row: the parts of its bar, the text at its end, and whether it is highlighted."""

    name: str
    parts: tuple[float, ...]
    note: str = ""
    chosen: bool = False
    colour: int | None = None


def bars(
    rows: Sequence[Bar],
    parts: Sequence[str],
    *,
    title: str,
    description: str,
    form: Callable[[float], str] = lambda value: f"{value:.3g}",
    width: int = WIDTH,
) -> str:
    """A bar for each row; parts below 0 go to the left. A single part has the row's colour, several have a legend."""
    if not rows:
        return ""
    several = len(parts) > 1
    key, top = legend(parts, _key, width) if several else ([], 8)
    room = _MOST_NAME * width
    names = [wrapped(isolated(row.name), room) for row in rows]
    left = int(min(room, max(width_of(line) for lines in names for line in lines[:1]))) + 20
    notes = max((width_of(row.note) for row in rows), default=0.0)
    low = min(0.0, *(sum(p for p in row.parts if p < 0) for row in rows))
    high = max(0.0, *(sum(p for p in row.parts if p > 0) for row in rows)) or 1.0
    plane = Plane((low, high), (0, 1), top, _ROW * len(rows), left, width - int(notes))
    found = [*key, *(_upright(plane, value) for value in ticks(low, high, about=4))]
    for i, (row, lines) in enumerate(zip(rows, names, strict=True)):
        middle = plane.top + _ROW * (i + 0.5)
        kind = "name chosen" if row.chosen else "name"
        found.append(text_at(kind, shortened(lines, 1), left - 12, middle + 4, anchor="end", whole=row.name))
        found += _bar(plane, row, parts, middle, form, several)
    return picture(title, description, width, plane.bottom + 8, found)


def _key(i: int, x: float, y: float) -> str:
    return f'<rect class="bar {colour_of(TONE + i)}" x="{x:.1f}" y="{y - 6}" width="20" height="12" rx="2"/>'


def _upright(plane: Plane, value: float) -> str:
    x, _ = plane.at(value, 0)
    return f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{plane.top}" y2="{plane.bottom}"/>'


def _bar(
    plane: Plane, row: Bar, parts: Sequence[str], middle: float, form: Callable[[float], str], several: bool
) -> list[str]:
    found, right, left = list[str](), 0.0, 0.0
    for k, value in enumerate(row.parts):
        start, end = (right, right + value) if value >= 0 else (left + value, left)
        right, left = (end, left) if value >= 0 else (right, start)
        a, b = plane.at(start, 0)[0], plane.at(end, 0)[0]
        colour = colour_of(TONE + k if several or row.colour is None else row.colour)
        tip = escape(f"{row.name}, {parts[k]}: {form(value)}")
        found.append(
            f'<rect class="bar {colour}" x="{a:.1f}" y="{middle - 8:.1f}" width="{max(b - a, 0.5):.1f}" height="16" rx="2">'
            f"<title>{tip}</title></rect>"
        )
    if row.note:
        kind = "key chosen" if row.chosen else "tick"
        found.append(text_at(kind, [row.note], plane.at(right, 0)[0] + 8, middle + 4))
    return found
