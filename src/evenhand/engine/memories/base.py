"""The seam between the engine and fitting: example sets of T trials and the models fitted on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from evenhand.arrays import Floats, Ints, Mask, Values
from evenhand.learners.base import Model
from evenhand.risks import TREND_IS_ACCURACY, Measure, Outcomes, Risk, Tally

if TYPE_CHECKING:
    from evenhand.arrays import Features


@dataclass(frozen=True)
class Scores:
    """How well the current models do on the validation sets, in arrays of shape (T, m).

    Attributes:
        loss_sum: the risk times the number of examples behind it.
        correct: examples predicted correctly, whatever the risk.
        n: examples scored.
        relevant: examples behind the loss; the same array as `n` where the risk is about all.
    """

    loss_sum: Floats
    correct: Ints
    n: Ints
    relevant: Ints

    @classmethod
    def none(cls, trials: int, groups: int) -> Scores:
        """Scores before anything is scored."""
        zero = np.zeros((trials, groups), dtype=np.int64)
        return cls(zero.astype(float), zero, zero, zero)

    @classmethod
    def of_errors(cls, errors: Ints, n: Ints) -> Scores:
        """Scores for the error, whose sum of losses is a count."""
        return cls(errors.astype(float), n - errors, n, n)

    @classmethod
    def of(cls, measure: Measure, tally: Tally, trials: int = 1) -> Scores:
        """Scores from sums by trial and group."""
        shape = (trials, -1)
        n = tally.n.reshape(shape)
        # the same array object if nothing is left out: callers test for this with `is`
        relevant = n if measure.about_all else tally.behind.reshape(shape)
        return cls(tally.loss_sum.reshape(shape), n - tally.wrong.reshape(shape), n, relevant)

    @classmethod
    def stacked(cls, parts: Sequence[Scores]) -> Scores:
        """The trials of several scores one after the other."""
        loss_sum, correct, n = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("loss_sum", "correct", "n")
        )
        about_all = all(part.relevant is part.n for part in parts)
        return cls(loss_sum, correct, n, n if about_all else np.concatenate([part.relevant for part in parts]))

    def progress(self, risk: Risk) -> Floats:
        """What trends follow: the accuracy for the error and the log loss, else 1 − risk; NaN if there is none."""
        # the paper's trend is of validation accuracies; the log loss stands in for the error, so it uses them too
        if risk.name in TREND_IS_ACCURACY:
            return np.where(self.n > 0, self.correct / np.maximum(self.n, 1), np.nan)
        return np.where(self.relevant > 0, 1 - self.loss_sum / np.maximum(self.relevant, 1), np.nan)


class RunningTally:
    """Sums of losses by trial and group, to which newly scored rows are added."""

    def __init__(self, measure: Measure, trials: int, groups: int) -> None:
        self.measure, self._shape = measure, (trials, groups)
        self._sums = Tally.empty(trials * groups, measure.strata)

    def clear(self, pick: Any) -> None:
        """Start again for some trials, whose models changed."""
        # through views by trial: the tally itself is flat, trial × groups
        for array in self._sums:
            self._by_trial(array)[pick] = 0

    def add(self, pick: Any, outcomes: Outcomes, cell: Ints) -> None:
        """Add rows of some trials; `cell` is trial × groups + group."""
        found = self.measure.tally(outcomes, cell, int(np.prod(self._shape)))
        for mine, new in zip(self._sums, found, strict=True):
            self._by_trial(mine)[pick] += self._by_trial(new)[pick]

    def scores(self) -> Scores:
        """A copy of the scores so far."""
        return Scores.of(self.measure, self._sums.copy(), self._shape[0])

    def _by_trial(self, array: Values) -> Values:
        return array.reshape(self._shape + array.shape[1:])


class Memory(Protocol):
    """Training and validation sets of T trials, and the models fitted on the training sets; made for one risk."""

    def add(
        self,
        trial: Ints,
        X: Features,
        y: Ints,
        group: Ints,
        validation: Mask,
    ) -> None:
        """Take in rows; `y` are positions in the classes, `validation` says which rows validate."""

    def fit(self) -> None:
        """Bring the model of every trial with new training rows up to date."""

    def score(self) -> Scores:
        """Losses and correct answers of the current models on the validation sets."""

    def models(self) -> list[Model | None]:
        """The current model of every trial, None before the first training example."""

    def final_models(self) -> list[Model]:
        """Models fitted on training and validation examples together."""
