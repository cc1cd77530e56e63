"""Intervals at a fixed sample size: for a proportion and for a mean of numbers in [0, 1]."""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.claims import checks
from evenhand.errors import InputError


def wilson(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's interval for a proportion; (0, 1) without any observation.

    >>> low, high = wilson(3, 20)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0524, 0.3604)
    """
    from scipy.special import ndtri

    k, size = _counts(successes, n, level)
    z2 = float(ndtri((1 + level) / 2)) ** 2
    safe = np.where(size > 0, size, 1.0)
    centre = (k + z2 / 2) / (safe + z2)
    half = np.sqrt(z2 * (k * (safe - k) / safe + z2 / 4)) / (safe + z2)
    # at the ends rounding would leave the bound a hair inside
    low = np.where((size > 0) & (k > 0), centre - half, 0.0)
    high = np.where((size > 0) & (k < size), centre + half, 1.0)
    return low, high


def clopper_pearson(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """The exact interval for a proportion, which covers at every size; (0, 1) without any observation.

    >>> low, high = clopper_pearson(3, 20)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0321, 0.3789)
    """
    from scipy.special import betaincinv

    k, size = _counts(successes, n, level)
    tail = (1 - level) / 2
    low = np.where(k > 0, betaincinv(np.where(k > 0, k, 1.0), size - k + 1, tail), 0.0)
    high = np.where(k < size, betaincinv(k + 1, np.where(k < size, size - k, 1.0), 1 - tail), 1.0)
    return low, high


def _counts(successes: ArrayLike, n: ArrayLike, level: float) -> tuple[Floats, Floats]:
    """The counts in one shape, after checking them and the level."""
    checks.probability("level", level)
    k, size = np.broadcast_arrays(np.asarray(successes, dtype=float), np.asarray(n, dtype=float))
    if np.any(k < 0) or np.any(k > size):
        raise InputError(f"successes must lie between 0 and n, got {successes!r} of {n!r}")
    return k, size


def bounded_mean(mean: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """An interval for the mean of numbers in [0, 1], from the mean of n of them: Hoeffding's bound in its exact form.

    It holds for every distribution on [0, 1]: n·kl(mean, p) is at most log(2/(1 − level)) at both ends.

    >>> low, high = bounded_mean(0.15, 20)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0195, 0.4324)
    """
    checks.probability("level", level)
    found, size = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(n, dtype=float))
    if np.any(found < 0) or np.any(found > 1):
        raise InputError(f"a mean of numbers in [0, 1] lies there too, got {mean!r}")
    reach = np.log(2 / (1 - level)) / np.maximum(size, 1e-300)
    ends = []
    for end in (0.0, 1.0):
        near, far = found.copy(), np.full(found.shape, end)
        for _ in range(60):  # halved down to the last bit
            middle = (near + far) / 2
            inside = _divergence(found, middle) <= reach
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        ends.append(np.where(size > 0, far, end))
    return ends[0], ends[1]


def _divergence(q: Floats, p: Floats) -> Floats:
    """kl(q, p) between two Bernoulli distributions; infinite where p cannot give q."""
    from scipy.special import rel_entr

    return np.asarray(rel_entr(q, p) + rel_entr(1 - q, 1 - p), dtype=float)
