"""May the coupling term be dropped? And what Assumption 3 looks like where risks are known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.claims import checks
from evenhand.claims.bounds import Bound, RademacherBound, VCBound
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
