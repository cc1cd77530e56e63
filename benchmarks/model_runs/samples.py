"""Labelled rows of one trial, drawn by equal shares or by the population's, and how models do on its test rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.arrays import Features, Floats, Values
from evenhand.sources.base import Source, Stream

__all__ = ["Sample", "draw", "is_even"]


@dataclass(frozen=True)
class Sample:
    """Rows with labels and groups, and the trial's stream, which tests."""

    X: Features
    y: Values
    groups: Values
    stream: Stream

    def errors(self, model: Any) -> Floats:
        """Every group's test error."""
        return np.asarray(1.0 - self.stream.accuracies([model])[0])

    def worst(self, model: Any) -> float:
        """The worst group's test error."""
        return float(self.errors(model).max())


def draw(source: Source, budget: int, seed: int, trial: int, *, even: bool = True) -> Sample:
    """As many labels as Uniform (or Uncurated, with `even=False`) would have at the end; fewer of a group that runs out."""
    stream = source.open(seed, [trial])
    m = len(source.groups)
    shares = np.full(m, 1 / m) if even else source.population
    counts = np.maximum(np.round(shares * budget).astype(np.int64), 2)
    parts = [stream.draw(np.array([z]), np.array([n])) for z, n in enumerate(counts)]
    X = [part.X for part in parts]
    if hasattr(X[0], "tocsr"):
        from scipy.sparse import vstack

        rows = vstack(X).tocsr()
    else:
        rows = np.vstack(X)
    y = np.asarray(source.classes)[np.concatenate([part.y for part in parts])]
    return Sample(rows, y, np.repeat(np.asarray(source.groups), [len(part.y) for part in parts]), stream)


def is_even(source: Source) -> bool:
    """Whether drawing by the population's shares is nearly drawing by equal ones."""
    return bool(np.max(source.population) < 1.5 * np.min(source.population))
