"""In which order the rows of a pool are drawn, and which of them validate."""

from __future__ import annotations

from typing import Literal

import numpy as np

from evenhand.arrays import Ints, Mask
from evenhand.uniforms import Roles

Replace = Literal["never", "halves"]

BLOCK = 1 << 16


class Order:
    """The rows of one group in one trial, shuffled by (seed, trial, group) and known block by block.

    The first `held_out` rows are for testing, the others make the pool; with `strata`, a number per row, the test rows
    have each stratum in proportion. A row keeps its role for good, even if `replace="halves"` reshuffles the two
    halves once the pool is used up.
    """

    def __init__(
        self,
        key: tuple[int, int, int],
        size: int,
        *,
        held_out: int = 0,
        share: float = 0.5,
        replace: Replace = "never",
        strata: Ints | None = None,
    ) -> None:
        # by (seed, trial, group) alone: what one group gives does not depend on how often another was asked
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
        self._drawn = Roles(key[0], [key[1]], [key[2]], share)
        self._size = size
        self._held_out = held_out
        self._replace = replace
        # a trial of a thousand labels need not shuffle ten million rows; strata have to see all of them
        first = max(BLOCK, held_out) if strata is None or held_out == 0 else size
        self._shuffled = self._generator.choice(size, min(size, first), replace=False)
        if strata is not None and held_out > 0:
            self._shuffled = _in_proportion_first(self._shuffled, strata, held_out)

    @property
    def test(self) -> Ints:
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

    def known(self) -> tuple[Ints, Mask]:
        """Rows of the pool whose place in the order is known so far, and which of them validate."""
        return self._shuffled[self._held_out :], self._roles(0, self.settled)

    def more(self) -> bool:
        """Fix the next block of the order; returns False when the pool is used up."""
        done = len(self._shuffled)
        if done < self._size:
            # drawing the rest in blocks gives the same distribution as one shuffle, block by block
            rest = np.setdiff1d(np.arange(self._size), self._shuffled, assume_unique=True)
            block = self._generator.choice(rest, min(BLOCK, len(rest)), replace=False)
        elif self._replace == "halves":
            block = self._shuffled[self._held_out : self._size].copy()
            # half by half: a row that trained must never validate later
            validating = self._roles(0, self.pool)
            for half in (validating, ~validating):
                block[half] = self._generator.permutation(block[half])
        else:
            return False
        self._shuffled = np.concatenate([self._shuffled, block])
        return True

    def _roles(self, start: int, stop: int) -> Mask:
        return self._drawn.of(0, 0, np.arange(start, stop) % max(self.pool, 1))


def _in_proportion_first(shuffled: Ints, strata: Ints, count: int) -> Ints:
    """The same rows, the first `count` with every stratum in proportion; both parts stay in random order."""
    of = strata[shuffled]
    rank = np.empty(len(of))
    for stratum in np.unique(of):
        members = np.flatnonzero(of == stratum)
        # in front of every place each stratum then has its share, but for rounding
        rank[members] = (np.arange(len(members)) + 0.5) / len(members)
    front = np.zeros(len(of), dtype=bool)
    front[np.argsort(rank, kind="stable")[:count]] = True
    return np.concatenate([shuffled[front], shuffled[~front]])
