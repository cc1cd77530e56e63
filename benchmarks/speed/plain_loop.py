"""The loop a researcher writes first: scikit-learn fitted from scratch each round, a Python loop over rounds.

Preallocated arrays, `LogisticRegression(C=1.0)` fresh each round, one `predict` per group, nothing logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from evenhand.arrays import Floats, Ints

__all__ = ["RULES", "gaussian_draws", "plain_loop", "sampled_rounds"]

Draw = Callable[[int], tuple[Floats, int]]
Rule = Callable[[Floats, Ints, np.random.Generator], int]


def optimistic(loss: Floats, n: Ints, rng: np.random.Generator) -> int:
    """A_opt with c0 = 0.1, ξ = 0.5."""
    if n.min() < n.sum() ** 0.5:
        return _first(-n, rng)
    return _first(loss + 0.1 / np.sqrt(n), rng)


def epsilon_greedy(loss: Floats, n: Ints, rng: np.random.Generator) -> int:
    """ε = 0.1, exploring uniformly."""
    return int(rng.integers(len(n))) if rng.random() < 0.1 else _first(loss, rng)


def greedy(loss: Floats, n: Ints, rng: np.random.Generator) -> int:
    """The largest validation loss."""
    return _first(loss, rng)


RULES: dict[str, Rule] = {
    "optimistic:c0=0.1": optimistic,
    "epsilon-greedy:epsilon=0.1": epsilon_greedy,
    "greedy": greedy,
}


def _first(score: NDArray[Any], rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(score == score.max())))


def plain_loop(draw: Draw, groups: int, features: int, rounds: int, rule: Rule, seed: int) -> Ints:
    """Run one trial; the examples trained on per group."""
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
    return n


def gaussian_draws(mu: Floats, seed: int) -> Draw:
    """Examples of Gaussian classes with means mu (group, label, feature)."""
    rng = np.random.default_rng(seed)

    def draw(z: int) -> tuple[Floats, int]:
        label = int(rng.integers(2))
        return mu[z, label] + rng.standard_normal(mu.shape[2]), label

    return draw


def sampled_rounds(
    pool: list[tuple[Floats, Ints]], rounds: int, samples: int
) -> Iterator[Callable[[], LogisticRegression]]:
    """The work of evenly spaced rounds of the loop, each as a function: a fit on t rows, a predict for each group.

    For loops too long to run whole: their mean time is the loop's, apart from what it spends outside of scikit-learn.
    """
    rng = np.random.default_rng(0)
    X, y = (np.concatenate([part[i] for part in pool]) for i in (0, 1))
    for t in np.linspace(0, rounds, samples + 1).round().astype(int)[1:].tolist():
        rows, held = np.split(rng.permutation(len(y))[: 2 * t], 2)
        yield partial(_round, X[rows], y[rows], [(X[part], y[part]) for part in np.array_split(held, len(pool))])


def _round(X: Floats, y: Ints, held: list[Any]) -> LogisticRegression:
    model = LogisticRegression(C=1.0).fit(X, y)
    for rows, labels in held:
        np.mean(model.predict(rows) != labels)
    return model
