"""What is trained (a learner) and the result (a model), as protocols any class can satisfy."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from evenhand.arrays import Values

__all__ = ["Learner", "Model"]


@runtime_checkable
class Model(Protocol):
    """A trained classifier.

    For the log loss it also needs `predict_proba` or `predict_log_proba`; the latter is precise for tiny probabilities.
    """

    @property
    def classes(self) -> Values:
        """The labels it knows, sorted."""

    def predict(self, X: Any) -> Values:
        """The predicted label of every row."""


@runtime_checkable
class Learner(Protocol):
    """Something that can be fitted; `previous` is the model it may start from.

    A learner with `needs_groups = True` is also given `groups=`, the group of every row; one with `needs_columns = True`
    gets the columns of a table as they are, in a pandas frame. One whose `fit` has no `sample_weight` works except
    where rows are weighted.
    """

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, previous: Any = None, seed: int = 0) -> Model:
        """Fit a model on the rows of X with labels y; each row counts as often as its weight says."""
