"""Logistic regression on columns: numbers are scaled, text is one-hot, a missing value is marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from evenhand.arrays import Features, Floats, Ints, Values
from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.learners.logistic.learner import Logistic
from evenhand.risks import Measure, Outcomes
from evenhand.tables.encoder import Encoder, Layout, Scale
from evenhand.tables.reading import native
from evenhand.tables.schema import Schema, typed_schema

__all__ = ["SCALES", "TableEncoder", "TableLearner", "TableModel"]

SCALES = get_args(Scale)


@dataclass(frozen=True)
class TableEncoder:
    """Frames to numbers: what their columns hold, by type alone, and the encoding learned from the rows of one.

    Whoever typed the columns has decided what they are: text is a category, also if it looks like numbers.
    """

    schema: Schema
    encoder: Encoder

    @classmethod
    def fit(cls, X: Any, scale: str = "standard") -> TableEncoder:
        """The encoding that these rows show."""
        frame = native(X)
        schema = typed_schema(frame.schema)
        rows = schema.read(frame.read()).refuse(frame.name).select(list(schema.encoded))
        layout = Layout.of(rows)
        return cls(schema, Encoder.fit(layout, [layout.code(rows)], scale=scale))

    def __call__(self, X: Any) -> Any:
        """The rows as numbers; a value that training never had gets zeros in all columns of its category."""
        frame = native(X)
        rows: pa.Table = self.schema.read(frame.read()).refuse(frame.name)
        return self.encoder(rows)


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
        encoder = TableEncoder.fit(X, self.scale)
        return TableModel(encoder, Logistic(C=self.C).fit(encoder(X), y, sample_weight))

    def refits(self, X: Features, y: ArrayLike, tol: float | None = None) -> TableRefits:
        """Fits of these rows under changing weights; each starts from the last optimum."""
        return TableRefits(self, X, y, tol)


@dataclass(frozen=True)
class TableModel:
    """An encoder and the classifier behind it."""

    encoder: TableEncoder
    classifier: Logistic

    @property
    def classes(self) -> Values:
        """The labels it knows."""
        return self.classifier.classes_

    def predict(self, X: Features) -> Values:
        """The predicted label of every row."""
        return self.classifier.predict(self.encoder(X))

    def predict_proba(self, X: Features) -> Floats:
        """The probability of every class."""
        return self.classifier.predict_proba(self.encoder(X))

    def predict_log_proba(self, X: Features) -> Floats:
        """The logarithm of the probability of every class, precise also where that is tiny."""
        return self.classifier.predict_log_proba(self.encoder(X))


class TableRefits:
    """Fits of `TableLearner` on fixed rows under changing weights: the encoding does not depend on them."""

    def __init__(self, learner: TableLearner, X: Features, y: ArrayLike, tol: float | None = None) -> None:
        self._encoder = TableEncoder.fit(X, learner.scale)
        self._refits = Logistic(C=learner.C).refits(self._encoder(X), y, tol)
        self._held: tuple[Any, Any] = (None, None)

    @property
    def last(self) -> TableModel:
        """The model of the last fit."""
        return TableModel(self._encoder, self._refits.last)

    def outcomes(self, weight: Floats, C: float | None, measure: Measure, X: Features, y: Ints) -> Outcomes:
        """Outcomes on other rows of the model under these weights; `y` are positions in the measure's classes."""
        if measure.risk.function is not None:
            model = TableModel(self._encoder, self._refits.fit(weight, C))
            return measure.of_model(model, X, np.asarray(measure.classes)[y])
        if self._held[0] is not X:  # the same rows are asked about again and again
            self._held = (X, self._encoder(X))
        return self._refits.outcomes(weight, C, measure, self._held[1], y)
