"""Make docs/assets/images-fashion.png: A_opt and Uniform at the paper's length, and the mixture of A_opt.

python docs/assets/long_picture.py
"""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from evenhand.plotting.panels import COLOURS

HERE = Path(__file__).parent
RULES = {"A_opt": "A_opt", "uniform": "Uniform"}
LINES = ("--", "-", ":")
"""One style a trial."""


def main() -> None:
    """Draw the runs of docs/results/images-fashion-long*.json."""
    files = sorted((HERE.parent / "results").glob("images-fashion-long*.json"), reverse=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for found in (json.loads(file.read_text(encoding="utf-8")) for file in files):
        for run in found["runs"]:
            draw_worst(left, run)
            # of runs by earlier code only the end is known
            if run["rule"] == "A_opt" and "earlier" not in run:
                for shares, group, own in zip(np.array(run["mixture"]).T, found["groups"], COLOURS, strict=False):
                    right.plot(shares, LINES[run["trial"]], color=own, linewidth=1.2, label=group)
    left.set(xlabel="round", ylabel="test accuracy, worst pair", title="Worst pair of FashionMNIST")
    right.set(xlabel="round", ylabel="share of the training examples", title="Mixture of A_opt, trial 1", ylim=(0, 1))
    for axis in (left, right):
        axis.legend(fontsize=8, frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    figure.savefig(HERE / "images-fashion.png", dpi=110)


def draw_worst(axis: Axes, run: dict[str, Any]) -> None:
    """A run's worst pair at the rounds that were tested."""
    worst = np.array(run["worst"], dtype=float)
    tested = np.flatnonzero(~np.isnan(worst))
    code = " (earlier code)" if "earlier" in run else ""
    label = f"{RULES[run['rule']]}, trial {run['trial']}{code}"
    look = {"color": COLOURS[list(RULES).index(run["rule"])], "linewidth": 1.2, "markersize": 3}
    axis.plot(tested + 1, worst[tested], LINES[run["trial"]], marker=".", label=label, **look)


if __name__ == "__main__":
    main()
