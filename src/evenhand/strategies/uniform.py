"""Uniform: the same number of examples from every group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand.arrays import Floats
from evenhand.strategies import terms as named
from evenhand.strategies.base import FEWEST, Rule, decide, pick
from evenhand.strategies.decision import Decision
from evenhand.strategies.standing import Standing


@dataclass(frozen=True)
class Uniform(Rule):
    """The group with the fewest examples, open requests counted in; ties at random."""

    name: ClassVar[str] = "uniform"
    needs_scores: ClassVar[bool] = False

    def __call__(self, standing: Standing, uniforms: Floats) -> Decision:
        """The smallest N_z."""
        found = {"count": named.count(standing)}
        index = pick(found["count"], standing.available, uniforms[..., 0])
        return decide(standing, index, np.full(index.shape, FEWEST), found)
