"""T trials of a strategy that buys all its labels first and then takes gradient steps on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.arrays import Floats, Ints
from evenhand.engine.memories.fixed_pool import PoolMemory
from evenhand.engine.trials import Settings, Step, Trials
from evenhand.sources.base import Draw, Source
from evenhand.strategies.base import Strategy
from evenhand.uniforms import GRADIENT_STEPS, Uniforms, role_states, roles

__all__ = ["PooledTrials"]

_EXPLORE, _WHICH, _TIE = 0, 1, 3
"""What three of a round's uniforms are for, by position; all others say which examples are drawn."""


class PooledTrials(Trials):
    """Trials that buy all their labels before the first round.

    The pool of a trial is the first examples of every group, so it holds examples that other strategies meet too. The
    counts are of the examples that steps were taken on: the mixture the model has learnt from.
    """

    memory: PoolMemory

    def __init__(self, source: Source, strategy: Strategy, settings: Settings, trials: Sequence[int]) -> None:
        super().__init__(source, strategy, None, settings, trials)
        self._rule = strategy
        self._uniforms = Uniforms(settings.seed, GRADIENT_STEPS, self.engine.trials, 3 + settings.batch)
        self._buy(self.shares(source.population))
        # so that the models at zero are scored before the
        # first step: the rule needs losses to choose by
        self.engine.fresh[:] = True
        self.engine.refit()

    def make_memory(self, source: Source, strategy: Any, learner: Any, trials: Sequence[int]) -> PoolMemory:
        """The pool and its models."""
        return PoolMemory(source.classes, source.groups, len(trials), strategy.rate, self.measure)

    def shares(self, population: Floats) -> Ints:
        """Pairs of labels bought from every group: its share of the budget rounded down, but at least one."""
        pairs = np.maximum(np.floor(population * self.settings.budget / 2).astype(np.int64), 1)
        while pairs.sum() > self.settings.budget // 2:  # many groups with tiny shares: the largest one pays for them
            pairs[np.argmax(pairs)] -= 1
        return pairs

    def _buy(self, pairs: Ints) -> None:
        every = np.ones(len(self.used), dtype=np.int64)
        for z, count in enumerate(pairs.tolist()):
            drawn = self.stream.draw(z * every, 2 * count * every)
            validation = drawn.validation
            if validation is None:
                place = np.arange(len(drawn.trial)) - np.searchsorted(drawn.trial, drawn.trial)
                state = role_states(self.settings.seed, self.engine.trials[drawn.trial], z)
                validation = roles(state, place, self.settings.validation)
            self.memory.add(drawn.trial, drawn.X, drawn.y, drawn.group, validation)
            self.used += np.bincount(drawn.trial, minlength=len(self.used))

    def step(self) -> Step | None:
        """Choose a group and take a gradient step on its examples; nothing new is drawn."""
        if self.engine.asked[0] >= self.rounds:
            return None
        uniforms = self._uniforms.at(self.engine.asked)
        decision = self._rule(self.engine.standing(), uniforms[:, [_TIE, _EXPLORE, _WHICH]])
        self.memory.step(decision.index, np.delete(uniforms, [_EXPLORE, _WHICH, _TIE], axis=1))
        chosen = (np.arange(len(self.used)), decision.index)
        self.engine.counts[chosen] += self.settings.batch
        self.engine.fresh[chosen] = True
        self.engine.asked += 1
        none = np.empty(0, dtype=np.int64)
        return Step(decision, decision.index, Draw(none, none, none, none), none.astype(bool))
