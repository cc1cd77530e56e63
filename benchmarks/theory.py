"""The figures of docs/theory.md and docs/certificates.md: exact excess risk of simulated runs beside the theory.

Run: python benchmarks/theory.py --out docs/assets [--trials 100] [--only excess pairs coupling steering widths]
"""

import argparse
import json
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import evenhand as eh
from evenhand.claims import guarantees as g
from evenhand.claims.guarantees.excess import simulated_excess, slope
from evenhand.claims.intervals import paired_difference, wilson
from evenhand.claims.sequences import error_rate, running_half_width

BUDGETS = [200, 400, 1000, 2000, 4000, 10_000, 20_000]
INSTANCE = eh.SyntheticModel1.instance("I")


def excess(trials: int, out: Path) -> dict[str, object]:
    """Mean excess risk against the budget: A_opt falls, over-exploring ε-greedy flattens at its floor."""
    # the slope needs more trials than the floor
    rules = {
        "optimistic:c0=0.1": trials,
        "epsilon-greedy:epsilon=0.5": trials // 2,
        "epsilon-greedy:epsilon=0.1": trials // 2,
    }
    found: dict[str, object] = {"budgets": BUDGETS}
    figure = Figure(figsize=(6.0, 3.8), layout="constrained")
    axes = figure.subplots()
    for rule, count in rules.items():
        trace = eh.simulate(INSTANCE, [rule], budget=BUDGETS[-1], trials=count, evaluate=1).trace
        values = simulated_excess(trace, INSTANCE, BUDGETS)
        print(rule, count, values.mean(axis=1).tolist(), slope(BUDGETS, values), flush=True)
        found[rule] = {"trials": count, "mean": values.mean(axis=1).tolist(), "slope": slope(BUDGETS, values)._asdict()}
        axes.loglog(BUDGETS, values.mean(axis=1), "o-", markersize=3, label=rule)
    stuck = g.exploration(0.5, INSTANCE.pi_star())
    found["floor"] = {"from_tau0": stuck.floor(INSTANCE), "last": stuck.last_floor(INSTANCE), "tau0_rounds": stuck.tau0}
    axes.axhline(stuck.last_floor(INSTANCE), color="0.5", linestyle=":", label="floor of ε = 0.5")
    axes.set(xlabel="labels", ylabel="mean excess risk")
    axes.legend(fontsize=8)
    figure.savefig(out / "theory-excess.svg")
    return found


def pairs(trials: int, out: Path) -> dict[str, object]:
    """The lower bound beside A_opt on the two instances it is about."""
    rows = []
    for labels in (200, 1000, 5000):
        means = []
        for model in g.lower_bound_pair(labels, 1.0):
            trace = eh.simulate(model, ["optimistic:c0=0.1"], budget=labels, trials=trials, evaluate=1).trace
            means.append(float(simulated_excess(trace, model, [labels]).mean()))
        rows.append({"labels": labels, "u_harder": means[0], "v_harder": means[1], "bound": g.lower_bound(labels, 1.0)})
    return {"r": 1.0, "trials": trials, "rows": rows}


def coupling(trials: int, out: Path) -> dict[str, object]:
    """The C that Assumption 3 would need, ever larger for smaller shifts of the mixture."""
    shifts = np.array([0.1, 0.03, 0.01, 0.003, 0.001])
    ratio = g.coupling_ratio(INSTANCE, INSTANCE.pi_star(), np.stack([shifts, -shifts], axis=-1))
    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.loglog(shifts, ratio[:, 0], "o-", label="group u")
    axes.loglog(shifts, ratio[:, 1], "s-", label="group v")
    axes.set(xlabel="shift of π(u) away from π*", ylabel="C needed")
    axes.legend(fontsize=8)
    figure.savefig(out / "theory-coupling.svg")
    return {
        "shifts": shifts.tolist(),
        "ratio": ratio.tolist(),
        "kappa": g.square_root_constant(INSTANCE, INSTANCE.pi_star()),
    }


def steering(trials: int, out: Path) -> dict[str, object]:
    """How far the validation set that steers lies from the truth, and how often a naive interval on it is wrong."""
    found: dict[str, object] = {"trials": trials, "round": 50}
    rules = ["optimistic:c0=0.1", "greedy", "uniform"]
    trace = eh.simulate(INSTANCE, rules, budget=1000, trials=trials, evaluate=500).trace
    trace = trace.assign(risk=1 - trace["test_accuracy"])
    for rule in rules:
        rows = trace[trace["strategy"] == rule]
        low, high = wilson((rows["validation_loss"] * rows["count"]).round(), rows["count"])
        wrong = rows.assign(wrong=(rows["risk"] < low) | (rows["risk"] > high))
        ever = wrong[wrong["round"] > 2].groupby(["trial", "group"], observed=True)["wrong"].any()
        at = rows[(rows["round"] == 50) & (rows["group"] == "u")]
        bias = paired_difference(at["validation_loss"], at["risk"])
        found[rule] = {
            "bias_u": bias._asdict(),
            "risk_u": float(at["risk"].mean()),
            "naive_wrong_once": {z: float(v) for z, v in ever.groupby("group", observed=True).mean().items()},
        }
    return found


def widths(trials: int, out: Path) -> dict[str, object]:
    """Width of the sequences over Wilson's at the same n."""
    rows = []
    for p in (0.01, 0.1, 0.5):
        for n in (100, 500, 1000, 5000):
            low, high = error_rate(p * n, n)
            fixed = wilson(p * n, n)
            one = float(fixed[1] - fixed[0])
            ratio = {"sequence": float(high - low) / one, "running": 2 * float(running_half_width(n)) / one}
            rows.append({"error": p, "n": n, "half_width": float(high - low) / 2, **ratio})
    return {"rows": rows}


PARTS = {f.__name__: f for f in (excess, pairs, coupling, steering, widths)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "theory.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    for name in given.only:
        started = time.perf_counter()
        result = PARTS[name](given.trials, given.out)
        about = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "seconds": round(time.perf_counter() - started, 1)}
        about["versions"] = {package: version(package) for package in ("evenhand", "numpy", "scipy")}
        kept[name] = {
            **result,
            "run": {**about, "command": f"python benchmarks/theory.py --trials {given.trials} --only {name}"},
        }
        file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        print(name, json.dumps(kept[name], ensure_ascii=False))


if __name__ == "__main__":
    main()
