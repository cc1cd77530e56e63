"""Weights of examples: checked once, and given to the learners that take them."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Features, Floats
from evenhand.errors import InputError
from evenhand.learners.base import Model, traits_of

if TYPE_CHECKING:
    from evenhand.learners.base import Learner


def as_weights(given: object, n: int) -> Floats:
    """One weight per example as numbers; refuses weights that are negative, not finite, all zero or too few.

    >>> as_weights([1, 0, 2], 3).tolist()
    [1.0, 0.0, 2.0]
    """
    try:
        weight = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise InputError("sample_weight must be numbers, one for each example") from None
    if weight.shape != (n,):
        raise InputError(f"sample_weight has shape {weight.shape} for {n} examples: give one number for each")
    # a negative weight would reward errors, and solvers that expect a convex loss would not end
    wrong = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if len(wrong):
        raise InputError(
            f"sample_weight must be finite numbers from 0 up: negative or not finite in row {wrong[0]} ({weight[wrong[0]]})"
        )
    if n and not weight.any():
        raise InputError("sample_weight is zero for every example: at least one must be above")
    return weight


def takes_weights(learner: Learner) -> bool:
    """Whether this learner's `fit` takes `sample_weight`."""
    own = getattr(learner, "takes_weights", None)
    if own is not None:
        return bool(own)
    return _has_parameter(learner.fit, "sample_weight")


def weight_key(estimator: object, method: str = "fit") -> str | None:
    """The keyword by which a scikit-learn estimator's `fit` takes weights; None where it takes none.

    A Pipeline hands them to its last step; a search over settings hands them to what it searches.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> weight_key(make_pipeline(StandardScaler(), LogisticRegression()))
    'logisticregression__sample_weight'
    """
    steps = getattr(estimator, "steps", None)
    # the last step classifies; weights of the steps before it would mean something else
    if steps:
        name, last = steps[-1]
        key = weight_key(last)
        return None if key is None else f"{name}__{key}"
    function, searched = getattr(estimator, method, None), getattr(estimator, "estimator", None)
    if _has_parameter(function, "sample_weight"):
        return "sample_weight"
    return weight_key(searched) if hasattr(searched, "fit") and _hands_on(function) else None


def fit_learner(
    learner: Any,
    X: Features,
    y: ArrayLike,
    groups: Any,
    *,
    sample_weight: ArrayLike | None = None,
    previous: Model | None = None,
    seed: int = 0,
) -> Any:
    """Fit a learner, handing over weights if there are any, and the groups if the learner needs them."""
    more = {} if sample_weight is None else {"sample_weight": sample_weight}
    if traits_of(learner).needs_groups:
        more["groups"] = groups
    return learner.fit(X, y, previous=previous, seed=seed, **more)


def _has_parameter(function: object, name: str) -> bool:
    return name in _parameters(function)


def _hands_on(function: object) -> bool:
    return any(parameter.kind is Parameter.VAR_KEYWORD for parameter in _parameters(function).values())


def _parameters(function: Any) -> Mapping[str, Parameter]:
    try:
        return signature(function).parameters
    except (TypeError, ValueError):  # nothing callable, or compiled without a signature
        return {}
