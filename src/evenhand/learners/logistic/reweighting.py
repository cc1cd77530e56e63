"""Repeated fits of the same rows under other weights and penalties; each starts from the last optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Features, Floats, Ints
from evenhand.learners.logistic.learner import Logistic, as_matrix, augment, constant, log_chances, problem_of
from evenhand.learners.logistic.solver import DENSE_LIMIT, minimise
from evenhand.risks import Measure, Outcomes, of_log_chances

__all__ = ["LogisticRefits"]

_LARGEST = 50_000_000


class LogisticRefits:
    """Fits of `Logistic` on fixed rows; parameters and inverse Hessian are kept, so that a refit takes a few passes.

    Where there are more columns than rows, all is computed in the space that the rows span: the penalty keeps every
    optimum in it, and a Hessian of 100 parameters is inverted ten thousand times as quickly as one of 2,000.

    Args:
        settings: the learner; it is not fitted.
        X, y: the rows, as numbers, and their labels.
        tol: the tolerance of these fits, which may be looser than the learner's: they only compare weights.
    """

    def __init__(self, settings: Logistic, X: Features, y: ArrayLike, tol: float | None = None) -> None:
        settings.check_settings()
        self.C, self.tol = settings.C, settings.tol if tol is None else tol
        self.classes, self._codes = np.unique(np.asarray(y), return_inverse=True)
        rows = as_matrix(X)
        self._turn = _basis(rows)
        self._rows = augment(self._turned(rows))
        size: Any = abs(self._rows)
        self._size = size.T
        q = self._rows.shape[1] * (1 if len(self.classes) <= 2 else len(self.classes))
        # kept between fits: weights that change a little move the optimum a little
        self._theta = np.zeros((1, q))
        self._inverse = np.full((1, q, q), np.nan) if q <= DENSE_LIMIT else None
        self._held: tuple[Any, Any] = (X, self._rows)

    @property
    def last(self) -> Logistic:
        """The model of the last fit."""
        return Logistic.fitted(Logistic(C=self.C, tol=self.tol), self.classes, self._parameters(), self.tol)

    def fit(self, weight: Floats, C: float | None = None) -> Logistic:
        """The model under these weights, all above 0; `C` replaces the learner's own."""
        norm = self._solve(weight, C)
        settings = Logistic(C=self.C if C is None else C, tol=self.tol)
        return Logistic.fitted(settings, self.classes, self._parameters(), norm)

    def outcomes(self, weight: Floats, C: float | None, measure: Measure, X: Features, y: Ints) -> Outcomes:
        """Outcomes of that model on other rows; `y` are positions in the measure's classes."""
        if measure.risk.function is not None:
            return measure.of_model(self.fit(weight, C), X, np.asarray(measure.classes)[y])
        self._solve(weight, C)
        K, known = len(self.classes), measure.codes(self.classes)
        if self._held[0] is not X:  # the same rows are asked about again and again
            self._held = (X, augment(self._turned(as_matrix(X))))
        scores = self._held[1] @ self._theta.reshape(K if K > 2 else 1, -1).T
        score = scores[:, 0] if K <= 2 else scores
        best = np.zeros(len(y), dtype=np.intp) if K == 1 else score > 0 if K == 2 else score.argmax(axis=1)
        values = None
        if measure.table is None:
            column = np.full(len(measure.classes), -1)
            column[known] = np.arange(K)
            values = of_log_chances(log_chances(score, K), column[y])
        return measure.of_codes(y, known[np.asarray(best, dtype=np.intp)], values)

    def _turned(self, rows: Any) -> Any:
        return rows if self._turn is None else rows @ self._turn

    def _parameters(self) -> Floats:
        """The parameters in the columns as they were given."""
        if self._turn is None:
            return self._theta.copy()
        theta = self._theta.reshape(-1, self._rows.shape[1])
        return np.hstack([theta[:, :-1] @ self._turn.T, theta[:, -1:]]).reshape(1, -1)

    def _solve(self, weight: Floats, C: float | None) -> float:
        """Move to the optimum under these weights and return the gradient's norm there."""
        C, K = self.C if C is None else C, len(self.classes)
        if K == 1:
            self._theta = constant(self._rows.shape[1] - 1, weight.sum())[None]
            return 0.0
        scale = C * np.tile(np.maximum(weight.sum(), self._size @ weight), K if K > 2 else 1)[None]
        problem = problem_of(self._rows, self._codes, K, C, scale, weight)
        # the size of the next step does not matter where the tolerance was loosened
        step = np.inf if self.tol > 1e-8 else 1e-8
        return float(minimise(problem, self._theta, self._inverse, self.tol, step)[0])


def _basis(rows: Any) -> Floats | None:
    """An orthonormal basis of the space that the rows span, a column each; None where it would save nothing."""
    n, d = rows.shape
    # a sparse matrix that large is not made dense
    if d <= n or n * d > _LARGEST:
        return None
    dense = rows.toarray() if hasattr(rows, "toarray") else rows
    return np.asarray(np.linalg.qr(dense.T)[0])
