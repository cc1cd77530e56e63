"""The promise, the lower bound and simulated excess risk against the budget, on log axes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from evenhand.arrays import Floats
from evenhand.claims.guarantees import optimism
from evenhand.claims.guarantees.exploring import exploring
from evenhand.claims.guarantees.lower import lower_bound
from evenhand.claims.guarantees.problem import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def promise_curve(problem: Problem, labels: Floats, epsilon: float | None = None, beta: float | None = None) -> Floats:
    """The promised excess risk at every budget, vacuous or not."""
    if epsilon is None:
        return np.array([optimism.value(problem, n / 2) for n in labels])
    found = exploring(problem, epsilon, beta)
    return np.array([found.value(n / 2) for n in labels])


def plot_plan(
    problem: Problem,
    *,
    epsilon: float | None = None,
    beta: float | None = None,
    radius: float = 1.0,
    simulated: Mapping[str, tuple[Floats, Floats]] | None = None,
    most: float = 1e12,
) -> "Figure":
    """Bound, lower bound and simulated excess risk against labels; simulations by rule: budgets, (budgets, trials)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    labels = np.geomspace(max(2.0, 1 / radius**2), most, 200)
    rule = problem.rule if epsilon is None else exploring(problem, epsilon, beta).rule
    axes.loglog(labels, promise_curve(problem, labels, epsilon, beta), label=f"promised at most to {rule}")
    lowest = [lower_bound(int(np.ceil(n)), radius) for n in labels]
    axes.loglog(labels, lowest, label=f"no rule below, worse of two instances (r = {radius:g})", linestyle="--")
    for name, (budgets, excess) in (simulated or {}).items():
        axes.loglog(
            budgets,
            excess.mean(axis=1),
            "o-",
            markersize=3,
            label=f"{name}, mean of {excess.shape[1]} simulated trials",
        )
    axes.axhline(1.0, color="0.6", linewidth=0.8)
    axes.annotate("above 1 nothing is said", (labels[-1], 1.0), ha="right", va="bottom", fontsize=8, color="0.4")
    axes.set(xlabel="labels", ylabel="excess risk of the worst group")
    axes.legend(fontsize=8)
    return figure
