"""ε-greedy: the worst group by validation loss, with a share of random exploration; Greedy is ε = 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand.arrays import Floats
from evenhand.errors import InputError
from evenhand.notation import real
from evenhand.strategies import terms as named
from evenhand.strategies.base import EXPLORE, SCORE, WARM_UP, Rule, choose_start, decide, draw, either, pick
from evenhand.strategies.decision import Decision
from evenhand.strategies.standing import Standing

__all__ = ["EpsilonGreedy", "Greedy"]


@dataclass(frozen=True)
class EpsilonGreedy(Rule):
    """With probability ε a group at random, else the group with the largest validation loss.

    Args:
        epsilon: the share of exploring rounds, in [0, 1].
        explore: explore by the `"population"` shares or `"uniform"`ly.
    """

    name: ClassVar[str] = "epsilon-greedy"
    epsilon: float = 0.1
    explore: str = "population"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= real("epsilon", self.epsilon) <= 1:
            raise InputError(f"epsilon must lie between 0 and 1, not {self.epsilon}")
        if self.explore not in ("population", "uniform"):
            raise InputError(f"explore must be 'population' or 'uniform', not {self.explore!r}")

    @property
    def needs_population(self) -> bool:
        """Whether exploring rounds draw from the population's shares."""
        return self.explore == "population" and self.epsilon > 0

    def __call__(self, standing: Standing, uniforms: Floats) -> Decision:
        """Warm-up first; then a random group with probability ε, else the group with the largest loss."""
        found = {"loss": named.loss(standing)}
        if self.needs_population and standing.population is not None:
            share = standing.population
        else:
            share = np.full(len(standing.groups), 1.0 / len(standing.groups))
        # drawn for every trial, though few explore: with
        # arrays that is cheaper than choosing whom to draw for
        explored, chance = draw(share, standing.available, uniforms[..., 2])
        exploring = uniforms[..., 1] < self.epsilon
        index = either(exploring, explored, pick(found["loss"], standing.available, uniforms[..., 0]))
        index = either(standing.starting, choose_start(standing, uniforms[..., 0]), index)
        code = either(standing.starting, WARM_UP, either(exploring, EXPLORE, SCORE))
        return decide(standing, index, code, found, chance)


@dataclass(frozen=True)
class Greedy(Rule):
    """Always the group with the largest validation loss: what happens without exploration."""

    name: ClassVar[str] = "greedy"

    def __call__(self, standing: Standing, uniforms: Floats) -> Decision:
        """ε-greedy with ε = 0."""
        return EpsilonGreedy(epsilon=0.0, explore="uniform")(standing, uniforms)
