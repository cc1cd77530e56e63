"""What the paper only discusses, measured: the grid search for c0 and ε, active learning in bandits, A_opt beside ε-greedy.

Run: python benchmarks/discussion.py [--out docs/results] [--trials 200] [--only grid bandits robust]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from scipy.stats import t as student

import evenhand as eh
from evenhand.arrays import Floats
from evenhand.claims.paired import Interval, paired
from evenhand.notation import JsonObject
from evenhand.plotting.panels import COLOURS, panels

GRIDS = {
    "optimistic:c0=0.1": {"c0": ["0.01", "0.03", "0.1", "0.3", "1", "3"]},
    "epsilon-greedy:epsilon=0.1": {"epsilon": ["0.01", "0.03", "0.1", "0.2", "0.3", "0.5"]},
}
BOLD = {
    "c0": [f"optimistic:c0={c0}" for c0 in ("0.1", "0.3", "1", "3")],
    "ε": [f"epsilon-greedy:epsilon={epsilon}" for epsilon in ("0.1", "0.2", "0.4", "0.5", "0.8")],
}
LENGTHS = (1000, 10_000)
V_EXAMPLES = (5, 10, 20, 50, 100, 200, 500, 1000)
U_EXAMPLES = 50


def interval(found: Interval) -> JsonObject:
    """A paired difference as plain values."""
    return dict(zip(("mean", "low", "high"), map(float, found), strict=True))


def half_interval(sd: float, trials: int) -> float:
    """Half of the 95 % interval of a mean over trials."""
    return float(student.ppf(0.975, trials - 1) * sd / np.sqrt(trials))


def grid(trials: int, out: Path) -> JsonObject:
    """Section 5: c0 and ε chosen by a grid search, on both instances."""
    found: JsonObject = {"trials": trials, "budget": LENGTHS[0], "sweeps": []}
    figure, axes = panels(2, "", "worst-group accuracy, trials that did not choose", sharey=True)
    for which, style in (("I", "o-"), ("II", "s--")):
        for ax, (strategy, values) in zip(axes, GRIDS.items(), strict=True):
            (name,) = values
            source = eh.SyntheticModel1.instance(which)
            rows = chosen_and_confirmed(source, strategy, name, values[name], trials)
            found["sweeps"].append({"instance": which, "setting": name, **rows})
            x = [float(value) for value in values[name]]
            means = [row["confirming_mean"] for row in rows["settings"]]
            half = [half_interval(row["confirming_std"], trials - trials // 2) for row in rows["settings"]]
            colour = COLOURS[which == "II"]
            ax.errorbar(x, means, half, fmt=style, color=colour, label=f"instance {which}", markersize=4, capsize=3)
            ax.set_xscale("log")
            ax.set_xlabel({"c0": "c0 of A_opt", "epsilon": "ε of ε-greedy"}[name])
            ax.axvline(0.1, color="#444444", linewidth=1, linestyle=":")
            ax.legend(frameon=False, fontsize=9)
    figure.savefig(out / "discussion-grid.png", dpi=100)
    return found


def chosen_and_confirmed(
    source: eh.SyntheticModel1, base: str, name: str, values: list[str], trials: int
) -> JsonObject:
    """Half of the trials choose the best value of a setting, the other half says what it is worth over the base."""
    rules = {f"{name}={value}": f"{base.partition(':')[0]}:{name}={value}" for value in values} | {base: base}
    final = eh.simulate(source, rules, budget=LENGTHS[0], trials=trials, evaluate=1, trace="none").final
    worst = final.groupby(["trial", "strategy"])["test_accuracy"].min().unstack("strategy")
    half = {"choosing": worst[worst.index < trials // 2], "confirming": worst[worst.index >= trials // 2]}
    rows = [
        {"strategy": rules[label], name: value}
        | {
            f"{part}_{how}": float(getattr(found[label], how)())
            for part, found in half.items()
            for how in ("mean", "std")
        }
        for label, value in zip(rules, values, strict=False)
    ]
    best = max(rows, key=lambda row: row["choosing_mean"])
    gains = [
        interval(paired(half[part][f"{name}={best[name]}"], half[part][base])) for part in ("confirming", "choosing")
    ]
    found = {"risk": "error", "best": best["strategy"], "base": base, "advantage": gains[0]}
    return found | {"advantage_where_chosen": gains[1], "settings": rows}


def bandits(trials: int, out: Path) -> JsonObject:
    """Appendix B.2: examples of v change what the classifier does for u; an arm's mean depends on no other arm."""
    model = eh.SyntheticModel1.instance("II")
    accuracy, arm, lines = _with_more_of_v(model, trials)
    figure = Figure(figsize=(13.2, 4.0), layout="constrained")
    axes = figure.subplots(1, 3)
    _draw_lines(axes[0], model, lines)
    for z, (group, colour) in enumerate((("u", COLOURS[1]), ("v", COLOURS[0]))):
        axes[1].semilogx(V_EXAMPLES, accuracy[..., z].mean(axis=0), "o-", color=colour, label=group, markersize=4)
    axes[1].set(
        title=f"one classifier, {U_EXAMPLES} examples of u",
        xlabel="examples of v",
        ylabel="accuracy, mean of the trials",
    )
    axes[1].legend(frameon=False)
    axes[2].semilogx(V_EXAMPLES, arm.mean(axis=0), "o-", color=COLOURS[1], label="u's mean", markersize=4)
    axes[2].set(title="a bandit's two arms", xlabel="samples of v", ylabel="error of the estimate")
    axes[2].set_ylim(0, None)
    axes[2].legend(frameon=False)
    for ax in axes[1:]:
        ax.grid(alpha=0.25, linewidth=0.6)
    figure.savefig(out / "discussion-bandits.png", dpi=100)
    return {
        "trials": trials,
        "u_examples": U_EXAMPLES,
        "v_examples": list(V_EXAMPLES),
        "accuracy": {group: accuracy[..., z].mean(axis=0).round(5).tolist() for z, group in enumerate("uv")},
        "arm_error": arm.mean(axis=0).round(5).tolist(),
        "few_to_many": {group: interval(paired(accuracy[:, -1, z], accuracy[:, 0, z])) for z, group in enumerate("uv")},
    }


