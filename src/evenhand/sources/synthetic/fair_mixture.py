"""The fair mixture of a model whose group risks are known: the π with the smallest worst-group risk."""

from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand.arrays import Floats

Risk = Callable[[Floats], Floats]


def fair_mixture(means: Floats, risk: Risk, *, falls: bool = True) -> Floats:
    """π* for means (m, 2, d) and risk: π (…, m) → L(z, f_π) (…, m).

    `falls` says that a group's risk falls as its share grows. Error and log loss do; misses alone need not, since f_π
    minimises something else.
    """
    if len(means) == 1:
        return np.ones(1)
    if len(means) == 2:
        # the closed form first: it is exact to the last digit, and the paper's instances have it
        exact = orthogonal_mixture(means)
        return exact if exact is not None else two_groups(risk) if falls else best_of_two(risk)
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

    # even without its own examples the group is not worse off than the other
    if gap(0.0) <= 0:
        return np.array([0.0, 1.0])
    if gap(1.0) >= 0:
        return np.array([1.0, 0.0])
    share = float(brentq(gap, 0.0, 1.0, xtol=1e-14, rtol=1e-14))
    return np.array([share, 1 - share])


def best_of_two(risk: Risk) -> Floats:
    """The best mixture of two groups: first the best on a grid, then a search between its neighbours."""
    from scipy.optimize import minimize_scalar

    def worst(share: float) -> float:
        return float(risk(np.array([share, 1 - share])).max())

    shares = np.linspace(0, 1, 501)
    place = int(risk(np.stack([shares, 1 - shares], axis=-1)).max(axis=-1).argmin())
    around = (shares[max(place - 1, 0)], shares[min(place + 1, len(shares) - 1)])
    found = float(minimize_scalar(worst, bounds=around, method="bounded", options={"xatol": 1e-10}).x)
    # the search assumes one minimum between the neighbours;
    # where there are more, the grid may know better
    share = min((found, float(shares[place])), key=worst)
    return np.array([share, 1 - share])


def many_groups(risk: Risk, m: int, held: tuple[int, float] | None = None) -> Floats:
    """The best of several descents of max_z L(z, f_π) on the simplex, one share held fixed if asked.

    Each descent solves min t subject to L(z, f_π) ≤ t.
    """
    from scipy.optimize import minimize

    settings: Any = {
        "jac": lambda x: np.eye(m + 1)[-1],
        "bounds": [(0.0, 1.0)] * m + [(None, None)],
        "constraints": [
            {"type": "eq", "fun": lambda x: x[:m].sum() - 1},
            {"type": "ineq", "fun": lambda x: x[-1] - risk(_on_simplex(x[:m], held))},
        ],
        "method": "SLSQP",
        "options": {"ftol": 1e-13, "maxiter": 100},
    }
    best, value = np.full(m, 1 / m), np.inf
    # the worst risk is not convex in π, so a single descent may end in a local minimum
    for start in (np.full(m, 1 / m), *(0.5 * np.eye(m) + 0.5 / m)):
        pi = _on_simplex(start, held)
        found = minimize(_last, np.append(pi, risk(pi).max()), **settings)
        pi = _on_simplex(np.asarray(found.x[:m], dtype=float), held)
        worst = float(risk(pi).max())
        if worst < value:
            best, value = pi, worst
    return best


def _last(x: Floats) -> float:
    return float(x[-1])


def least_worst_risk(risk: Risk, m: int, group: int, share: float) -> float:
    """The smallest max_z L(z, f_π) among mixtures that give one group this share."""
    if m == 2:
        pi = np.full(2, 1 - share)
        pi[group] = share
    else:
        pi = many_groups(risk, m, (group, share))
    return float(risk(pi).max())


def _on_simplex(x: Floats, held: tuple[int, float] | None) -> Floats:
    # SLSQP may step slightly outside of its bounds, where risks are not defined
    x = np.maximum(x, 0.0)
    if held is None:
        return np.asarray(x / x.sum())
    group, share = held
    others = np.arange(len(x)) != group
    rest = float(x[others].sum())
    x[others] = x[others] * (1 - share) / rest if rest > 0 else (1 - share) / (len(x) - 1)
    x[group] = share
    return x
