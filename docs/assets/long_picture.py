"""Make docs/assets/images-fashion.png: A_opt and Uniform at the paper's length, and the mixture of A_opt.

python docs/assets/long_picture.py
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from evenhand.plotting.panels import COLOURS

HERE = Path(__file__).parent
RULES = {"A_opt": ("A_opt", COLOURS[0]), "uniform": ("Uniform", COLOURS[2])}
"""Labels and colours, as in the figures of the shorter trials."""
LINES = ("--", "-", ":")
"""One style a trial."""


def main() -> None:
    """Draw the runs of docs/results/images-fashion-long.json."""
    found = json.loads((HERE.parent / "results/images-fashion-long.json").read_text(encoding="utf-8"))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for run in found["runs"]:
        line, trial = LINES[run["trial"] % len(LINES)], run["trial"]
        worst = np.array(run["worst"], dtype=float)
        tested = np.flatnonzero(~np.isnan(worst))
        label, colour = RULES[run["rule"]]
        look = {"color": colour, "linewidth": 1.2, "markersize": 4, "marker": "."}
        left.plot(tested + 1, worst[tested], line, label=f"{label}, trial {trial}", **look)
        if run["rule"] == "A_opt":
            for shares, group, own in zip(np.array(run["mixture"]).T, found["groups"], COLOURS, strict=False):
                right.plot(shares, line, color=own, linewidth=1.2, label=group if line == "-" else None)
    left.set(xlabel="round", ylabel="test accuracy, worst pair", title="Worst pair of FashionMNIST")
    right.set(
        xlabel="round",
        ylabel="share of the training examples",
        title="Mixture of A_opt, line styles as on the left",
        ylim=(0, 1),
    )
    left.legend(fontsize=8, frameon=False)
    right.legend(fontsize=8, frameon=False, ncols=3, loc="upper right")
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    figure.savefig(HERE / "images-fashion.png", dpi=110)


if __name__ == "__main__":
    main()
