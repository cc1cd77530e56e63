"""Random numbers by position, and the roles drawn from them: a function of the seed and the place alone.

A counter-based generator (SplitMix64's finaliser over a folded counter). It has no state to save, so stopping and
going on, one trial or many, one process or two all see the same numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, Ints, Mask, Words

# constants of SplitMix64 (Steele, Lea, Flood 2014): 2^64
# over the golden ratio, and its finaliser's two multipliers
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ODD = np.uint64(0xD6E8FEB86659FD93)  # so that swapping two places gives another number
# numbers are drawn for so many requests at once, because
# one call of NumPy costs as much as a hundred numbers
_AHEAD = 128
# purposes: the first place of every number, so that no two uses ever share one
CHOICES = 0
"""Ties and exploration."""
_ROLES = 1


def _mix(x: Words) -> Words:
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


def fold(state: Words, *place: ArrayLike) -> Words:
    """The state after folding in these places; they broadcast against each other and the state."""
    for index in place:
        step = np.atleast_1d(np.asarray(index, dtype=np.int64)).astype(np.uint64)
        state = _mix((state * _ODD) ^ _mix(step + _GOLDEN))
    return state


def begin(seed: int) -> Words:
    """The state of a seed, before any place is folded in."""
    return _mix(np.array([seed & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64) + _GOLDEN)


def numbers(state: Words) -> Floats:
    """A number in [0, 1) for every state."""
    # the upper 53 bits: as many as a float's mantissa holds, so that 1 is never reached by rounding
    return np.asarray((state >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def uniform(seed: int, *place: ArrayLike) -> Floats:
    """Numbers in [0, 1) by seed and place; the places broadcast against each other.

    >>> bool(uniform(7, 3, [1, 2])[1] == uniform(7, 3, 2))
    True
    """
    shape = np.broadcast_shapes(*(np.shape(index) for index in place))
    return numbers(fold(begin(seed), *place)).reshape(shape)


class Uniforms:
    """`width` numbers for every trial's k-th request, drawn ahead in blocks."""

    def __init__(self, seed: int, purpose: int, trials: Ints, width: int) -> None:
        self._base = fold(begin(seed), purpose, trials[:, None, None])
        self._width = width
        self._start = 0
        self._block = np.empty((len(trials), 0, width))

    def at(self, k: Ints) -> Floats:
        """The numbers of request `k[t]` of every trial t, shape (T, width)."""
        self._draw(int(k.min()), int(k.max()))
        return self._block[np.arange(len(k)), k - self._start]

    def _draw(self, first: int, last: int) -> None:
        if first < self._start or last >= self._start + self._block.shape[1]:
            self._start = first
            places = np.arange(first, last + _AHEAD)[None, :, None]
            self._block = numbers(fold(self._base, places, np.arange(self._width)))


class Roles:
    """Which examples validate and which train: the one drawing of roles, for campaigns, simulations and splits.

    The role of a group's k-th example is decided by seed, trial, group and k alone. Of the first two examples one trains
    and one validates. After them the rarer role comes once in every stretch of 1/share examples, at a place drawn by
    the seed: neither the order of the rows nor how they were cut into deliveries can steer it.

    Args:
        seed: the run's seed.
        trials: the numbers of the trials.
        groups: the numbers of the groups.
        share: the share of every group's examples that validates.

    >>> found = Roles(3, [0], [0], 0.3).of(0, 0, np.arange(10))
    >>> int(found[:2].sum()), int(found.sum())
    (1, 3)
    """

    def __init__(self, seed: int, trials: ArrayLike, groups: ArrayLike, share: float) -> None:
        self._states = fold(begin(seed), _ROLES, np.asarray(trials)[:, None], np.asarray(groups))
        self.share = share

    def of(self, trial: Ints | int, group: Ints | int, place: ArrayLike) -> Mask:
        """Whether examples validate, by the positions of their trials and groups, and their places in their groups."""
        k, rare = np.asarray(place, dtype=np.int64), min(self.share, 1 - self.share)
        # every group can be fitted and scored after its first pair, whatever the share
        first = k < 2
        # the tiny shift keeps 3·(1/3) on the right side of a whole number
        stretch = np.where(first, 0, 1 + np.floor((k - 2) * rare + 1e-9)).astype(np.int64)
        start = np.where(first, 0, 2 + np.ceil((stretch - 1) / rare - 1e-9))
        length = np.where(first, 2, 2 + np.ceil(stretch / rare - 1e-9) - start)
        # as arrays: the overflow that the hash is made of would be warned of in single numbers
        states = np.broadcast_to(self._states[trial, group], k.shape)
        chosen = k == start + np.floor(numbers(fold(states, stretch)) * length)
        return np.asarray(chosen if self.share <= 0.5 else ~chosen)


def places(salt: str, keys: Iterable[str]) -> list[int]:
    """Where rows stand in the order of a salt, from 0 up to 2^63: a hash of salt and key alone.

    Whoever does not know the salt can neither predict the order nor choose keys that come early or late in it. Where rows
    have no ids, their numbers are the keys.

    >>> places("a secret", ["7", "8"]) == places("a secret", ["8", "7"])[::-1]
    True
    """
    keyed = hashlib.blake2b(key=salt.encode(), digest_size=8)
    found = []
    for key in keys:
        one = keyed.copy()
        one.update(key.encode())
        found.append(int.from_bytes(one.digest(), "big") >> 1)  # 63 bits: what a database's integers hold
    return found
