"""Theorem 1: what the optimistic sampler promises for a budget, and the budget for a promise."""

from collections.abc import Callable

import numpy as np

from evenhand.claims.guarantees.problem import Problem
from evenhand.claims.guarantees.promise import Condition, Promise
from evenhand.claims.search import FOREVER, smallest
from evenhand.errors import InputError


def value(problem: Problem, rounds: float) -> float:
    """Σ_i (4C/A_i + 2)·max_z e_z(N_A) with N_A = A·n·π_min/(2π_min − A); 2C·max(2e, resolution) or 2κ√(2e) for 4C·e."""
    return float(problem.phase_sums(problem.max_e(examples(problem, rounds)))[-1])


def examples(problem: Problem, rounds: float) -> float:
    """N_A: training examples every group is sure to have in the last phases."""
    return problem.a * rounds * problem.pi_min / (2 * problem.pi_min - problem.a)


def optimistic(problem: Problem, labels: int) -> Promise:
    """What Theorem 1 promises after this many labels, for A_opt with the terms assumed (`problem.rule`) only."""
    # with perfect fits only the resolution of C is left: no budget takes the bound below it
    floor = float(problem.phase_sums(0.0)[-1])
    return phase_promise(problem, labels, problem.rule, value, conditions(problem, labels), floor)


def phase_promise(
    problem: Problem,
    labels: int,
    rule: str,
    bound: Callable[[Problem, float], float],
    found: tuple[Condition, ...],
    floor: float,
    note: str = "",
) -> Promise:
    """A promise by the argument in phases, for a rule whose `bound` takes a number of rounds."""
    rounds = budget_rounds(labels)
    e = problem.max_e(examples(problem, rounds))
    return Promise(
        rule=rule,
        labels=labels,
        rounds=rounds,
        value=bound(problem, rounds),
        order=problem.order(e, problem.pi_min),
        deviation=e,
        probability=1 - problem.failure,
        conditions=found,
        # risks lie in [0, 1]: a bound of 1 or more says nothing
        speaks_from=from_labels(lambda n: bound(problem, n) < 1, found),
        rate=problem.rate,
        floor=floor,
        note=note,
    )


def labels_for(problem: Problem, target: float) -> int | None:
    """The smallest budget, in labels, whose promise is at most the target and whose known conditions hold."""
    check_target(target)
    # 2 labels, the smallest budget: only the conditions' own needs are read here, not whether they are met
    return from_labels(lambda n: value(problem, n) <= target, conditions(problem, 2))


def conditions(problem: Problem, labels: int) -> tuple[Condition, ...]:
    """The budget from which Theorem 1 holds, condition by condition."""
    return phase_conditions(problem, labels, lambda i: smallest_budget(problem, i))


def phase_conditions(p: Problem, labels: int, nearby: Callable[[int], int | None]) -> tuple[Condition, ...]:
    """The conditions: forced rounds are over, fits are close, and the mixture is near π* in every phase."""
    power = 1 / (1 - p.xi)
    # A·t ≥ t^ξ at the earliest round the last phases look back on, t = n·π_min/(2π_min − A)
    late = p.a**-power * (2 * p.pi_min - p.a) / p.pi_min
    needs: list[tuple[str, int | None, str | None]] = [
        ("forced rounds are over: n ≥ π_min^(−1/(1−ξ))", _rounds(p.pi_min**-power), None),
        ("forced rounds stay over: A·t ≥ t^ξ", _rounds(late), None),
    ]
    floor = p.epsilon0
    # (π_min·n)^ξ: what forced exploration alone has given every group by then
    close = None if floor is None else smallest(lambda n: 2 * p.max_e((p.pi_min * n) ** p.xi) <= floor)
    needs.append(("the fit is close: 2·max e ≤ ε₀", close, "epsilon0" if floor is None else None))
    for i in range(p.groups):
        need = None if p.gap is None else nearby(i)
        needs.append((f"phase {i}: the mixture is near π*", need, "gap" if p.gap is None else None))
    return tuple(condition(name, need, labels, unknown) for name, need, unknown in needs)


def smallest_budget(p: Problem, i: int) -> int | None:
    """n_i: rounds from which (c_0 + … + c_i)·max_z e_z((π_min n)^ξ) ≤ γ((i+1)(π_min − A)/m)."""
    gap = phase_gap(p, i)
    return smallest(lambda n: float(p.phase_sums(p.max_e((p.pi_min * n) ** p.xi))[i]) <= gap)


def _rounds(least: float) -> int | None:
    """A number of rounds, rounded up with room for rounding errors; None if no budget is that large."""
    # 4.000000000000001 rounds are 4: powers of shares are rarely exact
    return max(1, int(np.ceil(least * (1 - 1e-12)))) if least <= FOREVER else None


def phase_gap(p: Problem, i: int) -> float:
    """γ((i+1)(π_min − A)/m): the excess risk below which the mixture of phase i is near enough to π*."""
    gap = p.gap((i + 1) * (p.pi_min - p.a) / p.groups) if callable(p.gap) else p.gap
    if gap is None:
        raise InputError("the gap γ(r) is not known: give `gap`")
    return gap


def condition(name: str, rounds: int | None, labels: int, unknown: str | None) -> Condition:
    """A condition in labels, two a round."""
    need = None if rounds is None else 2 * rounds
    met = None if unknown else need is not None and labels >= need
    return Condition(name, need, met, unknown)


def from_labels(good: Callable[[int], bool], found: tuple[Condition, ...]) -> int | None:
    """The budget in labels from which a monotone statement about rounds and the known conditions hold."""
    known = [c.labels for c in found if c.unknown is None]
    rounds = smallest(good)
    # with a condition that never holds no budget is enough; one whose input is unknown is listed, but not counted
    if rounds is None or None in known:
        return None
    return max([2 * rounds, *(k for k in known if k is not None)])


def budget_rounds(labels: int) -> int:
    """Rounds of a budget: two labels each."""
    if labels < 2:
        raise InputError(f"a budget needs at least 2 labels, one round; got {labels!r}")
    return labels // 2


def check_target(target: float) -> None:
    """Refuse a promise that is not a positive excess risk."""
    if not target > 0:
        raise InputError(f"the promised excess risk must be positive, got {target!r}")
