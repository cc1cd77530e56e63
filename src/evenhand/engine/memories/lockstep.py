"""`Logistic` on T trials at once: example sets, refits and scores.

Two classes: all trials in one solve (`lockstep_binary`), dense rows in one array with a trial axis. More classes: the
same solver, trial after trial (`lockstep_softmax`). Either way a trial's numbers are its own: they do not depend on
which other trials share the block.

**Cost of a round.** Refit: one to three passes over the training rows, O(t·d), plus O(d²) per new row; now and then
a new inverse Hessian, O(t·d² + d³). Scores: O(new validation rows) where the model did not change, one pass over the
trial's validation rows where it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from evenhand.arrays import Floats, Ints, Mask, Values
from evenhand.engine.memories.base import Scores
from evenhand.engine.memories.lockstep_binary import BinaryTrials
from evenhand.engine.memories.lockstep_softmax import SoftmaxTrials
from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.learners.logistic.learner import Logistic, numeric
from evenhand.risks import ERROR, Measure

if TYPE_CHECKING:
    from evenhand.arrays import Features


class LockstepLogistic:
    """Training and validation sets of T trials and their logistic models.

    Args:
        learner: the learner, of which only the settings are used; it is not fitted.
        classes: the labels, sorted; examples carry positions in it.
        groups: how many groups there are.
        trials: how many trials, T.
        capacity: how many rows of each role to expect per trial; it only saves some copying.
        measure: the risk for these classes; the error by default.
    """

    def __init__(
        self,
        learner: Logistic,
        classes: Sequence[object] | Values,
        groups: int,
        trials: int = 1,
        capacity: int = 64,
        *,
        measure: Measure | None = None,
    ) -> None:
        self.learner, self.classes = learner, np.asarray(classes)
        self.measure = ERROR.for_classes(self.classes) if measure is None else measure
        self.groups, self.trials, self.capacity = groups, trials, capacity
        self._sets: BinaryTrials | SoftmaxTrials | None = None

    def add(
        self,
        trial: Ints,
        X: Any,
        y: Ints,
        group: Ints,
        validation: Mask,
    ) -> None:
        """Take in rows; `y` are positions in the classes, `validation` says which rows validate."""
        if not isinstance(X, sparse.csr_array):
            X = sparse.csr_array(X) if hasattr(X, "tocsr") else np.asarray(numeric(X), dtype=float)
        if isinstance(X, sparse.csr_array) and not X.has_canonical_format:
            # sum_duplicates works in place, and X is the caller's
            X = X.copy()
            X.sum_duplicates()
        # whether rows are dense or sparse, and how wide, is known only once the first ones come
        if self._sets is None:
            self._sets = self._make(X)
        if X.shape[1] != self._sets.features:
            raise InputError(f"X has {X.shape[1]} features, earlier rows had {self._sets.features}")
        self._sets.add(trial, X, y, group, validation)

    def fit(self) -> None:
        """Bring the model of every trial with new training rows to its optimum."""
        if self._sets is not None:
            self._sets.fit()

    def score(self) -> Scores:
        """Losses and correct answers on the validation sets; nothing is scored in a trial without a model."""
        return Scores.none(self.trials, self.groups) if self._sets is None else self._sets.score()

    def models(self) -> list[Model | None]:
        """The current model of every trial, None before its first training example."""
        return [None] * self.trials if self._sets is None else self._sets.models()

    def final_models(self) -> list[Model]:
        """Models fitted on training and validation examples together; the current ones stay as they are."""
        if self._sets is None:
            raise InputError("no trial has an example yet: nothing to fit")
        return self._sets.final_models()

    @property
    def coef(self) -> Floats:
        """Weights (T, d) for two classes; NaN where a trial has no model yet."""
        return self._parameters()[:, :-1]

    @property
    def intercept(self) -> Floats:
        """Intercepts (T,) for two classes; the second class is predicted where x·coef + intercept > 0."""
        return self._parameters()[:, -1]

    def _parameters(self) -> Floats:
        if not isinstance(self._sets, BinaryTrials):
            raise InputError("coef and intercept exist for two classes only, once examples have arrived")
        return self._sets.binary_parameters()

    def _make(self, X: Features) -> BinaryTrials | SoftmaxTrials:
        kind = BinaryTrials if len(self.classes) == 2 else SoftmaxTrials
        return kind(self.learner, self.classes, self.groups, self.trials, X, self.capacity, self.measure)
