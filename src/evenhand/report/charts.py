"""Charts as inline SVG: data in, text out. Colours are CSS variables, so that a page can be light or dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from evenhand.report.plane import (
    COLOURS,
    LINE,
    WIDTH,
    Plane,
    isolated,
    legend,
    number,
    padded,
    percent,
    picture,
    room_left,
    shortened,
    text_at,
    thinned,
    ticks,
    width_of,
    wrapped,
)

SIDE = 0.32
"""The share of a chart's width that names beside it may take; longer ones stand above their rows."""
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "6 2 1 2")
MOST_MARKS = 80
MOST_AREAS = 8
TONE = 100
"""From here on `colour` means a shade of grey-blue, for anything that is not a group: groups have their own colours."""
TONES = 6
END = 230
"""The space beside a chart for names at the ends of its lines."""


@dataclass(frozen=True)
class Line:
    """One series; `low` and `high` make a band around it.

    `colour` is a position in the palette, by default that of the series; `faint` lines are thin and grey and not in the
    legend. `tips` are shown when the mouse rests on a point; `note` follows the name.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    colour: int | None = None
    faint: bool = False
    dashed: bool = False
    tips: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True)
class Interval:
    """A row of marks: a main value with its interval, and others to compare it with; `said` is the text at its end."""

    name: str
    value: float
    low: float
    high: float
    others: tuple[float | None, ...] = ()
    note: str = ""
    colour: int = 0
    said: str = ""


def lines(
    series: Sequence[Line],
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    y_format: Callable[[float], str] = percent,
    y_range: tuple[float, float] | None = None,
    x_marks: Sequence[tuple[float, str]] | None = None,
    ends: bool = False,
    width: int = WIDTH,
) -> str:
    """A line chart: series on a common axis, in different colours and dashes, with bands behind them.

    With `ends`, names stand where the lines end instead of in a legend, and no line is dashed.
    """
    kept = [
        [p for p in zip(s.x, s.y, s.low or s.y, s.high or s.y, strict=True) if not math.isnan(p[1])] for s in series
    ]
    points = [p for rows in kept for p in rows]
    if not points:
        return ""
    named = [i for i, s in enumerate(series) if not s.faint]
    ends = ends and width > WIDTH
    names = [] if ends else [f"{isolated(series[i].name)} {series[i].note}".rstrip() for i in named]
    key, top = legend(names, lambda k, x, y: _line_key(series[named[k]], named[k], x, y), width) if names else ([], 26)
    x_range = (min(p[0] for p in points), max(p[0] for p in points))
    if x_range[0] == x_range[1] and x_marks is None:
        # a single moment: at the left, the line to its name would look like a history
        x_range = (min(0.0, x_range[0]), max(0.0, x_range[1]))
    heights = y_range or padded([v for p in points for v in p[1:]])
    plane = Plane(x_range, heights, top, 230, room_left(heights, y_format), width - END * ends)
    parts = [*key, *plane.axes(x_label, y_label, y_format, x_marks)]
    if ends:
        parts += _names_at_ends(plane, [(series[i], kept[i][-1]) for i in named if kept[i]], width)
    # faint ones first, so that no named line is hidden below one of them
    for i in sorted(range(len(series)), key=lambda i: not series[i].faint):
        parts += _drawn_line(plane, series[i], i, thinned(kept[i]), y_format, dashes=not ends)
    return picture(title, description, width, plane.bottom + 44, parts)


def _names_at_ends(plane: Plane, ends: Sequence[tuple[Line, tuple[float, ...]]], width: int) -> list[str]:
    """The name of every line where it ends, moved apart where several end at one height."""
    room, step = width - plane.right - 40, LINE - 1
    wanted = sorted(((plane.at(*end[:2]), line) for line, end in ends), key=lambda found: found[0][1])
    heights = [at[1] for at, _ in wanted]
    for k in range(1, len(heights)):
        heights[k] = max(heights[k], heights[k - 1] + step)
    # those pushed below the chart go back up, one after the other
    for k in range(len(heights) - 1, -1, -1):
        heights[k] = min(heights[k], plane.bottom + 4 - step * (len(heights) - 1 - k))
    parts = []
    for ((x, y), line), height in zip(wanted, heights, strict=True):
        colour = colour_of(line.colour or 0)
        parts.append(f'<path class="lead {colour}" d="M{x + 3:.1f} {y:.1f}L{plane.right + 18} {height:.1f}h8"/>')
        shown = shortened(wrapped(isolated(line.name), room - width_of(line.note)), 1)[0]
        parts.append(text_at("key", [f"{shown} {line.note}"], plane.right + 32, height + 4, whole=line.name))
    return parts


def _drawn_line(
    plane: Plane,
    line: Line,
    i: int,
    rows: Sequence[tuple[float, float, float, float]],
    y_format: Callable[[float], str],
    *,
    dashes: bool = True,
) -> list[str]:
    if not rows:
        return []
    parts, colour = list[str](), colour_of(i if line.colour is None else line.colour)
    path = plane.path([p[:2] for p in rows])
    if line.faint:
        return [f'<path class="faint" d="{path}"><title>{escape(line.name)}</title></path>']
    if line.low is not None:
        edge = [(x, high) for x, _, _, high in rows] + [(x, low) for x, _, low, _ in reversed(rows)]
        parts.append(f'<path class="band {colour}" d="{plane.path(edge)}Z"/>')
    dash = _dash(line, i) if dashes or line.dashed else ""
    parts.append(f'<path class="line {colour}" {dash} d="{path}"/>')
    if len(rows) == 1:
        a, b = plane.at(*rows[0][:2])
        parts.append(f'<circle class="dot {colour}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>')
    tips = dict(zip(line.x, line.tips, strict=False))
    for x, y, *_ in rows if len(rows) <= MOST_MARKS else ():
        a, b = plane.at(x, y)
        plain = f"{line.name}: {100 * y:.1f}% at {number(x)}" if y_format is percent else f"{line.name}: {y:.3g}"
        tip = escape(tips.get(x, plain))
        parts.append(f'<circle class="hover" cx="{a:.1f}" cy="{b:.1f}" r="6"><title>{tip}</title></circle>')
    return parts


def colour_of(i: int) -> str:
    """The CSS class for a position in the palette; -1 is the grey of everything else."""
    return "rest" if i < 0 else f"t{(i - TONE) % TONES}" if i >= TONE else f"s{i % COLOURS}"


def _dash(line: Line, i: int) -> str:
    pattern = "5 5" if line.dashed else DASHES[(i if line.colour is None else line.colour % TONE) % COLOURS]
    return f'stroke-dasharray="{pattern}"' if pattern else ""


def _line_key(line: Line, i: int, x: float, y: float) -> str:
    colour = colour_of(i if line.colour is None else line.colour)
    return f'<line class="line {colour}" {_dash(line, i)} x1="{x:.1f}" x2="{x + 22:.1f}" y1="{y}" y2="{y}"/>'


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
    colours: Sequence[int] | None = None,
    marks: Sequence[float] = (),
    x_marks: Sequence[tuple[float, str]] | None = None,
    width: int = WIDTH,
) -> str:
    """Parts of a whole over time, stacked; `values` has a row for every x. `marks` are dashed lines across, at heights."""
    if not x:
        return ""
    painted = list(range(len(names))) if colours is None else list(colours)
    rows = thinned(list(zip(x, values, strict=True)))
    key, top = legend([isolated(name) for name in names], lambda i, at, y: _area_key(painted[i], at, y), width)
    highest = max(sum(v) for _, v in rows) or 1.0
    plane = Plane((rows[0][0], rows[-1][0]), (0.0, highest), top, 230, room_left((0.0, highest), y_format), width)
    floor = [0.0] * len(rows)
    # numbers and lines across go first: drawn over the areas they would look like borders
    parts = [*key, *plane.axes(x_label, y_label, y_format, x_marks)]
    for i, name in enumerate(names):
        ceiling = [low + v[i] for low, (_, v) in zip(floor, rows, strict=True)]
        upper = [(at, y) for (at, _), y in zip(rows, ceiling, strict=True)]
        lower = [(at, y) for (at, _), y in zip(rows, floor, strict=True)]
        d = plane.path([*upper, *reversed(lower)])
        parts.append(f'<path class="area {colour_of(painted[i])}" d="{d}Z"><title>{escape(name)}</title></path>')
        floor = ceiling
    for height in marks:
        _, y = plane.at(plane.x[0], height)
        # a light line below keeps the dashes visible on every colour
        parts += [
            f'<line class="{kind}" x1="{plane.left}" x2="{plane.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            for kind in ("halo", "expected")
        ]
    return picture(title, description, width, plane.bottom + 44, parts)


def few_areas(names: Sequence[str], values: Sequence[Sequence[float]]) -> tuple[list[str], list[list[float]]]:
    """The parts for `areas`, the last ones of many taken together, so that every part has a colour of its own.

    >>> few_areas(list("abcdefghi"), [[1, 2, 3, 4, 5, 6, 7, 8, 9]])[0][-2:]
    ['g', '2 other groups']
    """
    if len(names) <= MOST_AREAS:
        return list(names), [list(row) for row in values]
    kept = MOST_AREAS - 1
    shown = [*names[:kept], f"{len(names) - kept} other groups"]
    return shown, [[*row[:kept], sum(row[kept:])] for row in values]


def _area_key(i: int, x: float, y: float) -> str:
    return f'<rect class="area {colour_of(i)}" x="{x:.1f}" y="{y - 6}" width="20" height="12" rx="2"/>'


def intervals(
    rows: Sequence[Interval],
    marks: Sequence[str],
    *,
    title: str,
    description: str,
    x_label: str,
    target: tuple[float, str] | None = None,
    width: int = WIDTH,
) -> str:
    """A row for each name: the value as a dot with its interval, other values as hollow shapes.

    Names are beside their rows, or above them if one is too long for that. `target` is a vertical line and its name.
    """
    shown = [row for row in rows if not math.isnan(row.value)]
    if not shown:
        return ""
    key, top = legend(marks, _mark_key, width) if marks else ([], 24 if target else 6)
    longest = max(width_of(text) for row in shown for text in (row.name, row.note))
    beside = longest <= SIDE * width
    left = 24 + int(longest) if beside else 12
    above = [
        []
        if beside
        else shortened(wrapped(f"{isolated(row.name)} ({row.note})" if row.note else isolated(row.name), width - 24), 3)
        for row in shown
    ]
    heights = [42 + LINE * len(lines) for lines in above]
    values = [v for row in shown for v in (row.low, row.high, *row.others) if v is not None]
    values += [target[0]] if target else []
    ends = max(width_of(row.said) for row in shown)
    plane = Plane(padded(values), (0, 1), top, sum(heights), left, width - int(ends))
    parts = [*key, *_columns(plane, x_label)]
    if target:
        x, _ = plane.at(target[0], 0)
        parts.append(f'<line class="expected" x1="{x:.1f}" x2="{x:.1f}" y1="{plane.top - 6}" y2="{plane.bottom}"/>')
        parts.append(text_at("key", [target[1]], x, plane.top - 10, anchor="end" if x > width / 2 else "start"))
    y = float(plane.top)
    for row, lines, height in zip(shown, above, heights, strict=True):
        if lines:
            parts.append(text_at("name", lines, left, y + LINE, whole=row.name))
        else:
            middle = y + height / 2
            parts.append(text_at("name", [isolated(row.name)], left - 12, middle - 2, anchor="end"))
            parts.append(text_at("tick", [row.note], left - 12, middle + 13, anchor="end"))
        parts += _interval(plane, row, marks, y + height - 21)
        if row.said:
            parts.append(text_at("tick", [row.said], width - 4, y + height - 17, anchor="end"))
        y += height
    return picture(title, description, width, plane.bottom + 44, parts)


def _columns(plane: Plane, x_label: str) -> list[str]:
    """Vertical grid lines with their numbers below."""
    parts = []
    for value in ticks(*plane.x, about=plane.marks):
        x, _ = plane.at(value, 0)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{plane.top}" y2="{plane.bottom}"/>')
        parts.append(text_at("tick", [percent(value)], x, plane.bottom + 18, anchor="middle"))
    return [*parts, text_at("axis", [x_label], plane.right, plane.bottom + 36, anchor="end")]


def _interval(plane: Plane, row: Interval, marks: Sequence[str], y: float) -> list[str]:
    low, middle, high = (plane.at(value, 0)[0] for value in (row.low, row.value, row.high))
    above, below = (y - 6, y + 8) if row.others else (y, y)
    tip = f"{row.name}: {100 * row.value:.1f}%, interval {100 * row.low:.1f}% to {100 * row.high:.1f}%"
    parts = [
        f'<g><title>{escape(tip)}</title><line class="whisker {colour_of(row.colour)}" x1="{low:.1f}" x2="{high:.1f}" y1="{above:.1f}" y2="{above:.1f}"/>',
        f'<circle class="dot {colour_of(row.colour)}" cx="{middle:.1f}" cy="{above:.1f}" r="5.5"/></g>',
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
