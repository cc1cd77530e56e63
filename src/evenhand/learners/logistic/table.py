"""Logistic regression on raw columns: numbers are scaled, text is one-hot, a missing value is its own category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Features, Floats, Ints, Values, is_missing
from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.learners.logistic.learner import Logistic
from evenhand.risks import Measure, Outcomes

__all__ = ["SCALES", "TableLearner", "TableModel"]

SCALES = ("standard", "minmax", "none")


@dataclass(frozen=True)
class TableLearner:
    """Fits `Logistic` on a frame as it is; the encoding is learned from the rows it is fitted on.

    Args:
        C: the inverse of the penalty's strength.
        scale: numbers with mean 0 and deviation 1 (`"standard"`), from 0 to 1 (`"minmax"`), or as they are (`"none"`).
    """

    C: float = 1.0
    scale: str = "standard"

    needs_columns = True

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise InputError(f"scale must be one of {', '.join(map(repr, SCALES))}, not {self.scale!r}")

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        previous: Model | None = None,
        seed: int = 0,
    ) -> TableModel:
        """Fit the model; nothing is random, and `previous` is not used."""
        # anew at every fit: `previous` had other columns once a new category came
        encoding = Encoding.of(X, self.scale)
        return TableModel(encoding, Logistic(C=self.C).fit(encoding(X), y, sample_weight))

    def refits(self, X: Features, y: ArrayLike, tol: float | None = None) -> TableRefits:
        """Fits of these rows under changing weights; each starts from the last optimum."""
        return TableRefits(self, X, y, tol)


@dataclass(frozen=True)
class Encoding:
    """How raw columns become numbers.

    Attributes:
        columns: the columns, in order.
        centre, scale: of number columns; NaN for others.
        values: the values of text columns, sorted; None for numbers. A missing value is the empty text.
    """

    columns: tuple[str, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    values: tuple[tuple[str, ...] | None, ...]

    @classmethod
    def of(cls, X: Any, how: str = "standard") -> Encoding:
        """The encoding learned from these rows; `how` says how numbers are scaled."""
        frame = nw.from_native(X, eager_only=True)
        centre, scale = list[float](), list[float]()
        values = list[tuple[str, ...] | None]()
        for name in frame.columns:
            if frame[name].dtype.is_numeric():
                numbers = _numbers(frame[name])
                middle, spread = _spread(numbers[np.isfinite(numbers)], how)
                centre.append(middle)
                scale.append(spread)
                values.append(None)
            else:
                centre.append(np.nan)
                scale.append(np.nan)
                # sorted, so that the same rows in another order give the same model
                values.append(tuple(sorted(set(_texts(frame[name])))))
        return cls(tuple(map(str, frame.columns)), tuple(centre), tuple(scale), tuple(values))

    def __call__(self, X: Any) -> Floats:
        """The rows as numbers; a value that training never had gets zeros in all columns of its category."""
        frame = nw.from_native(X, eager_only=True)
        missing = [name for name in self.columns if name not in frame.columns]
        if missing:
            raise InputError(f"the rows have no column {missing[0]!r}")
        parts: list[Floats] = []
        for name, centre, scale, values in zip(self.columns, self.centre, self.scale, self.values, strict=True):
            if values is None:
                numbers = (_numbers(frame[name]) - centre) / scale
                gaps = ~np.isfinite(numbers)
                # a missing number becomes the mean and is marked in a second
                # column: the fact that it is missing is often informative
                parts += [np.where(gaps, 0.0, numbers)[:, None], gaps[:, None].astype(float)]
            else:
                # a value that training never had matches none: its row has zeros there
                parts.append((np.array(_texts(frame[name]))[:, None] == np.array(values)[None]).astype(float))
        return np.hstack(parts) if parts else np.zeros((len(frame), 0))


@dataclass(frozen=True)
class TableModel:
    """A fitted encoding and the classifier behind it."""

    encoding: Encoding
    classifier: Logistic

    @property
    def classes(self) -> Values:
        """The labels it knows."""
        return self.classifier.classes_

    def predict(self, X: Features) -> Values:
        """The predicted label of every row."""
        return self.classifier.predict(self.encoding(X))

    def predict_proba(self, X: Features) -> Floats:
        """The probability of every class."""
        return self.classifier.predict_proba(self.encoding(X))

    def predict_log_proba(self, X: Features) -> Floats:
        """The logarithm of the probability of every class, precise also where that is tiny."""
        return self.classifier.predict_log_proba(self.encoding(X))


class TableRefits:
    """Fits of `TableLearner` on fixed rows under changing weights: the encoding does not depend on them."""

    def __init__(self, learner: TableLearner, X: Features, y: ArrayLike, tol: float | None = None) -> None:
        self._encoding = Encoding.of(X, learner.scale)
        self._refits = Logistic(C=learner.C).refits(self._encoding(X), y, tol)
        self._held: tuple[Any, Any] = (None, None)

    @property
    def last(self) -> TableModel:
        """The model of the last fit."""
        return TableModel(self._encoding, self._refits.last)

    def outcomes(self, weight: Floats, C: float | None, measure: Measure, X: Features, y: Ints) -> Outcomes:
        """Outcomes on other rows of the model under these weights; `y` are positions in the measure's classes."""
        if measure.risk.function is not None:
            model = TableModel(self._encoding, self._refits.fit(weight, C))
            return measure.of_model(model, X, np.asarray(measure.classes)[y])
        if self._held[0] is not X:  # the same rows are asked about again and again
            self._held = (X, self._encoding(X))
        return self._refits.outcomes(weight, C, measure, self._held[1], y)


def _spread(seen: Floats, how: str) -> tuple[float, float]:
    """What to subtract from numbers and divide them by; if all are equal, or there are none, the divisor is 1."""
    if how == "none" or not len(seen):
        return 0.0, 1.0
    low, high = float(seen.min()), float(seen.max())
    if how == "minmax":
        return low, high - low if high > low else 1.0
    # the spread of equal numbers comes out as the rounding of their mean, not as 0
    return float(seen.mean()), float(seen.std()) if high > low else 1.0


def _numbers(series: Any) -> Floats:
    return np.array([np.nan if is_missing(value) else value for value in series.to_list()], dtype=float)


def _texts(series: Any) -> Sequence[str]:
    return ["" if is_missing(value) else str(value) for value in series.to_list()]
