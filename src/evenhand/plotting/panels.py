"""What every figure over time is made of: panels side by side, and a band around a mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from evenhand.arrays import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#000000")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""
_FEW = 30


def panels(
    count: int, x: str, y: str, *, title: str = "", width: float = 4.8, sharey: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels in a row; `width` is the width of one panel if there are several, in inches."""
    figure = Figure(figsize=(6.4 if count == 1 else width * count, 4.0), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, count, sharey=sharey)))
    if title:
        figure.suptitle(title, fontsize=12)
    for ax in axes:
        ax.set_xlabel(x)
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(y)
    return figure, axes


def band(
    ax: Axes, x: Ints, mean: Floats, sd: Floats, label: str, colour: str, limits: tuple[float, float] | None = None
) -> None:
    """A line with a band of one standard deviation, cut off at the limits; a single point has an error bar."""
    if len(x) == 1:
        ax.errorbar(x, mean, sd, label=label, color=colour, marker="o", markersize=4, capsize=3)
        return
    # a line between a few points must not look as if every point of it had been measured
    marker = "o" if len(x) <= _FEW else None
    ax.plot(x, mean, label=label, color=colour, linewidth=1.6, marker=marker, markersize=3.5)
    low, high = mean - sd, mean + sd
    if limits is not None:
        low, high = np.clip(low, *limits), np.clip(high, *limits)
    ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
