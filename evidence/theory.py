"""What the theorems promise beside what simulated runs do: exact excess risk, the lower bound, Assumption 2, the Pareto front."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import evenhand as eh
from evenhand.claims import guarantees as g
from evenhand.claims.guarantees.excess import simulated_excess, slope
from evenhand.claims.intervals import wilson
from evenhand.claims.sequences import error_rate, running_half_width
from evenhand.plotting.guarantees import plot_front
from evidence.common import gain

Found = dict[str, Any]
BUDGETS = [200, 400, 1000, 2000, 4000, 10_000, 20_000]
ORACLE = "oracle:mixture=0.2+0.8"
EXCESS = {"optimistic:c0=0.1": 50, "epsilon-greedy:epsilon=0.5": 25, "epsilon-greedy:epsilon=0.1": 25, ORACLE: 50}
"""Rules with their trials: a slope needs more than a floor. The oracle draws by π*: what is left is the chance of the draw."""
INSTANCE = eh.SyntheticModel1.instance("I")


def excess(small: bool) -> Found:
    """Mean excess risk against the budget: A_opt falls, over-exploring ε-greedy stops at its floor."""
    budgets, found = (BUDGETS[:3] if small else BUDGETS), {}
    for rule, trials in EXCESS.items():
        trials = 3 if small else trials
        trace = eh.simulate(INSTANCE, [rule], budget=budgets[-1], trials=trials, evaluate=1).trace
        values = simulated_excess(trace, INSTANCE, budgets)
        found[rule] = {
            "trials": trials,
            "mean": values.mean(axis=1).tolist(),
            "slope": slope(budgets, values)._asdict(),
        }
    stuck = g.exploration(0.5, INSTANCE.pi_star())
    floor = {"from_tau0": stuck.floor(INSTANCE), "last": stuck.last_floor(INSTANCE), "tau0_rounds": stuck.tau0}
    return {"budgets": budgets, "rules": found, "floor": floor}


def pairs(small: bool) -> Found:
    """The lower bound beside A_opt on the two instances it is about."""
    rows, trials = [], 2 if small else 200
    for labels in (200,) if small else (200, 1000, 5000):
        means = []
        for model in g.lower_bound_pair(labels, 1.0):
            trace = eh.simulate(model, ["optimistic:c0=0.1"], budget=labels, trials=trials, evaluate=1).trace
            means.append(float(simulated_excess(trace, model, [labels]).mean()))
        rows.append({"labels": labels, "u_harder": means[0], "v_harder": means[1], "bound": g.lower_bound(labels, 1.0)})
    return {"r": 1.0, "trials": trials, "rows": rows}


def steering(small: bool) -> Found:
    """How far the validation set that steers lies from the truth, and how often a naive interval on it is wrong."""
    rules, trials = ["optimistic:c0=0.1", "greedy", "uniform"], 5 if small else 400
    trace = eh.simulate(INSTANCE, rules, budget=1000, trials=trials, evaluate=500).trace
    trace = trace.assign(risk=1 - trace["test_accuracy"])
    rows = []
    for rule in rules:
        own = trace[trace["strategy"] == rule]
        low, high = wilson((own["validation_loss"] * own["count"]).round(), own["count"])
        wrong = own.assign(wrong=(own["risk"] < low) | (own["risk"] > high))
        ever = wrong[wrong["round"] > 2].groupby(["trial", "group"], observed=True)["wrong"].any()
        at = own[(own["round"] == 50) & (own["group"] == "u")]
        bias = gain(at["validation_loss"], at["risk"])
        ones = {z: float(v) for z, v in ever.groupby("group", observed=True).mean().items()}
        rows.append({"rule": rule, "bias_u": bias, "risk_u": float(at["risk"].mean()), "naive_wrong_once": ones})
    return {"trials": trials, "round": 50, "rows": rows}


def widths(small: bool) -> Found:
    """Width of the sequences over Wilson's at the same n."""
    rows = []
    for p in (0.01, 0.1, 0.5):
        ratios: dict[str, list[float]] = {"sequence": [], "running": []}
        for n in (100, 500, 1000, 5000):
            (low, high), fixed = error_rate(p * n, n), wilson(p * n, n)
            ratios["sequence"].append(float((high - low) / (fixed[1] - fixed[0])))
            ratios["running"].append(float(2 * running_half_width(n) / (fixed[1] - fixed[0])))
        rows.append({"error": p, **ratios})
    return {"rows": rows}


