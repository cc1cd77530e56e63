"""ε-greedy: when it converges, and where it is stuck when it explores too much."""

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.claims import checks
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
    checks.probability("delta", delta)
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
