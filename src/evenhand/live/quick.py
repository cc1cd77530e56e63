"""A_opt's choice for one campaign on plain numbers: to the last bit what the rule says, without arrays' overhead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import compress
from operator import add, truediv
from typing import Any

import numpy as np

from evenhand.decision import KINDS, Decision
from evenhand.strategies import Optimistic

__all__ = ["QuickDecision", "as_quick", "choose"]

_NEAR = 1e-9


def as_quick(rule: Any) -> Optimistic | None:
    """The rule, if `choose` knows it: A_opt and A_opt+ as the paper's experiments have them."""
    return rule if type(rule) is Optimistic and rule.bound is None and not rule.terms else None


class QuickDecision(Decision):
    """A decision made as a record; its arrays are made when wanted."""

    record: dict[str, Any]

    def __init__(self, groups: tuple[str, ...], record: dict[str, Any]) -> None:
        self.__dict__.update(groups=groups, record=record, probability=None)

    @property
    def group(self) -> str:
        """The chosen group."""
        return str(self.record["group"])

    @property
    def kind(self) -> str:
        """Why it was chosen."""
        return str(self.record["kind"])

    @cached_property
    def index(self) -> Any:
        """The chosen group's place."""
        return np.array(self.groups.index(self.record["group"]))

    @cached_property
    def code(self) -> Any:
        """Why, as a position in `KINDS`."""
        return np.array(KINDS.index(self.record["kind"]))

    @cached_property
    def terms(self) -> Any:
        """The parts of the score."""
        return Decision.from_dict(self.groups, self.record).terms

    def as_dict(self) -> dict[str, Any]:
        """The decision as plain JSON values."""
        return self.record


def choose(
    rule: Optimistic,
    groups: tuple[str, ...],
    *,
    examples: Sequence[int],
    validated: Sequence[int],
    loss_sum: Sequence[float],
    trend: Sequence[float],
    available: Sequence[bool],
    starting: bool,
    coin: float,
) -> tuple[int, QuickDecision]:
    """The chosen group's place and the decision; `examples` and `validated` have open requests counted in."""
    all_offered = False not in available
    few = min(examples if all_offered else compress(examples, available))
    behind = starting or _lags(few, sum(examples), rule.xi)
    terms = {} if starting else _terms(rule, examples, validated, loss_sum, trend)
    score = [float(-n) for n in examples] if behind else reduce(_plus, terms.values())
    kind = "start" if starting else "forced" if behind else "score"
    if starting:
        terms["count"] = score
    if not all_offered:
        score = [value if can else -math.inf for value, can in zip(score, available, strict=True)]
    best = max(score)
    z, ties = score.index(best), score.count(best)
    for _ in range(int(coin * ties)):
        z = score.index(best, z + 1)
    named = {name: dict(zip(groups, values, strict=True)) for name, values in terms.items()}
    return z, QuickDecision(groups, {"group": groups[z], "kind": kind, "terms": named, "probability": None})


def _terms(
    rule: Optimistic,
    examples: Sequence[int],
    validated: Sequence[int],
    loss_sum: Sequence[float],
    trend: Sequence[float],
) -> dict[str, list[float]]:
    c0 = rule.c0
    found = {
        "loss": list(map(truediv, loss_sum, _divisors(validated))),
        "confidence": [c0 / root for root in map(math.sqrt, _divisors(examples))],
    }
    if rule.c1 > 0:
        found["trend"] = [rule.c1 * t for t in trend]
    return found


def _divisors(numbers: Sequence[int]) -> Sequence[int]:
    """The numbers, with 1 for 0."""
    return [n or 1 for n in numbers] if 0 in numbers else numbers


def _plus(one: list[float], other: list[float]) -> list[float]:
    return list(map(add, one, other))


def _lags(fewest: int, total: int, xi: float) -> bool:
    """Whether the smallest group has less than its share of all examples to the power ξ."""
    enough = total**xi
    if abs(fewest - enough) > _NEAR * enough:
        return bool(fewest < enough)
    return bool((fewest < np.array([total]) ** xi)[0])  # so near that only the rule's own numbers can tell
