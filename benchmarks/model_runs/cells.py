"""Cells of trials: a source, a budget and a rule, run once and kept, so that a run that is killed goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import evenhand as eh
from evenhand.arrays import Floats
from evenhand.claims.paired import paired
from evenhand.simulation.metrics import worst_by
from model_runs.sources import SOURCES

__all__ = ["CELLS", "CONFIRM", "Cell", "Kept", "over_sources", "run_cell", "source_of"]

COLUMNS = {"half": "test_accuracy", "plain": "final_test_accuracy", "chosen": "chosen_test_accuracy"}
"""The models that are tested: on half of the labels, on all, and the one to deploy."""

CELLS = [(name, budget) for name, case in SOURCES.items() for budget in case.budgets]
CONFIRM = 202
"""The seed of trials on which nothing was chosen."""


@dataclass(frozen=True)
class Cell:
    """A rule on a source at a budget: so many trials from a seed, with the model to deploy or without."""

    source: str
    budget: int
    rule: str
    seed: int
    trials: int
    chosen: bool = False

    @property
    def key(self) -> str:
        """What its result is kept under."""
        return json.dumps([self.source, self.budget, self.rule, self.seed, self.trials, self.chosen])


class Kept:
    """Results by key, a line of a file each, written as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._found: dict[str, Any] = dict(json.loads(line) for line in lines if line.endswith("]"))

    def get(self, key: str, make: Any) -> Any:
        """The result under this key; made and written where there is none."""
        if key not in self._found:
            self._found[key] = make()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, self._found[key]]) + "\n")
        return self._found[key]


def run_cell(cell: Cell, kept: Kept) -> dict[str, Floats]:
    """The worst group's test accuracy of every trial, by model."""
    found = kept.get(cell.key, lambda: _run(cell))
    return {name: np.array(values) for name, values in found.items() if name != "seconds"}


def _run(cell: Cell) -> dict[str, Any]:
    started = time.process_time()
    result = eh.simulate(
        source_of(cell.source),
        [cell.rule],
        budget=cell.budget,
        trials=cell.trials,
        seed=cell.seed,
        evaluate=1,
        trace="none",
        final="chosen" if cell.chosen else "plain",
    )
    found = {
        name: [round(value, 6) for value in worst_by(result.final, ["trial"], column).tolist()]
        for name, column in COLUMNS.items()
        if column in result.final
    }
    print(cell, {name: round(float(np.mean(values)), 4) for name, values in found.items()}, flush=True)
    return {**found, "seconds": round(time.process_time() - started, 2)}


@cache
def source_of(name: str) -> Any:
    """The source of this name, made once."""
    return SOURCES[name].make()


def over_sources(values: ArrayLike, sources: Sequence[str]) -> dict[str, float]:
    """The mean over cells with its interval over sources: budgets of one source are no independent evidence.

    Args:
        values: one number a cell.
        sources: the source of every cell.
    """
    given, names = np.asarray(values, dtype=float), np.array(sources)
    means = np.array([given[names == name].mean() for name in dict.fromkeys(sources)])
    return dict(zip(("mean", "low", "high"), paired(means, np.zeros(len(means))), strict=True))
