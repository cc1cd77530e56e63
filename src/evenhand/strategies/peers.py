"""The peers' rule, for comparison: ε-greedy over a fixed labelled pool, one stochastic gradient step a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand.arrays import Floats
from evenhand.errors import InputError
from evenhand.strategies.base import Rule
from evenhand.strategies.decision import Decision
from evenhand.strategies.epsilon_greedy import EpsilonGreedy
from evenhand.strategies.standing import Standing

__all__ = ["Peers"]


@dataclass(frozen=True)
class Peers(Rule):
    """Buys all labels first, by the population's shares, then learns from the worst group step by step.

    After Abernethy et al., *Active Sampling for Min-Max Fairness* (2022), written anew. A round finds the group with the
    largest validation loss (with probability ε a group by the population's shares), draws a training example of it
    with replacement, `batch` of them where a round has more, and takes one gradient step of logistic regression. The
    pool is the examples the other strategies meet in the same trial. For `simulate` only: it asks for nothing.

    Args:
        epsilon: the share of exploring rounds, in [0, 1].
        rate: step size.
        passes: rounds for every round the other strategies have.

    >>> str(Peers(epsilon=0.2, passes=10))
    'peers:epsilon=0.2,passes=10'
    """

    name: ClassVar[str] = "peers"
    buys_first: ClassVar[bool] = True
    epsilon: float = 0.1
    rate: float = 0.1
    passes: int = 1

    def __post_init__(self) -> None:
        # EpsilonGreedy checks epsilon, so the check is written once
        EpsilonGreedy(self.epsilon)
        if not (np.isfinite(self.rate) and self.rate > 0):
            raise InputError(f"rate must be a number above 0, not {self.rate}")
        if self.passes < 1 or self.passes != int(self.passes):
            raise InputError(f"passes must be a whole number from 1 up, not {self.passes}")

    @property
    def needs_population(self) -> bool:
        """The pool is bought by the population's shares."""
        return True

    def __call__(self, standing: Standing, uniforms: Floats) -> Decision:
        """ε-greedy, exploring by the population's shares."""
        return EpsilonGreedy(self.epsilon)(standing, uniforms)
