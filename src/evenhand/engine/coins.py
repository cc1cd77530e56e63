"""Random numbers by position: the same for a given seed, trial and place, however one gets there.

A counter-based generator (SplitMix64's finaliser over a folded counter). It has no state to save, so stopping and
going on, one trial or many, one process or two all see the same numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["uniform"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    for shift, factor in _ROUNDS:
        x = (x ^ (x >> shift)) * factor
    return x ^ (x >> np.uint64(31))


def uniform(seed: int, *place: ArrayLike) -> NDArray[np.float64]:
    """Numbers in [0, 1) by seed and place; the places broadcast against each other.

    >>> bool(uniform(7, 3, [1, 2])[1] == uniform(7, 3, 2))
    True
    """
    state = np.asarray(seed & 0xFFFFFFFFFFFFFFFF, dtype=np.uint64).reshape(1)
    state = _mix(state + _GOLDEN)
    for index in place:
        step = np.atleast_1d(np.asarray(index, dtype=np.int64)).astype(np.uint64)
        state = _mix((state ^ _mix(step + _GOLDEN)) + _GOLDEN)
    shape = np.broadcast_shapes(*(np.shape(index) for index in place))
    return np.asarray((state >> np.uint64(11)) * 2.0**-53, dtype=np.float64).reshape(shape)
