"""What A_opt buys on thirteen sources, which c0 it takes, and what choosing the model afterwards adds.

c0 and the better simple rule of a cell (source × budget) are chosen on one seed; every figure is of another one.
"""

from functools import cache
from typing import Any

import numpy as np

import evenhand as eh
from evidence.common import gain
from evidence.sources import SOURCES, source_of

BOLDNESS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
SIMPLE = ("uniform", "uncurated")
DEFAULT = "optimistic:c0=1"
RULES = {"A_opt": DEFAULT, "A_opt, c0 = 0.1": "optimistic:c0=0.1", "A_opt, c0 = 2": "optimistic:c0=2"}
RULES |= {"Uniform": "uniform", "Uncurated": "uncurated", "Greedy": "greedy"}
CHOOSE, CONFIRM = 101, 202
CHOSEN_TRIALS = 30
MODELS = {"plain": "final_test_accuracy", "chosen": "chosen_test_accuracy"}


@cache
def worst(name: str, budget: int, rule: str, seed: int, trials: int, model: str = "plain") -> Any:
    """The worst group's test accuracy of every trial, in points."""
    final = eh.simulate(
        source_of(name), [f"it={rule}"], budget=budget, trials=trials, seed=seed,
        evaluate=1, trace="none", final=model,
    ).final  # fmt: skip
    return 100 * final.groupby("trial")[MODELS[model]].min().to_numpy()


def regrets(cells: list[tuple[str, int, int]]) -> dict[str, Any]:
    """How far every rule is below the better of Uniform and Uncurated, in points, and so for every c0 where it is chosen."""
    choosing: dict[float, list[float]] = {c0: [] for c0 in BOLDNESS}
    found = []
    for name, budget, trials in cells:
        first = {rule: worst(name, budget, rule, CHOOSE, trials).mean() for rule in SIMPLE}
        better = max(SIMPLE, key=first.__getitem__)
        for c0 in BOLDNESS:
            choosing[c0].append(first[better] - worst(name, budget, f"optimistic:c0={c0:g}", CHOOSE, trials).mean())
        fresh = {label: worst(name, budget, rule, CONFIRM, trials) for label, rule in RULES.items()}
        best = fresh[better.capitalize()]
        regret = {label: gain(best, values) for label, values in fresh.items()}
        found.append(
            {"source": name, "budget": budget, "better": better, "accuracy": best.mean() / 100, "regret": regret}
        )
    lowest = np.array(min(choosing.values(), key=np.mean))
    c0s = []
    for c0, values in choosing.items():
        above = np.array(values) - lowest
        error = above.std(ddof=1) / np.sqrt(len(above)) if len(above) > 1 else 0.0
        c0s.append(
            {"c0": c0, "mean": np.mean(values), "above": above.mean(), "above_se": error, "largest": max(values)}
        )
    return {"cells": found, "c0": c0s}


def weighted(cells: list[tuple[str, int, int]], trials: int) -> list[dict[str, Any]]:
    """The model to deploy beside the plain one, after Uniform and after A_opt, in points."""
    rows = []
    for name, budget, _ in cells:
        runs = {
            (label, model): worst(name, budget, rule, CONFIRM, trials, model)
            for label, rule in (("Uniform", "uniform"), ("A_opt", DEFAULT))
            for model in MODELS
        }
        base = runs["Uniform", "plain"]
        rows.append({
            "source": name,
            "budget": budget,
            "plain": base.mean() / 100,
            "Uniform": gain(runs["Uniform", "chosen"], base),
            "A_opt": gain(runs["A_opt", "chosen"], runs["A_opt", "plain"]),
            "A_opt over Uniform": gain(runs["A_opt", "plain"], base),
            "A_opt chosen over Uniform plain": gain(runs["A_opt", "chosen"], base),
            "A_opt chosen over Uniform chosen": gain(runs["A_opt", "chosen"], runs["Uniform", "chosen"]),
        })  # fmt: skip
    return rows


def measure(small: bool) -> dict[str, Any]:
    """Every cell."""
    cells = [(name, budget, case.trials) for name, case in SOURCES.items() for budget in case.budgets]
    if small:
        cells = [("wine", 30, 2)]
    return {**regrets(cells), "weighted": weighted(cells, 2 if small else CHOSEN_TRIALS)}
