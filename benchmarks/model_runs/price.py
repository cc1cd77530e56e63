"""The model to deploy against the plain fit: where it should gain, and that it costs nothing elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import t as student

import evenhand as eh
from evenhand.arrays import Floats
from evenhand.claims.paired import paired
from model_runs.cells import CELLS, CONFIRM, Cell, Kept, over_sources, run_cell

__all__ = ["aims", "price"]

TRIALS = 30
FRESH = 707


def aims(kept: Kept) -> list[dict[str, Any]]:
    """The two sources of which a gain is expected, on a seed of their own, in points."""
    cells = [Cell("fashion", 2000, "uniform", FRESH, 10, True), Cell("digits", 400, "uniform", FRESH, 30, True)]
    return [_one(cell, run_cell(cell, kept)) for cell in cells]


def price(kept: Kept) -> dict[str, Any]:
    """Every source, budget and two rules: chosen − plain in points, and sampling and re-weighting side by side."""
    rules = {"Uniform": "uniform", "A_opt": f"optimistic:c0={eh.Optimistic().c0:g}"}
    rows = []
    for name, budget in CELLS:
        runs = {label: run_cell(Cell(name, budget, rule, CONFIRM, TRIALS, True), kept) for label, rule in rules.items()}
        plain = runs["Uniform"]["plain"]
        row: dict[str, Any] = {"source": name, "budget": budget, "plain": float(plain.mean())}
        for label, run in runs.items():
            row[label] = _gain(run["chosen"], run["plain"])
        row["A_opt chosen over Uniform plain"] = _gain(runs["A_opt"]["chosen"], plain)
        row["A_opt over Uniform"] = _gain(runs["A_opt"]["plain"], plain)
        row["A_opt chosen over Uniform chosen"] = _gain(runs["A_opt"]["chosen"], runs["Uniform"]["chosen"])
        rows.append(row)
    gains = {(label, i): row[label] for i, row in enumerate(rows) for label in rules}
    wide = student.ppf(1 - 0.025 / len(gains), TRIALS - 1)
    means = np.array([gain["mean"] for gain in gains.values()])
    highs = np.array([gain["mean"] + wide * gain["se"] for gain in gains.values()])
    return {
        "trials": TRIALS,
        "cells": len(gains),
        "mean": over_sources(means, [rows[i]["source"] for _, i in gains]),
        "least": float(means.min()),
        "below_minus_1": int((highs < -1).sum()),
        "lost": int(sum(gain["high"] < 0 for gain in gains.values())),
        "won": int(sum(gain["low"] > 0 for gain in gains.values())),
        "substitutes": {key: _mean_of(rows, key) for key in rows[0] if key not in ("source", "budget", "plain")},
        "rows": rows,
    }


def _one(cell: Cell, run: dict[str, Floats]) -> dict[str, Any]:
    models = {name: float(run[name].mean()) for name in ("plain", "chosen")}
    return {
        "source": cell.source,
        "budget": cell.budget,
        "trials": cell.trials,
        **models,
        **_gain(run["chosen"], run["plain"]),
    }


def _gain(a: Floats, b: Floats) -> dict[str, float]:
    """a − b in points, with its interval and standard error."""
    mean, low, high = paired(100 * a, 100 * b)
    return {"mean": mean, "low": low, "high": high, "se": float(np.std(100 * (a - b), ddof=1) / np.sqrt(len(a)))}


def _mean_of(rows: list[dict[str, Any]], key: str) -> dict[str, float]:
    return over_sources([row[key]["mean"] for row in rows], [row["source"] for row in rows])
