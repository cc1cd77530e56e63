"""Two rules on the same trials: the mean of the paired differences, its interval, and the verdict that the interval gives.

`simulate`, `curate`, `plan --pilot` and `reproduce` all ask here. The whole interval decides, never the mean alone:

| asked | holds | does not hold | open |
|---|---|---|---|
| `above(b)`: the mean is above b | low > b | high < b | b lies in the interval |
| `within(m, c)`: the mean is closer to c than m | c − m < low and high < c + m | high < c − m or low > c + m | an end of that range lies in the interval |

So a difference that is not significant is open, and no proof of being alike. Fewer than two pairs have no interval: all is
open. Where several comparisons have to hold at once, whoever asks raises the level (`together`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand.claims import checks
from evenhand.errors import InputError

HOLDS, DOES_NOT_HOLD, OPEN = "holds", "does not hold", "open"


class Interval(NamedTuple):
    """A mean and the ends of its interval, which are NaN where there is none."""

    mean: float
    low: float
    high: float

    def above(self, bound: float = 0.0) -> str:
        """Whether the mean is above a bound."""
        return HOLDS if self.low > bound else DOES_NOT_HOLD if self.high < bound else OPEN

    def within(self, margin: float, centre: float = 0.0) -> str:
        """Whether the mean is closer to the centre than the margin."""
        least, most = centre - margin, centre + margin
        if least < self.low and self.high < most:
            return HOLDS
        return DOES_NOT_HOLD if self.high < least or self.low > most else OPEN

    def __str__(self) -> str:
        if np.isnan(self.low):
            return f"{self.mean:+.4f} in the one trial"
        return f"{self.mean:+.4f}" if self.low == self.high else f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"


def paired(a: ArrayLike, b: ArrayLike = 0.0, level: float = 0.95) -> Interval:
    """The mean of a − b over trials with Student's interval; trials in which either is NaN are left out.

    >>> print(paired([0.8, 0.9, 0.7], [0.7, 0.85, 0.7]))
    +0.0500 [-0.0742, +0.1742]
    >>> paired([0.8, 0.9, 0.7], [0.7, 0.85, 0.7]).above()
    'open'
    """
    from scipy.special import stdtrit

    checks.probability("level", level)
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if x.ndim != 1 or y.shape not in ((), x.shape):
        raise InputError(f"paired values need two sequences of one length, got shapes {x.shape} and {y.shape}")
    d = (x - y)[~np.isnan(x - y)]
    mean = float(d.mean()) if len(d) else np.nan
    if len(d) < 2:
        return Interval(mean, np.nan, np.nan)
    half = float(stdtrit(len(d) - 1, (1 + level) / 2) * d.std(ddof=1) / np.sqrt(len(d)))
    return Interval(mean, mean - half, mean + half)


def together(comparisons: int, delta: float = 0.05) -> float:
    """The level of each interval with which all of them hold at once with probability 1 − delta (Bonferroni)."""
    return 1 - delta / max(comparisons, 1)
