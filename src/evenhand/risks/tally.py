"""How well a model does on examples, one by one and in sums by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evenhand.arrays import Floats, Ints, Mask


class Outcomes(NamedTuple):
    """How well a model does on each of some examples.

    Attributes:
        values: the loss of each example.
        relevant: which of them the risk is about.
        wrong: which of them the model gets wrong.
        stratum: the class of each where class means are averaged, else 0.
    """

    values: Floats
    relevant: Mask
    wrong: Mask
    stratum: Ints

    @classmethod
    def joined(cls, parts: Sequence[Outcomes]) -> Outcomes:
        """The examples of all parts, one after the other."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class Tally(NamedTuple):
    """Losses by cell, in as many parts as the risk has strata.

    Attributes:
        total: sum of the losses of relevant examples, (cells, strata).
        relevant: how many there are, (cells, strata).
        wrong: errors, (cells,).
        n: examples, (cells,).
    """

    total: Floats
    relevant: Ints
    wrong: Ints
    n: Ints

    @classmethod
    def empty(cls, cells: int, strata: int) -> Tally:
        """No examples yet."""
        whole = (np.zeros(shape, dtype=np.int64) for shape in ((cells, strata), cells, cells))
        return cls(np.zeros((cells, strata)), *whole)

    def copy(self) -> Tally:
        """A copy of the sums."""
        return Tally(self.total.copy(), self.relevant.copy(), self.wrong.copy(), self.n.copy())

    @property
    def behind(self) -> Ints:
        """How many relevant examples are behind each cell's risk."""
        return np.asarray(self.relevant.sum(axis=-1))

    @property
    def accuracy(self) -> Floats:
        """The share of each cell's examples that are predicted correctly; NaN for a cell without examples."""
        return np.asarray(np.where(self.n > 0, (self.n - self.wrong) / np.maximum(self.n, 1), np.nan))

    @property
    def mean(self) -> Floats:
        """The risk of each cell, the mean of its strata that have examples; NaN if none has."""
        some = self.relevant > 0
        means = np.where(some, self.total / np.maximum(self.relevant, 1), 0.0)
        parts = some.sum(axis=-1)
        return np.asarray(np.where(parts > 0, means.sum(axis=-1) / np.maximum(parts, 1), np.nan))

    @property
    def loss_sum(self) -> Floats:
        """The risk times the number of examples behind it; with one stratum this is the sum of the losses."""
        if self.total.shape[-1] == 1:
            return np.asarray(self.total[..., 0])
        # the mean of class means is no sum over examples; times
        # the examples behind it, strategies can treat it as one
        return np.asarray(np.nan_to_num(self.mean) * self.behind)


def accuracy_of(confusions: Floats) -> Floats:
    """Accuracies from the counts or chances of every true and predicted class together, (…, K, K); NaN without any.

    >>> accuracy_of(np.array([[3.0, 1.0], [0.0, 4.0]])).tolist()
    0.875
    """
    right, n = np.trace(confusions, axis1=-2, axis2=-1), confusions.sum(axis=(-2, -1))
    return np.asarray(np.where(n > 0, right / np.where(n > 0, n, 1.0), np.nan))
