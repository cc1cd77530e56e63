"""Which c0? A_opt against the better of Uniform and Uncurated: chosen on one seed, confirmed on another."""

from __future__ import annotations

from typing import Any

import numpy as np

import evenhand as eh
from evenhand.arrays import Floats
from evenhand.claims.paired import paired
from model_runs.cells import CELLS, CONFIRM, Cell, Kept, over_sources, run_cell
from model_runs.sources import SOURCES

__all__ = ["study"]

BOLDNESS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
SIMPLE = ("uniform", "uncurated")
CHOOSE = 101
"""The seed whose trials choose c0 and the better simple rule; those of `CONFIRM` are looked at once."""


def study(kept: Kept) -> dict[str, Any]:
    """Regrets of every c0 on the choosing seed; of the default, of 0.1 and of the other rules on the fresh seed."""
    grid = {c0: f"optimistic:c0={c0:g}" for c0 in BOLDNESS}
    default = f"optimistic:c0={eh.Optimistic().c0:g}"
    rules = {"A_opt": default, **{f"A_opt, c0 = {c0:g}": grid[c0] for c0 in (0.1, 2.0)}}
    rules |= {"Uniform": SIMPLE[0], "Uncurated": SIMPLE[1], "Greedy": "greedy"}
    choosing: dict[float, list[float]] = {c0: [] for c0 in grid}
    confirming: dict[str, list[Floats]] = {label: [] for label in rules}
    better, accuracy = [], []
    for name, budget in CELLS:
        first = {rule: _plain(name, budget, rule, CHOOSE, kept) for rule in (*SIMPLE, *grid.values())}
        best = max(SIMPLE, key=lambda rule: first[rule].mean())
        better.append(best)
        for c0, rule in grid.items():
            choosing[c0].append(100 * float((first[best] - first[rule]).mean()))
        fresh = {rule: _plain(name, budget, rule, CONFIRM, kept) for rule in rules.values()}
        accuracy.append(float(fresh[best].mean()))
        for label, rule in rules.items():
            confirming[label].append(100 * (fresh[best] - fresh[rule]))
    return {
        "trials": {name: case.trials for name, case in SOURCES.items()},
        "default": eh.Optimistic().c0,
        "choosing": _above_the_best(choosing),
        "regrets": {label: _overall(values) for label, values in confirming.items()},
        "cells": [
            {
                "source": name,
                "budget": budget,
                "better": better[i],
                "accuracy": accuracy[i],
                "regret": {label: list(paired(v[i], np.zeros(len(v[i])))) for label, v in confirming.items()},
            }
            for i, (name, budget) in enumerate(CELLS)
        ],
    }


def _above_the_best(choosing: dict[float, list[float]]) -> dict[str, dict[str, float]]:
    """Mean and largest regret of every c0, and how far it is above the best one's, with its standard error over cells."""
    means = {c0: float(np.mean(values)) for c0, values in choosing.items()}
    best = np.array(choosing[min(means, key=means.__getitem__)])
    above = {c0: np.array(values) - best for c0, values in choosing.items()}
    return {
        f"{c0:g}": {
            "mean": means[c0],
            "largest": max(values),
            "above": float(above[c0].mean()),
            "above_se": float(above[c0].std(ddof=1) / np.sqrt(len(best))),
        }
        for c0, values in choosing.items()
    }


def _overall(regrets: list[Floats]) -> dict[str, float]:
    """Mean regret with its interval over sources, the largest cell, and in how many cells the whole interval is above 0."""
    means = np.array([values.mean() for values in regrets])
    low = np.array([paired(values, np.zeros(len(values)))[1] for values in regrets])
    overall = over_sources(means, [name for name, _ in CELLS])
    return overall | {"largest": float(means.max()), "beyond": int((low > 0).sum())}


def _plain(name: str, budget: int, rule: str, seed: int, kept: Kept) -> Floats:
    """The worst group's accuracy with the plain model on all labels, trial by trial."""
    return run_cell(Cell(name, budget, rule, seed, SOURCES[name].trials), kept)["plain"]
