"""Rules compared on Adult and German at several budgets, what models of every row reach, and the case of the demo."""

from typing import Any

import evenhand as eh
from evenhand.experiments.measures import ceilings

RULES = {"optimistic:c0=0.1": "A_opt", "greedy": "Greedy", "uniform": "Uniform", "uncurated": "Uncurated"}
RUNS = {"adult": {500: 50, 1000: 50, 2000: 50, 10_000: 10}, "german": {100: 500, 200: 500, 300: 500, 400: 500}}
"""Budgets with their trials."""
METRICS = ("worst_group_accuracy", "final_worst_group_accuracy")
DEMO = {"groups": ["age:25,35,45,55", "sex"], "scale": "standard"}


def compared(source: Any, rules: list[str], **settings: Any) -> dict[str, Any]:
    """Worst groups of every rule, and the paired differences."""
    summary = eh.simulate(source, rules, evaluate=1, trace="none", **settings).summary()
    return {
        "trials": settings["trials"],
        "strategies": {rule: {m: found[m] for m in METRICS} for rule, found in summary["strategies"].items()},
        "differences": [d for d in summary["differences"] if d["metric"] in METRICS],
    }


def reached(name: str, trials: int) -> dict[str, Any]:
    """Accuracy of models of all rows, and of every group's rows alone, with the rows of every group's pool."""
    source = eh.datasets.load(name)
    rows = source.open(0, [0]).left()[0].tolist()
    groups = zip(ceilings(source, trials).items(), rows, strict=True)
    found = {group: {"rows": n, "alone": alone, "together": both} for (group, (alone, both)), n in groups}
    return {"trials": trials, "groups": found}


def measure(small: bool) -> dict[str, Any]:
    """All tables."""
    runs = {"german": {40: 2}} if small else RUNS
    demo = {"budget": 480, "trials": 2} if small else {"budget": 800, "trials": 30}
    return {
        "runs": {
            name: {
                f"{budget}": compared(eh.datasets.load(name), list(RULES), budget=budget, trials=trials)
                for budget, trials in budgets.items()
            }
            for name, budgets in runs.items()
        },
        "ceilings": {name: reached(name, 1 if small or name == "adult" else 500) for name in runs},
        "demo": compared(
            eh.datasets.load("adult", **DEMO),
            ["optimistic", "optimistic:c0=0.5", "uniform", "uncurated"],
            batch=5,
            seed=1,
            **demo,
        ),
    }
