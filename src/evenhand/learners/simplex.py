"""The maximum of a concave function of shares that sum to one, found from its gradient alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from evenhand.arrays import Floats

_FIRST_STEP = 0.2
_HEAVY = 1e4


def optimality_gap(q: Floats, gradient: Floats) -> float:
    """How far a concave function at q may be below its maximum on the simplex, to first order; 0 at the maximum.

    >>> optimality_gap(np.array([0.5, 0.5]), np.array([1.0, 1.0]))
    0.0
    """
    return float(gradient.max() - q @ gradient)


def maximise(gradient: Callable[[Floats], Floats], q: Floats, *, tol: float = 1e-9, most: int = 100) -> Floats:
    """The shares at which a smooth concave function is largest, starting from q.

    Every step maximises a quadratic model whose curvature is learned from the gradients seen (BFGS). A step that goes too
    far is not taken, but teaches the curvature, so the next one is shorter. For two shares this is the secant method.

    >>> maximise(lambda q: np.array([0.3, 0.7]) - q, np.array([0.5, 0.5])).round(6).tolist()
    [0.3, 0.7]
    """
    slope = gradient(q)
    steepness = max(float(np.ptp(slope)), 1e-12)
    # so that the first step moves a share by about a fifth
    curvature = np.eye(len(q)) * steepness / _FIRST_STEP
    for _ in range(most):
        gap = optimality_gap(q, slope)
        if gap <= tol:
            break
        step = _best_share(q, slope, curvature) - q
        there = gradient(q + step)
        curvature = _learned(curvature, step, slope - there)
        if there @ step >= 0 or optimality_gap(q + step, there) <= 0.5 * gap:
            q, slope = q + step, there
    return q


def _best_share(q: Floats, slope: Floats, curvature: Floats) -> Floats:
    """argmax over the simplex of slope·p − ½(p − q)ᵀ curvature (p − q), as a least-squares problem with p ≥ 0."""
    root = cholesky(curvature)
    target = root @ q + solve_triangular(root, slope - slope.mean(), trans="T")
    # the sum of the shares as one more, very heavy, row of the least-squares problem
    heavy = _HEAVY * np.abs(root).max()
    p, _ = nnls(np.vstack([root, np.full(len(q), heavy)]), np.append(target, heavy))
    return np.asarray(p / p.sum())


def _learned(B: Floats, step: Floats, change: Floats) -> Floats:
    """The BFGS update: symmetric, positive definite, and B·step = change; only differences between shares matter."""
    change = change - change.mean()
    along = float(step @ change)
    image = B @ step
    if along <= 1e-12 * float(step @ image):
        return B
    updated: Floats = B + np.outer(change, change) / along - np.outer(image, image) / float(step @ image)
    return np.asarray(0.5 * (updated + updated.T) + 1e-12 * np.trace(updated) * np.eye(len(B)))
