"""Any learner at one trial: rows kept as delivered, one `fit` per refit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.engine.memories.base import Scores
from evenhand.engine.memories.rows import stack, take
from evenhand.errors import InputError
from evenhand.learners.base import Learner, Loss, Model, losses

__all__ = ["SingleMemory"]


class SingleMemory:
    """Training and validation sets of one trial for a learner that fits one data set at a time.

    Args:
        learner: what is fitted; it is given all training rows, the previous model and the seed.
        labels: turns label positions into labels.
        groups: how many groups there are.
        seed: handed to the learner.
    """

    def __init__(
        self, learner: Learner, labels: Callable[[NDArray[np.int64]], NDArray[Any]], groups: int, seed: int
    ) -> None:
        self.learner, self.labels, self.groups, self.seed = learner, labels, groups, seed
        self.model: Model | None = None
        self.fits: list[int] = []
        self._training: list[tuple[Any, NDArray[np.int64]]] = []
        self._validation: list[tuple[Any, NDArray[np.int64], NDArray[np.int64]]] = []

    def add(
        self,
        trial: NDArray[np.int64],
        X: Any,
        y: NDArray[np.int64],
        group: NDArray[np.int64],
        validation: NDArray[np.bool_],
    ) -> None:
        """Take in rows."""
        if (~validation).any():
            self._training.append((take(X, ~validation), y[~validation]))
        if validation.any():
            self._validation.append((take(X, validation), y[validation], group[validation]))

    def training(self, rows: int | None = None) -> tuple[Any, NDArray[Any]]:
        """The training set, or its first rows."""
        y = np.concatenate([y for _, y in self._training])
        self._training = [(stack([X for X, _ in self._training]), y)]
        X = self._training[0][0]
        if rows is not None and rows < len(y):
            mask = np.arange(len(y)) < rows
            X, y = take(X, mask), y[mask]
        return X, self.labels(y)

    def fit(self) -> None:
        """Fit on everything there is, from the previous model."""
        n = sum(len(y) for _, y in self._training)
        if n == 0 or (self.fits and self.fits[-1] == n):
            return
        X, y = self.training()
        model = self.learner.fit(X, y, previous=self.model, seed=self.seed)
        if not hasattr(model, "predict"):
            raise InputError(f"fit gave {model!r}: a learner's fit returns the model, which has predict(X)")
        self.model = model
        self.fits.append(n)

    def replay(self, fits: list[int]) -> None:
        """Go through the same fits again, to have the same model after loading."""
        incremental = bool(getattr(self.learner, "incremental", False))
        for n in fits if incremental else fits[-1:]:
            X, y = self.training(n)
            self.model = self.learner.fit(X, y, previous=self.model, seed=self.seed)
        self.fits = list(fits)

    def score(self, loss: Loss) -> Scores:
        """Losses and correct answers on the validation set, all groups in one call of the model."""
        shape = (1, self.groups)
        if self.model is None or not self._validation:
            return Scores(np.zeros(shape), np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64))
        X, codes, group = self.validation()
        y = self.labels(codes)
        wrong = losses(self.model, X, y)
        values = wrong if loss == "zero_one" else losses(self.model, X, y, loss)
        n = np.bincount(group, minlength=self.groups)
        errors = np.bincount(group, weights=wrong, minlength=self.groups).round().astype(np.int64)
        total = np.bincount(group, weights=values, minlength=self.groups).astype(float)
        return Scores(total[None], (n - errors)[None], n[None])

    def validation(self) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
        """The validation set: rows, label positions, groups."""
        X, y, group = zip(*self._validation, strict=True)
        self._validation = [(stack(X), np.concatenate(y), np.concatenate(group))]
        return self._validation[0]

    def models(self) -> list[Model | None]:
        """The current model."""
        return [self.model]

    def final_models(self) -> list[Model]:
        """A model fitted on training and validation examples together."""
        X, y = self.training()
        if self._validation:
            held, codes, _ = self.validation()
            X, y = stack([X, held]), np.concatenate([y, self.labels(codes)])
        return [self.learner.fit(X, y, previous=None, seed=self.seed)]
