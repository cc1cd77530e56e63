"""Strategies: which group next.

A strategy is a pure function from a standing (what is known per group) and uniforms (the request's own random
numbers) to a decision (which group, and why). One rule a file; `terms` has the parts scores are made of.

- `Optimistic`: A_opt, its theoretical form, and A_opt+ with the trend term.
- `EpsilonGreedy` and `Greedy`: the largest validation loss, with and without random exploration.
- `Uniform` and `Uncurated`: equal counts, and the population's shares.
- `Oracle`: a mixture that is known beforehand, as a reference.
"""

from evenhand.strategies.base import UNIFORMS, Rule, Strategy
from evenhand.strategies.epsilon_greedy import EpsilonGreedy, Greedy
from evenhand.strategies.optimistic import Optimistic
from evenhand.strategies.oracle import Oracle
from evenhand.strategies.parsing import STRATEGIES, describe_strategy, parse_strategy, strategy_text
from evenhand.strategies.uncurated import Uncurated
from evenhand.strategies.uniform import Uniform

__all__ = [
    "UNIFORMS",
    "STRATEGIES",
    "EpsilonGreedy",
    "Greedy",
    "Optimistic",
    "Oracle",
    "Rule",
    "Strategy",
    "Uncurated",
    "Uniform",
    "describe_strategy",
    "parse_strategy",
    "strategy_text",
]
