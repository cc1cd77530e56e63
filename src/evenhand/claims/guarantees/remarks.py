"""The paper's remarks as numbers: orders and what they hide, A_opt compared with ε-greedy, the greedy rule's bound."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from evenhand.claims import checks
from evenhand.claims.bounds import VCBound
from evenhand.claims.guarantees.exploring import Exploring, exploring
from evenhand.claims.guarantees.optimism import budget_rounds, check_target, conditions, examples, from_labels, value
from evenhand.claims.guarantees.problem import Problem
from evenhand.claims.guarantees.promise import Condition, count
from evenhand.claims.search import BEYOND
from evenhand.errors import InputError
from evenhand.notation import JsonObject


@dataclass(frozen=True)
class Order:
    """Theorem 1 instantiated for a class of classifiers, as in Remark 1: O(…) as a number.

    Attributes:
        form: the expression inside O(…).
        pi_power, n_power: the powers of 1/π_min and of 1/n in it.
        value: its value at this budget.
        hidden: how many times larger the promise is: the constants and logarithms that O(…) leaves out.
    """

    form: str
    pi_power: float
    n_power: float
    value: float
    hidden: float


def order_of(problem: Problem, labels: int) -> Order | None:
    """m·C·π_min^−1.5·√(d/n) for a VC class, m·C·π_min^−(1+α)·n^−α for Rademacher complexity N^−α; None for others.

    α counts up to ½: a smaller complexity leaves the deviation's own n^−½. In the square-root form both powers that
    come from e are halved.
    """
    if problem.alpha is None:
        return None
    rounds = budget_rounds(labels)
    alpha = problem.alpha if problem.kappa is None else problem.alpha / 2
    # the two kinds of bound differ in nothing else; the resolution is left out, as the remark has none
    vc = isinstance(problem.bound, VCBound)
    size = problem.bound.d if isinstance(problem.bound, VCBound) else 1
    constant, symbol = (problem.C or 0.0, "C") if problem.kappa is None else (problem.kappa, "κ")
    found = problem.groups * constant * problem.pi_min ** -(1 + alpha) * (size / rounds) ** alpha
    tail = f"({'d' if vc else '1'}/n)^{alpha:g}"
    promised = value(problem, rounds)
    return Order(
        form=f"m·{symbol}·π_min^−{1 + alpha:g}·{tail}",
        pi_power=1 + alpha,
        n_power=alpha,
        value=found,
        hidden=promised / found if found else float("inf"),
    )


@dataclass(frozen=True)
class Side:
    """One rule in a comparison.

    Attributes:
        value: its bound at the budget, whether it holds there or not.
        examples: the training examples of every group that the bound relies on.
        holds_from: labels from which its known conditions hold; None: not below 10^60.
        labels: labels at which it promises the target; None: it needs more than 10^60.
        unknown: inputs that were not given, so that their conditions are not counted.
    """

    rule: str
    value: float
    examples: float
    holds_from: int | None
    labels: int | None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """A_opt compared with ε-greedy: which bound is smaller, and which promise takes fewer labels.

    Attributes:
        budget, target: the values are compared at this budget, the numbers of labels at this target.
        optimistic, exploring: the two sides.
        epsilon, beta: the settings of ε-greedy; unless given, those that need the fewest labels.
    """

    budget: int
    target: float
    optimistic: Side
    exploring: Side
    epsilon: float
    beta: float

    @property
    def tighter(self) -> str:
        """The rule with the smaller bound at the budget, whether it holds there or not."""
        return min(self.optimistic, self.exploring, key=lambda side: side.value).rule

    @property
    def cheaper(self) -> str | None:
        """The rule that is promised the target with fewer labels; None if neither is."""
        known = [side for side in (self.optimistic, self.exploring) if side.labels is not None]
        return min(known, key=lambda side: side.labels or 0).rule if known else None

    def as_dict(self) -> JsonObject:
        """The comparison as plain values."""
        return {**asdict(self), "tighter": self.tighter, "cheaper": self.cheaper}

    def __str__(self) -> str:
        a, b = self.optimistic, self.exploring
        needs = [BEYOND if s.labels is None else f"{count(s.labels)} labels" for s in (a, b)]
        why = "A_opt's bound waits for the mixture to be near π*, which ε-greedy's does not"
        if "gap" in a.unknown:
            why = "not counting that A_opt's bound waits for the mixture to be near π*, since `gap` is not known"
        return (
            f"at {count(self.budget)} labels the bound is {a.value:.4g} for {a.rule} and {b.value:.4g} for {b.rule}; to be "
            f"promised {self.target:g} it takes {needs[0]} and {needs[1]}: {why}"
        )


def compare(
    problem: Problem, labels: int, target: float = 0.1, epsilon: float | None = None, beta: float | None = None
) -> Comparison:
    """Compare A_opt with its coupling term and ε-greedy with uniform exploration, on one problem."""
    check_target(target)
    rounds = budget_rounds(labels)
    other = _best(problem, rounds, target, beta) if epsilon is None else exploring(problem, epsilon, beta)

    def side(
        rule: str, bound: Callable[[float], float], found: Callable[[float], float], needed: tuple[Condition, ...]
    ) -> Side:
        return Side(
            rule=rule,
            value=bound(rounds),
            examples=found(rounds),
            holds_from=from_labels(lambda n: True, needed),
            labels=from_labels(lambda n: bound(n) <= target, needed),
            unknown=tuple(sorted({c.unknown for c in needed if c.unknown is not None})),
        )

    return Comparison(
        budget=labels,
        target=target,
        optimistic=side(
            problem.rule,
            lambda n: value(problem, n),
            lambda n: examples(problem, n),
            conditions(problem, labels),
        ),
        exploring=side(other.rule, other.value, other.examples, other.conditions(labels)),
        epsilon=other.q * problem.groups,
        beta=other.beta,
    )


def _best(problem: Problem, rounds: int, target: float, beta: float | None) -> Exploring:
    """ε, and β unless given, that need the fewest labels to the target, searched together.

    If no budget reaches the target, those with the smallest bound at this budget.
    """
    top = min(1.0, problem.groups * problem.pi_min)

    def at(part: float, power: float) -> Exploring:
        found = exploring(problem, part * top, beta)
        if beta is None:
            found = exploring(problem, part * top, 10**power * min(1.0, found.spare / found.q))
        return found

    def cost(point: tuple[float, float]) -> tuple[float, float]:
        found = at(*point)
        return _labels(found, target) or np.inf, found.value(rounds)

    # the ends of either range make the bound infinite; the best β may be small: ε in tenths, β in half powers of ten,
    # then the nine points around the best, nearer and nearer
    grid = (np.arange(1, 10) / 10).tolist(), (-np.arange(1, 9) / 2).tolist()
    best = min(product(grid[0], grid[1] if beta is None else [0.0]), key=cost)
    for step in (0.05, 0.025, 0.0125, 0.00625):
        parts = [best[0] + move for move in (-step, 0.0, step)]
        powers = [best[1] + 5 * move for move in (-step, 0.0, step)]
        best = min(product(parts, powers if beta is None else [0.0]), key=cost)
    return at(*best)


def _labels(found: Exploring, target: float) -> int | None:
    return from_labels(lambda n: found.value(n) <= target, found.conditions(2))


def abernethy(counts: ArrayLike, d: int, delta: float = 0.05) -> float:
    """max_z √(2d·log(2/δ)/N_z): the order of Abernethy et al.'s bound for the greedy rule with two groups.

    At every moment the excess risk is of this order or the rule draws from the group with the larger loss. Nothing keeps
    N_z from staying where it started, so before a run the bound is √(2d·log(2/δ)), which says nothing.

    >>> round(abernethy([400, 600], d=3), 4), round(abernethy([1, 999], d=3), 2)
    (0.2352, 4.7)
    """
    checks.level(delta)
    n = np.asarray(counts, dtype=float)
    if n.size == 0 or not (n >= 1).all():
        raise InputError(f"counts must be at least 1 example of every group, got {counts!r}")
    if d < 1:
        raise InputError(f"d, the VC dimension, must be at least 1, got {d!r}")
    return float(np.sqrt(2 * d * np.log(2 / delta) / n.min()))
