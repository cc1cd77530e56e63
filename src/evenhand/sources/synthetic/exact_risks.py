"""Exact risks of linear rules on Gaussian groups, and the logistic rule that minimises a mixture's log loss.

Means have shape (m, 2, d): group, label, feature; every label has probability ½ and unit covariance. Along a linear
rule w, b the score of label y is N(w·μ_y + b, ‖w‖²), so every expectation here is an integral over one variable.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, ndtr

from evenhand.arrays import Floats


def scores(means: Floats, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
    """Mean (…, m, 2) and standard deviation (…, 1, 1) of the score of every group and label."""
    mean = np.einsum("...d,mkd->...mk", coef, means) + intercept[..., None, None]
    return mean, np.linalg.norm(coef, axis=-1)[..., None, None]


def expect(functions: list[Callable[[Floats], Floats]], mean: Floats, sd: Floats) -> list[Floats]:
    """E f(S) for S ~ N(mean, sd²), each f smooth on the scale of 1.

    The trapezoidal rule on a Gaussian-weighted analytic function converges exponentially; the logistic's nearest
    pole lies π/sd away, so a step of at most ½/sd leaves an error near e^(−2π²·2).
    """
    step = min(0.1, 0.5 / max(float(np.max(sd, initial=0.0)), 1e-9))
    # beyond 9 standard deviations lies less than 1e-18
    z = np.arange(-9.0, 9.0 + step / 2, max(step, 1e-3))
    weight = np.exp(-0.5 * z * z)
    weight /= weight.sum()
    s = mean[..., None] + sd[..., None] * z
    return [np.asarray(f(s) @ weight) for f in functions]


def mistakes(means: Floats, coef: Floats, intercept: Floats) -> tuple[Floats, Floats]:
    """P(1 predicted | label 0) and P(0 predicted | label 1) of the rule "1 where w·x + b > 0" on every group, (…, m)."""
    mean, sd = scores(means, coef, intercept)
    # without weights the score is its intercept: a rule that always says the same
    constant = np.where(mean > 0, np.inf, -np.inf)
    standard = np.where(sd > 0, mean / np.where(sd > 0, sd, 1.0), constant)
    return ndtr(standard[..., 0]), ndtr(-standard[..., 1])


def zero_one_risk(means: Floats, coef: Floats, intercept: Floats) -> Floats:
    """Error of the rule "1 where w·x + b > 0" on every group, (…, m); ½ for a constant rule."""
    false_positive, false_negative = mistakes(means, coef, intercept)
    return np.asarray(0.5 * (false_positive + false_negative))


def confusions(means: Floats, coef: Floats, intercept: Floats) -> Floats:
    """The chance of every label and prediction together, (…, m, 2, 2), under the same rule."""
    false_positive, false_negative = mistakes(means, coef, intercept)
    rows = [(1 - false_positive, false_positive), (false_negative, 1 - false_negative)]
    return 0.5 * np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def log_risk(means: Floats, coef: Floats, intercept: Floats) -> Floats:
    """Expected log loss of the logistic rule on every group, (…, m)."""
    mean, sd = scores(means, coef, intercept)
    towards_one = np.array([1.0, -1.0])
    (risk,) = expect([lambda s: np.logaddexp(0.0, s)], mean * towards_one, sd)
    return np.asarray(risk.mean(axis=-1))


def logistic_minimiser(means: Floats, mixture: Floats) -> tuple[Floats, Floats]:
    """The coefficients (p, d) and intercepts (p,) of f_π for mixtures (p, m), by Newton's method.

    Stein's identity turns E[g(S) X] into μ E[g] + w E[g'], and E[h(S) XXᵀ] likewise, so that gradient and Hessian
    need only one-dimensional integrals in any dimension.
    """
    p, d = len(mixture), means.shape[-1]
    # all mixtures at once; those that have arrived leave the batch
    theta = np.zeros((p, d + 1))
    alive = np.arange(p)
    for _ in range(60):
        gradient, hessian = derivatives(means, mixture[alive], theta[alive])
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        # the loss is self-concordant-like: steps are shortened while far away, full near the optimum
        size = np.linalg.norm(step, axis=-1, keepdims=True)
        theta[alive] -= step / np.maximum(1.0, size / 2.0)
        alive = alive[size[:, 0] > 1e-13 * (1 + np.linalg.norm(theta[alive], axis=-1))]
        if not len(alive) or float(size.max()) < 1e-12:
            break
    return theta[:, :d], theta[:, d]


def derivatives(means: Floats, mixture: Floats, theta: Floats) -> tuple[Floats, Floats]:
    """Gradient (p, d+1) and Hessian (p, d+1, d+1) of the mixtures' expected log loss at rules theta = (w, b)."""
    w, b = theta[:, :-1], theta[:, -1]
    mean, sd = scores(means, w, b)

    def spread(s: Floats) -> Floats:
        probability = expit(s)
        return probability * (1 - probability)

    # first and second derivative of σ(1 − σ), which Stein's identity asks for
    def slope(s: Floats) -> Floats:
        return -spread(s) * np.tanh(s / 2)

    def bend(s: Floats) -> Floats:
        h = spread(s)
        return h * (1 - 6 * h)

    e, h0, h1, h2 = expect([expit, spread, slope, bend], mean, sd)
    share = 0.5 * mixture[:, :, None]
    residual = share * (e - np.array([0.0, 1.0]))
    h0, h1, h2 = share * h0, share * h1, share * h2
    total = h0.sum(axis=(1, 2))
    gradient = np.concatenate(
        [np.einsum("pmk,mkd->pd", residual, means) + w * total[:, None], residual.sum(axis=(1, 2))[:, None]], axis=1
    )
    d = w.shape[1]
    cross = np.einsum("pmk,mkd->pd", h1, means)
    hessian = np.empty((len(w), d + 1, d + 1))
    hessian[:, :d, :d] = (
        np.einsum("pmk,mkd,mke->pde", h0, means, means)
        + np.einsum("pd,pe->pde", cross, w)
        + np.einsum("pd,pe->pde", w, cross)
        + np.einsum("p,pd,pe->pde", h2.sum(axis=(1, 2)), w, w)
        + total[:, None, None] * np.eye(d)
    )
    edge = np.einsum("pmk,mkd->pd", h0, means) + w * h1.sum(axis=(1, 2))[:, None]
    hessian[:, :d, d] = hessian[:, d, :d] = edge
    hessian[:, d, d] = total
    return gradient, hessian
