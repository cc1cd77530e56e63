"""Logistic regression, exact and quick to refit, as a learner and as a scikit-learn classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.arrays import Features, Floats, Ints, Positions, Values
from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.learners.logistic.objectives import BinaryRows, Rows, Softmax, softmax
from evenhand.learners.logistic.solver import DENSE_LIMIT, minimise
from evenhand.learners.weights import as_weights

if TYPE_CHECKING:
    from evenhand.learners.logistic.folds import LogisticFolds
    from evenhand.learners.logistic.reweighting import LogisticRefits


class Logistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """L2-regularised logistic regression with a free intercept: scikit-learn's objective, solved exactly.

    It takes two classes, or several (softmax); dense or sparse rows; numeric pandas, polars and pyarrow frames. While
    only one class has been seen, it always predicts that class, with probability (k+1)/(k+2) after k examples.

    Args:
        C: the inverse of the penalty's strength.
        tol: the largest entry allowed in the gradient of the mean objective, relative to a column's mean
            absolute value where that is above 1. If it cannot be reached, `ConvergenceError` is raised.

    Attributes:
        coef_: weights, (1, d) for two classes, (K, d) for more.
        intercept_: intercepts, (1,) or (K,) with sum zero.
        classes_: the labels seen, sorted.
        gradient_norm_: the certificate: the gradient's size, measured as `tol` is, at the returned point.

    Example:
        >>> model = Logistic(C=1.0).fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
        >>> model.predict([[0.5], [2.5]]).tolist()
        ['no', 'yes']
        >>> bool(model.gradient_norm_ <= model.tol)
        True
    """

    classes_: Values
    coef_: Floats
    intercept_: Floats
    gradient_norm_: float

    def __init__(self, C: float = 1.0, tol: float = 1e-8) -> None:
        self.C = C
        self.tol = tol

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        previous: Model | None = None,
        seed: int = 0,
    ) -> Self:
        """Fit, starting from the fitted Logistic `previous` if there is one; nothing is random, `seed` is ignored.

        A row of weight 0 has no effect.
        """
        self.check_settings()
        plain, labels = validate_data(self, numeric(X), y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(labels)
        weight = None if sample_weight is None else as_weights(sample_weight, plain.shape[0])
        if weight is not None:
            # a class of which all rows weigh nothing must not count as seen
            plain, labels, weight = plain[weight > 0], labels[weight > 0], weight[weight > 0]
        self.classes_, codes = np.unique(labels, return_inverse=True)
        K = len(self.classes_)
        if K == 1:
            self.gradient_norm_ = 0.0
            return self._set_parameters(constant(plain.shape[1], plain.shape[0] if weight is None else weight.sum()))
        rows = augment(plain)
        scale = column_scale(rows, weight, self.C, K)
        # the optimum is the same from anywhere; from the last one it takes fewer passes
        theta = self._start(previous, scale.shape[1])
        inverse = np.full((1, theta.size, theta.size), np.nan) if theta.size <= DENSE_LIMIT else None
        problem = problem_of(rows, codes, K, self.C, scale, weight)
        self.gradient_norm_ = float(minimise(problem, theta, inverse, self.tol)[0])
        return self._set_parameters(theta)

    def refits(self, X: Features, y: ArrayLike, tol: float | None = None) -> LogisticRefits:
        """Fits of these rows under changing weights; each starts from the last optimum."""
        from evenhand.learners.logistic.reweighting import LogisticRefits

        return LogisticRefits(self, X, y, tol)

    def refits_of_folds(self, X: Features, y: ArrayLike, fold: Ints, tol: float) -> LogisticFolds | None:
        """Fits with each fold left out in turn; None unless all have two classes and a moderate number of columns."""
        from evenhand.learners.logistic.folds import LogisticFolds

        rows, (classes, codes) = as_matrix(X), np.unique(np.asarray(y), return_inverse=True)
        if len(classes) != 2 or rows.shape[1] >= DENSE_LIMIT:
            return None
        both = all(np.ptp(codes[fold != k]) > 0 for k in range(int(fold.max()) + 1))
        return LogisticFolds(self, rows, y, fold, tol) if both else None

    @classmethod
    def fitted(cls, settings: Logistic, classes: Values, theta: Floats, norm: float) -> Self:
        """A fitted model from the parameters of its classes, each with the intercept last."""
        model = cls(C=settings.C, tol=settings.tol)
        model.classes_, model.gradient_norm_ = classes, float(norm)
        return model._set_parameters(theta)

    def predict(self, X: Features) -> Values:
        """The predicted label of every row."""
        score = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, len(score))
        best: Any = (score > 0).astype(np.intp) if score.ndim == 1 else score.argmax(axis=1)
        labels: Values = self.classes_[best]
        return labels

    def decision_function(self, X: Features) -> Floats:
        """Scores: (n,) for two classes, where a positive score predicts the second class; (n, K) for more."""
        check_is_fitted(self)
        given = numeric(X)
        # scikit-learn warns about names that a model was not fitted with
        if hasattr(given, "columns") and not hasattr(self, "feature_names_in_"):
            given = given.to_numpy()  # it was fitted on plain numbers
        rows = validate_data(self, given, accept_sparse="csr", dtype=np.float64, reset=False)
        scores: Floats = rows @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Features) -> Floats:
        """The probability of every class; after one class only, the rest up to 1 is left for classes not seen yet."""
        score = self.decision_function(X)
        if score.ndim == 1:
            score = np.column_stack((np.zeros_like(score), score))
        return softmax(score)[:, -len(self.classes_) :]

    def predict_log_proba(self, X: Features) -> Floats:
        """The logarithm of the probability of every class, precise also where that is tiny."""
        return log_chances(self.decision_function(X), len(self.classes_))

    @property
    def classes(self) -> Values:
        """The labels seen, sorted."""
        return self.classes_

    def check_settings(self) -> None:
        """Refuse settings that are not positive numbers."""
        for name in ("C", "tol"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float, np.number)) and 0 < value < np.inf):
                raise InputError(f"{name} must be a positive number, not {value!r}")

    def _start(self, previous: object, size: int) -> Floats:
        """The parameters of `previous` if they fit this problem, else zeros."""
        # with other classes the parameters mean something else
        if isinstance(previous, Logistic) and np.array_equal(getattr(previous, "classes_", ()), self.classes_):
            theta = np.column_stack((previous.coef_, previous.intercept_)).reshape(1, -1)
            if theta.size == size:
                return theta
        return np.zeros((1, size))

    def _set_parameters(self, theta: Floats) -> Self:
        K = len(self.classes_)
        parts = theta.reshape(K if K > 2 else 1, -1)
        self.coef_, self.intercept_ = parts[:, :-1].copy(), parts[:, -1].copy()
        self.n_features_in_ = self.coef_.shape[1]
        if K > 2:
            # only differences of intercepts matter; with sum
            # zero the same fit always has the same numbers
            self.intercept_ -= self.intercept_.mean()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def numeric(X: Features) -> Any:
    """X in a form scikit-learn reads; the columns of a frame that are not numbers are refused by name."""
    frame = X if isinstance(X, np.ndarray) else nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return X
    other = [name for name, kind in frame.schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]
    if other:
        raise InputError(
            f"Logistic needs numbers, but the columns {other} are not: encode them, or give "
            "SklearnLearner(make_pipeline(encoder, classifier)) as the learner"
        )
    # scikit-learn reads the names of these two, and then refuses columns in another order
    named = frame.implementation.is_pandas() or frame.implementation.is_polars()
    return X if named else frame.to_numpy()


def as_matrix(X: Features) -> Any:
    """Rows of any kind as a matrix of numbers."""
    X = numeric(X)
    return X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, dtype=float)


def constant(features: int, examples: float) -> Floats:
    """Parameters of the constant classifier: probability (k+1)/(k+2) of the only class after k examples."""
    return np.append(np.zeros(features), np.log(examples + 1.0))


def augment(X: Rows) -> Rows:
    """Rows with a trailing 1 for the intercept."""
    ones = np.ones((X.shape[0], 1))
    if isinstance(X, np.ndarray):
        return np.hstack((X, ones))
    rows: sparse.csr_array = sparse.hstack((sparse.csr_array(X), sparse.csr_array(ones)), format="csr")
    return rows


def column_scale(rows: Rows, weight: Floats | None, C: float, K: int) -> Floats:
    """What gradients are divided by to measure them, (1, q): C·Σs and each column's size where it exceeds 1."""
    s = np.ones(rows.shape[0]) if weight is None else weight
    absolute: Any = abs(rows)
    # a column in grams has gradients a thousand times those in kilograms: each is measured against its own size
    size = np.maximum(s.sum(), absolute.T @ s)
    return C * np.tile(size, K if K > 2 else 1)[None]


def problem_of(
    rows: Rows, codes: Positions, K: int, C: float, scale: Floats, weight: Floats | None = None
) -> BinaryRows | Softmax:
    """The objective of one data set with K classes, all of them seen."""
    if K == 2:
        return BinaryRows(rows, np.where(codes == 1, 1.0, -1.0), C, scale, weight)
    return Softmax(rows, codes, K, C, scale, weight)


def log_chances(score: Floats, K: int) -> Floats:
    """Log-probabilities (n, K) from the scores of a model of K classes; a single class does not get all of it."""
    if K > 2:
        return np.asarray(score - logsumexp(score, axis=1, keepdims=True))
    # log σ(s) by logaddexp: exact where σ rounds to 0 or 1
    second = -np.logaddexp(0.0, -score)
    return second[:, None] if K == 1 else np.column_stack((-np.logaddexp(0.0, score), second))
