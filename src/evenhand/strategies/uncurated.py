"""Uncurated: what arrives when nobody chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand.arrays import Floats
from evenhand.errors import InputError
from evenhand.strategies import terms as named
from evenhand.strategies.base import POPULATION, Rule, decide, draw, pick
from evenhand.strategies.decision import Decision
from evenhand.strategies.standing import Standing


@dataclass(frozen=True)
class Uncurated(Rule):
    """Follow the population's shares: draw a group by them, or with batches take the one furthest behind its share."""

    name: ClassVar[str] = "uncurated"
    needs_scores: ClassVar[bool] = False

    @property
    def needs_population(self) -> bool:
        """Whether the rule draws from the population's shares: always."""
        return True

    def __call__(self, standing: Standing, uniforms: Floats) -> Decision:
        """One pair at a time is drawn from the shares; batches keep to them as closely as they can."""
        if standing.population is None:
            raise InputError("Uncurated follows the population's shares: give population=...")
        if standing.batch > 1:
            found = {"behind": named.behind(standing)}
            index = pick(found["behind"], standing.available, uniforms[..., 0])
            return decide(standing, index, np.full(index.shape, POPULATION), found)
        index, chance = draw(standing.population, standing.available, uniforms[..., 2])
        return decide(standing, index, np.full(index.shape, POPULATION), None, chance)
