"""The figures of docs/theory.md and docs/certificates.md: exact excess risk of simulated runs beside the theory.

Run: python benchmarks/theory.py --out docs [--trials 40] [--only excess pairs coupling steering widths plan probe front]
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import evenhand as eh
from evenhand.arrays import Floats
from evenhand.claims import guarantees as g
from evenhand.claims.guarantees.excess import simulated_excess, slope
from evenhand.claims.intervals import wilson
from evenhand.claims.paired import paired
from evenhand.claims.sequences import error_rate, running_half_width
from evenhand.datasets.adult import adult_frame
from evenhand.plotting.guarantees import plot_front
from provenance import about, write_json

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
        bias = paired(at["validation_loss"], at["risk"])
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


def plan(trials: int, out: Path) -> dict[str, object]:
    """What the theory promises on instance I: each form of Assumption 3, with and without the term, and ε-greedy."""
    ratio = g.coupling_ratio(INSTANCE, INSTANCE.pi_star(), [0.1, -0.1])
    moved = INSTANCE.mixture_risk([0.3, 0.7], "log") - INSTANCE.mixture_risk([0.2, 0.8], "log")
    forms: dict[str, dict[str, float]] = {
        "C for every excess": {"C": 1.0},
        # the C that a shift of 0.1 needs, at the excess risk it has
        "C down to a resolution": {"C": float(ratio.max()), "resolution": float(moved @ INSTANCE.pi_star())},
        "square-root form": {"kappa": g.square_root_constant(INSTANCE, INSTANCE.pi_star())},
    }
    known = {"groups": 2, "pi_min": 0.2, "bound": eh.VCBound(3), "gap": INSTANCE.gap, "fair": [0.2, 0.8]}
    rows = []
    for name, form in forms.items():
        problem = g.Problem(**known, **form)  # type: ignore[arg-type]
        far, order = g.optimistic(problem, 10**12), g.order_of(problem, 1000)
        found = {"value": g.optimistic(problem, 1000).value, "far": far.value, "from": far.speaks_from}
        hidden = None if order is None else order.hidden
        rows.append({"form": name, **form, **found, "rate": far.rate, "floor": far.floor, "hidden": hidden})
    first = g.Problem(**known, C=1.0)  # type: ignore[arg-type]
    two = {xi: g.Problem(**known, C=1.0, xi=xi) for xi in (0.5, 0.7, 0.8, 0.9)}  # type: ignore[arg-type]
    compared = g.compare(first, 10**12, target=0.05)
    population = g.epsilon_greedy(first, 0.3, 10**12, shares=[0.3, 0.7])
    trace = eh.simulate(INSTANCE, [first.rule], budget=10_000, trials=5, evaluate=1).trace
    ends = trace[(trace["group"] == "u") & trace["labels"].isin([1000, 10_000])]
    return {
        "forms": rows,
        "promised_rule": {
            "rule": first.rule,
            "trials": 5,
            "share_of_u": {str(n): float(v) for n, v in ends.groupby("labels")["mixture"].mean().items()},
        },
        "two_terms": [
            {
                "xi": xi,
                "first_phase": g.first_phase(problem, 10**12),
                "labels": g.uncoupled_labels_for(problem, 0.05),
                "coupled": g.labels_for(problem, 0.05),
            }
            for xi, problem in two.items()
        ],
        "compared": compared.as_dict(),
        "exploring": {
            "uniform": g.epsilon_greedy(first, 0.3, 10**12).value,
            "population": population.value,
            "shares": [0.3, 0.7],
        },
        "orders": [
            {"pi_min": share, "value": getattr(g.order_of(_with(share), 1000), "value", None)}
            for share in (0.4, 0.2, 0.1)
        ],
    }


def _with(pi_min: float) -> g.Problem:
    return g.Problem(groups=2, pi_min=pi_min, bound=eh.VCBound(3), C=1.0)


def adult() -> tuple[Floats, np.ndarray, np.ndarray]:
    """Adult's training rows: categories one-hot, numbers standardised; race and sex only as groups."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = adult_frame("train")
    X = frame.drop(columns=["income", "race", "sex", "race and sex"])
    numbers = X.select_dtypes("number").columns.tolist()
    encode = make_column_transformer(
        (OneHotEncoder(), [name for name in X if name not in numbers]), (StandardScaler(), numbers), sparse_threshold=0
    )
    return encode.fit_transform(X), frame["income"].to_numpy(), frame["race and sex"].astype(str).to_numpy()


