"""Splits that keep all rows of a person, or of any other unit, on one side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import Ints, Mask
from evenhand.sources.order import Replace
from evenhand.tables.problems import TableError, names
from evenhand.uniforms import Roles

__all__ = ["Sides", "UnitOrder", "assign", "check_sides"]

_PURPOSE = 11
"""The purpose of these random numbers, apart from those of row orders."""


@dataclass(frozen=True)
class Sides:
    """The side of every row in one trial: it tests, validates or trains."""

    test: Mask
    validates: Mask


def assign(units: Ints, groups: Ints, key: tuple[int, int], *, held_out: float, most: int, validation: float) -> Sides:
    """Sides for all rows, drawn unit by unit; a unit counts with the group of its first row.

    Args:
        units: the unit of every row, as numbers from 0 up.
        groups: the group of every row, −1 for a row left out.
        key: seed and trial.
        held_out: the share of each group's rows to test on.
        most: the most test rows of a group.
        validation: the share of the other units that validates.
    """
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((*key, _PURPOSE))))
    order = generator.permutation(int(units.max()) + 1)
    rows = np.bincount(units[groups >= 0], minlength=len(order))
    first = np.full(len(order), -1, dtype=np.int64)
    kept = np.flatnonzero(groups >= 0)[::-1]
    first[units[kept]] = groups[kept]  # the first row of a unit is written last
    test, validates = np.zeros(len(order), dtype=bool), np.zeros(len(order), dtype=bool)
    for z in range(int(groups.max()) + 1):
        own = order[first[order] == z]
        total = rows[own].cumsum()
        # by rows, not by units: one unit may have a hundred rows and another one
        goal = min(held_out * rows[own].sum(), most)
        tested = total <= goal
        if held_out > 0 and len(own) > 2:
            tested[0] = True
        tested &= np.arange(len(own)) < max(len(own) - 2, 0)  # one unit is left to train on and one to validate
        test[own] = tested
        left = np.arange(np.count_nonzero(~tested))
        validates[own[~tested]] = Roles(key[0], [key[1]], [z], validation).of(0, 0, left)
    return Sides(test[units], validates[units] & ~test[units])


class UnitOrder:
    """The rows of one group in one trial, shuffled, with sides drawn unit by unit; otherwise like `Order`."""

    def __init__(self, key: tuple[int, int, int], sides: Sides, rows: Ints, replace: Replace) -> None:
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
        shuffled = self._generator.permutation(len(rows))
        self.test = shuffled[sides.test[rows[shuffled]]]
        self._order = shuffled[~sides.test[rows[shuffled]]]
        self._validates = sides.validates[rows[self._order]]
        self._replace = replace
        self.pool = len(self._order)

    @property
    def settled(self) -> int:
        """How many places of the order are known so far."""
        return len(self._order)

    def known(self) -> tuple[Ints, Mask]:
        """Rows of the pool whose place in the order is known so far, and which of them validate."""
        return self._order, self._validates

    def more(self) -> bool:
        """Go through the two halves once more, if draws are with replacement."""
        if self._replace != "halves" or not self.pool:
            return False
        block, validates = self._order[: self.pool].copy(), self._validates[: self.pool]
        for half in (validates, ~validates):
            block[half] = self._generator.permutation(block[half])
        self._order = np.concatenate([self._order, block])
        self._validates = np.concatenate([self._validates, validates])
        return True


def check_sides(orders: Sequence[UnitOrder], groups: Sequence[str]) -> None:
    """Refuse groups that are left with nothing to train on or nothing to validate."""
    one_sided = [g for g, o in zip(groups, orders, strict=True) if len(set(o.known()[1].tolist())) < 2]
    if one_sided:
        raise TableError(
            f"{names(one_sided)} has rows of too few units to be split (split_by): one has to train and another to "
            "validate; merge or exclude the group."
        )
