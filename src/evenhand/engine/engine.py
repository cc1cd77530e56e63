"""The engine: what is known of T trials, and three steps on it — refit, choose, record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.decision import Decision
from evenhand.engine.coins import Coins, begin, fold, numbers
from evenhand.engine.memory import Memory
from evenhand.standing import Standing
from evenhand.stats import RunningTrend
from evenhand.strategies.base import COINS, Rule, Strategy

__all__ = ["Engine"]

_COINS, _ROLES = 0, 1
_AHEAD = 128
Counts = NDArray[np.int64]


class Engine:
    """Arrays with a leading trial axis T and the groups last, and the three steps that move them on.

    A campaign is the engine at T = 1; a simulation runs a block of trials in lockstep.

    Args:
        groups: the names of the groups.
        strategy: which group next.
        memory: the example sets and their models; None where somebody else trains and reports losses.
        trials: the numbers of the trials, which their random numbers depend on.
        seed: the run's seed.
        n0: warm-up rounds, groups in turn.
        validation: the share of each group's examples that validates.
        population: the population's share of each group, where known.
        track: whether to keep recent accuracies and their trend.
    """

    def __init__(
        self,
        groups: Sequence[str],
        strategy: Strategy,
        memory: Memory | None,
        *,
        trials: Sequence[int] = (0,),
        seed: int = 0,
        n0: int = 0,
        validation: float = 0.5,
        population: NDArray[np.float64] | None = None,
        track: bool = True,
    ) -> None:
        self.groups = tuple(groups)
        self.strategy = strategy
        self.memory = memory
        self.trials = np.asarray(trials, dtype=np.int64)
        self.track = track
        self.seed, self.n0, self.validation, self.population = seed, n0, validation, population
        shape = (len(self.trials), len(self.groups))
        self.counts, self.held, self.scored = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        self.pending, self.pending_validation = (np.zeros(shape, dtype=np.int64) for _ in range(2))
        self.loss_sum = np.zeros(shape)
        self.recent = RunningTrend.empty(shape, getattr(strategy, "window", 20))
        self.available = np.ones(shape, dtype=bool)
        self.asked = np.zeros(shape[0], dtype=np.int64)
        self._coins = Coins(seed, _COINS, self.trials, COINS)
        self._roles = fold(begin(seed), _ROLES, self.trials[:, None], np.arange(shape[1])).ravel()
        self._drawn: dict[int, tuple[int, list[float]]] = {}
        self.fresh = np.zeros(shape, dtype=bool)

    def standing(self) -> Standing:
        """What is known now; the arrays are the engine's own, to be read only."""
        waiting = (self.scored == 0) & self.available
        return Standing(
            groups=self.groups,
            counts=self.counts,
            pending=self.pending,
            validated=self.scored,
            pending_validation=self.pending_validation,
            loss_sum=self.loss_sum,
            accuracies=self.recent.window,
            trend=self.recent.trend,
            available=self.available,
            starting=(self.asked < self.n0) | waiting.any(axis=-1),
            population=self.population,
        )

    def choose(self) -> Decision:
        """The strategy's decision for every trial; a strategy that is no `Rule` is asked trial by trial."""
        standing, coins = self.standing(), self.coins()
        if isinstance(self.strategy, Rule):
            return self.strategy(standing, coins)
        single = [self.strategy(standing.trial(j), coins[j]) for j in range(len(self.trials))]
        index, code = (np.array([getattr(d, name) for d in single]) for name in ("index", "code"))
        return Decision(self.groups, index, code)

    def coins(self) -> NDArray[np.float64]:
        """The random numbers of every trial's next request."""
        return self._coins.at(self.asked)

    def coins_of(self, asked: int) -> list[float]:
        """The same for the request after so many (T = 1)."""
        return self._coins.one(asked)

    def roles(self, trial: Counts, group: Counts) -> NDArray[np.bool_]:
        """Which of these new rows validate: by the seed, never by row order, keeping each group's share."""
        m = len(self.groups)
        cell = trial * m + group
        total = np.bincount(cell, minlength=self.counts.size)
        starts = np.cumsum(total) - total
        position = _rank(cell, starts)
        told = (self.counts + self.held).ravel()
        key = numbers(fold(self._roles[cell], told[cell] + position))
        rank = _rank(cell + key, starts, cell)
        validating = self.validation_examples(told + total) - self.held.ravel()
        return np.asarray(rank >= total[cell] - np.clip(validating, 0, total)[cell])

    def roles_of(self, group: int, rows: int, *, training: int, held: int) -> list[bool]:
        """The same for rows of one group that had so many before (T = 1): quick where they are few."""
        first = training + held
        start, keys = self._drawn.get(group, (0, []))
        if not start <= first <= start + len(keys) - rows:
            places = np.arange(first, first + rows + _AHEAD)
            start, keys = first, (group + numbers(fold(self._roles[[group]], places))).tolist()
            self._drawn[group] = start, keys
        order = sorted(range(first - start, first - start + rows), key=keys.__getitem__)
        validating = min(max(self.validating(first + rows) - held, 0), rows)
        chosen = set(order[rows - validating :])
        return [place in chosen for place in range(first - start, first - start + rows)]

    def validation_examples(self, told: Counts) -> Counts:
        """How many of a group's first `told` examples validate."""
        return np.asarray(np.floor(told * self.validation + 1e-9), dtype=np.int64)

    def validating(self, told: int) -> int:
        """The same for one number."""
        return math.floor(told * self.validation + 1e-9)

    def expected_validation(self, group: int, size: int) -> int:
        """How many of `size` further examples of a group will validate, once what is open has arrived (T = 1)."""
        told = sum(int(n[0, group]) for n in (self.counts, self.held, self.pending, self.pending_validation))
        return self.validating(told + size) - self.validating(told)

    def record(
        self, trial: Counts, group: Counts, X: Any, y: Counts, validation: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Take in new labelled rows; gives back which of them validate."""
        if validation is None:
            validation = self.roles(trial, group)
        if self.memory is not None:
            self.memory.add(trial, X, y, group, validation)
        self.tally(trial, group, validation)
        return validation

    def tally(self, trial: Counts, group: Counts, validation: NDArray[np.bool_]) -> None:
        """Count new rows in."""
        cell = trial * len(self.groups) + group
        held = np.bincount(cell[validation], minlength=self.counts.size).reshape(self.counts.shape)
        arrived = np.bincount(cell, minlength=self.counts.size).reshape(self.counts.shape)
        self.held += held
        self.counts += arrived - held
        self.fresh |= arrived > 0

    def refit(self) -> bool:
        """Fit and score where examples arrived since the last refit; says whether there was anything to do."""
        if self.memory is None or not self.fresh.any():
            return False
        self.memory.fit()
        scores = self.memory.score(getattr(self.strategy, "loss", "zero_one"))
        self.report(scores.loss_sum, scores.correct / np.maximum(scores.n, 1), scores.n)
        return True

    def report(self, loss_sum: NDArray[np.float64], accuracy: NDArray[np.float64], n: Counts) -> None:
        """Take in scores; each group that received examples since the last report gets one accuracy more."""
        self.loss_sum, self.scored = loss_sum, n
        if self.track:
            self.recent.push(np.where(self.fresh & (n > 0), accuracy, np.nan))
        self.fresh[:] = False

    def report_some(self, found: Mapping[int, tuple[float, float, int]]) -> None:
        """Take in mean loss, accuracy and examples of some groups (T = 1); the others stay as they are."""
        loss_sum, n, accuracy = self.loss_sum.copy(), self.scored.copy(), np.zeros(self.scored.shape)
        for z, (mean, right, count) in found.items():
            loss_sum[0, z], accuracy[0, z], n[0, z] = mean * count, right, count
        waiting = self.fresh.copy()
        waiting[0, list(found)] = False
        self.fresh &= ~waiting
        self.report(loss_sum, accuracy, n)
        self.fresh |= waiting


def _rank(key: NDArray[Any], starts: Counts, cell: Counts | None = None) -> Counts:
    """The place of each row within its cell, by ascending key; a key's whole part is its cell."""
    order = np.argsort(key, kind="stable")
    rank = np.empty(len(key), dtype=np.int64)
    rank[order] = np.arange(len(key)) - starts[(key if cell is None else cell)[order]]
    return rank
