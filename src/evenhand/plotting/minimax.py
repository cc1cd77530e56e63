"""How a minimax fit went: every group's risk and weight, round by round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from evenhand.errors import InputError
from evenhand.plotting.panels import COLOURS, panels

if TYPE_CHECKING:
    from evenhand.learners.minimax import Minimax


def plot_minimax(fitted: Minimax) -> Figure:
    """Every group's risk, and its weight, against the rounds of a fitted `Minimax`."""
    history = getattr(fitted, "history_", None)
    if history is None:
        raise InputError("this Minimax is not fitted yet: call fit(X, y, groups=...) first")
    figure, axes = panels(2, "round", "risk", title="Trained for the worst-off group", sharey=False)
    axes[1].set_ylabel("weight")
    for number, (group, rows) in enumerate(history.groupby("group", sort=False)):
        colour = COLOURS[number % len(COLOURS)]
        for ax, column in zip(axes, ("risk", "weight"), strict=True):
            ax.plot(rows["round"], rows[column], color=colour, linewidth=1.6, label=str(group))
    worst = history.groupby("round")["risk"].max()
    axes[0].plot(worst.index, np.asarray(worst), color="#444444", linewidth=1, linestyle="--", label="worst-off")
    axes[0].legend(frameon=False, fontsize=9)
    return figure
