"""What the paper only discusses: the grid search for c0 and ε, active learning in bandits, A_opt beside ε-greedy."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Circle

import evenhand as eh
from evidence.common import gain

Found = dict[str, Any]
GRIDS = {"c0": (0.01, 0.03, 0.1, 0.3, 1, 3), "ε": (0.01, 0.03, 0.1, 0.2, 0.3, 0.5)}
BOLD = {"c0": (0.1, 0.3, 1, 3), "ε": (0.1, 0.2, 0.4, 0.5, 0.8)}
RULES = {"c0": eh.Optimistic, "ε": eh.EpsilonGreedy}
V_EXAMPLES, U_EXAMPLES = (5, 10, 20, 50, 100, 200, 500, 1000), 50
BLUE, ORANGE = "#0072b2", "#d55e00"


def worst_of(final: pd.DataFrame) -> pd.DataFrame:
    """The worst group's test accuracy, a row a trial and a column a rule."""
    return final.groupby(["strategy", "trial"], observed=True)["test_accuracy"].min().unstack("strategy")


def grid(small: bool) -> Found:
    """Section 5: c0 and ε by a grid search on both instances; half of the trials choose, the other half tells."""
    trials, budget = (4, 60) if small else (200, 1000)
    rows = []
    for which in ("I", "II"):
        for name, values in GRIDS.items():
            rules = {f"{value:g}": RULES[name](value) for value in values}
            source = eh.SyntheticModel1.instance(which)
            worst = worst_of(eh.simulate(source, rules, budget=budget, trials=trials, evaluate=1, trace="none").final)
            first, second = worst[worst.index < trials // 2], worst[worst.index >= trials // 2]
            best = str(first.mean().idxmax())
            rows.append({
                "instance": which, "setting": name, "best": best, "advantage": gain(second[best], second["0.1"]),
                "confirming": {value: float(second[value].mean()) for value in rules},
            })  # fmt: skip
    return {"trials": trials, "budget": budget, "rows": rows}


def bandits(small: bool) -> Found:
    """Appendix B.2: examples of v change what the classifier does for u; an arm's mean depends on no other arm."""
    model, trials = eh.SyntheticModel1.instance("II"), 3 if small else 200
    accuracy, arm, lines = np.empty((trials, len(V_EXAMPLES), 2)), np.empty(trials), []
    for trial in range(trials):
        stream = model.open(0, [trial])
        u = stream.draw(np.array([0]), np.array([U_EXAMPLES]))
        v = stream.draw(np.array([1]), np.array([V_EXAMPLES[-1]]))
        for k, n in enumerate(V_EXAMPLES):
            fitted = eh.Logistic().fit(np.vstack([u.X, v.X[:n]]), np.concatenate([u.y, v.y[:n]]))
            accuracy[trial, k] = model.linear_accuracies(fitted.coef_[0], fitted.intercept_[0])
            if trial == 0 and n in (V_EXAMPLES[0], V_EXAMPLES[-1]):
                lines.append([*fitted.coef_[0].tolist(), float(fitted.intercept_[0])])
        # each arm has a mean of its own: u's estimate is made of u's samples, however many there are of v
        own = u.X[u.y == 1].mean(axis=0) if (u.y == 1).any() else np.zeros(2)
        arm[trial] = np.linalg.norm(own - model.mu[0, 1])
    return {
        "trials": trials,
        "accuracy": {group: accuracy[..., z].mean(axis=0).round(5).tolist() for z, group in enumerate("uv")},
        "arm_error": float(arm.mean()),
        "few_to_many": {group: gain(accuracy[:, -1, z], accuracy[:, 0, z]) for z, group in enumerate("uv")},
        "lines": lines,
    }


def robust(small: bool) -> Found:
    """Appendix C: how far a too large c0, and a too large ε, keep the mixture from π*, and what that costs."""
    model, rows = eh.SyntheticModel1.instance("I"), []
    fair = float(model.pi_star()[0])
    lengths = {60: 4} if small else {1000: 200, 10_000: 50}
    for name, values in BOLD.items():
        own: list[Found] = [{"setting": name, "value": value, "ends": []} for value in values]
        for budget, trials in lengths.items():
            rules = {f"{value:g}": RULES[name](value) for value in values}
            final = eh.simulate(model, rules, budget=budget, trials=trials, evaluate=1, trace="none").final
            worst, of_u = worst_of(final), final[final["group"] == "u"].pivot(index="trial", columns="strategy")
            for label, row in zip(rules, own, strict=True):
                share = gain(of_u["mixture"][label], fair)
                row["ends"].append({"budget": budget, "trials": trials, "away": share, "worst": worst[label].mean()})
        rows += own
    return {"pi_star": fair, "rows": rows}


def measure(small: bool) -> Found:
    """All three."""
    return {part.__name__: part(small) for part in (grid, bandits, robust)}


def draw(found: Found, folder: Path) -> None:
    """The line learnt from few and from many examples of v, and what that does to both groups."""
    model, one = eh.SyntheticModel1.instance("II"), found["bandits"]
    figure = Figure(figsize=(9, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for z, colour in enumerate((ORANGE, BLUE)):
        for label, style in enumerate(("--", "-")):
            centre = tuple(model.mu[z, label])
            left.add_patch(Circle(centre, 1, facecolor=colour, alpha=0.25, edgecolor=colour, linestyle=style))
            left.annotate(f"{'uv'[z]}, {label}", centre, ha="center", fontsize=9)
        right.semilogx(V_EXAMPLES, one["accuracy"]["uv"[z]], "o-", color=colour, label="uv"[z], markersize=4)
    x = np.array([-4.5, 4.5])
    for (a, b, c), style, n in zip(one["lines"], ("-", "--"), (V_EXAMPLES[0], V_EXAMPLES[-1]), strict=True):
        left.plot(x, -(a * x + c) / b, style, color="#555555", label=f"{n:,} of v")
    left.set(xlim=(-4.5, 4.5), ylim=(-4.5, 4.5), aspect="equal", title="the learnt line of one trial")
    right.set(title=f"{U_EXAMPLES} examples of u", xlabel="examples of v", ylabel="accuracy, mean of the trials")
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=9)
    figure.savefig(folder / "discussion-bandits.png", dpi=100)
