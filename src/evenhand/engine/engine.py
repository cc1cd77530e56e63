"""The engine: what is known of T trials, and three steps on it — refit, choose, record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenhand.arrays import Floats, Ints, Mask
from evenhand.engine.memories.base import Memory, Scores
from evenhand.risks import ERROR, Risk
from evenhand.strategies.base import UNIFORMS, Rule, Strategy, needs_of
from evenhand.strategies.decision import Decision
from evenhand.strategies.standing import Standing
from evenhand.strategies.trend import RunningTrend
from evenhand.uniforms import CHOICES, Roles, Uniforms

if TYPE_CHECKING:
    from evenhand.arrays import Features


class Engine:
    """Arrays with a leading trial axis T and the groups last, and the three steps that update them.

    A simulation runs a block of trials in lockstep; a campaign with the same seed makes the same choices.

    Args:
        groups: the names of the groups.
        strategy: which group next.
        memory: the example sets and their models; None if the user trains models elsewhere and reports losses.
        trials: the numbers of the trials, which their random numbers depend on.
        seed: the run's seed.
        warmup: warm-up rounds, groups in turn.
        batch: examples of each role a round draws.
        validation: the share of each group's examples that validates.
        population: the population's share of each group, where known.
        track: whether to keep recent accuracies and their trend.
        risk: what the memory's losses are about.
    """

    def __init__(
        self,
        groups: Sequence[str],
        strategy: Strategy,
        memory: Memory | None,
        *,
        trials: Sequence[int] = (0,),
        seed: int = 0,
        warmup: int = 0,
        batch: int = 1,
        validation: float = 0.5,
        population: Floats | None = None,
        track: bool = True,
        risk: Risk = ERROR,
    ) -> None:
        self.groups = tuple(groups)
        self.strategy = strategy
        self.memory = memory
        self.trials = np.asarray(trials, dtype=np.int64)
        self.track, self.risk = track, risk
        self.warmup, self.batch, self.population = warmup, batch, population
        shape = (len(self.trials), len(self.groups))
        self.counts, self.held, self.scored = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        # the same array, which says that the risk is about every example
        self.validated = self.scored
        self.pending, self.pending_validation = (np.zeros(shape, dtype=np.int64) for _ in range(2))
        self.loss_sum = np.zeros(shape)
        self.recent = RunningTrend.empty(shape, needs_of(strategy).window)
        self.available = np.ones(shape, dtype=bool)
        self.asked = np.zeros(shape[0], dtype=np.int64)
        self._uniforms = Uniforms(seed, CHOICES, self.trials, UNIFORMS)
        self._roles = Roles(seed, self.trials, np.arange(shape[1]), validation)
        self.fresh = np.zeros(shape, dtype=bool)

    def standing(self) -> Standing:
        """What is known now; the arrays are the engine's own, to be read only."""
        return Standing.of(
            self.groups,
            counts=self.counts,
            told=self.counts + self.held,
            pending=self.pending,
            pending_validation=self.pending_validation,
            scored=self.scored,
            relevant=self.validated,
            loss_sum=self.loss_sum,
            accuracies=self.recent.window,
            trend=self.recent.trend,
            available=self.available,
            warming_up=self.asked < self.warmup,
            population=self.population,
            batch=self.batch,
        )

    def choose(self) -> Decision:
        """The strategy's decision for every trial; a strategy that is not a `Rule` is called trial by trial."""
        standing, uniforms = self.standing(), self.uniforms()
        # built-in rules use the last axis only; a user's function is written for one campaign
        if isinstance(self.strategy, Rule):
            return self.strategy(standing, uniforms)
        single = [Decision.checked(self.strategy(standing.trial(j), uniforms[j])) for j in range(len(self.trials))]
        # without terms: a user's strategy may return other terms in every trial
        index, code = (np.array([getattr(d, name) for d in single]) for name in ("index", "code"))
        return Decision(self.groups, index, code)

    def uniforms(self) -> Floats:
        """The random numbers of every trial's next request."""
        return self._uniforms.at(self.asked)

    def roles(self, trial: Ints, group: Ints) -> Mask:
        """Which of these new rows validate: decided by the seed and by how many rows of their group came before."""
        cell = trial * len(self.groups) + group
        total = np.bincount(cell, minlength=self.counts.size)
        # roles depend on a row's place in its group, so rows
        # of one delivery are numbered within their group
        order = np.argsort(cell, kind="stable")
        within = np.empty(len(cell), dtype=np.int64)
        within[order] = np.arange(len(cell)) - (np.cumsum(total) - total)[cell[order]]
        before = (self.counts + self.held).ravel()[cell]
        return self._roles.of(trial, group, before + within)

    def record(self, trial: Ints, group: Ints, X: Features, y: Ints, validation: Mask | None = None) -> Mask:
        """Take in new labelled rows; returns which of them validate."""
        if validation is None:
            validation = self.roles(trial, group)
        if self.memory is not None:
            self.memory.add(trial, X, y, group, validation)
        self.tally(trial, group, validation)
        return validation

    def tally(self, trial: Ints, group: Ints, validation: Mask) -> None:
        """Add new rows to the counts."""
        cell = trial * len(self.groups) + group
        held = np.bincount(cell[validation], minlength=self.counts.size).reshape(self.counts.shape)
        arrived = np.bincount(cell, minlength=self.counts.size).reshape(self.counts.shape)
        self.held += held
        self.counts += arrived - held
        self.fresh |= arrived > 0

    def refit(self) -> bool:
        """Fit and score the trials that got examples since the last refit; returns whether there were any."""
        if self.memory is None or not self.fresh.any():
            return False
        self.memory.fit()
        self.report(self.memory.score())
        return True

    def report(self, scores: Scores) -> None:
        """Take in scores; each group that received examples since the last report gets one value more for its trend."""
        self.loss_sum, self.scored, self.validated = scores.loss_sum, scores.n, scores.relevant
        if self.track:
            # a group without new examples gets no point: a flat
            # line of repeats would hide that it was rising
            self.recent.push(np.where(self.fresh, scores.progress(self.risk), np.nan))
        self.fresh[:] = False