def drawn(model: eh.SyntheticModel1, size: int) -> tuple[Floats, np.ndarray, np.ndarray]:
    """Examples of a model, so many of every group."""
    rng = np.random.default_rng(0)
    parts = [model.examples(z, rng.standard_normal((size, model.normals))) for z in range(len(model.groups))]
    X, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    return X, y, np.repeat(model.groups, size)


THREE = eh.SyntheticModel1(
    {
        "a": {0: (-1, 0, 0), 1: (1, 0, 0)},
        "b": {0: (0, -1.5, 0), 1: (0, 1.5, 0)},
        "c": {0: (0, 0, -2), 1: (0, 0, 2)},
    }
)


def probe(trials: int, out: Path) -> dict[str, object]:
    """Assumption 2 in data: instance I, three orthogonal groups, Adult."""
    found = {}
    data = {
        "instance I": (drawn(INSTANCE, 4000), "error"),
        "three orthogonal groups": (drawn(THREE, 8000), "log"),
        "Adult": (adult(), "log"),
    }
    for name, (rows, risk) in data.items():
        seen = g.probe(eh.Logistic(), *rows, risk=risk)
        found[name] = {
            "examples": len(rows[1]),
            "risk": risk,
            "groups": list(seen.groups),
            "second_fails": [list(pair) for pair in seen.fails],
            "second_unclear": len(seen.unclear),
            "text": str(seen),
        }
    return found


def front(trials: int, out: Path) -> dict[str, object]:
    """The fronts of group risks of instance I and Adult, with their pictures."""
    found = {}
    for name, rows, file in (
        ("instance I", drawn(INSTANCE, 20_000), "front-instance"),
        ("Adult", adult(), "front-adult"),
    ):
        seen = g.pareto(eh.Logistic(), *rows)
        plot_front(seen).savefig(out / f"theory-{file}.svg")
        found[name] = {
            "groups": list(seen.groups),
            "tried": len(seen.mixtures),
            "mixture": seen.mixtures[seen.fair].tolist(),
            "risks": seen.risks[seen.fair].tolist(),
            "equal_shares": seen.risks[np.argmin(np.abs(seen.mixtures - 1 / len(seen.groups)).max(axis=1))].tolist(),
            "most_dominated": float(seen.dominated.max()),
            "most_slack": float(seen.slack.max()),
            "points": np.column_stack([seen.mixtures, seen.risks]).round(5).tolist(),
        }
    return found


TRIALS = {"excess": 50, "pairs": 200, "steering": 400}
"""Of the parts that simulate many; the others have no use for a number of trials."""
PARTS = {f.__name__: f for f in (excess, pairs, coupling, steering, widths, plan, probe, front)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    parser.add_argument("--trials", type=int, help="instead of those that the pages show")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    given = parser.parse_args()
    pictures, file = given.out / "assets", given.out / "results/theory.json"
    for folder in (pictures, file.parent):
        folder.mkdir(parents=True, exist_ok=True)
    kept = json.loads(file.read_text()) if file.exists() else {}
    for name in given.only:
        started = time.perf_counter()
        result = PARTS[name](given.trials or TRIALS.get(name, 0), pictures)
        command = f"theory.py --only {name}" + (f" --trials {given.trials}" if given.trials else "")
        run = about(command, "numpy", "scipy", seeds=[0])
        kept[name] = {**result, "run": run | {"seconds": round(time.perf_counter() - started, 1)}}
        write_json(file, kept)
        print(name, json.dumps(kept[name], ensure_ascii=False))


if __name__ == "__main__":
    main()
