"""Learners: what is trained.

A learner has `fit(X, y, *, sample_weight=None, previous=None, seed=0)` and gives a model; a model has `classes`, `predict`
and, for the log loss, `predict_proba` or `predict_log_proba`. Losses are the business of `evenhand.risks`.

- `Logistic`: our own exact solver, fast for many trials and for one more example.
- `SklearnLearner`: any scikit-learn classifier or Pipeline.
- `Minimax`: any of them, trained for the worst-off group.
"""

from copy import deepcopy
from typing import Any

from evenhand.errors import InputError
from evenhand.learners.base import Learner, Model, name_of, traits_of
from evenhand.learners.logistic.learner import Logistic
from evenhand.learners.minimax import Minimax
from evenhand.learners.sklearn import ConstantModel, SklearnLearner, SklearnModel
from evenhand.risks import ERROR, Risk

__all__ = [
    "ConstantModel",
    "Learner",
    "Logistic",
    "Minimax",
    "Model",
    "SklearnLearner",
    "SklearnModel",
    "as_learner",
]


def as_learner(given: object, risk: Risk = ERROR) -> Any:
    """A copy of a learner; wraps a bare scikit-learn classifier, refuses one without the probabilities a risk needs."""
    if isinstance(given, type):
        raise InputError(f"give an object, {given.__name__}(), not the class {given.__name__}")
    if not hasattr(given, "fit"):
        raise InputError(f"{given!r} is not a learner: it has no fit(X, y); use Logistic() or SklearnLearner(...)")
    # our own two have scikit-learn's interface as well, and are learners as they are
    bare = hasattr(given, "get_params") and not isinstance(given, Logistic | Minimax)
    learner = SklearnLearner(given) if bare else deepcopy(given)
    _check_settings(learner)
    if risk.name == "log" and not traits_of(learner).gives_probabilities:
        name = name_of(learner)
        raise InputError(f"risk='log' needs probabilities, which {name} does not give: use risk='error'")
    return learner


def _check_settings(learner: object) -> None:
    """Refuse settings that would fail in every fit, before anything is told."""
    if isinstance(learner, Logistic):
        learner.check_settings()
    estimator = getattr(learner, "estimator", None)
    validate = getattr(estimator, "_validate_params", None)  # scikit-learn's own check, which fit would make
    if validate is not None and hasattr(estimator, "_parameter_constraints"):
        try:
            validate()
        except ValueError as error:
            raise InputError(f"{type(estimator).__name__}: {error}") from None
