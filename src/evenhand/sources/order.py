"""In which order the rows of a pool are drawn, and which of them validate."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["BLOCK", "Order", "Replace", "roles"]

Replace = Literal["never", "halves"]

BLOCK = 1 << 16


def roles(start: int, stop: int, share: float) -> NDArray[np.bool_]:
    """Which of the positions start … stop−1 of a group's order validate.

    The first trains, the second validates; after k rows the nearest whole number to `share·k` validates.

    >>> roles(0, 6, 0.5).tolist()
    [False, True, False, True, False, True]
    """
    k = np.arange(start, stop + 1)
    validating = np.where(k < 2, 0, np.clip(np.ceil(k * share - 0.5), 1, np.maximum(k - 1, 1)))
    return np.diff(validating) > 0


class Order:
    """The rows of one group in one trial, shuffled by (seed, trial, group) and known block by block.

    The first `held_out` rows are for testing, the others make the pool. A row keeps its role for good, also where
    `replace="halves"` reshuffles the two halves once the pool is used up.
    """

    def __init__(
        self, key: tuple[int, int, int], size: int, *, held_out: int = 0, share: float = 0.5, replace: Replace = "never"
    ) -> None:
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
        self._size = size
        self._held_out = held_out
        self._share = share
        self._replace = replace
        self._shuffled = self._generator.choice(size, min(size, max(BLOCK, held_out)), replace=False)

    @property
    def test(self) -> NDArray[np.int64]:
        """The rows held out, as positions within the group."""
        return self._shuffled[: self._held_out]

    @property
    def pool(self) -> int:
        """How many rows can be drawn before one repeats."""
        return self._size - self._held_out

    @property
    def settled(self) -> int:
        """How many places of the order are known so far."""
        return len(self._shuffled) - self._held_out

    def known(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Rows of the pool whose place in the order is known so far, and which of them validate."""
        return self._shuffled[self._held_out :], self._roles(0, self.settled)

    def more(self) -> bool:
        """Settle the next block of the order; False when the pool is used up."""
        done = len(self._shuffled)
        if done < self._size:
            rest = np.setdiff1d(np.arange(self._size), self._shuffled, assume_unique=True)
            block = self._generator.choice(rest, min(BLOCK, len(rest)), replace=False)
        elif self._replace == "halves":
            block = self._shuffled[self._held_out : self._size].copy()
            validating = self._roles(0, self.pool)
            for half in (validating, ~validating):
                block[half] = self._generator.permutation(block[half])
        else:
            return False
        self._shuffled = np.concatenate([self._shuffled, block])
        return True

    def _roles(self, start: int, stop: int) -> NDArray[np.bool_]:
        once = roles(0, min(self.pool, stop), self._share)
        return once[np.arange(start, stop) % max(self.pool, 1)]
