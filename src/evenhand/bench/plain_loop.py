"""The loop a researcher writes first: scikit-learn fitted from scratch each round, a Python loop over rounds.

Preallocated arrays, `LogisticRegression(C=1.0)` fresh each round, one `predict` per group, nothing logged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

__all__ = ["RULES", "adult_draws", "gaussian_draws", "plain_loop"]

Floats = NDArray[np.float64]
Draw = Callable[[int], tuple[Floats, int]]
Rule = Callable[[Floats, Floats, np.random.Generator], int]


def optimistic(loss: Floats, n: Floats, rng: np.random.Generator) -> int:
    """A_opt with c0 = 0.1, ξ = 0.5."""
    if n.min() < n.sum() ** 0.5:
        return _first(-n, rng)
    return _first(loss + 0.1 / np.sqrt(n), rng)


def epsilon_greedy(loss: Floats, n: Floats, rng: np.random.Generator) -> int:
    """ε = 0.1, exploring uniformly."""
    return int(rng.integers(len(n))) if rng.random() < 0.1 else _first(loss, rng)


def greedy(loss: Floats, n: Floats, rng: np.random.Generator) -> int:
    """The largest validation loss."""
    return _first(loss, rng)


RULES: dict[str, Rule] = {
    "optimistic:c0=0.1": optimistic,
    "epsilon-greedy:epsilon=0.1": epsilon_greedy,
    "greedy": greedy,
}


def _first(score: Floats, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(score == score.max())))


def plain_loop(
    draw: Draw, groups: int, features: int, rounds: int, rule: Rule, seed: int, test: Callable[[Any, int], None]
) -> Floats:
    """Run one trial; the examples trained on per group. `test(model, round)` is called after every fit."""
    rng = np.random.default_rng(seed)
    X, y = np.empty((rounds, features)), np.empty(rounds, dtype=int)
    held_X = [np.empty((rounds, features)) for _ in range(groups)]
    held_y = [np.empty(rounds, dtype=int) for _ in range(groups)]
    n, loss = np.zeros(groups, dtype=int), np.zeros(groups)
    for t in range(rounds):
        z = t if t < groups else rule(loss, n, rng)
        X[t], y[t] = draw(z)
        held_X[z][n[z]], held_y[z][n[z]] = draw(z)
        n[z] += 1
        if y[: t + 1].min() == y[: t + 1].max():
            continue
        model = LogisticRegression(C=1.0).fit(X[: t + 1], y[: t + 1])
        for k in range(groups):
            if n[k]:
                loss[k] = np.mean(model.predict(held_X[k][: n[k]]) != held_y[k][: n[k]])
        test(model, t)
    return n


def gaussian_draws(mu: Floats, seed: int) -> Draw:
    """Examples of Gaussian classes with means mu (group, label, feature)."""
    rng = np.random.default_rng(seed)

    def draw(z: int) -> tuple[Floats, int]:
        label = int(rng.integers(2))
        return mu[z, label] + rng.standard_normal(mu.shape[2]), label

    return draw


def adult_draws(pool: list[tuple[Floats, NDArray[np.int64]]], seed: int) -> Draw:
    """Rows of each group's pool in random order, without replacement."""
    rng = np.random.default_rng(seed)
    orders = [iter(rng.permutation(len(y))) for _, y in pool]

    def draw(z: int) -> tuple[Floats, int]:
        row = next(orders[z])
        return pool[z][0][row], int(pool[z][1][row])

    return draw
