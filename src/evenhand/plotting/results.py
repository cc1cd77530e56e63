"""Figures of a result, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from matplotlib.figure import Figure

from evenhand.errors import InputError
from evenhand.plotting.panels import COLOURS, band, panels
from evenhand.risks import title_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from evenhand.simulation.result import Result


def _panels(count: int, y: str, title: str) -> tuple[Figure, list[Axes]]:
    return panels(count, "labels", y, title=title, width=4.6)


def _measured(result: Result) -> str:
    """What is measured on test examples, in words."""
    return "test accuracy" if result.measured == "test_accuracy" else f"{title_of(result.settings['risk'])} (test)"


def _band(ax: Axes, found: pd.DataFrame, label: str, colour: str, limits: tuple[float, float] | None = (0, 1)) -> None:
    """A curve of the result as a line with a band of one standard deviation."""
    labels, mean, sd = found.index.to_numpy(), found["mean"].to_numpy(), found["std"].to_numpy()
    band(ax, labels, mean, sd, label, colour, limits=limits)


def _need_trace(result: Result) -> None:
    if result.settings["trace"] != "full" or result.trace.empty:
        raise InputError("the pictures need a full trace: run with trace='full'")


def plot_mixture(result: Result, group: str | None = None) -> Figure:
    """Share of one group (the first by default) over time, a line for each strategy, and π* where it is known."""
    group = result.groups[0] if group is None else group
    if group not in result.groups:
        raise InputError(f"unknown group {group!r}: the groups are {', '.join(map(repr, result.groups))}")
    _need_trace(result)
    figure, (ax,) = _panels(1, f"share of {group}", f"Mixture over time — {result.settings['source']}")
    for label, colour in zip(result.labels, _cycle(len(result.labels)), strict=True):
        _band(ax, result.curve(label, "mixture", group), label, colour)
    if result.fair_mixture is not None:
        star = result.fair_mixture[group]
        ax.axhline(star, color="#444444", linewidth=1, linestyle="--", label=f"fair mixture π* = {star:.2f}")
    ax.set_ylim(0, 1)
    ax.legend(frameon=False, fontsize=9)
    return figure


def plot_worst_group(result: Result) -> Figure:
    """The worst group on test examples, a line for each strategy."""
    _need_trace(result)
    figure, (ax,) = _panels(1, f"{_measured(result)} of the worst group", f"Worst group — {result.settings['source']}")
    for label, colour in zip(result.labels, _cycle(len(result.labels)), strict=True):
        _band(ax, result.curve(label, result.measured), label, colour, _limits(result))
    ax.legend(frameon=False, fontsize=9, loc=_free_corner(result))
    return figure


def plot_groups(result: Result, strategies: Sequence[str] | None = None) -> Figure:
    """Every group on test examples, a panel for each strategy."""
    shown = list(result.labels if strategies is None else strategies)
    unknown = [label for label in shown if label not in result.labels]
    if unknown:
        raise InputError(f"unknown strategy {unknown[0]!r}: there are {', '.join(map(repr, result.labels))}")
    _need_trace(result)
    figure, axes = _panels(len(shown), _measured(result), f"Every group — {result.settings['source']}")
    for ax, label in zip(axes, shown, strict=True):
        ax.set_title(label, fontsize=10)
        for group, colour in zip(result.groups, _cycle(len(result.groups)), strict=True):
            _band(ax, result.curve(label, result.measured, group), group, colour, _limits(result))
    axes[0].legend(frameon=False, fontsize=9, loc=_free_corner(result))
    return figure


def _limits(result: Result) -> tuple[float, float] | None:
    """Where a band is cut off: the log loss has no upper limit."""
    return None if result.settings["risk"] == "log" else (0, 1)


def _free_corner(result: Result) -> Literal["upper right", "lower right"]:
    """The corner for the legend: accuracies rise and risks fall, so they leave different corners free."""
    return "lower right" if result.measured == "test_accuracy" else "upper right"


def _cycle(count: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(count)]
