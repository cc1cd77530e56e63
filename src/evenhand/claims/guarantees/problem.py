"""What the theorems need to know about a problem, every unknown an input with a name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.claims.bounds import Bound, RademacherBound, VCBound, as_bound
from evenhand.errors import InputError

Gap = float | Callable[[float], float]


@dataclass(frozen=True)
class Problem:
    """A problem as the theorems see it. Nothing here is estimated: what you do not know, you assume by name.

    Args:
        groups: number of groups, m.
        pi_min: the smallest share in the fair mixture π*.
        C: π(z)·|L(z,f) − L(z,f_π)| ≤ C·(excess π-risk of f), for excess risks down to `resolution`. No smooth
            problem has a C for every excess risk, so a resolution of 0 is a wish, not knowledge.
        bound: the deviation sequence e_z(N), a function of N, or a list of one per group.
        delta: the probability that the sequence fails; taken from the bound where that has one.
        xi: forced exploration, ξ.
        A: between π_min/2 (default: the bound holds earliest) and π_min (it ends up smallest).
        resolution: the smallest excess π-risk at which C is claimed.
        kappa: use the square-root form π(z)·|L(z,f) − L(z,f_π)| ≤ κ·√(excess) in place of C.
        epsilon0: the excess risk below which C (or κ) holds; None: not known.
        gap: γ(r), the least excess risk of mixtures further than r from π*, or one number that is below γ at
            the smallest radius used; None: not known.
    """

    groups: int
    pi_min: float
    C: float
    bound: Bound | Callable[..., ArrayLike] | Sequence[Bound | Callable[..., ArrayLike]]
    delta: float | None = None
    xi: float = 0.5
    A: float | None = None
    resolution: float = 0.0
    kappa: float | None = None
    epsilon0: float | None = None
    gap: Gap | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", as_bound(self.bound))
        if self.A is None:
            object.__setattr__(self, "A", self.pi_min / 2)
        if self.delta is None:
            object.__setattr__(self, "delta", getattr(self.bound, "delta", 0.05))
        _check(self)

    @property
    def deviation(self) -> Bound:
        """The deviation sequence."""
        return as_bound(self.bound)

    @property
    def a(self) -> float:
        """A, as a number."""
        return self.pi_min / 2 if self.A is None else self.A

    @property
    def failure(self) -> float:
        """δ, as a number."""
        return 0.05 if self.delta is None else self.delta

    def max_e(self, n: float) -> float:
        """max_z e_z(N) with N examples of every group."""
        return float(np.max(self.deviation(np.full(self.groups, n), self.groups)))

    def coupling(self, e: float) -> float:
        """How far π(z)·L(z, ·) can move while the π-risk is within 2e of its least."""
        if self.kappa is not None:
            return self.kappa * float(np.sqrt(2 * e))
        return self.C * max(2 * e, self.resolution)

    @cached_property
    def phases(self) -> NDArray[np.float64]:
        """A_0 … A_{m−1}: what every group's share is at least in phase i, A_i = (i·A + (m−i)·π_min)/m."""
        i = np.arange(self.groups)
        return np.asarray((i * self.a + (self.groups - i) * self.pi_min) / self.groups)

    def phase_sums(self, e: float) -> NDArray[np.float64]:
        """B_0, B_0 + B_1, …: what the phases add to the risk at deviation e; (4C/A_i + 2)·e each for resolution 0."""
        return np.asarray(np.cumsum(2 * self.coupling(e) / self.phases + 2 * e))

    @property
    def alpha(self) -> float | None:
        """α where e ~ N^−α up to logs; None where the sequence is the user's own."""
        if isinstance(self.bound, VCBound):
            return 0.5
        if isinstance(self.bound, RademacherBound) and self.bound.complexity is None:
            return min(self.bound.alpha, 0.5)
        return None

    @property
    def rate(self) -> float | None:
        """The promise falls like rounds^−rate, up to logs; None where that is not known."""
        if self.alpha is None:
            return None
        return self.alpha / 2 if self.kappa is not None else self.alpha


def _check(p: Problem) -> None:
    if p.groups < 1:
        raise InputError(f"groups must be at least 1, got {p.groups!r}")
    if not 0 < p.pi_min <= 1 / p.groups:
        raise InputError(f"pi_min must lie in (0, 1/m] = (0, {1 / p.groups:.6g}], got {p.pi_min!r}")
    if not p.pi_min / 2 <= p.a < p.pi_min:
        raise InputError(f"A must lie in [pi_min/2, pi_min) = [{p.pi_min / 2:.6g}, {p.pi_min:.6g}), got {p.A!r}")
    for name, value in (("C", p.C), ("resolution", p.resolution), ("kappa", p.kappa), ("epsilon0", p.epsilon0)):
        if value is not None and not value >= 0:
            raise InputError(f"{name} must not be negative, got {value!r}")
    for name, value in (("xi", p.xi), ("delta", p.failure)):
        if not 0 < value < 1:
            raise InputError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    if p.gap is not None and not callable(p.gap) and not p.gap >= 0:
        raise InputError(f"gap must not be negative, got {p.gap!r}")
