"""The seam between the engine and fitting: example sets of T trials and the models fitted on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evenhand.learners.base import Loss, Model

__all__ = ["Memory", "Scores"]


@dataclass(frozen=True)
class Scores:
    """How the current models do on the validation sets, arrays of shape (T, m)."""

    loss_sum: NDArray[np.float64]
    correct: NDArray[np.int64]
    n: NDArray[np.int64]


class Memory(Protocol):
    """Training and validation sets of T trials, and the models fitted on the training sets."""

    def add(
        self,
        trial: NDArray[np.int64],
        X: Any,
        y: NDArray[np.int64],
        group: NDArray[np.int64],
        validation: NDArray[np.bool_],
    ) -> None:
        """Take in rows; `y` are positions in the classes, `validation` says which rows validate."""

    def fit(self) -> None:
        """Bring the model of every trial with new training rows up to date."""

    def score(self, loss: Loss) -> Scores:
        """Losses and correct answers of the current models on the validation sets."""

    def models(self) -> list[Model | None]:
        """The current model of every trial, None before the first training example."""

    def final_models(self) -> list[Model]:
        """Models fitted on training and validation examples together."""