def plan(small: bool) -> Found:
    """What the theory promises on instance I: each form of Assumption 3, with and without the term, and ε-greedy."""
    ratio = g.coupling_ratio(INSTANCE, INSTANCE.pi_star(), [0.1, -0.1])
    moved = INSTANCE.mixture_risk([0.3, 0.7], "log") - INSTANCE.mixture_risk([0.2, 0.8], "log")
    forms: dict[str, dict[str, float]] = {
        "C for every excess": {"C": 1.0},
        # the C that a shift of 0.1 needs, at the excess risk it has
        "C down to a resolution": {"C": float(ratio.max()), "resolution": float(moved @ INSTANCE.pi_star())},
        "square-root form": {"kappa": g.square_root_constant(INSTANCE, INSTANCE.pi_star())},
    }
    known: Found = {"groups": 2, "pi_min": 0.2, "bound": eh.VCBound(3), "gap": INSTANCE.gap, "fair": [0.2, 0.8]}
    rows = []
    for name, form in forms.items():
        problem = g.Problem(**known, **form)
        far, order = g.optimistic(problem, 10**12), g.order_of(problem, 1000)
        found = {"value": g.optimistic(problem, 1000).value, "far": far.value, "from": far.speaks_from}
        rows.append({"form": name, **form, **found, "rate": far.rate, "hidden": order and order.hidden})
    first = g.Problem(**known, C=1.0)
    budget = 1000 if small else 10_000
    trace = eh.simulate(INSTANCE, [first.rule], budget=budget, trials=2 if small else 5, evaluate=1).trace
    ends = trace[(trace["group"] == "u") & trace["labels"].isin([1000, 10_000])]
    two = {xi: g.Problem(**known, C=1.0, xi=xi) for xi in (0.5, 0.7, 0.8, 0.9)}
    return {
        "forms": rows,
        "rule": first.rule,
        "share_of_u": {str(n): float(v) for n, v in ends.groupby("labels")["mixture"].mean().items()},
        "two_terms": [
            {
                "xi": xi,
                "first_phase": g.first_phase(problem, 10**12),
                "labels": g.uncoupled_labels_for(problem, 0.05),
                "coupled": g.labels_for(problem, 0.05),
            }
            for xi, problem in two.items()
        ],
        "compared": g.compare(first, 10**12, target=0.05).as_dict(),
        "exploring": {
            "uniform": g.epsilon_greedy(first, 0.3, 10**12).value,
            "population": g.epsilon_greedy(first, 0.3, 10**12, shares=[0.3, 0.7]).value,
        },
        "orders": {
            f"{share:g}": getattr(
                g.order_of(g.Problem(groups=2, pi_min=share, bound=eh.VCBound(3), C=1.0), 1000), "value", None
            )
            for share in (0.4, 0.2, 0.1)
        },
    }


def adult(rows: int | None) -> tuple[Any, np.ndarray, np.ndarray]:
    """Adult's training rows: categories one-hot, numbers standardised; race and sex only as groups."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = eh.datasets.adult_frame("train").head(rows)
    X = frame.drop(columns=["income", "race", "sex", "race and sex"])
    numbers = X.select_dtypes("number").columns.tolist()
    encode = make_column_transformer(
        (OneHotEncoder(), [name for name in X if name not in numbers]), (StandardScaler(), numbers), sparse_threshold=0
    )
    return encode.fit_transform(X), frame["income"].to_numpy(), frame["race and sex"].astype(str).to_numpy()


def drawn(model: eh.SyntheticModel1, size: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Examples of a model, so many of every group."""
    rng = np.random.default_rng(0)
    parts = [model.examples(z, rng.standard_normal((size, model.normals))) for z in range(len(model.groups))]
    X, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    return X, y, np.repeat(model.groups, size)


def probe(small: bool) -> Found:
    """Assumption 2 in data: instance I and Adult."""
    found = {}
    data = {
        "instance I": (drawn(INSTANCE, 500 if small else 4000), "error"),
        "Adult": (adult(3000 if small else None), "log"),
    }
    for name, (rows, risk) in data.items():
        seen = g.probe(eh.Logistic(), *rows, risk=risk)
        m = len(seen.groups)
        found[name] = {"examples": len(rows[1]), "risk": risk, "fails": len(seen.fails), "pairs": m * (m - 1)}
    return found


def front(small: bool) -> Found:
    """The fair mixtures on the fronts of group risks of instance I and Adult."""
    found = {}
    for name, rows in (
        ("instance I", drawn(INSTANCE, 500 if small else 20_000)),
        ("Adult", adult(3000 if small else None)),
    ):
        seen = g.pareto(eh.Logistic(), *rows, points=5 if small else 40)
        found[name] = {
            "groups": list(seen.groups),
            "tried": len(seen.mixtures),
            "mixture": seen.mixtures[seen.fair].tolist(),
            "risks": seen.risks[seen.fair].tolist(),
            "equal_shares": seen.risks[np.argmin(np.abs(seen.mixtures - 1 / len(seen.groups)).max(axis=1))].tolist(),
            "most_dominated": float(seen.dominated.max()),
            "most_slack": float(seen.slack.max()),
        }
    return found


def measure(small: bool) -> Found:
    """All parts."""
    return {part.__name__: part(small) for part in (excess, pairs, steering, widths, plan, probe, front)}


def draw(found: Found, folder: Path) -> None:
    """Excess risk against labels, and the front of instance I."""
    figure = Figure(figsize=(6.0, 3.8), layout="constrained")
    axes = figure.subplots()
    for rule, one in found["excess"]["rules"].items():
        style = {"color": "black", "linestyle": "--"} if rule == ORACLE else {}
        axes.loglog(found["excess"]["budgets"], one["mean"], marker="o", markersize=3, label=rule, **style)
    axes.axhline(found["excess"]["floor"]["last"], color="0.5", linestyle=":", label="floor of ε = 0.5")
    axes.set(xlabel="labels", ylabel="mean excess risk")
    axes.legend(fontsize=8)
    figure.savefig(folder / "theory-excess.svg")
    plot_front(g.pareto(eh.Logistic(), *drawn(INSTANCE, 20_000))).savefig(folder / "theory-front-instance.svg")
