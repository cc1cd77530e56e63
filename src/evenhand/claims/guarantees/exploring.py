"""ε-greedy: when it converges and where it is stuck, and what it promises if it explores little enough."""

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.claims import checks
from evenhand.claims.guarantees.optimism import budget_rounds, check_target, condition, from_labels
from evenhand.claims.guarantees.problem import Problem
from evenhand.claims.guarantees.promise import Condition, Promise
from evenhand.claims.search import smallest
from evenhand.errors import InputError
from evenhand.risks import Risk
from evenhand.sources.synthetic.model1 import SyntheticModel1


def _spread(n: int, groups: int, delta: float) -> float:
    """√(log(mπ²n²/(3δ))/(2n)): how far exploring rounds' shares can lie from ε·p, for all n at once."""
    # Hoeffding at δ_n = 6δ/(π²n²) for two sides and m groups: the δ_n sum to δ, so it holds for all n at once
    return sqrt(log(groups * pi**2 * float(n) ** 2 / (3 * delta)) / (2 * n))


def first_within(width: float, groups: int, delta: float) -> int | None:
    """The first round from which the spread is at most `width`; from two rounds on it only falls."""
    return smallest(lambda n: _spread(n, groups, delta) <= width, start=2)


@dataclass(frozen=True)
class Exploration:
    """Whether ε-greedy can reach π*: it does if ε·p(z) < π*(z) for every group, and is stuck if some ε·p(z) is above.

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

    def floor(self, model: SyntheticModel1, risk: str | Risk = "error") -> float:
        """The excess risk that it stays above from `tau0` on, on a model with known risks; 0 if it is not stuck."""
        return 0.0 if self.stuck is None or self.share is None else model.least_excess(self.stuck, self.share, risk)

    def last_floor(self, model: SyntheticModel1, risk: str | Risk = "error") -> float:
        """The excess risk that it levels off at, in the long run."""
        if self.stuck is None or self.last_share is None:
            return 0.0
        return model.least_excess(self.stuck, self.last_share, risk)


def exploration(
    epsilon: float, pi_star: ArrayLike, *, delta: float = 0.05, shares: ArrayLike | None = None
) -> Exploration:
    """Whether exploring with probability ε over-explores; `shares` is the exploration distribution, uniform if None.

    >>> exploration(0.5, [0.2, 0.8]).share
    0.225
    """
    checks.level(delta)
    check_epsilon(epsilon)
    fair = np.asarray(pi_star, dtype=float)
    p = np.full(len(fair), 1 / len(fair)) if shares is None else checked_shares(shares, len(fair))
    over = epsilon * p - fair
    z = int(np.argmax(over))
    # a group that is never explored cannot be over-explored
    largest = float(np.min(fair[p > 0] / p[p > 0]))
    if not over[z] > 0:
        # at exactly ε·p = π* neither theorem speaks; without exploring it is the greedy rule, which may get stuck
        return Exploration(epsilon, largest, bool(over[z] < 0 < epsilon), None, None, None)
    # half of the excess exploration may be lost to chance: the share is then still above the middle of π* and ε·p
    tau0 = first_within(float(over[z]) / 2, len(fair), delta)
    floor = epsilon * float(p[z])
    return Exploration(epsilon, largest, False, z, (float(fair[z]) + floor) / 2, tau0, floor)


def checked_shares(shares: ArrayLike, groups: int) -> Floats:
    """Exploration shares as an array; refuses the wrong number, negative ones, or a sum that is not 1."""
    p = np.asarray(shares, dtype=float)
    if p.shape != (groups,):
        raise InputError(f"shares need one number per group, {groups}, got {p.size}")
    if not (p >= 0).all() or abs(p.sum() - 1) > 1e-9:
        raise InputError(f"shares must be from 0 up and sum to 1, got {p.tolist()}")
    return p


def check_epsilon(epsilon: float) -> None:
    """Refuse an ε that is not a probability."""
    if not 0 <= epsilon <= 1:
        raise InputError(f"epsilon must lie in [0, 1], got {epsilon!r}")


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
