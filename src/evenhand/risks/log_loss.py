"""Errors and log losses of single examples, from a model or from its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, Ints, Mask
from evenhand.errors import InputError

UNSEEN = -float(np.log(1e-15))
"""The log loss of a label that the model has never seen."""


def is_wrong(model: Any, X: Any, y: ArrayLike) -> Mask:
    """Which examples a model gets wrong; `y` are labels."""
    return np.asarray(np.asarray(model.predict(X)) != np.asarray(y))


def log_losses(model: Any, X: Any, y: ArrayLike) -> Floats:
    """−log of the probability that the model gives each label."""
    own = getattr(model, "predict_log_proba", None)
    if own is None and not hasattr(model, "predict_proba"):
        raise InputError(
            f"risk='log' needs probabilities, which {type(model).__name__} does not give: use risk='error'"
        )
    # a model that is sure and wrong has probability 0, whose logarithm would swamp every mean
    logs = np.log(np.clip(np.asarray(model.predict_proba(X)), 1e-15, 1.0)) if own is None else np.asarray(own(X))
    place = {label: k for k, label in enumerate(np.asarray(model.classes).tolist())}
    return of_log_chances(logs, np.array([place.get(label, -1) for label in np.asarray(y).tolist()], dtype=np.int64))


def of_log_chances(logs: Floats, column: Ints) -> Floats:
    """Log losses from the log-probabilities of a model's classes, (n, K), and the column of each label.

    Column −1 is a label the model has never seen. If it has seen only one class, such a label has the probability that
    this class leaves; else it has 1e-15.
    """
    found = -logs[np.arange(len(column)), column]
    # log(1 − p) without the cancellation of 1 − p where p is nearly 1
    rest = -np.log(-np.expm1(np.minimum(logs[:, 0], -1e-300))) if logs.shape[1] == 1 else UNSEEN
    return np.asarray(np.where(column >= 0, found, rest))


def margin_log_losses(margin: Floats, positive: Mask) -> Floats:
    """Log losses for two classes, from the log odds of the second class and whether it is the label."""
    return np.asarray(np.logaddexp(0.0, np.where(positive, -margin, margin)))
