"""`Minimax` and the model to deploy beside the plain fit, a mixture of models and adaptive weights, on the same rows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import evenhand as eh
from evenhand.claims.paired import paired
from evenhand.learners.choosing import fit_chosen
from model_runs.cells import Kept, source_of
from model_runs.rivals import Mixture, adaptive_weights, mixture_of_models
from model_runs.samples import Sample, draw, is_even
from model_runs.sources import SOURCES

__all__ = ["compare"]

SEED, TRIALS = 505, 10


def _plain(sample: Sample, trial: int) -> Any:
    return eh.Logistic().fit(sample.X, sample.y)


def _minimax(sample: Sample, trial: int) -> Any:
    return eh.Minimax(eh.Logistic()).fit(sample.X, sample.y, groups=sample.groups, seed=trial)


def _chosen(sample: Sample, trial: int) -> Any:
    return fit_chosen(eh.Logistic(), sample.X, sample.y, sample.groups, seed=trial)


def _mixture(sample: Sample, trial: int) -> Any:
    return mixture_of_models(sample.X, sample.y, sample.groups)


def _adaptive(sample: Sample, trial: int) -> Any:
    return adaptive_weights(sample.X, sample.y, sample.groups)


METHODS: dict[str, Callable[[Sample, int], Any]] = {
    "plain": _plain,
    "final_model": _chosen,
    "Minimax": _minimax,
    "mixture (Diana et al.)": _mixture,
    "APStar (Martinez et al.)": _adaptive,
}


def compare(kept: Kept) -> dict[str, Any]:
    """Every method on every source at its largest budget: worst-group test error, gain over plain, seconds."""
    cells = []
    for name, case in SOURCES.items():
        budget, even = case.budgets[-1], is_even(source_of(name))
        key = json.dumps(["methods", name, budget, SEED, TRIALS, list(METHODS)])
        cells.append(kept.get(key, partial(_cell, name, budget, even)))
    overall = {}
    for method in METHODS:
        gains = np.array([100 * np.mean(np.subtract(c["error"]["plain"], c["error"][method])) for c in cells])
        overall[method] = dict(zip(("mean", "low", "high"), paired(gains, np.zeros(len(gains))), strict=True))
        overall[method] |= {
            "least": float(gains.min()),
            "seconds": float(np.mean([c["seconds"][method] for c in cells])),
        }
    return {"trials": TRIALS, "cells": [_short(cell) for cell in cells], "overall": overall}


def _cell(name: str, budget: int, even: bool) -> dict[str, Any]:
    """Labels as they come, by the population's shares, where these are uneven."""
    error: dict[str, list[float]] = {method: [] for method in METHODS}
    seconds: dict[str, list[float]] = {method: [] for method in METHODS}
    for trial in range(TRIALS):
        sample = draw(source_of(name), budget, SEED, trial, even=even)
        for method, fit in METHODS.items():
            started = time.process_time()
            model = fit(sample, trial)
            seconds[method].append(time.process_time() - started)
            risks = model.risks(sample.errors) if isinstance(model, Mixture) else sample.errors(model)
            error[method].append(round(float(risks.max()), 6))
    print(name, budget, {method: round(float(np.mean(v)), 4) for method, v in error.items()}, flush=True)
    middle = {method: round(float(np.median(values)), 4) for method, values in seconds.items()}
    return {"source": name, "budget": budget, "even": even, "error": error, "seconds": middle}


def _short(cell: dict[str, Any]) -> dict[str, Any]:
    """Means of the trials, and gains over plain."""
    error = {method: np.array(values) for method, values in cell["error"].items()}
    return {
        **{name: cell[name] for name in ("source", "budget", "even", "seconds")},
        "error": {method: float(values.mean()) for method, values in error.items()},
        "gain": {method: list(paired(error["plain"], values)) for method, values in error.items()},
    }