def _with_more_of_v(model: eh.SyntheticModel1, trials: int) -> tuple[Floats, Floats, list[tuple[Floats, float]]]:
    """Exact accuracy of the classifier by trial, number of v and group; the error of u's mean; the rules of one trial."""
    accuracy = np.empty((trials, len(V_EXAMPLES), 2))
    arm = np.empty((trials, len(V_EXAMPLES)))
    lines = []
    for trial in range(trials):
        stream = model.open(0, [trial])
        u = stream.draw(np.array([0]), np.array([U_EXAMPLES]))
        v = stream.draw(np.array([1]), np.array([V_EXAMPLES[-1]]))
        for k, n in enumerate(V_EXAMPLES):
            fitted = eh.Logistic().fit(np.vstack([u.X, v.X[:n]]), np.concatenate([u.y, v.y[:n]]))
            accuracy[trial, k] = model.linear_accuracies(fitted.coef_[0], fitted.intercept_[0])
            if trial == 0 and n in (V_EXAMPLES[0], V_EXAMPLES[-1]):
                lines.append((fitted.coef_[0], float(fitted.intercept_[0])))
        # each arm has a mean of its own: u's estimate is made of u's samples
        own = u.X[u.y == 1].mean(axis=0) if (u.y == 1).any() else np.zeros(2)
        arm[trial] = np.linalg.norm(own - model.mu[0, 1])
    return accuracy, arm, lines


