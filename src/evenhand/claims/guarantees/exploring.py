"""ε-greedy: when it converges, what it promises, and where it is stuck when it explores too much."""

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike

from evenhand.claims import checks
from evenhand.claims.guarantees.optimism import budget_rounds, check_target, condition, from_labels
from evenhand.claims.guarantees.problem import Problem
from evenhand.claims.guarantees.promise import Condition, Promise
from evenhand.claims.search import smallest
from evenhand.errors import InputError
from evenhand.sources.synthetic.model1 import Loss, SyntheticModel1


def _spread(n: int, groups: int, delta: float) -> float:
    """√(log(mπ²n²/(3δ))/(2n)): how far exploring rounds' shares can lie from ε·p, for all n at once."""
    return sqrt(log(groups * pi**2 * float(n) ** 2 / (3 * delta)) / (2 * n))


def _first_within(width: float, groups: int, delta: float) -> int | None:
    """The first round from which the spread is at most this; from two rounds on it only falls."""
    return smallest(lambda n: _spread(n, groups, delta) <= width, start=2)


@dataclass(frozen=True)
class Exploration:
    """Whether ε-greedy can reach π*: it does if ε·p(z) < π*(z) everywhere, and is stuck if one is above.

    Attributes:
        largest: the ε above which it is stuck, m·π_min for uniform exploration.
        stuck: the position of the group it over-explores most; None if there is none.
        share: the share that group is stuck above, (π*(z) + ε·p(z))/2, for all rounds from `tau0`.
        tau0: rounds from which that is certain with probability 1 − δ.
        last_share: ε·p(z), the share it is stuck above in the long run.
    """

    epsilon: float
    largest: float
    converges: bool
    stuck: int | None
    share: float | None
    tau0: int | None
    last_share: float | None = None

    def floor(self, model: SyntheticModel1, loss: Loss = "zero_one") -> float:
        """The excess risk it is above from `tau0` on, on a model with known risks; 0 where it is not stuck."""
        return 0.0 if self.stuck is None or self.share is None else model.least_excess(self.stuck, self.share, loss)

    def last_floor(self, model: SyntheticModel1, loss: Loss = "zero_one") -> float:
        """The excess risk it flattens out at, in the long run."""
        if self.stuck is None or self.last_share is None:
            return 0.0
        return model.least_excess(self.stuck, self.last_share, loss)


def exploration(
    epsilon: float, pi_star: ArrayLike, *, delta: float = 0.05, shares: ArrayLike | None = None
) -> Exploration:
    """Whether exploring with probability ε over-explores; `shares` is the exploration distribution, uniform if None.

    >>> exploration(0.5, [0.2, 0.8]).share
    0.225
    """
    checks.probability("delta", delta)
    _check_epsilon(epsilon)
    fair = np.asarray(pi_star, dtype=float)
    p = np.full(len(fair), 1 / len(fair)) if shares is None else np.asarray(shares, dtype=float)
    if p.shape != fair.shape:
        raise InputError(f"shares need one number per group, {len(fair)}, got {len(p)}")
    over = epsilon * p - fair
    z = int(np.argmax(over))
    largest = float(np.min(fair[p > 0] / p[p > 0]))
    if not over[z] > 0:
        return Exploration(epsilon, largest, bool(over[z] < 0 < epsilon), None, None, None)
    tau0 = _first_within(float(over[z]) / 2, len(fair), delta)
    floor = epsilon * float(p[z])
    return Exploration(epsilon, largest, False, z, (float(fair[z]) + floor) / 2, tau0, floor)


def largest_beta(problem: Problem, epsilon: float) -> float:
    """min(1, mπ_min/ε − 1): β must stay below."""
    return min(1.0, problem.groups * problem.pi_min / epsilon - 1)


def value(problem: Problem, epsilon: float, rounds: float, beta: float) -> float:
    """m·4(1 + C/(q(1−β)))·max_z e_z(N_q), q = ε/m, N_q = q·n·(π_min − q(1+β))(1−β)."""
    q = epsilon / problem.groups
    e = problem.max_e(q * rounds * (problem.pi_min - q * (1 + beta)) * (1 - beta))
    return problem.groups * (4 * e + 2 * problem.coupling(e) / (q * (1 - beta)))


def epsilon_greedy(problem: Problem, epsilon: float, labels: int, beta: float | None = None) -> Promise:
    """What Theorem 2 promises for ε-greedy with uniform exploration, with probability 1 − 2δ."""
    beta = _checked(problem, epsilon, beta)
    rounds, q = budget_rounds(labels), epsilon / problem.groups
    found = _conditions(problem, epsilon, labels, beta)
    e = problem.max_e(q * rounds * (problem.pi_min - q * (1 + beta)) * (1 - beta))
    return Promise(
        rule=f"epsilon-greedy:epsilon={epsilon:g}",
        labels=labels,
        rounds=rounds,
        value=value(problem, epsilon, rounds, beta),
        order=problem.groups * problem.C / q * e,
        deviation=e,
        probability=max(0.0, 1 - 2 * problem.failure),
        conditions=found,
        speaks_from=from_labels(lambda n: value(problem, epsilon, n, beta) < 1, found),
        rate=problem.rate,
    )


def epsilon_greedy_labels_for(problem: Problem, epsilon: float, target: float, beta: float | None = None) -> int | None:
    """The smallest budget, in labels, whose promise is at most the target and whose known conditions hold."""
    check_target(target)
    beta = _checked(problem, epsilon, beta)
    return from_labels(lambda n: value(problem, epsilon, n, beta) <= target, _conditions(problem, epsilon, 2, beta))


def _conditions(problem: Problem, epsilon: float, labels: int, beta: float) -> tuple[Condition, ...]:
    q = epsilon / problem.groups
    first = _first_within(beta * q, problem.groups, problem.failure)
    need = None if first is None else int(np.ceil(first / (problem.pi_min - q * (1 + beta))))
    close = problem.epsilon0
    fit = None if close is None else _fit_close(problem, q, beta, close)
    return (
        condition("exploration has settled: n ≥ ñ₀/(π_min − q(1+β))", need, labels, None),
        condition("the fit is close: 2·max e ≤ ε₀", fit, labels, "epsilon0" if close is None else None),
    )


def _fit_close(problem: Problem, q: float, beta: float, close: float) -> int | None:
    share = q * (problem.pi_min - q * (1 + beta)) * (1 - beta)
    return smallest(lambda n: 2 * problem.max_e(share * n) <= close)


def _checked(problem: Problem, epsilon: float, beta: float | None) -> float:
    """β, by default half of what it may be."""
    _check_epsilon(epsilon)
    top = problem.groups * problem.pi_min
    if not 0 < epsilon < top * (1 - 1e-12):
        raise InputError(
            f"the promise needs 0 < epsilon < m·pi_min = {top:.6g}, got {epsilon!r}: "
            + (
                "without exploring nothing is promised"
                if epsilon == 0
                else "above it the rule is stuck, see exploration"
            )
        )
    limit = largest_beta(problem, epsilon)
    beta = limit / 2 if beta is None else beta
    if not 0 < beta < limit:
        raise InputError(f"beta must lie in (0, min(1, m·pi_min/epsilon − 1)) = (0, {limit:.6g}), got {beta!r}")
    return beta


def _check_epsilon(epsilon: float) -> None:
    if not 0 <= epsilon <= 1:
        raise InputError(f"epsilon must lie in [0, 1], got {epsilon!r}")
