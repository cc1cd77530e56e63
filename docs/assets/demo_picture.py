"""Make docs/assets/demo.png, the picture of the README: where `evenhand demo` spent its labels, and what they bought.

    evenhand demo && python docs/assets/demo_picture.py evenhand-demo/train.report.json

The same seed gives the same picture.
"""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#8a8f98"


def called(group: str) -> str:
    """A group as one would call it."""
    age, sex = (part.partition("=")[2] for part in group.split(", "))
    return f"{'men' if sex == 'Male' else 'women'}, {age}"


def main(report: Path) -> None:
    """Two panels over the same groups, the worst off at the top."""
    found = json.loads(report.read_text(encoding="utf-8"))
    rows = sorted(found["by_group"], key=lambda row: row["accuracy"], reverse=True)
    places = range(len(rows))
    figure, (bought, right) = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    bought.barh(places, [row["train"] + row["validation"] for row in rows], color=BLUE, height=0.62)
    bought.axvline(found["labels"] / len(rows), color=GREY, linestyle="--", linewidth=1.2)
    bought.text(found["labels"] / len(rows) + 3, -0.1, "equal shares", color=GREY, fontsize=10, va="center")
    bought.set_yticks(places, [called(row["group"]) for row in rows])
    bought.set_title(f"Where {found['labels']:,} labels went", loc="left", fontweight="bold")
    bought.set_xlabel("labels bought")
    for place, row in zip(places, rows, strict=True):
        right.plot([100 * row["low"], 100 * row["high"]], [place, place], color=BLUE, linewidth=4, alpha=0.45)
    right.plot([100 * row["accuracy"] for row in rows], places, "o", color=BLUE, markersize=7, label="the model")
    guesses = [100 * row["majority_accuracy"] for row in rows]
    right.plot(
        guesses, places, "D", color=ORANGE, markersize=5.5, fillstyle="none", label=f"always “{found['majority']}”"
    )
    right.set_title("How often the model is right", loc="left", fontweight="bold")
    right.set_xlabel("per cent of unseen people, with 95 % intervals")
    right.legend(frameon=False, loc="upper right")
    for panel in (bought, right):
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(left=False)
        panel.grid(axis="x", color="#e6e8eb")
        panel.set_axisbelow(True)
    figure.savefig(Path(__file__).with_name("demo.png"), dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
