"""Any scikit-learn classifier or Pipeline as a learner."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Features, Floats, Values
from evenhand.errors import InputError, LearnerError
from evenhand.learners.base import Model
from evenhand.learners.columns import selects_columns
from evenhand.learners.weights import as_weights, weight_key

__all__ = ["ConstantModel", "SklearnLearner", "SklearnModel"]


@dataclass(frozen=True)
class ConstantModel:
    """Always predicts the only class seen, with probability (k+1)/(k+2) after k examples."""

    label: Any
    examples: int

    @property
    def classes(self) -> Values:
        """The one class seen."""
        return np.array([self.label])

    def predict(self, X: Any) -> Values:
        """That class, for every row."""
        return np.full(len(X) if not hasattr(X, "shape") else X.shape[0], self.label)

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of its probability, for every row; the rest belongs to classes not seen yet."""
        return np.full((len(self.predict(X)), 1), np.log((self.examples + 1) / (self.examples + 2)))

    def predict_proba(self, X: Any) -> Floats:
        """Its probability, for every row."""
        return np.exp(self.predict_log_proba(X))


_FEW = 20


@contextmanager
def _failing(estimator: Any, what: str) -> Iterator[None]:
    """Turn an error of the classifier into a `LearnerError`: it is the learner that failed, not Evenhand."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise LearnerError(f"{type(estimator).__name__} failed in {what}: {error}") from error


@contextmanager
def _warning(estimator: Any) -> Iterator[None]:
    """Pass on what the classifier warns of once, and say that it is the classifier that does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for category, text in dict.fromkeys((each.category, " ".join(str(each.message).split())) for each in caught):
        # the same category, so that whoever filters it out still does; the same text each time, so that it is shown once
        warnings.warn(f"the learner {type(estimator).__name__} warns: {text}", category, stacklevel=4)


@dataclass(frozen=True)
class SklearnModel:
    """A fitted scikit-learn classifier."""

    estimator: Any

    @property
    def classes(self) -> Values:
        """The labels it knows."""
        return np.asarray(self.estimator.classes_)

    def predict(self, X: Features) -> Values:
        """The predicted label of every row."""
        with _failing(self.estimator, "predict"):
            return np.asarray(self.estimator.predict(X))

    def predict_proba(self, X: Features) -> Floats:
        """The probability of every class, where the classifier gives one."""
        with _failing(self.estimator, "predict_proba"):
            return np.asarray(self.estimator.predict_proba(X))


@dataclass(frozen=True)
class SklearnLearner:
    """Wraps a scikit-learn classifier or Pipeline; the object given is cloned, never fitted.

    Args:
        estimator: the classifier.
        update: `"refit"` fits a clone from scratch; `"partial_fit"` continues from the previous model with one
            `partial_fit` over the whole training set.
        columns: `"raw"` gives the classifier a table's columns as they are, in a pandas frame; `"encoded"` gives it
            numbers, with text one-hot; `"auto"` gives raw columns if a ColumnTransformer selects them by name or type.
    """

    estimator: Any
    update: str = "refit"
    columns: str = "auto"

    def __post_init__(self) -> None:
        if self.update not in ("refit", "partial_fit"):
            raise InputError(f"update must be 'refit' or 'partial_fit', not {self.update!r}")
        if self.columns not in ("auto", "raw", "encoded"):
            raise InputError(f"columns must be 'auto', 'raw' or 'encoded', not {self.columns!r}")
        if not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "predict")):
            raise InputError(f"{self.estimator!r} has no fit and predict: give a scikit-learn classifier or Pipeline")
        if self.update == "partial_fit" and not hasattr(self.estimator, "partial_fit"):
            raise InputError(f"{type(self.estimator).__name__} has no partial_fit: use update='refit'")

    @property
    def incremental(self) -> bool:
        """Whether a model depends on the models before it."""
        return self.update == "partial_fit"

    @property
    def needs_columns(self) -> bool:
        """Whether it is given the columns of a table as they are."""
        return self.columns == "raw" or (self.columns == "auto" and selects_columns(self.estimator))

    @property
    def gives_probabilities(self) -> bool:
        """Whether the classifier gives probabilities, which the log loss needs."""
        return hasattr(self.estimator, "predict_proba")

    @property
    def takes_weights(self) -> bool:
        """Whether the classifier, the last step of a Pipeline, can be fitted with weights."""
        return self._weight_key() is not None

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        previous: Model | None = None,
        seed: int = 0,
    ) -> SklearnModel | ConstantModel:
        """Fit a clone; while there is only one class, the model always predicts that class."""
        from copy import deepcopy

        more = self._weighted(sample_weight, np.size(y))
        seen = np.unique(y)
        # scikit-learn refuses a single class, which the first rounds of a campaign often are
        if len(seen) == 1:
            return ConstantModel(seen[0], np.size(y))
        n = np.size(y)
        # what the first rounds of a campaign bring may be too little for a learner that splits its rows again
        few = ", too few for it? raise batch (--batch)" if n < _FEW else ""
        with _failing(self.estimator, f"fit on {n} rows{few}"), _warning(self.estimator):
            # a new class cannot be added to a fitted model: a new one is started
            if self.incremental and isinstance(previous, SklearnModel) and np.isin(seen, previous.classes).all():
                # partial_fit changes the estimator, and the previous model may still be in use
                estimator = deepcopy(previous.estimator)
                return SklearnModel(estimator.partial_fit(X, y, **more))
            estimator = self._fresh(seed)
            if self.incremental:
                return SklearnModel(estimator.partial_fit(X, y, classes=seen, **more))
            return SklearnModel(estimator.fit(X, y, **more))

    def _weighted(self, sample_weight: ArrayLike | None, n: int) -> dict[str, Any]:
        """The weights under the keyword that the classifier expects; refused if it takes none."""
        if sample_weight is None:
            return {}
        key = self._weight_key()
        if key is None:
            name = type(self.estimator).__name__
            raise InputError(f"{name} takes no sample_weight: fit it without, or use a classifier that does")
        return {key: as_weights(sample_weight, n)}

    def _weight_key(self) -> str | None:
        return weight_key(self.estimator, "partial_fit" if self.incremental else "fit")

    def _fresh(self, seed: int) -> Any:
        """A clone whose open random states are set by the seed."""
        from sklearn.base import clone

        estimator = clone(self.estimator)
        # a Pipeline's steps too; a state the user set stays, it is their experiment
        unset = {
            name: seed % 2**32
            for name, value in estimator.get_params().items()
            if name.split("__")[-1] == "random_state" and value is None
        }
        return estimator.set_params(**unset)
