"""The peers' rule, for comparison: ε-greedy over a fixed labelled pool, one stochastic gradient step a round.

After Abernethy et al., *Active Sampling for Min-Max Fairness* (2022), written anew. All labels are paid for at the
start, by the population's shares; half of the pool trains, half validates. A round finds the group with the largest
validation loss (with probability ε a group by the population's shares), draws one of its training examples with
replacement, and takes one step of stochastic gradient descent on it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evenhand.decision import KINDS
from evenhand.engine.coins import uniform
from evenhand.engine.run import Record, Settings
from evenhand.learners.logistic import Logistic
from evenhand.notation import parse_settings
from evenhand.sources.base import Source
from evenhand.strategies.base import pick

__all__ = ["Peers", "is_peers", "parse", "run_block"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
_STREAM = 7
"""Their coins are apart from those of our strategies and roles."""


@dataclass(frozen=True)
class Peers:
    """The settings of the peers' rule.

    Args:
        epsilon: chance of a group by the population's shares.
        rate: step size.
        passes: rounds for every two labels of the pool; 1 gives as many rounds as our strategies have.
    """

    epsilon: float = 0.1
    rate: float = 0.1
    passes: int = 1

    def __str__(self) -> str:
        return f"peers:epsilon={self.epsilon},rate={self.rate},passes={self.passes}"


def is_peers(text: str) -> bool:
    """Whether a strategy's text means the peers' rule."""
    return text.partition(":")[0] == "peers"


def parse(text: str) -> Peers:
    """The peers' rule a text such as `peers:epsilon=0.1` describes."""
    return Peers(**parse_settings(text.partition(":")[2], where="strategy 'peers'"))


def run_block(source: Source, rule: Peers, settings: Settings, trials: Sequence[int]) -> Record:
    """Run these trials: the same examples our strategies meet, all bought before the first round."""
    started = time.perf_counter()
    if len(source.classes) != 2:
        raise ValueError(f"the peers' rule knows two classes, not {len(source.classes)}")
    stream = source.open(settings.seed, trials)
    pool = _Pool(stream, source, settings.budget, len(trials))
    rounds = settings.rounds * rule.passes
    tested = np.linspace(0, rounds - 1, min(settings.evaluate, rounds) + 1).round().astype(int)[1:]
    T, m = len(trials), len(source.groups)
    counts, chosen = np.zeros((rounds, T, m), dtype=np.int64), np.zeros((rounds, T), dtype=np.int64)
    losses, accuracy = (np.full((rounds, T, m), np.nan) for _ in range(2))
    drawn = np.zeros((T, m), dtype=np.int64)
    w = np.zeros((T, pool.width))
    every, everyone = np.arange(T), np.ones((T, m), dtype=bool)
    for t in range(rounds):
        losses[t] = pool.losses(w)
        coins = uniform(settings.seed, _STREAM, np.asarray(trials)[:, None], t, np.arange(4))
        explored = (source.population.cumsum() <= coins[:, [1]]).sum(axis=1).clip(max=m - 1)
        chosen[t] = np.where(coins[:, 0] < rule.epsilon, explored, pick(losses[t], everyone, coins[:, 3]))
        w += rule.rate * pool.gradient(w, chosen[t], coins[:, 2])
        drawn[every, chosen[t]] += 1
        counts[t] = drawn
        if t in tested or t == rounds - 1:
            accuracy[t] = _accuracies(w, stream, source)
    return Record(
        groups=source.groups,
        trials=np.asarray(trials),
        labels=np.full((rounds, T), settings.budget),
        chosen=chosen,
        kind=np.full((rounds, T), KINDS.index("score")),
        counts=counts,
        validation_loss=losses,
        accuracy=accuracy,
        final_accuracy=accuracy[-1].copy(),
        seconds=time.perf_counter() - started,
    )


class _Pool:
    """The labelled pools of T trials, padded to one shape; a column of ones stands for the intercept."""

    def __init__(self, stream: Any, source: Source, budget: int, trials: int) -> None:
        m = len(source.groups)
        wanted = np.maximum(np.floor(source.population * budget / 2).astype(int), 1)
        parts = []
        for z in range(m):
            draw = stream.draw(np.full(trials, z), np.full(trials, 2 * wanted[z]))
            X = draw.X.toarray() if hasattr(draw.X, "toarray") else np.asarray(draw.X)
            X = np.column_stack([X, np.ones(len(X))]).reshape(trials, -1, X.shape[1] + 1)
            validates = None if draw.validation is None else draw.validation.reshape(trials, -1)
            parts.append((X, draw.y.reshape(trials, -1), validates))
        self.width = parts[0][0].shape[-1]
        self._train, self._held = [], []
        for X, y, validates in parts:
            half = np.arange(y.shape[1]) % 2 == 1
            roles = np.broadcast_to(half, y.shape) if validates is None else validates
            # a stable sort of the roles puts each trial's training rows first, whatever their number
            order = np.argsort(roles, axis=1, kind="stable")
            X, y = np.take_along_axis(X, order[..., None], axis=1), np.take_along_axis(y, order, axis=1)
            n = y.shape[1] // 2
            self._train.append((X[:, :n], y[:, :n]))
            self._held.append((X[:, n:], y[:, n:]))

    def losses(self, w: Floats) -> Floats:
        """Mean validation loss of every group, (T, m)."""
        found = []
        for X, y in self._held:
            wrong = (np.einsum("tnd,td->tn", X, w) > 0) != (y == 1)
            found.append(wrong.mean(axis=1))
        return np.stack(found, axis=1)

    def gradient(self, w: Floats, group: Counts, coin: Floats) -> Floats:
        """Minus the gradient of the log loss on one training example of each trial's group."""
        step = np.zeros_like(w)
        for z, (X, y) in enumerate(self._train):
            rows = np.nonzero(group == z)[0]
            place = (coin[rows] * y.shape[1]).astype(int)
            x = X[rows, place]
            step[rows] = (y[rows, place] - expit(np.einsum("td,td->t", x, w[rows])))[:, None] * x
        return step


def _accuracies(w: Floats, stream: Any, source: Source) -> Floats:
    if hasattr(stream, "linear_accuracies"):
        exact: Floats = stream.linear_accuracies(w[:, :-1], w[:, -1])
        return exact
    tested: Floats = stream.accuracies([Logistic.fitted(Logistic(), source.classes, row[None], 0.0) for row in w])
    return tested
