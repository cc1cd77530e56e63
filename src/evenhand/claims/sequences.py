"""Confidence sequences: intervals that hold at every sample size at once, so that one may look after every label."""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.claims import checks
from evenhand.errors import InputError


def running_half_width(n: ArrayLike, delta: float = 0.05, *, best_at: float = 500.0) -> Floats:
    """Half-width for the mean of n losses in [0, 1] whose expectations may change from one to the next.

    |Σ(ℓ_s − E ℓ_s)| ≤ √((N/4+ρ)·ln((N/4+ρ)/(ρδ²))) for all N at once (a Gaussian mixture); ρ is set so that the
    width is about smallest at N = `best_at`. The half-width is 1 without observations.

    >>> running_half_width([0, 100, 500]).round(3)
    array([1.   , 0.168, 0.068])
    """
    checks.level(delta)
    if not best_at > 0:
        raise InputError(f"best_at must be positive, got {best_at!r}")
    size = np.asarray(n, dtype=float)
    log = 2 * np.log(1 / delta)
    # the usual approximation to the ρ that makes the width smallest at one n; any other ρ is valid too
    rho = best_at / 4 / (log + np.log1p(log))
    v = size / 4 + rho
    half = np.sqrt(v * (np.log(v / rho) + log)) / np.maximum(size, 1.0)
    return np.asarray(np.where(size > 0, np.minimum(half, 1.0), 1.0))


def log_evidence(errors: ArrayLike, n: ArrayLike, p: ArrayLike) -> Floats:
    """How strongly the counts speak against an error rate p: log of the beta-binomial mixture ratio.

    ln B(S+½, n−S+½) − ln B(½,½) − S ln p − (n−S) ln(1−p); under p it exceeds ln(1/δ) with probability at most δ, ever.
    """
    from scipy.special import betaln, xlog1py, xlogy

    s, size, rate = (np.asarray(x, dtype=float) for x in (errors, n, p))
    return np.asarray(betaln(s + 0.5, size - s + 0.5) - np.log(np.pi) - xlogy(s, rate) - xlog1py(size - s, -rate))


def error_rate(errors: ArrayLike, n: ArrayLike, delta: ArrayLike = 0.05) -> tuple[Floats, Floats]:
    """Interval for an error rate from counts, valid at every n at once: {p: log_evidence < ln(1/δ)}.

    It also holds for the mean of any losses in [0, 1], with their sum for `errors`: a^x·b^(1−x) ≤ x·a + (1−x)·b, so the
    ratio of each loss has expectation 1 at most, as it has for errors. Only counts and sums matter, never the order.

    >>> low, high = error_rate(30, 300)
    >>> round(float(low), 3), round(float(high), 3)
    (0.05, 0.171)
    """
    return lower_rate(errors, n, delta), upper_rate(errors, n, delta)


def lower_rate(errors: ArrayLike, n: ArrayLike, delta: ArrayLike = 0.05) -> Floats:
    """The lower end of `error_rate` alone."""
    s, size, limit = _checked(errors, n, delta)
    return np.where(s > 0, _edge(s, size, limit, 0.0), 0.0)


def upper_rate(errors: ArrayLike, n: ArrayLike, delta: ArrayLike = 0.05) -> Floats:
    """The upper end of `error_rate` alone."""
    s, size, limit = _checked(errors, n, delta)
    return np.where(s < size, _edge(s, size, limit, 1.0), 1.0)


def _checked(errors: ArrayLike, n: ArrayLike, delta: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """The counts and the limit of the evidence, checked and in one shape."""
    level = np.asarray(delta, dtype=float)
    if not ((level > 0) & (level <= checks.MOST_DELTA)).all():
        raise InputError(f"delta must be above 0 and at most {checks.MOST_DELTA}, got {delta!r}")
    s, size, limit = np.broadcast_arrays(np.asarray(errors, dtype=float), np.asarray(n, dtype=float), np.log(1 / level))
    if np.any(s < 0) or np.any(s > size):
        raise InputError(f"errors must lie between 0 and n, got {errors!r} of {n!r}")
    return s, size, limit


def _edge(s: Floats, n: Floats, limit: Floats, end: float) -> Floats:
    """Where the evidence crosses the limit between the mean and an end of [0, 1], by bisection."""
    from scipy.special import betaln, xlog1py, xlogy

    # the part of `log_evidence` that does not depend on the rate is computed once
    constant = betaln(s + 0.5, n - s + 0.5) - np.log(np.pi) - limit
    inside = np.where(n > 0, s / np.maximum(n, 1e-300), 0.5)
    outside = np.full_like(inside, end)
    with np.errstate(divide="ignore"):
        # the interval has length 1 at most: 50 halvings leave less than 1e-15
        for _ in range(50):
            middle = (inside + outside) / 2
            within = constant < xlogy(s, middle) + xlog1py(n - s, -middle)
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    # the end outside of the interval: rounding then only widens it
    return np.asarray(outside)


def rate_at_most(errors: ArrayLike, n: ArrayLike, delta: ArrayLike = 0.05) -> Floats:
    """An upper bound for an error rate from counts, valid at every n at once; lower than that of `error_rate`.

    Whoever only wants to know how bad it can be tests a rate p against the rates below it alone. So the mixture has the
    prior Beta(½, ½) cut off at p: M(p) = B(S+½, n−S+½)·I_p(S+½, n−S+½) / (B(½, ½)·I_p(½, ½)·p^S·(1−p)^(n−S)). Under
    every rate from p on it is a supermartingale, since each of its factors falls in the loss. p is excluded once
    M(p) ≥ 1/δ, and the bound is the largest p that is not. For losses in [0, 1] it holds as `error_rate` does.

    >>> float(rate_at_most(30, 300).round(3)), float(upper_rate(30, 300).round(3))
    (0.162, 0.171)
    """
    from scipy.special import betaincinv

    s, size, limit = _checked(errors, n, delta)
    # far below the mean of the counts nothing is excluded, and from there on the evidence only grows
    inside = np.where(size > 0, betaincinv(s + 0.5, size - s + 0.5, 1e-9), 1.0)
    outside = np.ones_like(inside)
    for _ in range(60):
        middle = (inside + outside) / 2
        within = _evidence_above(s, size, middle) < limit
        inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    return np.where(s < size, outside, 1.0)


def rate_at_least(errors: ArrayLike, n: ArrayLike, delta: ArrayLike = 0.05) -> Floats:
    """The lower bound that mirrors `rate_at_most`: errors and right answers exchanged."""
    s, size, _ = _checked(errors, n, delta)
    return np.asarray(1 - rate_at_most(size - s, size, delta))


def _evidence_above(s: Floats, n: Floats, p: Floats) -> Floats:
    """ln M(p): how strongly the counts speak for a rate below p."""
    from scipy.special import betainc, betaln, xlog1py, xlogy

    with np.errstate(divide="ignore"):
        cut = np.log(betainc(s + 0.5, n - s + 0.5, p)) - np.log(betainc(0.5, 0.5, p))
    return np.asarray(betaln(s + 0.5, n - s + 0.5) - np.log(np.pi) + cut - xlogy(s, p) - xlog1py(n - s, -p))
