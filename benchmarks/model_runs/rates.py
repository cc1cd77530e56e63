"""Which folds and rate for `Minimax`? The worst group's test accuracy against the plain fit's, on two sets of seeds."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np

import evenhand as eh
from model_runs.cells import Kept, over_sources, source_of
from model_runs.samples import draw, is_even
from model_runs.sources import SOURCES

__all__ = ["study"]

FOLDS = (0, 5)
RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
CHOOSE, CONFIRM = 303, 404
TRIALS = 10


def study(kept: Kept) -> dict[str, Any]:
    """Every setting on the choosing seed; the best one and its neighbours on the fresh one."""
    settings = [(folds, rate) for folds in FOLDS for rate in RATES]
    choosing = _gains(settings, CHOOSE, kept, budgets=(1,))
    first = _summary(choosing, settings)
    best = settings[int(np.argmax([row["mean"] for row in first]))]
    compared = sorted({best, (5, 4.0), (5, best[1]), (0, best[1])})
    confirming = _gains(compared, CONFIRM, kept, budgets=(0, 1, 2))
    return {
        "trials": TRIALS,
        "choosing": first,
        "best": {"folds": best[0], "rate": best[1]},
        "confirming": _summary(confirming, compared),
    }


def _gains(settings: list[tuple[int, float]], seed: int, kept: Kept, budgets: tuple[int, ...]) -> list[dict[str, Any]]:
    """Cells of trials: how much lower the worst group's test error is than the plain fit's, by setting."""
    cells = []
    for name, case in SOURCES.items():
        for even in (True,) if is_even(source_of(name)) else (True, False):
            for place in budgets:
                budget = case.budgets[place]
                key = json.dumps(["rates", name, budget, even, seed, TRIALS, settings])
                cells.append(kept.get(key, partial(_cell, name, budget, even, seed, settings)))
    return cells


def _cell(name: str, budget: int, even: bool, seed: int, settings: list[tuple[int, float]]) -> dict[str, Any]:
    gains: dict[str, list[float]] = {_name(s): [] for s in settings}
    for trial in range(TRIALS):
        sample = draw(source_of(name), budget, seed, trial, even=even)
        plain = sample.worst(eh.Logistic().fit(sample.X, sample.y))
        for folds, rate in settings:
            learner = eh.Minimax(eh.Logistic(), folds=folds, rate=rate)
            fitted = learner.fit(sample.X, sample.y, groups=sample.groups, seed=trial)
            gains[_name((folds, rate))].append(round(plain - sample.worst(fitted), 6))
    found = {"source": name, "budget": budget, "even": even, "gains": gains}
    print(name, budget, even, {s: round(100 * float(np.mean(v)), 2) for s, v in gains.items()}, flush=True)
    return found


def _summary(cells: list[dict[str, Any]], settings: list[tuple[int, float]]) -> list[dict[str, Any]]:
    """The mean over sources of every setting, with its interval, and the worst cell."""
    found = []
    for folds, rate in settings:
        means = np.array([np.mean(cell["gains"][_name((folds, rate))]) for cell in cells])
        worst = cells[int(means.argmin())]
        found.append(
            {"folds": folds, "rate": rate, "cells": len(cells)}
            | over_sources(means, [cell["source"] for cell in cells])
            | {"least": float(means.min()), "least_at": f"{worst['source']}, {worst['budget']}"}
        )
    return found


def _name(setting: tuple[int, float]) -> str:
    return f"{setting[0]} folds, rate {setting[1]:g}"
