"""The picture of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from evenhand.plotting.panels import COLOURS

if TYPE_CHECKING:
    from evenhand.simulation.sweep import Sweep

__all__ = ["draw"]


def draw(found: Sweep) -> Figure:
    """A heat map over the first two settings, a line with bars of one standard deviation over a single one."""
    figure = Figure(figsize=(6.0, 4.4), layout="constrained")
    ax = figure.subplots()
    table, names = found.table, found.names
    ax.set_xlabel(names[0])
    if len(names) == 1:
        x = np.arange(len(table))
        ax.errorbar(x, table["confirming_mean"], table["confirming_std"], fmt="o-", color=COLOURS[0], capsize=3)
        ax.set_xticks(x, table[names[0]].tolist())
        ax.set_ylabel(f"{found.measured} of the worst group, confirming half")
        ax.grid(alpha=0.25, linewidth=0.6)
    else:
        columns, rows = (list(dict.fromkeys(table[name])) for name in names[:2])
        groups = table.groupby(list(names[:2]), sort=False)["confirming_mean"]
        best = groups.max() if found.risk == "error" else groups.min()
        values = np.array([[best[column, row] for column in columns] for row in rows])
        image = ax.imshow(values, cmap="viridis", aspect="auto", origin="lower")
        for (i, j), value in np.ndenumerate(values):
            ax.text(j, i, f"{value:.3f}", ha="center", va="center", color="white" if value < values.mean() else "black")
        ax.set_xticks(range(len(columns)), columns)
        ax.set_yticks(range(len(rows)), rows)
        ax.set_ylabel(names[1])
        figure.colorbar(image, ax=ax, label=f"{found.measured} of the worst group, confirming half")
    ax.set_title(f"best in the choosing half: {found.best}", fontsize=10)
    return figure
