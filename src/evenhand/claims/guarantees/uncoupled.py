"""The form without the coupling term: what its first phase costs, and what it promises if ξ is large enough."""

import numpy as np

from evenhand.arrays import Floats
from evenhand.claims.guarantees.coupling import TwoTerms, two_terms
from evenhand.claims.guarantees.optimism import (
    budget_rounds,
    check_target,
    examples,
    from_labels,
    phase_conditions,
    phase_gap,
    phase_promise,
)
from evenhand.claims.guarantees.problem import Problem
from evenhand.claims.guarantees.promise import Condition, Promise
from evenhand.claims.search import smallest

# rounds at which the phases are evaluated, a hundred a decade up to where every budget has ended
_TIMES, _LAST = 10.0 ** np.arange(0, 70, 0.01), 1e70


def first_phase(problem: Problem, labels: int) -> float:
    """B_0' = (2 + 2C/π_min + 2C·t^(1−ξ))·max_z e_z(t^ξ) at t = π_min·n: what the first phase may add to the risk.

    The rule has no term for how far the fitted classifier is from the best one, so the bound depends on the smallest
    share that forced exploration leaves, t^(ξ−1).
    """
    # the first phase ends no earlier than this round
    t = max(1.0, problem.pi_min * budget_rounds(labels))
    e = problem.max_e(t**problem.xi)
    return float(2 * e + problem.coupling(e) * (1 / problem.pi_min + t ** (1 - problem.xi)))


def may_go(problem: Problem) -> TwoTerms:
    """Whether the coupling term may be dropped on this problem."""
    root = problem.kappa is not None
    return two_terms(problem.deviation, problem.xi, problem.groups, square_root=root, resolution=problem.resolution)


def uncoupled(problem: Problem, labels: int) -> Promise:
    """What is promised after this many labels for A_opt without the coupling term, loss + deviation alone."""
    found, note = _conditions(problem, labels), str(may_go(problem))
    return phase_promise(problem, labels, problem.rule_with({}), value, found, _sum(problem, 0.0), note)


def uncoupled_labels_for(problem: Problem, target: float) -> int | None:
    """The smallest budget, in labels, whose promise is at most the target and whose known conditions hold."""
    check_target(target)
    return from_labels(lambda n: value(problem, n) <= target, _conditions(problem, 2))


def value(problem: Problem, rounds: float) -> float:
    """Σ_i 2e + D(e)·(1/A_i + 1/A_{i+1}) at e = max_z e_z(N_A), D(e) = 2C·e: once near π*, all shares are above A."""
    return _sum(problem, problem.max_e(examples(problem, rounds)))


def _sum(problem: Problem, e: float) -> float:
    shares = problem.phases
    return float(np.sum(2 * e + problem.coupling(e) * (1 / shares[:-1] + 1 / shares[1:])))


def _conditions(problem: Problem, labels: int) -> tuple[Condition, ...]:
    worst = _worst_from(problem)

    def nearby(i: int) -> int | None:
        gap = phase_gap(problem, i)
        total = worst[: i + 1].sum(axis=0)
        return smallest(lambda n: bool(total[_cell(problem.pi_min * n)] <= gap))

    return phase_conditions(problem, labels, nearby)


def _worst_from(problem: Problem) -> Floats:
    """For every phase and time, the most that the phase may add at that time or later, (m, times).

    Between two times e is at most its value at the earlier one, 1/share at most its value at the later one.
    """
    e = problem.max_e_at(_TIMES**problem.xi)
    least_shares = 1 / problem.phases[:-1, None] + np.append(_TIMES[1:], _LAST) ** (1 - problem.xi)
    cells = 2 * e + problem.coupling(e) * least_shares
    # e falls and 1/share grows, so the sum need not be monotone: a bound
    # must hold from a time on, hence the running maximum from the end
    return np.asarray(np.maximum.accumulate(cells[:, ::-1], axis=1)[:, ::-1])


def _cell(t: float) -> int:
    """The last of the times up to t."""
    return max(0, int(np.searchsorted(_TIMES, t, side="right")) - 1)
