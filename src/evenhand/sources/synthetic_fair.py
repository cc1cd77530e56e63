"""The fair mixture of a model whose group risks are known: the π with the smallest worst-group risk."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Risk = Callable[[Floats], Floats]


def fair_mixture(means: Floats, risk: Risk) -> Floats:
    """π* for means (m, 2, d) and risk: π (…, m) → L(z, f_π) (…, m)."""
    if len(means) == 1:
        return np.ones(1)
    if len(means) == 2:
        exact = orthogonal_mixture(means)
        return two_groups(risk) if exact is None else exact
    return many_groups(risk, len(means))


def orthogonal_mixture(means: Floats) -> Floats | None:
    """π*(u) = r_v²/(r_u² + r_v²), exact for two groups on orthogonal axes through the origin; None for others."""
    (u0, u1), (v0, v1) = means
    if np.any(u0 != -u1) or np.any(v0 != -v1) or u1 @ v1 != 0 or not u1.any() or not v1.any():
        return None
    r2 = np.array([u1 @ u1, v1 @ v1])
    return np.asarray(r2[::-1] / r2.sum())


def two_groups(risk: Risk) -> Floats:
    """Where the two risks cross; a corner where one group stays the worse one."""
    from scipy.optimize import brentq

    def gap(share: float) -> float:
        first, second = risk(np.array([share, 1 - share]))
        return float(first - second)

    if gap(0.0) <= 0:
        return np.array([0.0, 1.0])
    if gap(1.0) >= 0:
        return np.array([1.0, 0.0])
    share = float(brentq(gap, 0.0, 1.0, xtol=1e-14, rtol=1e-14))
    return np.array([share, 1 - share])


def many_groups(risk: Risk, m: int) -> Floats:
    """The best of several descents of max_z L(z, f_π) on the simplex: min t subject to L(z, f_π) ≤ t."""
    from scipy.optimize import minimize

    constraints: Any = [
        {"type": "eq", "fun": lambda x: x[:m].sum() - 1},
        {"type": "ineq", "fun": lambda x: x[-1] - risk(_on_simplex(x[:m]))},
    ]
    starts = [np.full(m, 1 / m), *(0.5 * np.eye(m) + 0.5 / m)]
    best: Floats = starts[0]
    value = np.inf
    for start in starts:
        found = minimize(
            lambda x: x[-1],
            np.append(start, risk(start).max()),
            jac=lambda x: np.eye(m + 1)[-1],
            bounds=[(0.0, 1.0)] * m + [(None, None)],
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 200},
        )
        pi = _on_simplex(np.asarray(found.x[:m], dtype=float))
        worst = float(risk(pi).max())
        if worst < value:
            best, value = pi, worst
    return best


def _on_simplex(x: Floats) -> Floats:
    x = np.maximum(x, 0.0)
    return np.asarray(x / x.sum())
