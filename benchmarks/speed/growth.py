"""How the time of a round grows with rounds, features and groups, and the slope on a log-log line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from benchmarks.speed.timing import best, once

from evenhand.engine.memories.lockstep import LockstepLogistic
from evenhand.engine.run import Settings, run_block
from evenhand.learners.logistic.learner import Logistic
from evenhand.sources.synthetic.model1 import SyntheticModel1
from evenhand.strategies import Greedy

__all__ = ["Curve", "curves"]


@dataclass(frozen=True)
class Curve:
    """Seconds of a round at several sizes."""

    name: str
    sizes: list[int]
    seconds: list[float]

    @property
    def slope(self) -> float:
        """The slope of the line fitted on log-log axes."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"slope": self.slope}


def curves(full: bool) -> list[Curve]:
    """The three curves: rounds (20 features), features (2,000 rounds), groups (whole rounds of a simulation)."""
    rounds = [100, 300, 1000, 3000, 10_000, 20_000] if full else [100, 1000, 5000]
    features = [2, 5, 10, 20, 50, 100, 200, 500] if full else [2, 20, 100]
    groups = [2, 5, 10, 20, 50, 100, 200] if full else [2, 20]
    return [
        Curve("rounds t", rounds, [_round(t, 20) for t in rounds]),
        Curve("features d", features, [_round(2000, d) for d in features]),
        Curve("groups m", groups, [_simulated_round(m) for m in groups]),
    ]


def _round(t: int, d: int, repeats: int = 20) -> float:
    """Seconds of a refit and its scores after one pair more, when there are t of each kind."""
    rng = np.random.default_rng(0)
    n = 2 * (t + 2 * repeats)
    X = rng.standard_normal((n, d))
    y = (X[:, 0] + rng.standard_normal(n) > 0).astype(np.int64)
    zero, held = np.zeros(n, dtype=np.int64), np.arange(n) % 2 == 1
    memory = LockstepLogistic(Logistic(), np.array([0, 1]), 2, capacity=n)

    def add(first: int, last: int) -> None:
        rows = slice(first, last)
        memory.add(zero[rows], X[rows], y[rows], zero[rows], held[rows])
        memory.fit()
        memory.score()

    add(0, 2 * t)
    spent = [once(partial(add, k, k + 2)) for k in range(2 * t, n, 2)]
    # the first rounds settle the inverse Hessian; of the others the quicker half
    return float(np.mean(np.sort(spent[repeats:])[: repeats // 2]))


def _simulated_round(m: int, rounds: int = 400, trials: int = 20) -> float:
    """Seconds of a round of a trial in a simulation with m groups, the start left out."""
    means = {f"g{z}": {0: (-1.0, 0.1 * z / m), 1: (1.0, -0.1 * z / m)} for z in range(m)}
    source = SyntheticModel1(means)

    def run(budget: int) -> float:
        return best(partial(run_block, source, Greedy(), Logistic(), Settings(budget), range(trials)), 2)

    start = 2 * (m + 10)
    # the difference of two runs: opening and warm-up are in both
    return (run(start + 2 * rounds) - run(start)) / (rounds * trials)
