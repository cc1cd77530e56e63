"""The figures of the experiments, drawn in one style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.figure import Figure

from evenhand.arrays import Floats, Ints
from evenhand.engine.run import Record
from evenhand.experiments.measures import leads, share, tested_rounds
from evenhand.plotting.panels import COLOURS, band
from evenhand.plotting.panels import panels as untitled
from evenhand.simulation.metrics import spread, worst

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# more points cannot be seen, and would make an SVG of megabytes
_POINTS = 200


COLOUR_OF = dict(
    zip(
        ("A_opt", "Greedy", "Uniform", "Uncurated", "ε-greedy", "A_opt+"),
        COLOURS[:6],
        strict=True,
    )
)
"""A rule of the paper has the same colour in every figure; others have that of their place."""
# its settings beside each other
COLOUR_OF |= {"A_opt, c0 = 0.1": COLOURS[0], "A_opt, c0 = 1": COLOURS[5]}
COLOUR_OF |= {"ε-greedy, ε = 0.1": COLOURS[4], "ε-greedy, ε = 0.5": COLOURS[6]}

COLOUR_OF["Oracle"] = "#000000"

PAIRED = "ahead of Uniform, paired, with 95 % intervals"
"""The title of a panel that `draw_ahead` draws."""


def coloured(runs: Mapping[str, Record]) -> Iterator[tuple[str, Record, str]]:
    """Every rule's label, what was found, and its colour."""
    for place, (label, record) in enumerate(runs.items()):
        yield label, record, COLOUR_OF.get(label, COLOURS[place % len(COLOURS)])


def panels(titles: Sequence[str], x: str, y: str, *, sharey: bool = True) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title."""
    figure, axes = untitled(len(titles), x, y, sharey=sharey)
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, fontsize=11)
    return figure, axes


def draw_band(
    ax: Axes, x: Ints, values: Floats, label: str, colour: str, limits: tuple[float, float] | None = None
) -> None:
    """Mean over trials (the last axis) with a band of one standard deviation, cut off at the limits."""
    some = np.unique(np.linspace(0, len(x) - 1, _POINTS).round().astype(int))
    x, values = np.asarray(x)[some], values[some]
    band(ax, x, *spread(values), label, colour, limits)


def _legend(ax: Axes, where: Literal["best", "lower right"] = "best") -> None:
    ax.legend(frameon=False, fontsize=9, loc=where)


def draw_share(ax: Axes, runs: Mapping[str, Record], group: str, fair: float | None = None) -> None:
    """Share of one group against the round, a line for each strategy."""
    for label, record, colour in coloured(runs):
        draw_band(ax, np.arange(1, len(record.labels) + 1), share(record, group), label, colour, (0, 1))
    if fair is not None:
        ax.axhline(fair, color="#444444", linewidth=1, linestyle="--", label=f"π* = {fair:.2f}")
    ax.set_ylim(0, 1)
    _legend(ax)


def draw_mixture(ax: Axes, record: Record) -> None:
    """Share of every group against the round."""
    for group, colour in zip(record.groups, COLOURS, strict=False):
        draw_band(ax, np.arange(1, len(record.labels) + 1), share(record, group), group, colour, (0, 1))
    ax.set_ylim(0, 1)
    _legend(ax)


def draw_worst(ax: Axes, runs: Mapping[str, Record], *, by: str = "labels") -> None:
    """Test accuracy of the worst group, a line for each strategy."""
    for label, record, colour in coloured(runs):
        rounds = tested_rounds(record)
        draw_band(ax, _spent(record, rounds, by), worst(record.accuracy[rounds]), label, colour)
    _legend(ax, "lower right")


def _spent(record: Record, rounds: Ints, by: str) -> Ints:
    """Where these rounds stand on the axis: by the labels they have spent, or by their number."""
    return np.asarray(record.labels[rounds].max(axis=1) if by == "labels" else rounds + 1)


def draw_ahead(ax: Axes, runs: Mapping[str, Record], base: str, *, by: str = "labels") -> None:
    """How many points each strategy's worst group is ahead of the base's: means of pairs, with 95 % intervals."""
    for label, record, colour in coloured(runs):
        if label == base:
            ax.axhline(0, color=colour, linewidth=1.6)
            continue
        rounds, found = leads(runs, label, base)
        mean, high = (100 * np.array([getattr(one, end) for one in found]) for end in ("mean", "high"))
        band(ax, _spent(record, rounds, by), mean, high - mean, label, colour)
    ax.set_ylabel("percentage points")


def draw_groups(ax: Axes, record: Record) -> None:
    """Test accuracy of every group of one strategy, against the round."""
    rounds = tested_rounds(record)
    for z, (group, colour) in enumerate(zip(record.groups, COLOURS, strict=False)):
        draw_band(ax, rounds + 1, record.accuracy[rounds, :, z], group, colour)
    _legend(ax, "lower right")


def watermark(figure: Figure, text: str) -> None:
    """A large grey text across the figure."""
    figure.text(0.5, 0.5, text, fontsize=26, color="#888888", alpha=0.35, ha="center", va="center", rotation=20)


def footnote(figure: Figure, text: str) -> None:
    """A line of small grey text in the lower left corner."""
    figure.text(0.01, 0.01, text, fontsize=7.5, color="#666666", ha="left", va="bottom")
