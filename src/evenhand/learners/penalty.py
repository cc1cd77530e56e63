"""How strongly a learner is regularised: its `C`, if it has one, and a copy with another value."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evenhand.learners.logistic.learner import Logistic
from evenhand.learners.sklearn import SklearnLearner
from evenhand.learners.table import TableLearner

if TYPE_CHECKING:
    from evenhand.learners.base import Learner

__all__ = ["penalty_of", "with_penalty"]


def penalty_of(learner: Learner) -> float | None:
    """The learner's C, the inverse of its penalty's strength; None where it has none.

    >>> penalty_of(Logistic(C=3.0))
    3.0
    """
    if isinstance(learner, Logistic | TableLearner):
        return float(learner.C)
    if isinstance(learner, SklearnLearner) and not learner.incremental:
        # C means the same in LogisticRegression and SVC: the inverse of the penalty
        value = getattr(_last_step(learner.estimator), "C", None)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return None


def with_penalty(learner: Any, C: float) -> Any:
    """A copy of the learner with this C."""
    if isinstance(learner, Logistic):
        return Logistic(C=C, tol=learner.tol)
    if isinstance(learner, TableLearner):
        return replace(learner, C=C)
    from sklearn.base import clone

    estimator = clone(learner.estimator)
    _last_step(estimator).set_params(C=C)
    return replace(learner, estimator=estimator)


def _last_step(estimator: Any) -> Any:
    """What classifies: the last step of a Pipeline, or the estimator itself."""
    while getattr(estimator, "steps", None):
        estimator = estimator.steps[-1][1]
    return estimator
