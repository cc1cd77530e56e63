"""What is trained (a learner) and the result (a model), as protocols any class can satisfy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError

__all__ = ["Learner", "Loss", "Model", "losses", "losses_of"]

Loss = str | Callable[["Model", Any, Any], NDArray[np.float64]]
"""`"zero_one"`, `"log"`, or a callable `(model, X, y)` that gives one number per example."""


@runtime_checkable
class Model(Protocol):
    """A trained classifier; `predict_proba` where there is one, for the log loss."""

    @property
    def classes(self) -> NDArray[Any]:
        """The labels it knows, sorted."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted label of every row."""


@runtime_checkable
class Learner(Protocol):
    """Something that can be fitted; `previous` is the model it may start from.

    A learner with `needs_groups = True` is also given `groups=`, the group of every row. One whose `fit` has no
    `sample_weight` works everywhere but where rows are weighted.
    """

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, previous: Any = None, seed: int = 0) -> Model:
        """The model fitted on the rows of X with labels y, each counted as often as its weight says."""


def losses(model: Any, X: Any, y: Any, kind: Loss = "zero_one") -> NDArray[np.float64]:
    """One loss per row: the model's own, or from what it predicts."""
    own = getattr(model, "losses", None)
    return np.asarray(losses_of(model, X, y, kind) if own is None else own(X, y, kind), dtype=float)


def losses_of(model: Any, X: Any, y: Any, kind: Loss) -> NDArray[np.float64]:
    """One loss per row for a model with `predict` and, for the log loss, `predict_proba`.

    A label the model has never seen costs the log loss of a probability of 1e-15.
    """
    y = np.asarray(y)
    if callable(kind):
        return np.asarray(kind(model, X, y), dtype=float)
    if kind == "zero_one":
        return np.asarray(np.asarray(model.predict(X)) != y, dtype=float)
    if kind != "log":
        raise InputError(f"unknown loss {kind!r}: use 'zero_one', 'log' or a callable (model, X, y)")
    chance = np.asarray(model.predict_proba(X))
    known = list(model.classes)
    column = np.array([known.index(label) if label in known else -1 for label in y.tolist()])
    p = np.where(column >= 0, chance[np.arange(len(y)), column], 0.0)
    return np.asarray(-np.log(np.clip(p, 1e-15, 1.0)))
