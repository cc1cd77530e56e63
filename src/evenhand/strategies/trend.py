"""The Mann–Kendall statistic of short series, for many series at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, Ints


def mann_kendall(series: ArrayLike) -> tuple[Floats, Floats]:
    """S and var(S) of every series along the last axis; NaN entries are left out.

    S = Σ_{i<j} sgn(x_j − x_i), var(S) = [k(k−1)(2k+5) − Σ_ties g(g−1)(2g+5)]/18 with k values, g of them tied.

    >>> mann_kendall([0.5, 0.6, 0.6, 0.9])
    (array(5.), array(7.66666667))
    """
    x = np.asarray(series, dtype=float)
    low, high = np.triu_indices(x.shape[-1], 1)
    before, after = x[..., low], x[..., high]
    # comparisons with NaN are false, so padding counts nothing
    s = np.count_nonzero(after > before, axis=-1) - np.count_nonzero(after < before, axis=-1)
    k = np.count_nonzero(x == x, axis=-1)
    same = before == after
    ties = _ties(x) if same.any() else np.zeros(s.shape)
    return np.asarray(s, dtype=float), variance(k, ties)


def _ties(x: Floats) -> Floats:
    """Σ g(g−1)(2g+5) over the groups of equal values, as a sum over the values themselves."""
    g = np.count_nonzero(x[..., :, None] == x[..., None, :], axis=-1)
    return np.asarray(np.where(g > 0, (g - 1) * (2 * g + 5), 0).sum(axis=-1), dtype=float)


def variance(k: ArrayLike, ties: ArrayLike) -> Floats:
    """var(S) of k values with the tie sum Σ g(g−1)(2g+5)."""
    k = np.asarray(k, dtype=float)
    return np.asarray((k * (k - 1) * (2 * k + 5) - np.asarray(ties)) / 18, dtype=float)


def trend(series: ArrayLike) -> Floats:
    """S/√var(S) of every series; 0 while the variance is 0 or fewer than 3 values exist."""
    x = np.asarray(series, dtype=float)
    s, var = mann_kendall(x)
    return standardised(s, var, np.count_nonzero(x == x, axis=-1))


def standardised(s: Floats, var: Floats, k: ArrayLike) -> Floats:
    """S/√var, 0 where it is undefined or rests on fewer than 3 values."""
    usable = (np.asarray(k) >= 3) & (var > 0)
    return np.asarray(np.where(usable, s / np.sqrt(np.where(usable, var, 1.0)), 0.0), dtype=float)


@dataclass
class RunningTrend:
    """The same statistic, updated in O(window) steps for each new value, for windows of shape (…, window).

    >>> running = RunningTrend.empty((2,), window=3)
    >>> for value in (0.1, 0.3, 0.2, 0.5):
    ...     running.push(np.array([value, -value]))
    >>> running.s, running.window[0]
    (array([ 1., -1.]), array([0.3, 0.2, 0.5]))
    """

    window: Floats
    s: Floats
    ties: Floats
    k: Ints

    @classmethod
    def empty(cls, shape: tuple[int, ...], window: int = 20) -> "RunningTrend":
        """Series that have no values yet."""
        return cls(np.full((*shape, window), np.nan), np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64))

    @classmethod
    def of(cls, window: ArrayLike) -> "RunningTrend":
        """Series that begin with these values, oldest first; NaN is no value."""
        x = np.asarray(window, dtype=float)
        # values first, padding last, which is how `push` keeps a window
        x = np.take_along_axis(x, np.argsort(np.isnan(x), axis=-1, kind="stable"), axis=-1)
        s, var = mann_kendall(x)
        k = np.count_nonzero(x == x, axis=-1)
        ties = k * (k - 1.0) * (2 * k + 5) - 18 * var
        return cls(x, s, ties, np.asarray(k, dtype=np.int64))

    def push(self, values: ArrayLike) -> None:
        """Append one value to every series, the oldest leaving a full window; NaN leaves a series as it is."""
        new = np.broadcast_to(np.asarray(values, dtype=float), self.s.shape)
        at = np.nonzero(new == new)
        self.window[at], self.s[at], self.ties[at], self.k[at] = _push(
            self.window[at], self.s[at], self.ties[at], self.k[at], new[at]
        )

    @property
    def variance(self) -> Floats:
        """var(S) of every series."""
        return variance(self.k, self.ties)

    @property
    def trend(self) -> Floats:
        """S/√var(S), 0 while the variance is 0 or fewer than 3 values exist."""
        return standardised(self.s, self.variance, self.k)


def _push(x: Floats, s: Floats, ties: Floats, k: Ints, new: Floats) -> tuple[Floats, Floats, Floats, Ints]:
    """Push one value into each of the (p, w) windows, padded at the end, in O(w)."""
    width = x.shape[-1]
    full = k == width
    oldest = x[:, :1]
    # only full windows lose a value; in the others every
    # comparison with NaN is false and nothing is taken off
    left = np.where(full[:, None], x, np.nan)
    s = s - np.count_nonzero(left > oldest, axis=-1) + np.count_nonzero(left < oldest, axis=-1)
    ties = ties - _tie_step(np.count_nonzero(left == oldest, axis=-1) - 1)
    x = np.where(full[:, None], np.roll(x, -1, axis=-1), x)
    x[full, -1] = np.nan
    k = k - full
    value = new[:, None]
    s = s + np.count_nonzero(x < value, axis=-1) - np.count_nonzero(x > value, axis=-1)
    ties = ties + _tie_step(np.count_nonzero(x == value, axis=-1))
    x[np.arange(len(x)), k] = new
    return x, s, ties, k + 1


def _tie_step(g: Ints) -> Floats:
    """How much Σ g(g−1)(2g+5) grows when a value joins g equal ones (none where g < 0: nothing left)."""
    g = np.maximum(g, 0)
    return np.asarray((g + 1.0) * g * (2 * g + 7) - g * (g - 1.0) * (2 * g + 5))
