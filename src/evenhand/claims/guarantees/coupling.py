"""The coupling term: Assumption 3 where risks are known, whether the term may be dropped, and the promise without it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.claims import checks
from evenhand.claims.bounds import Bound, RademacherBound, VCBound
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
from evenhand.sources.synthetic import exact_risks as forms
from evenhand.sources.synthetic.model1 import SyntheticModel1


@dataclass(frozen=True)
class TwoTerms:
    """Whether the two-term score (no coupling term) is covered by the theory at this ξ.

    It is where max_z e_z(N^ξ)/N^(ξ−1) → 0; for e ~ N^−α that is ξ > 1/(1+α), never below 2/3. In the square-root form
    √e takes the place of e, and the threshold is 1/(1+α/2), never below 4/5. If C ends at a resolution, no ξ is enough.
    """

    xi: float
    alpha: float
    threshold: float
    covered: bool

    def __str__(self) -> str:
        if self.threshold == 1:
            return "the coupling term may not be dropped at any ξ: C ends at its resolution"
        if self.covered:
            return f"ξ = {self.xi:g} is above {self.threshold:.4g}: the coupling term may be dropped"
        return (
            f"ξ = {self.xi:g} is a practical setting: the theory lets the coupling term go only for ξ > "
            f"{self.threshold:.4g}"
        )


def two_terms(
    bound: Bound, xi: float = 0.5, groups: int = 2, *, square_root: bool = False, resolution: float = 0.0
) -> TwoTerms:
    """Whether a setting is covered by the theory, or only practical. A custom sequence is judged by its tail.

    `square_root` is for Assumption 3 in its square-root form, `resolution` for a C that ends there.

    >>> print(two_terms(VCBound(d=3), xi=0.7))
    ξ = 0.7 is above 0.6667: the coupling term may be dropped
    """
    checks.probability("xi", xi)
    if isinstance(bound, VCBound):
        alpha = 0.5
    elif isinstance(bound, RademacherBound) and bound.complexity is None:
        alpha = min(0.5, bound.alpha)
    else:
        # three decades far out: logarithms hardly move there, so the ratio gives the power
        tail = np.max(bound(np.array([[1e9] * groups, [1e12] * groups]), groups), axis=-1)
        # no uniform deviation falls faster than N^−½
        alpha = float(np.clip(np.log10(tail[0] / tail[1]) / 3, 0.0, 0.5)) if tail[1] > 0 else 0.5
    # e ~ N^−α at N = t^ξ against shares t^(ξ−1): αξ > 1 − ξ
    threshold = 1.0 if resolution > 0 else 1 / (1 + (alpha / 2 if square_root else alpha))
    return TwoTerms(xi, alpha, threshold, xi > threshold)


def coupling_ratio(model: SyntheticModel1, pi: ArrayLike, shift: ArrayLike) -> Floats:
    """π_z·|L(z, f_π') − L(z, f_π)| over the excess π-risk of f_π', for the log loss: the C that a shift would need.

    It grows without end as π' → π, which is why no smooth problem has a finite C.
    """
    here = np.asarray(pi, dtype=float)
    delta = model.mixture_risk(here + np.asarray(shift, dtype=float), "log") - model.mixture_risk(here, "log")
    return np.asarray(here * np.abs(delta) / (delta @ here)[..., None])


def square_root_constant(model: SyntheticModel1, pi: ArrayLike) -> float:
    """κ with π_z·|L(z, f) − L(z, f_π)| ≤ κ·√(excess π-risk of f) to leading order, for the log loss.

    κ = max_z π_z·√(2·g_zᵀH⁻¹g_z), g_z the gradient of L(z, ·) and H the Hessian of the π-risk, both at f_π.
    """
    here = np.asarray(pi, dtype=float)
    theta = np.append(*model.f_pi(here))
    m = len(here)
    gradients, _ = forms.derivatives(model.mu, np.eye(m), np.tile(theta, (m, 1)))
    _, hessian = forms.derivatives(model.mu, here[None], theta[None])
    # to second order the excess is ½dᵀHd and ΔL is g·d;
    # Cauchy–Schwarz in the norm of H gives the constant
    squares = np.einsum("zi,iz->z", gradients, np.linalg.solve(hessian[0], gradients.T))
    return float(np.max(here * np.sqrt(2 * squares)))


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
