"""Uncurated: what arrives when nobody chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand.decision import Decision
from evenhand.standing import Standing
from evenhand.strategies.base import POPULATION, Numbers, Rule, decide, draw

__all__ = ["Uncurated"]


@dataclass(frozen=True)
class Uncurated(Rule):
    """A group drawn from the population's shares at each request."""

    name: ClassVar[str] = "uncurated"
    needs_scores: ClassVar[bool] = False

    @property
    def needs_population(self) -> bool:
        """It draws from nothing else."""
        return True

    def __call__(self, standing: Standing, coins: Numbers) -> Decision:
        """A draw from the shares, among the groups still offered."""
        if standing.population is None:
            raise ValueError("Uncurated draws from the population's shares: give population=...")
        index, chance = draw(standing.population, standing.available, coins[..., 2])
        return decide(standing, index, np.full(index.shape, POPULATION), None, chance)
