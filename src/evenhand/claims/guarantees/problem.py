"""What the theorems need to know about a problem; every unknown is a named input."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.claims.bounds import Bound, RademacherBound, VCBound, as_bound, bound_settings
from evenhand.errors import InputError

Gap = float | Callable[[float], float]


@dataclass(frozen=True)
class Problem:
    """A problem as the theorems see it. Nothing here is estimated: what you do not know is an explicit assumption.

    Args:
        groups: number of groups, m.
        pi_min: the smallest share in the fair mixture π*.
        bound: the deviation sequence e_z(N), a function of N, or a list of one per group.
        C: π(z)·|L(z,f) − L(z,f_π)| ≤ C·(excess π-risk of f), for excess risks down to `resolution`. No smooth
            problem has a C for every excess risk, so a resolution of 0 is wishful thinking.
        resolution: the smallest excess π-risk at which C is claimed.
        kappa: the square-root form π(z)·|L(z,f) − L(z,f_π)| ≤ κ·√(excess), in place of C.
        delta: the probability that the sequence fails; taken from the bound if it has one.
        xi: forced exploration, ξ.
        A: between π_min/2 (default: the bound holds earliest) and π_min (it ends up smallest).
        epsilon0: the excess risk below which C (or κ) holds; None: not known.
        gap: γ(r), the least excess risk of mixtures further than r from π*, or one number that is below γ at
            the smallest radius used; None: not known.
        fair: the fair mixture π* itself; None: only its smallest share is known.
    """

    groups: int
    pi_min: float
    bound: Bound | Callable[..., ArrayLike] | Sequence[Bound | Callable[..., ArrayLike]]
    C: float | None = None
    resolution: float = 0.0
    kappa: float | None = None
    delta: float | None = None
    xi: float = 0.5
    A: float | None = None
    epsilon0: float | None = None
    gap: Gap | None = None
    fair: Sequence[float] | None = None

    def __post_init__(self) -> None:
        # frozen for users: a promise is about one problem; what they left out is filled in here once
        object.__setattr__(self, "bound", as_bound(self.bound))
        if self.A is None:
            # the conditions ask for budgets that grow as A nears π_min: this one is met first
            object.__setattr__(self, "A", self.pi_min / 2)
        if self.delta is None:
            # the sequence's own: a promise cannot hold more often than the deviations it rests on
            object.__setattr__(self, "delta", getattr(self.bound, "delta", 0.05))
        if self.fair is not None:
            object.__setattr__(self, "fair", tuple(float(share) for share in self.fair))
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

    @property
    def rule(self) -> str:
        """The rule that Theorem 1 is about, as text: the one whose score has exactly the terms assumed here."""
        coupling = {"kappa": self.kappa} if self.C is None else {"C": self.C, "resolution": self.resolution or None}
        return self.rule_with(coupling)

    def rule_with(self, more: dict[str, float | None]) -> str:
        """The optimistic sampler with this bound and ξ, and the settings that are not None."""
        settings = bound_settings(self.deviation) | ({"xi": self.xi} if self.xi != 0.5 else {})
        settings |= {name: value for name, value in more.items() if value is not None}
        return "optimistic:" + ",".join(f"{name}={value}" for name, value in settings.items())

    def max_e(self, n: float) -> float:
        """max_z e_z(N) with N examples of every group."""
        return float(self.max_e_at(np.array([n], dtype=float))[0])

    def max_e_at(self, n: Floats) -> Floats:
        """max_z e_z(N) at many counts."""
        return np.asarray(self.deviation(np.repeat(n[:, None], self.groups, axis=1), self.groups).max(axis=-1))

    def coupling(self, e: ArrayLike) -> Floats:
        """How far π(z)·L(z, ·) can move while the π-risk is within 2e of its minimum."""
        # the fitted classifier's π-risk is within 2e of the least: e for its own deviation, e for that of the best one
        excess = 2 * np.asarray(e, dtype=float)
        if self.kappa is not None:
            return np.asarray(self.kappa * np.sqrt(excess))
        return np.asarray((self.C or 0.0) * np.maximum(excess, self.resolution))

    def order(self, e: float, share: float) -> float:
        """m·C·e over a share, the size of the promise without its constants: m·κ·√e in the square-root form."""
        # `coupling` speaks of an excess of 2e, the orders in the paper of e
        constant = 2.0 if self.kappa is None else 2**0.5
        return self.groups * float(self.coupling(e)) / constant / share

    @cached_property
    def phases(self) -> Floats:
        """A_0 … A_m: every group's share is at least A_i before phase i, A_i = (i·A + (m−i)·π_min)/m."""
        i = np.arange(self.groups + 1)
        return np.asarray((i * self.a + (self.groups - i) * self.pi_min) / self.groups)

    def phase_sums(self, e: float) -> Floats:
        """B_0, B_0 + B_1, …: what the phases add to the risk at deviation e; (4C/A_i + 2)·e each for resolution 0."""
        return np.asarray(np.cumsum(2 * self.coupling(e) / self.phases[:-1] + 2 * e))

    @property
    def alpha(self) -> float | None:
        """α where e ~ N^−α up to logs; None for a custom sequence."""
        if isinstance(self.bound, VCBound):
            return 0.5
        if isinstance(self.bound, RademacherBound) and self.bound.complexity is None:
            return min(self.bound.alpha, 0.5)
        return None

    @property
    def rate(self) -> float | None:
        """The promise falls like rounds^−rate in the long run, up to logs; None where that is not known.

        Half of α in the square-root form; 0 with a resolution, below which nothing more is promised.
        """
        if self.alpha is None:
            return None
        if self.kappa is not None:
            return self.alpha / 2
        return 0.0 if self.resolution > 0 else self.alpha


def _check(p: Problem) -> None:
    if p.groups < 1:
        raise InputError(f"groups must be at least 1, got {p.groups!r}")
    # shares sum to 1, so the smallest cannot be above 1/m
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
    _check_coupling(p)
    if p.fair is not None:
        _check_fair(p, p.fair)


def _check_coupling(p: Problem) -> None:
    if (p.C is None) == (p.kappa is None):
        raise InputError("Assumption 3 is claimed with C or, in its square-root form, with kappa: give one of them")
    if p.resolution and p.C is None:
        raise InputError("resolution belongs to C; the square-root form holds at every excess risk")


def _check_fair(p: Problem, fair: Sequence[float]) -> None:
    if len(fair) != p.groups or abs(sum(fair) - 1) > 1e-9:
        raise InputError(f"fair needs {p.groups} shares that sum to 1, got {fair!r}")
    if abs(min(fair) - p.pi_min) > 1e-9:
        raise InputError(f"the smallest share of fair is {min(fair):.6g}, but pi_min is {p.pi_min!r}")
