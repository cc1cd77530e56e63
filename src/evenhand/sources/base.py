"""Where labelled examples come from in a simulation, as protocols any class can satisfy.

Every source must satisfy `Source` and its streams `Stream`. The other protocols are optional: their methods are used
if a source or stream has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from evenhand.arrays import Floats, Ints, Mask, Values
from evenhand.learners.base import Learner, Model
from evenhand.risks import ERROR, Measure, Risk


@dataclass(frozen=True)
class Draw:
    """Labelled rows drawn for a block of trials, one after the other.

    Attributes:
        trial: the trial within the block, ascending, one number per row.
        group: the group of each row, as a position in the source's groups.
        X: the features, dense or CSR, one row per example.
        y: the labels, as positions in the source's classes.
        validation: which rows validate, if the source decides that; None leaves it to the seed.
        rows: row numbers in the pool, where there is one.
    """

    trial: Ints
    group: Ints
    X: Any
    y: Ints
    validation: Mask | None = None
    rows: Ints | None = None


@runtime_checkable
class Stream(Protocol):
    """The draws of a block of T trials. The k-th example of a group depends on seed, trial, group and k only."""

    def draw(self, group: Ints, size: Ints) -> Draw:
        """The next `size[t]` examples of `group[t]` for every trial t; −1 draws nothing for that trial."""

    def left(self) -> Ints | None:
        """How many labels are left, shape (T, m); None if there is no limit."""

    def accuracies(self, models: Sequence[Model | None]) -> Floats:
        """Test accuracy of every trial's model on every group, shape (T, m)."""


@runtime_checkable
class Source(Protocol):
    """A set of groups one can draw labelled examples from."""

    @property
    def name(self) -> str:
        """The source's name in results."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""

    @property
    def classes(self) -> Values:
        """The labels, sorted."""

    @property
    def population(self) -> Floats:
        """Each group's share of the population."""

    def open(self, seed: int, trials: Sequence[int]) -> Stream:
        """The draws of these trials."""


@runtime_checkable
class HasLearner(Protocol):
    """A source that knows which learner suits its examples, such as a network for images."""

    def default_learner(self, **settings: object) -> Learner:
        """The learner that `simulate` trains if none is given; `--learner network:key=value` passes settings."""


@runtime_checkable
class HasValidation(Protocol):
    """A source that itself decides which of its examples validate."""

    def with_validation(self, share: float) -> Source:
        """The same source with this share of examples that validate."""


@runtime_checkable
class HasColumns(Protocol):
    """A source whose examples have named columns, for learners that take these as they are."""

    @property
    def raw_columns(self) -> list[str]:
        """The columns to predict from."""

    @property
    def left_out(self) -> dict[str, str]:
        """For every other column, by name, why it is not used to predict."""

    def open_columns(self, seed: int, trials: Sequence[int]) -> Stream:
        """The draws of these trials; X is a frame."""


@runtime_checkable
class HasDigest(Protocol):
    """A source that can identify its data; without a digest, results are matched by the source's name alone."""

    def digest(self) -> str:
        """A text that differs where the examples may differ: the data, how they are split, encoded and drawn."""


@runtime_checkable
class HasFairMixture(Protocol):
    """A source whose fair mixture is known; figures and summaries show it."""

    def pi_star(self, risk: Risk = ERROR) -> Floats:
        """π*: each group's share in the mixture that serves the worst-off group best, by this risk."""


@runtime_checkable
class ExactStream(Protocol):
    """A stream with a closed form for linear rules, so that every round is tested at no cost."""

    def linear_accuracies(self, coef: Floats, intercept: Floats) -> Floats:
        """Accuracies of the rules x·coef + intercept > 0: (T, …, features) and (T, …) → (T, …, m)."""


@runtime_checkable
class RiskStream(Protocol):
    """A stream that tests models by any risk; a simulation of another risk than the error needs it."""

    def accuracies_and_risks(self, models: Sequence[Model | None], measure: Measure) -> tuple[Floats, Floats]:
        """Test accuracy and risk of every trial's model on every group, (T, m) each, from one prediction.

        NaN where there is no model or nothing to test on. `measure.of_model` and `measure.tally` compute them from
        rows, `measure.of_confusion` from counts.
        """


@runtime_checkable
class ConfusionStream(Protocol):
    """An `ExactStream` that also has the other risks of linear rules, where labels and predictions are enough for them."""

    def linear_confusions(self, coef: Floats, intercept: Floats) -> Floats:
        """The chance of every label and prediction: (T, …, features) and (T, …) → (T, …, m, 2, 2)."""


class TestRows(Protocol):
    """The test rows of a trial."""

    @property
    def counts(self) -> Ints:
        """How many each group has."""


@runtime_checkable
class TestedStream(Protocol):
    """A stream with test rows that can be counted."""

    def tests(self) -> Sequence[TestRows]:
        """The test rows of every trial."""
