"""The rule of Abernethy et al. in its own form, beside A_opt and ε-greedy for the same labels.

Theirs buys all labels first, by the population's shares; half of them validate. Every round takes one stochastic gradient step on an
example of the group that is worst on them, or with probability ε of a group drawn by its share. Step size 0.1, which nobody tuned.
"""

from typing import Any

import numpy as np

import evenhand as eh
from evidence.common import gain, spread

OURS = {"A_opt": eh.Optimistic(c0=0.1), "ε-greedy": eh.EpsilonGreedy(0.1)}
EPSILON, RATE = 0.1, 0.1


class Line:
    """A linear rule, in the form that sources test."""

    def __init__(self, w: Any, b: float, classes: Any) -> None:
        self.coef_, self.intercept_, self.classes_ = w[None], np.array([b]), classes

    def predict(self, X: Any) -> Any:
        """The class on which side a row lies."""
        return self.classes_[(np.asarray(X @ self.coef_[0]) + self.intercept_[0] > 0).astype(int)]


def trained(source: Any, budget: int, trial: int, passes: int) -> float:
    """The worst group's test accuracy after so many times the rounds that this budget has."""
    stream, m, rng = source.open(0, [trial]), len(source.groups), np.random.default_rng([trial, 9])
    counts = np.maximum(np.round(source.population * budget).astype(int), 2)
    parts = [stream.draw(np.array([z]), np.array([n])) for z, n in enumerate(counts)]
    rows = [part.X.toarray() if hasattr(part.X, "toarray") else part.X for part in parts]
    halves = [(X[::2], part.y[::2], X[1::2], part.y[1::2] == 1) for X, part in zip(rows, parts, strict=True)]
    w, b = np.zeros(rows[0].shape[1]), 0.0
    for _ in range(passes * budget // 2):
        if rng.random() < EPSILON:
            z = int(rng.choice(m, p=source.population))
        else:
            z = int(np.argmax([np.mean((held @ w + b > 0) != positive) for _, _, held, positive in halves]))
        X, y, _, _ = halves[z]
        k = int(rng.integers(len(y)))
        push = RATE * (y[k] - 1 / (1 + np.exp(-(X[k] @ w + b))))
        w, b = w + push * X[k], b + push
    return float(stream.accuracies([Line(w, b, np.asarray(source.classes))]).min())


def compare(source: Any, budget: int, trials: int) -> dict[str, Any]:
    """Worst-group accuracy of every rule, and how far A_opt is ahead of theirs, in points."""
    final = eh.simulate(source, OURS, budget=budget, trials=trials, evaluate=1, trace="none").final
    worst = final.groupby(["strategy", "trial"], observed=True)["test_accuracy"].min().unstack("trial")
    theirs = {
        f"peers, {passes} × the rounds": [trained(source, budget, t, passes) for t in range(trials)]
        for passes in (1, 10)
    }
    ahead = {
        label: gain(100 * worst.loc["A_opt"].to_numpy(), 100 * np.array(values)) for label, values in theirs.items()
    }
    return {
        "budget": budget,
        "trials": trials,
        "worst": {rule: spread(worst.loc[rule]) for rule in OURS} | {label: spread(v) for label, v in theirs.items()},
        "ahead": ahead,
    }


def measure(small: bool) -> dict[str, Any]:
    """Both instances of SyntheticModel1, and Adult."""
    trials, budget = (2, 40) if small else (300, 1000)
    found = {f"instance {which}": compare(eh.SyntheticModel1.instance(which), budget, trials) for which in ("I", "II")}
    return found if small else found | {"Adult": compare(eh.datasets.load("adult"), 2000, 20)}
