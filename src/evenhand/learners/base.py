"""What is trained (a learner) and the result (a model), as protocols any class can satisfy."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from evenhand.arrays import Features, Values


@runtime_checkable
class Model(Protocol):
    """A trained classifier.

    For the log loss it also needs `predict_proba` or `predict_log_proba`; the latter is precise for tiny probabilities.
    """

    @property
    def classes(self) -> Values:
        """The labels it knows, sorted."""

    def predict(self, X: Features) -> Values:
        """The predicted label of every row."""


class Traits(NamedTuple):
    """What a learner is like; one of your own is like this unless it says otherwise.

    Attributes:
        incremental: whether a model goes on from the one before, so that it depends on every fit.
        needs_groups: whether it is given the group of every row.
        encodes: whether it turns all columns it is given into numbers.
        gives_probabilities: whether its models do.
    """

    incremental: bool = False
    needs_groups: bool = False
    encodes: bool = False
    gives_probabilities: bool = True


def traits_of(learner: object) -> Traits:
    """What a learner is like: the only place that looks for attributes which one of your own may lack."""
    return Traits(**{name: bool(getattr(learner, name, usual)) for name, usual in Traits()._asdict().items()})


def name_of(learner: object) -> str:
    """A learner's name for messages: that of the estimator it wraps, if any."""
    return type(getattr(learner, "estimator", learner)).__name__


@runtime_checkable
class Learner(Protocol):
    """Something that can be fitted; `previous` is the model it may start from.

    A learner with `needs_groups = True` is also given `groups=`, the group of every row; one with `needs_columns = True`
    gets the columns of a table as they are, in a pandas frame. One whose `fit` has no `sample_weight` works except
    where rows are weighted.
    """

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        previous: Model | None = None,
        seed: int = 0,
    ) -> Model:
        """Fit a model on the rows of X with labels y; each row counts as often as its weight says."""
