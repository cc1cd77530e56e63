"""One trial of any learner: rows are kept as delivered, and every refit is one call of `fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.arrays import Ints, Mask, Values
from evenhand.engine.memories.base import Scores
from evenhand.engine.memories.rows import stack, take
from evenhand.errors import InputError
from evenhand.learners.base import Learner, Model, traits_of
from evenhand.learners.weights import fit_learner
from evenhand.risks import Measure, is_wrong

if TYPE_CHECKING:
    from evenhand.arrays import Features


class SingleMemory:
    """Training and validation sets of one trial for a learner that fits one data set at a time.

    Args:
        learner: what is fitted; it is given all training rows, the previous model and the seed.
        labels: turns label positions into labels.
        groups: how many groups there are.
        seed: handed to the learner.
        measure: the risk.
        names: the groups' names, for a learner that needs groups.
    """

    def __init__(
        self,
        learner: Learner,
        labels: Callable[[Ints], Values],
        groups: int,
        seed: int,
        measure: Measure,
        names: tuple[str, ...] = (),
    ) -> None:
        self.learner, self.labels, self.groups, self.seed, self.measure = learner, labels, groups, seed, measure
        self.names = np.asarray(names or [str(z) for z in range(groups)])
        self.model: Model | None = None
        self.fits: list[int] = []
        self._training: list[tuple[Any, Ints, Ints]] = []
        self._validation: list[tuple[Any, Ints, Ints]] = []

    def add(
        self,
        trial: Ints,
        X: Features,
        y: Ints,
        group: Ints,
        validation: Mask,
    ) -> None:
        """Take in rows."""
        if (~validation).any():
            self._training.append((take(X, ~validation), y[~validation], group[~validation]))
        if validation.any():
            self._validation.append((take(X, validation), y[validation], group[validation]))

    def training(self, rows: int | None = None) -> tuple[Any, Values, Ints]:
        """The training set, or its first rows: rows, labels, groups."""
        X, y, group = zip(*self._training, strict=True)
        # joined once and kept joined: the next refit adds one delivery, not all of them again
        self._training = [(stack(X), np.concatenate(y), np.concatenate(group))]
        every, codes, groups = self._training[0]
        if rows is not None and rows < len(codes):
            mask = np.arange(len(codes)) < rows
            every, codes, groups = take(every, mask), codes[mask], groups[mask]
        return every, self.labels(codes), groups

    def fit(self) -> None:
        """Fit on all training rows, starting from the previous model."""
        n = sum(len(y) for _, y, _ in self._training)
        # validation rows alone change no model, and an incremental learner must not be fitted twice on the same rows
        if n == 0 or (self.fits and self.fits[-1] == n):
            return
        model = self._fitted(*self.training(), previous=self.model)
        if not hasattr(model, "predict"):
            raise InputError(f"fit gave {model!r}: a learner's fit returns the model, which has predict(X)")
        self.model = model
        self.fits.append(n)

    def replay(self, fits: list[int]) -> None:
        """Repeat the same fits, to get the same model after loading."""
        incremental = traits_of(self.learner).incremental
        # the last rows alone determine a learner that starts anew; an incremental one depends on every step
        for n in fits if incremental else fits[-1:]:
            self.model = self._fitted(*self.training(n), previous=self.model)
        self.fits = list(fits)

    def _fitted(self, X: Features, y: Values, group: Ints, previous: Model | None = None) -> Model:
        fitted: Model = fit_learner(self.learner, X, y, self.names[group], previous=previous, seed=self.seed)
        return fitted

    def score(self) -> Scores:
        """Losses and correct answers on the validation set, all groups in one call of the model."""
        if self.model is None or not self._validation:
            return Scores.none(1, self.groups)
        X, codes, group = self.validation()
        y = self.labels(codes)
        if self.measure.risk.is_error:
            # not by a tally: errors are whole numbers, and their sums are exact
            wrong = is_wrong(self.model, X, y)
            errors, n = (np.bincount(where, minlength=self.groups)[None] for where in (group[wrong], group))
            return Scores.of_errors(errors, n)
        return Scores.of(self.measure, self.measure.tally(self.measure.of_model(self.model, X, y), group, self.groups))

    def validation(self) -> tuple[Any, Ints, Ints]:
        """The validation set: rows, label positions, groups."""
        X, y, group = zip(*self._validation, strict=True)
        self._validation = [(stack(X), np.concatenate(y), np.concatenate(group))]
        return self._validation[0]

    def models(self) -> list[Model | None]:
        """The current model."""
        return [self.model]

    def final_models(self) -> list[Model]:
        """A model fitted on training and validation examples together."""
        X, y, group = self.training()
        if self._validation:
            held, codes, others = self.validation()
            X, y = stack([X, held]), np.concatenate([y, self.labels(codes)])
            group = np.concatenate([group, others])
        # anew, without `previous`: what is deployed must not depend on the rounds that led to it
        return [self._fitted(X, y, group)]
