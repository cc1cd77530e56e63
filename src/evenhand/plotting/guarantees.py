"""Figures of the theory: promise, lower bound and simulated excess risk against the budget; the group risks' front."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from evenhand.arrays import Floats
from evenhand.claims.guarantees import optimism
from evenhand.claims.guarantees.data import Front
from evenhand.claims.guarantees.exploring import exploring
from evenhand.claims.guarantees.lower import lower_bound
from evenhand.claims.guarantees.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def promise_curve(problem: Problem, labels: Floats, epsilon: float | None = None, beta: float | None = None) -> Floats:
    """The promised excess risk at every budget, vacuous or not."""
    if epsilon is None:
        return np.array([optimism.value(problem, n / 2) for n in labels])
    found = exploring(problem, epsilon, beta)
    return np.array([found.value(n / 2) for n in labels])


def _holds_from(problem: Problem, epsilon: float | None, beta: float | None) -> float:
    """Labels from which the known conditions of the promise hold."""
    needed = optimism.conditions(problem, 2) if epsilon is None else exploring(problem, epsilon, beta).conditions(2)
    found = optimism.from_labels(lambda n: True, needed)
    return float("inf") if found is None else float(found)


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
    from evenhand.plotting.panels import COLOURS, panels

    figure, [axes] = panels(1, "labels", "excess risk of the worst group")
    labels = np.geomspace(max(2.0, 1 / radius**2), most, 200)
    rule = problem.rule if epsilon is None else exploring(problem, epsilon, beta).rule
    curve, holds = promise_curve(problem, labels, epsilon, beta), _holds_from(problem, epsilon, beta)
    for from_there, style, told in ((True, "-", ""), (False, ":", ", once its conditions hold")):
        part = np.where((labels >= holds) == from_there, curve, np.nan)
        if np.isfinite(part).any():
            axes.loglog(labels, part, style, color=COLOURS[0], label=f"promised at most to {rule}{told}")
    lowest = [lower_bound(int(np.ceil(n)), radius) for n in labels]
    below = f"no rule below, worse of two instances (r = {radius:g})"
    axes.loglog(labels, lowest, color=COLOURS[1], linestyle="--", label=below)
    for colour, (name, (budgets, excess)) in zip(COLOURS[2:], (simulated or {}).items(), strict=False):
        told = f"{name}, mean of {excess.shape[1]} simulated trials"
        axes.loglog(budgets, excess.mean(axis=1), "o-", color=colour, markersize=3, label=told)
    axes.axhline(1.0, color="0.6", linewidth=0.8)
    axes.annotate("above 1 nothing is said", (labels[0], 1.0), ha="left", va="bottom", fontsize=8, color="0.4")
    figure.legend(loc="outside lower center", fontsize=8, frameon=False)
    return figure


def plot_front(front: Front) -> "Figure":
    """The front of group risks with the fair mixture on it: a curve for two groups, a line across the groups for more."""
    from evenhand.plotting.panels import panels

    two = len(front.groups) == 2
    labels = (f"{front.risk} of {front.groups[0]}", f"{front.risk} of {front.groups[1]}") if two else ("", front.risk)
    figure, [axes] = panels(1, *labels)
    (_curve if two else _lines)(figure, axes, front)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure


def _curve(figure: "Figure", axes: "Axes", front: Front) -> None:
    from evenhand.plotting.panels import COLOURS

    order = np.argsort(front.mixtures[:, 0])
    x, y = front.risks[order].T
    axes.plot(x, y, color="0.75", linewidth=1.0, zorder=1)
    drawn = axes.scatter(x, y, c=front.mixtures[order, 0], cmap="viridis", vmin=0, vmax=1, s=16, zorder=2)
    figure.colorbar(drawn, ax=axes, label=f"share of {front.groups[0]} in the mixture")
    low, high = max(x.min(), y.min()), min(x.max(), y.max())  # the part of the diagonal within the picture
    if low < high:
        axes.plot([low, high], [low, high], color="0.6", linestyle=":", linewidth=1.0, label="equal risks")
    fair_x, fair_y = front.risks[front.fair].tolist()
    shares = " : ".join(f"{share:.2f}" for share in front.mixtures[front.fair])
    told = f"fair mixture, {front.groups[0]} : {front.groups[1]} = {shares}"
    axes.scatter(fair_x, fair_y, marker="*", s=160, color=COLOURS[1], edgecolor="white", zorder=3, label=told)


def _lines(figure: "Figure", axes: "Axes", front: Front) -> None:
    from evenhand.plotting.panels import COLOURS

    places = np.arange(len(front.groups))
    for k, row in enumerate(front.risks):
        axes.plot(places, row, color="0.7", linewidth=0.6, label="other mixtures" if k == 0 else None)
    axes.plot(
        places, front.risks[front.fair], "o-", color=COLOURS[1], linewidth=2, label="fair mixture, of those tried"
    )
    shares = front.mixtures[front.fair]
    axes.set_xticks(places, [f"{group}\nshare {share:.2f}" for group, share in zip(front.groups, shares, strict=True)])
