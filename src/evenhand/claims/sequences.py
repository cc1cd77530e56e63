"""Confidence sequences: intervals that hold at every sample size at once, so that one may look after every label."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.claims import checks
from evenhand.errors import InputError


def running_half_width(n: ArrayLike, delta: float = 0.05, *, best_at: float = 500.0) -> Floats:
    """Half-width for the mean of n losses in [0, 1] whose expectations may change from one to the next.

    |Σ(ℓ_s − E ℓ_s)| ≤ √((N/4+ρ)·ln((N/4+ρ)/(ρδ²))) for all N at once (a Gaussian mixture); ρ is set so that the
    width is about least at N = `best_at`. 1 without observations.

    >>> running_half_width([0, 100, 500]).round(3)
    array([1.   , 0.168, 0.068])
    """
    checks.probability("delta", delta)
    if not best_at > 0:
        raise InputError(f"best_at must be positive, got {best_at!r}")
    size = np.asarray(n, dtype=float)
    log = 2 * np.log(1 / delta)
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

    >>> low, high = error_rate(30, 300)
    >>> round(float(low), 3), round(float(high), 3)
    (0.05, 0.171)
    """
    level = np.asarray(delta, dtype=float)
    if not ((level > 0) & (level < 1)).all():
        raise InputError(f"delta must lie strictly between 0 and 1, got {delta!r}")
    s, size, limit = np.broadcast_arrays(np.asarray(errors, dtype=float), np.asarray(n, dtype=float), np.log(1 / level))
    if np.any(s < 0) or np.any(s > size):
        raise InputError(f"errors must lie between 0 and n, got {errors!r} of {n!r}")
    centre = np.where(size > 0, s / np.maximum(size, 1e-300), 0.5)
    low = _edge(s, size, limit, centre, np.zeros_like(centre))
    high = _edge(s, size, limit, centre, np.ones_like(centre))
    return np.where(s > 0, low, 0.0), np.where(s < size, high, 1.0)


def _edge(s: Floats, n: Floats, limit: Floats, inside: Floats, outside: Floats) -> Floats:
    """Where the evidence crosses the limit between a rate inside the set and the end of [0, 1], by bisection."""
    with np.errstate(divide="ignore"):
        for _ in range(50):
            middle = (inside + outside) / 2
            within = log_evidence(s, n, middle) < limit
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    return outside


@dataclass
class EmpiricalBernstein:
    """A confidence sequence for the mean of values in [0, 1], for many series at once; its state never grows.

    The predictable plug-in empirical Bernstein sequence (Waudby-Smith and Ramdas 2024): bets λ_t chosen before
    each value from the variance seen so far. `delta` tunes the bets; the interval may be read at any level.

    >>> values = EmpiricalBernstein.empty((1,))
    >>> for _ in range(500):
    ...     values.push(np.array([0.3]))
    >>> low, high = values.interval()
    >>> bool(low[0] < 0.3 < high[0]), bool(high[0] - low[0] < 0.1)
    (True, True)
    """

    n: Floats
    total: Floats
    squares: Floats
    bets: Floats
    weighted: Floats
    price: Floats
    delta: float = 0.05

    @classmethod
    def empty(cls, shape: tuple[int, ...], delta: float = 0.05) -> "EmpiricalBernstein":
        """Series without values yet."""
        checks.probability("delta", delta)
        zero = np.zeros(shape)
        return cls(zero, zero, zero, zero, zero, zero, delta)

    @property
    def mean(self) -> Floats:
        """The mean of the values seen; NaN without any."""
        return np.asarray(np.where(self.n > 0, self.total / np.maximum(self.n, 1), np.nan))

    def push(self, values: ArrayLike) -> None:
        """One more value for every series; NaN leaves a series as it is."""
        x = np.asarray(values, dtype=float)
        if np.any((x < 0) | (x > 1)):
            raise InputError("losses must lie in [0, 1] for a certificate: use zero_one, or scale the loss")
        new = x == x
        before = (0.5 + self.total) / (self.n + 1)
        variance = (0.25 + self.squares) / (self.n + 1)
        t = self.n + 1
        bet = np.minimum(np.sqrt(2 * np.log(2 / self.delta) / (variance * t * np.log(t + 1))), 0.5)
        value = np.where(new, x, 0.0)
        self.n = self.n + new
        self.total = self.total + value
        after = (0.5 + self.total) / (self.n + 1)
        self.squares = self.squares + np.where(new, (value - after) ** 2, 0.0)
        self.bets = self.bets + np.where(new, bet, 0.0)
        self.weighted = self.weighted + bet * value
        # ψ(λ) = −log(1−λ) − λ, times the squared surprise
        self.price = self.price + np.where(new, (value - before) ** 2 * (-np.log1p(-bet) - bet), 0.0)

    def interval(self, delta: float | None = None) -> tuple[Floats, Floats]:
        """The interval at level δ for every series, (0, 1) without values."""
        level = self.delta if delta is None else checks.probability("delta", delta)
        safe = np.where(self.bets > 0, self.bets, 1.0)
        half = (np.log(2 / level) + self.price) / safe
        centre = self.weighted / safe
        seen = self.bets > 0
        return np.where(seen, np.maximum(centre - half, 0), 0.0), np.where(seen, np.minimum(centre + half, 1), 1.0)
