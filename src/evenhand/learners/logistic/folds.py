"""Fits with each fold left out in turn, all folds at once, repeated under other weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, Ints
from evenhand.learners.logistic.learner import Logistic, augment, log_chances
from evenhand.learners.logistic.objectives import Rows, SharedRows
from evenhand.learners.logistic.solver import minimise
from evenhand.risks import Measure, Outcomes, of_log_chances


class LogisticFolds:
    """Fits of `Logistic` to two classes, a fit for every fold; parameters and inverse Hessians are kept.

    The folds share the rows: a row that is left out has weight 0. The first fits start from the fit of all rows, which
    is near, and not from each other: a row that was left out may be far from any model fitted without it.

    Args:
        settings: the learner; it is not fitted.
        X, y: the rows, dense or CSR, and their labels.
        fold: the fold of every row, numbered from 0.
        tol: the tolerance of these fits, which may be looser than the learner's: they only compare weights.
    """

    def __init__(self, settings: Logistic, X: Rows, y: ArrayLike, fold: Ints, tol: float) -> None:
        settings.check_settings()
        self.C, self.tol, self._fold = settings.C, tol, fold
        self.classes, codes = np.unique(np.asarray(y), return_inverse=True)
        self._rows, self._sign = augment(X), np.where(codes == 1, 1.0, -1.0)
        # measured once: weights change what the tolerance is relative to, but not by much
        size: Any = abs(self._rows)
        self._size = np.maximum(size.mean(axis=0), 1.0)
        self._theta: Floats | None = None
        self._inverse = np.empty(0)

    @property
    def last(self) -> Logistic | None:
        """The model of all rows but the first fold's under the weights last given; None before the first fit."""
        if self._theta is None:
            return None
        return Logistic.fitted(Logistic(C=self.C, tol=self.tol), self.classes, self._theta[:1].copy(), self.tol)

    def outcomes(self, weight: Floats, C: float | None, measure: Measure, y: Ints) -> Outcomes:
        """Outcomes on every row of the model fitted without the row's fold.

        Args:
            weight: the weight of every row in every fold's fit, (rows, folds).
            C: replaces the learner's own, if given.
            measure: what is measured.
            y: the labels as positions in the measure's classes.
        """
        C = self.C if C is None else C
        if self._theta is None:
            folds = weight.shape[1]
            theta, inverse = self._solved_for_all(weight.sum(axis=1, keepdims=True) / (folds - 1), C)
            self._theta, self._inverse = (np.repeat(part, folds, axis=0) for part in (theta, inverse))
            self._inverse *= folds / (folds - 1)  # the fewer rows, the less curvature
        self._minimise(weight, C, self._theta, self._inverse)
        score = (self._rows @ self._theta.T)[np.arange(len(y)), self._fold]
        known, values = measure.codes(self.classes), None
        if measure.table is None:
            column = np.full(len(measure.classes), -1)
            column[known] = np.arange(2)
            values = of_log_chances(log_chances(score, 2), column[y])
        return measure.of_codes(y, known[(score > 0).astype(np.intp)], values)

    def _solved_for_all(self, weight: Floats, C: float) -> tuple[Floats, Floats]:
        """Parameters and inverse Hessian of the fit of all rows."""
        p = self._rows.shape[1]
        theta, inverse = np.zeros((1, p)), np.full((1, p, p), np.nan)
        self._minimise(weight, C, theta, inverse)
        return theta, inverse

    def _minimise(self, weight: Floats, C: float, theta: Floats, inverse: Floats) -> None:
        scale = C * weight.sum(axis=0)[:, None] * self._size
        # the size of the next step does not matter where only weights are compared
        minimise(SharedRows(self._rows, self._sign, C, scale, weight), theta, inverse, self.tol, np.inf)