def _draw_lines(ax: Axes, model: eh.SyntheticModel1, lines: list[tuple[Floats, float]]) -> None:
    for z, colour in enumerate((COLOURS[1], COLOURS[0])):
        for label, style in enumerate(("--", "-")):
            ax.add_patch(
                Circle(tuple(model.mu[z, label]), 1, facecolor=colour, alpha=0.25, edgecolor=colour, linestyle=style)
            )
            ax.annotate(f"{'uv'[z]}, {label}", tuple(model.mu[z, label]), ha="center", fontsize=9)
    x = np.array([-4.5, 4.5])
    for (coef, offset), style, n in zip(lines, ("-", "--"), (V_EXAMPLES[0], V_EXAMPLES[-1]), strict=True):
        ax.plot(x, -(coef[0] * x + offset) / coef[1], style, color="#555555", label=f"{n:,} of v")
    ax.set(xlim=(-4.5, 4.5), ylim=(-4.5, 4.5), aspect="equal", title="the learnt line of one trial")
    ax.legend(frameon=False, fontsize=9, loc="upper right")


def robust(trials: int, out: Path) -> JsonObject:
    """Appendix C: how much a too large c0, and a too large ε, keep the mixture from π* and cost the worst group."""
    model = eh.SyntheticModel1.instance("I")
    fair = float(model.pi_star()[0])
    found: JsonObject = {"pi_star": fair, "runs": []}
    for budget in LENGTHS:
        count = trials if budget == LENGTHS[0] else max(4, trials // 4)
        rules = [rule for group in BOLD.values() for rule in group]
        summary = eh.simulate(model, rules, budget=budget, trials=count, evaluate=1, trace="none").summary()
        for name, group in BOLD.items():
            for rule in group:
                own = summary["strategies"][rule]
                about = {"budget": budget, "trials": count, "setting": name, "value": float(rule.partition("=")[2])}
                share = {"away": own["mixture"]["u"]["mean"] - fair, "sd": own["mixture"]["u"]["sd"]}
                found["runs"].append(about | share | {"worst": own["worst_group_accuracy"]})
    draw_robust(found, out)
    return found


def draw_robust(found: JsonObject, out: Path) -> None:
    """The share of u less π* by setting, for both lengths."""
    figure, axes = panels(2, "", "share of u less π*", sharey=True)
    for budget, style, colour in zip(LENGTHS, ("o:", "o-"), COLOURS, strict=False):
        for ax, name in zip(axes, BOLD, strict=True):
            own = [run for run in found["runs"] if (run["setting"], run["budget"]) == (name, budget)]
            half = [1.96 * run["sd"] / np.sqrt(run["trials"]) for run in own]
            x, away = ([run[key] for run in own] for key in ("value", "away"))
            ax.errorbar(x, away, half, fmt=style, color=colour, label=f"{budget:,} labels", ms=4)
            ax.set_xlabel(f"{name} of {'A_opt' if name == 'c0' else 'ε-greedy'}")
    axes[0].set_xscale("log")
    epsilon = np.linspace(2 * found["pi_star"], 0.8, 50)
    axes[1].plot(epsilon, epsilon / 2 - found["pi_star"], color="#888888", linewidth=1, label="floor ε/2")
    for ax in axes:
        ax.axhline(0, color="#444444", linewidth=1, linestyle="--")
        ax.legend(frameon=False, fontsize=9)
    figure.savefig(out / "discussion-robust.png", dpi=100)


PARTS: dict[str, Callable[[int, Path], JsonObject]] = {"grid": grid, "bandits": bandits, "robust": robust}


def main(arguments: list[str] | None = None) -> None:
    """Run the parts that were named and keep them beside the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    given = parser.parse_args(arguments)
    path = given.out / "discussion.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in given.only:
        started = time.process_time()
        run = {
            "command": f"python benchmarks/discussion.py --trials {given.trials} --only {name}",
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "versions": {package: version(package) for package in ("evenhand", "numpy", "scipy", "matplotlib")},
            "seeds": [0],
        }
        kept[name] = PARTS[name](given.trials, given.out) | {"run": run}
        kept[name]["run"]["cpu_seconds"] = round(time.process_time() - started, 1)
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(name, kept[name]["run"]["cpu_seconds"], flush=True)


if __name__ == "__main__":
    main()
