"""What ε-greedy promises if it explores little enough, uniformly or by the population's shares."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.claims.guarantees.optimism import budget_rounds, check_target, condition, from_labels
from evenhand.claims.guarantees.problem import Problem
from evenhand.claims.guarantees.promise import Condition, Promise
from evenhand.claims.guarantees.stuck import check_epsilon, checked_shares, first_within
from evenhand.claims.search import smallest
from evenhand.errors import InputError

NOTE = (
    "the rate is proven, the constant is the paper's: its proof leaves out that exploration may still draw the group "
    "of the last greedy choice"
)


@dataclass(frozen=True)
class Exploring:
    """ε-greedy on a problem: exploring rounds alone give each group a share of ε·p(z).

    Attributes:
        rule: the sampler as text; population shares are given to the campaign or the source.
        q: the least of ε·p(z).
        spare: the least of π*(z) − ε·p(z), what greedy rounds still have to add.
        beta: slack for chance, in (0, min(1, spare/q)).
    """

    problem: Problem
    rule: str
    q: float
    spare: float
    beta: float

    @property
    def share(self) -> float:
        """The smallest share of any group once exploration has settled, q(1−β)."""
        return self.q * (1 - self.beta)

    @property
    def late(self) -> float:
        """The last greedy choice of an over-represented group comes no earlier than this fraction of the rounds."""
        return self.spare - self.beta * self.q

    def examples(self, rounds: float) -> float:
        """N_q = n·q(1−β)·(spare − βq): training examples of every group at that moment."""
        return rounds * self.share * self.late

    def value(self, rounds: float) -> float:
        """m·4(1 + C/(q(1−β)))·max_z e_z(N_q); 2C·max(2e, resolution) or 2κ√(2e) for 4C·e."""
        return self._value(self.problem.max_e(self.examples(rounds)))

    def _value(self, e: float) -> float:
        # coupling(e) is C·2e, so this is 4(1 + C/share)·e for each of the m groups
        return self.problem.groups * (4 * e + 2 * float(self.problem.coupling(e)) / self.share)

    @property
    def floor(self) -> float:
        """The limit that the value never falls below."""
        return self._value(0.0)

    def conditions(self, labels: int) -> tuple[Condition, ...]:
        """The budget from which the promise holds, condition by condition."""
        p = self.problem
        first = first_within(self.beta * self.q, p.groups, p.failure)
        need = None if first is None else int(np.ceil(first / self.late))
        close = p.epsilon0
        fit = None if close is None else smallest(lambda n: 2 * p.max_e(self.examples(n)) <= close)
        return (
            condition("exploration has settled: n ≥ ñ₀/(π_min − q(1+β))", need, labels, None),
            condition("the fit is close: 2·max e ≤ ε₀", fit, labels, "epsilon0" if close is None else None),
        )


def exploring(
    problem: Problem, epsilon: float, beta: float | None = None, shares: ArrayLike | None = None
) -> Exploring:
    """ε-greedy with uniform exploration, or by these population shares p.

    With p it uses the whole fair mixture, `Problem(fair=…)`; if only π_min is known, π_min − ε·max p is used in place
    of min π* − ε·p.
    """
    check_epsilon(epsilon)
    m = problem.groups
    p = np.full(m, 1 / m) if shares is None else checked_shares(shares, m)
    # π_min for every group where nothing else is known: π_min − ε·p(z) is then smallest at the largest p
    least = problem.pi_min if problem.fair is None else np.array(problem.fair)
    q, spare = epsilon * float(p.min()), float(np.min(least - epsilon * p))
    # at exactly 0 to spare rounding decides, and the bound is infinite anyway
    if not (q > 0 and spare > 1e-12):
        raise InputError(_refusal(problem, epsilon, p, q))
    limit = min(1.0, spare / q)
    # either end makes the bound infinite: β → 0 takes for ever to settle, β → limit leaves no share
    beta = limit / 2 if beta is None else beta
    if not 0 < beta < limit:
        raise InputError(f"beta must lie in (0, min(1, m·pi_min/epsilon − 1)) = (0, {limit:.6g}), got {beta!r}")
    rule = f"epsilon-greedy:epsilon={epsilon:g}" + (",explore=uniform" if shares is None else "")
    return Exploring(problem, rule, q, spare, beta)


def epsilon_greedy(
    problem: Problem, epsilon: float, labels: int, beta: float | None = None, *, shares: ArrayLike | None = None
) -> Promise:
    """What Theorem 2 promises for ε-greedy with probability 1 − 2δ: uniform exploration, or by population `shares`."""
    found = exploring(problem, epsilon, beta, shares)
    rounds = budget_rounds(labels)
    e = problem.max_e(found.examples(rounds))
    needed = found.conditions(labels)
    return Promise(
        rule=found.rule,
        labels=labels,
        rounds=rounds,
        value=found.value(rounds),
        order=problem.order(e, found.q),
        deviation=e,
        # δ for the deviations and δ for the shares of exploring rounds
        probability=max(0.0, 1 - 2 * problem.failure),
        conditions=needed,
        speaks_from=from_labels(lambda n: found.value(n) < 1, needed),
        rate=problem.rate,
        floor=found.floor,
        note=NOTE,
    )


def epsilon_greedy_labels_for(
    problem: Problem, epsilon: float, target: float, beta: float | None = None, *, shares: ArrayLike | None = None
) -> int | None:
    """The smallest budget, in labels, whose promise is at most the target and whose known conditions hold."""
    check_target(target)
    found = exploring(problem, epsilon, beta, shares)
    return from_labels(lambda n: found.value(n) <= target, found.conditions(2))


def largest_beta(problem: Problem, epsilon: float) -> float:
    """min(1, mπ_min/ε − 1): with uniform exploration β must stay below this."""
    return min(1.0, problem.groups * problem.pi_min / epsilon - 1)


def _refusal(problem: Problem, epsilon: float, p: np.ndarray, q: float) -> str:
    if q == 0:
        return (
            f"the promise needs every group explored, 0 < epsilon·p(z); got epsilon {epsilon!r}, p {p.tolist()}: "
            "without exploring nothing is promised"
        )
    known = "" if problem.fair is not None else " (give `fair`, the whole of π*, where you know it)"
    top = problem.pi_min / float(p.max())
    return (
        f"the promise needs epsilon·p(z) < π*(z) for every group, 0 < epsilon < {top:.6g} at least{known}, got "
        f"{epsilon!r}: above it the rule is stuck, see exploration"
    )
