"""More than two classes: the same solver, one trial after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from evenhand.arrays import Floats, Ints, Mask, Positions, Values
from evenhand.engine.memories.base import RunningTally, Scores
from evenhand.engine.memories.growable import GrowableSet
from evenhand.engine.memories.lockstep_binary import STEP
from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.learners.logistic.learner import Logistic, constant, log_chances, problem_of
from evenhand.learners.logistic.objectives import BinaryRows, Softmax
from evenhand.learners.logistic.solver import DENSE_LIMIT, append, inverse_hessian, minimise
from evenhand.risks import Measure, Outcomes, of_log_chances

if TYPE_CHECKING:
    from evenhand.arrays import Features


class SoftmaxTrials:
    """Example sets of T trials, held one by one."""

    def __init__(
        self,
        learner: Logistic,
        classes: Values,
        groups: int,
        trials: int,
        X: Any,
        capacity: int,
        measure: Measure,
    ) -> None:
        self.features: int = X.shape[1]
        self._trials = [
            _Trial(learner, classes, groups, self.features, measure, is_sparse=sparse.issparse(X))
            for _ in range(trials)
        ]

    def add(self, trial: Ints, X: Features, y: Ints, group: Ints, validation: Mask) -> None:
        """Take in rows."""
        for row, (t, code, z, held) in enumerate(
            zip(trial.tolist(), y.tolist(), group.tolist(), validation.tolist(), strict=True)
        ):
            part = self._trials[t].validation if held else self._trials[t].training
            part.append(X, row, code, z)

    def fit(self) -> None:
        """Bring every trial with new rows to its optimum."""
        for trial in self._trials:
            trial.fit()

    def score(self) -> Scores:
        """Scores of every trial."""
        return Scores.stacked([trial.score() for trial in self._trials])

    def models(self) -> list[Model | None]:
        """The current models."""
        return [trial.model() for trial in self._trials]

    def final_models(self) -> list[Model]:
        """Models of training and validation examples together."""
        return [trial.final_model() for trial in self._trials]


class _Trial:
    """One trial: its sets, its parameters (of the classes seen so far), its scores."""

    def __init__(
        self,
        learner: Logistic,
        classes: Values,
        groups: int,
        features: int,
        measure: Measure,
        *,
        is_sparse: bool,
    ) -> None:
        self.learner, self.classes, self.groups, self.features = learner, classes, groups, features
        self.training, self.validation = (GrowableSet(features, groups, is_sparse=is_sparse) for _ in range(2))
        self.seen = np.zeros(0, dtype=np.intp)
        self.theta, self.norm = np.zeros((1, 0)), 0.0
        self.inverse: Floats | None = None
        self.fitted = self.scored = 0
        self.measure = measure
        self.tally = None if measure.risk.is_error else RunningTally(measure, 1, groups)
        self.errors = np.zeros(groups, dtype=np.int64)

    def fit(self) -> None:
        """Refit if there are new training rows."""
        new = self.training.n - self.fitted
        if new == 0:
            return
        # only classes that have come: a weight for a class without examples would run off to minus infinity
        seen = np.union1d(self.seen, self.training.y(self.fitted))
        if len(seen) == 1:
            self.theta, self.norm = constant(self.features, self.training.n)[None], 0.0
        else:
            problem = self._problem(seen, self.training)
            # a class more changes the shape of all parameters, so there is nothing to start from
            if len(seen) != len(self.seen):
                self.theta, self.inverse = _start(problem.scale.shape[1])
            follows = (
                self.inverse is not None and len(seen) == len(self.seen) and self._refit_from_new_rows(problem, new)
            )
            self.norm = float(minimise(problem, self.theta, self.inverse, self.learner.tol, STEP)[0])
            if self.inverse is not None and not follows:
                self.inverse = inverse_hessian(problem, self.theta)
        self.seen, self.fitted, self.scored = seen, self.training.n, 0

    def score(self) -> Scores:
        """Scores of one trial; if the model is the same, only new rows are scored."""
        if self.fitted == 0:
            return Scores.none(1, self.groups)
        # the model changed since the last scores
        if self.scored == 0:
            self.errors = np.zeros_like(self.errors)
            if self.tally is not None:
                self.tally.clear(0)
        if self.scored < self.validation.n:
            self._add_scores(self.scored)
            self.scored = self.validation.n
        if self.tally is not None:
            return self.tally.scores()
        return Scores.of_errors(self.errors[None], self.validation.by_group.copy()[None])

    def model(self) -> Logistic | None:
        """The current model."""
        return Logistic.fitted(self.learner, self.classes[self.seen], self.theta, self.norm) if self.fitted else None

    def final_model(self) -> Logistic:
        """A model of all rows, from the current parameters where they have its classes."""
        sets = [part for part in (self.training, self.validation) if part.n]
        if not sets:
            raise InputError("a trial has no example yet: nothing to fit")
        seen = np.unique(np.concatenate([part.y() for part in sets]))
        if len(seen) == 1:
            theta, norm = constant(self.features, sum(part.n for part in sets)), 0.0
        else:
            problem = self._problem(seen, *sets)
            theta, inverse = _start(problem.scale.shape[1])
            if len(seen) == len(self.seen):
                theta[:] = self.theta
            norm = float(minimise(problem, theta, inverse, self.learner.tol)[0])
        return Logistic.fitted(self.learner, self.classes[seen], theta, norm)

    def _refit_from_new_rows(self, problem: BinaryRows | Softmax, new: int) -> bool:
        """Update parameters and inverse for the new rows; not while only two of several classes are seen."""
        assert self.inverse is not None
        # as for two classes: with many new rows a new inverse costs less than updates for each
        if not isinstance(problem, Softmax) or new > self.features:
            self.inverse[:] = np.nan
            return False
        rows, codes = self.training.rows(self.fitted), np.searchsorted(self.seen, self.training.y(self.fitted))
        append(Softmax(rows, codes, problem.K, problem.C, problem.scale), self.theta, self.inverse)
        return True

    def _problem(self, seen: Positions, *sets: GrowableSet) -> BinaryRows | Softmax:
        """The objective of all rows of these sets, whose classes are `seen`."""
        parts: list[Any] = [part.rows() for part in sets]
        stack: Any = sparse.vstack if sparse.issparse(parts[0]) else np.concatenate
        rows = parts[0] if len(parts) == 1 else stack(parts)
        codes = np.searchsorted(seen, np.concatenate([part.y() for part in sets]))
        size = np.maximum(rows.shape[0], sum(part.size for part in sets))
        # two classes have one set of weights, more classes one each
        scale = self.learner.C * np.tile(size, len(seen) if len(seen) > 2 else 1)[None]
        return problem_of(rows, codes, len(seen), self.learner.C, scale)

    def _add_scores(self, start: int) -> None:
        """Score the validation rows from `start` on."""
        rows, y, K = self.validation.rows(start), self.validation.y(start), len(self.seen)
        group = self.validation.group(start)
        score: Floats = rows @ self.theta.reshape(K if K > 2 else 1, -1).T
        if K <= 2:
            score = score[:, 0]
            predicted = self.seen[(score > 0).astype(np.intp)] if K == 2 else np.repeat(self.seen, len(y))
        else:
            predicted = self.seen[score.argmax(axis=1)]
        if self.tally is None:
            self.errors = self.errors + np.bincount(group[predicted != y], minlength=self.groups)
        else:
            self.tally.add(0, self._outcomes(rows, y, predicted, score), group)

    def _outcomes(self, rows: Any, y: Ints, predicted: Ints, score: Floats) -> Outcomes:
        """Outcomes by another risk than the error."""
        if self.measure.risk.function is not None:
            # without the trailing 1, which is ours
            return self.measure.of_model(self.model(), rows[:, :-1], self.classes[y])
        values = None
        if self.measure.table is None:
            position = np.minimum(np.searchsorted(self.seen, y), len(self.seen) - 1)
            # searchsorted gives a position even for labels that are not there
            known = np.where(self.seen[position] == y, position, -1)
            values = of_log_chances(log_chances(score, len(self.seen)), known)
        return self.measure.of_codes(y, predicted, values)


def _start(size: int) -> tuple[Floats, Floats | None]:
    """Parameters zero and no inverse yet."""
    return np.zeros((1, size)), np.full((1, size, size), np.nan) if size <= DENSE_LIMIT else None
