"""The exact excess risk of simulated runs, from their mixtures: no test set."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.errors import InputError
from evenhand.risks import Risk
from evenhand.sources.synthetic.model1 import SyntheticModel1


class Slope(NamedTuple):
    """The slope of log mean excess risk against log labels, with a 95 % interval over trials."""

    value: float
    low: float
    high: float


def simulated_excess(
    trace: Any,
    model: SyntheticModel1,
    labels: Sequence[int],
    *,
    strategy: str | None = None,
    risk: str | Risk = "error",
) -> Floats:
    """Excess risk of every trial's mixture at these budgets, (budgets, trials), from a full trace (pandas).

    A run with a smaller budget is the beginning of one with a larger, so one simulation serves all budgets.
    """
    rows = trace[trace["labels"].isin(list(labels))]
    if strategy is not None:
        rows = rows[rows["strategy"] == strategy]
    missing = sorted(set(labels) - set(rows["labels"]))
    if missing:
        raise InputError(f"the trace has no round that ends at {missing[0]} labels")
    table = rows.pivot(index=["labels", "trial"], columns="group", values="mixture")[list(model.groups)]
    at = table.index.get_level_values("labels")
    excess = model.excess_risk(table.to_numpy(), risk)
    return np.stack([excess[at == n] for n in labels])


def slope(labels: ArrayLike, excess: ArrayLike, *, draws: int = 2000, seed: int = 0) -> Slope:
    """The slope of excess risks (budgets, trials) over the budgets, with an interval from resampled trials."""
    values = np.asarray(excess, dtype=float)
    x = np.log(np.asarray(labels, dtype=float))
    trials = values.shape[1]
    pick = np.random.default_rng(seed).integers(0, trials, (draws, trials))
    # whole trials are drawn again: budgets of one trial belong together
    means = np.concatenate([values.mean(axis=1)[None], values[:, pick].mean(axis=2).T])
    # an excess of exactly 0 has no logarithm: the smallest number there is stands for it
    slopes = np.log(np.maximum(means, np.finfo(float).tiny)) @ (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    low, high = np.quantile(slopes[1:], [0.025, 0.975])
    return Slope(float(slopes[0]), float(low), float(high))
