"""Accuracy and confusions per group on test rows, for linear rules in one sparse product."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from evenhand.arrays import Floats, Ints, Mask
from evenhand.sources.table.pool import TestPart


def by_group(values: Floats, counts: Ints) -> Floats:
    """Means of rows sorted by group, (n, s) to (m, s); NaN for a group without rows.

    >>> by_group(np.array([[1.0], [0.0], [1.0]]), np.array([2, 0, 1])).ravel().tolist()
    [0.5, nan, 1.0]
    """
    # one running sum for all groups: rows are sorted by group, so a group is a difference of two
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    ends = np.cumsum(counts)
    totals = sums[ends] - sums[ends - counts]
    means: Floats = np.divide(totals, counts[:, None], out=np.full(totals.shape, np.nan), where=counts[:, None] > 0)
    return means


class LinearScores:
    """Unscaled test rows, ready to be multiplied with rules that include the scaling."""

    def __init__(self, test: TestPart, d: int) -> None:
        rows = test.rows
        n, p = rows.numbers.shape
        none = rows.categories < 0
        gaps = np.isnan(rows.numbers)
        self._gaps = sparse.csr_array(gaps.astype(np.float64)) if gaps.any() else None
        data = np.concatenate([np.where(gaps, 0.0, rows.numbers), np.where(none, 0.0, 1.0)], axis=1)
        indices = np.concatenate(
            [np.broadcast_to(np.arange(p), (n, p)), np.where(none, ~rows.categories, rows.categories)], 1
        )
        indptr = np.arange(n + 1) * indices.shape[1]
        self._rows = sparse.csr_array((data.ravel(), indices.ravel().astype(np.int32), indptr), shape=(n, d))
        # the 0 of a missing number or of no category stood in so that every row had the same length
        self._rows.eliminate_zeros()
        self._positive = test.y == 1
        self._counts = test.counts

    def accuracies(self, coef: Floats, intercept: Floats, gaps: Floats) -> Floats:
        """Accuracy of s rules, (s, d), (s,) and (s, p) for missing numbers, on every group: (s, m)."""
        right = self._predicted(coef, intercept, gaps) == self._positive[:, None]
        return by_group(right.astype(np.float64), self._counts).T

    def confusions(self, coef: Floats, intercept: Floats, gaps: Floats) -> Floats:
        """How often each label and prediction come together, for s rules on every group: (s, m, 2, 2)."""
        predicted, positive = self._predicted(coef, intercept, gaps), self._positive[:, None]
        cell = 2 * np.repeat(np.arange(len(self._counts)), self._counts)[:, None] + positive
        rule = 2 * len(self._counts) * np.arange(predicted.shape[1])
        places = 2 * (cell + rule) + predicted
        return (
            np.bincount(places.ravel(), minlength=4 * len(self._counts) * predicted.shape[1])
            .reshape(predicted.shape[1], len(self._counts), 2, 2)
            .astype(float)
        )

    def _predicted(self, coef: Floats, intercept: Floats, gaps: Floats) -> Mask:
        """Where the rules predict the second class, (n, s)."""
        scores = np.asarray(self._rows @ coef.T) + intercept
        if self._gaps is not None:
            # what a rule adds for a missing number is its own: the encoder's fill is folded into it
            scores += np.asarray(self._gaps @ gaps.T)
        return np.asarray(scores > 0)
