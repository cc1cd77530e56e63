"""Two classes: all trials together; those with the same number of rows are solved at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from evenhand.arrays import Floats, Ints, Mask, Positions, Values
from evenhand.engine.memories.base import RunningTally, Scores
from evenhand.engine.memories.dense_blocks import DenseBlock, Pick
from evenhand.engine.memories.growable import enlarged
from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.learners.logistic.learner import Logistic
from evenhand.learners.logistic.objectives import BinaryBlock
from evenhand.learners.logistic.solver import DENSE_LIMIT, append, inverse_hessian, minimise
from evenhand.risks import Measure, Outcomes, margin_log_losses

if TYPE_CHECKING:
    from evenhand.arrays import Features


STEP = 5e-7  # how near to its optimum every parameter is brought at each refit
_AT_ONCE = 1 << 20  # numbers copied at a time for the final models
_SINGLE = 32  # from this many parameters on, inverse Hessians are in single precision: they only set directions
_TOGETHER = 1 << 18  # entries of inverse Hessians worked on together, few enough to stay in the processor's cache


class BinaryTrials:
    """Example sets of T trials and their two-class models."""

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
        self.learner, self.classes, self.groups, self.trials = learner, classes, groups, trials
        self.features: int = X.shape[1]
        p, shape = self.features + 1, (trials, groups)
        block = _kind_of_block(X)
        self._training, self._validation = (block(trials, self.features, capacity) for _ in range(2))
        self._positive = np.zeros((2, trials), dtype=np.int64)
        self._label, self._cell = np.empty((trials, capacity), dtype=bool), np.empty((trials, capacity), dtype=np.int64)
        self._theta, self._norm = np.full((trials, p), np.nan), np.zeros(trials)
        kind = np.float32 if p >= _SINGLE else np.float64
        self._inverse: Any = np.full((trials, p, p), np.nan, dtype=kind) if p <= DENSE_LIMIT else None
        self._fitted, self._scored = np.zeros(trials, dtype=np.int64), np.zeros(trials, dtype=np.int64)
        # whether a trial has an optimum to start from; a constant classifier of one class is none
        self._warm = np.zeros(trials, dtype=bool)
        self._measure = measure
        # errors are only counted; every other risk has its sums
        self._tally = None if measure.risk.is_error else RunningTally(measure, trials, groups)
        self._errors, self._held = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)

    def add(self, trial: Ints, X: Features, y: Ints, group: Ints, validation: Mask) -> None:
        """Take in rows: training ones times ±1 for their class, validation ones as they are."""
        label = y == 1
        for held in (False, True):
            mask = np.flatnonzero(validation == held)
            if not mask.size:
                continue
            t, positive = trial[mask], label[mask]
            # how many of each role are of the second class: whether both classes were seen decides what can be fitted
            self._positive[int(held)] += np.bincount(t[positive], minlength=self.trials)
            if held:
                at = self._validation.append(t, X, mask, np.ones(len(t)))
                room = int(self._validation.n.max())
                self._label, self._cell = enlarged(self._label, room, axis=1), enlarged(self._cell, room, axis=1)
                # trial and group in one number, so that one bincount sums the errors of all trials and groups
                self._label[t, at], self._cell[t, at] = positive, t * self.groups + group[mask]
                self._held += self._count(self._cell[t, at])
            else:
                self._training.append(t, X, mask, np.where(positive, 1.0, -1.0))

    def fit(self) -> None:
        """Bring every trial with new rows to its optimum."""
        n, positive = self._training.n, self._positive[0]
        new = n - self._fitted
        # with one class alone the intercept has no optimum: it runs off to infinity
        mixed = (positive > 0) & (positive < n)
        for pick in _alike((new > 0) & ~mixed, n):
            self._theta[pick] = _constant(n[pick], positive[pick], self.features)
        # does not change any number: every trial is solved by itself inside a batch
        limit = max(1, _TOGETHER // self._theta.shape[1] ** 2)
        left = (new > 0) & mixed & ~self._refit_from_new_rows(n, new, mixed)
        for pick in _alike(left, n, new, self._warm, limit=limit):
            self._refit(pick, int(n[pick][0]), int(new[pick][0]))
        moved = new > 0
        # a new model has scored nothing yet
        self._fitted[moved], self._scored[moved] = n[moved], 0

    def score(self) -> Scores:
        """Scores: of all rows where the model changed, else of the new rows only."""
        n = self._validation.n
        for pick in _alike((self._fitted > 0) & (n > self._scored), n, self._scored):
            first, last = int(self._scored[pick][0]), int(n[pick][0])
            self._add_scores(pick, first, last)
            self._scored[pick] = last
        if self._tally is not None:
            return self._tally.scores()
        # copies: the engine keeps the scores of a round while these go on counting
        return Scores.of_errors(self._errors.copy(), np.where(self._fitted[:, None] > 0, self._held, 0))

    def models(self) -> list[Model | None]:
        """The current models."""
        return [
            Logistic.fitted(self.learner, self.classes, self._theta[t], self._norm[t]) if self._fitted[t] else None
            for t in range(self.trials)
        ]

    def final_models(self) -> list[Model]:
        """Models of training and validation examples together."""
        n, positive = self._training.n + self._validation.n, self._positive.sum(axis=0)
        if not n.all():
            raise InputError(f"trial {int(np.argmin(n))} has no example yet: nothing to fit")
        theta, norm = _constant(n, positive, self.features), np.zeros(self.trials)
        for pick in _alike((positive > 0) & (positive < n), self._training.n, self._validation.n):
            trials = np.arange(self.trials)[pick]
            # the joined rows are copies: all trials at once would double the memory of a block
            step = max(1, _AT_ONCE // (int(n[trials[0]]) * theta.shape[1]))
            for start in range(0, len(trials), step):
                part = trials[start : start + step]
                theta[part], norm[part] = self._fit_all(part)
        return [Logistic.fitted(self.learner, self.classes, theta[t], norm[t]) for t in range(self.trials)]

    def binary_parameters(self) -> Floats:
        """Weights and intercepts, (T, d+1)."""
        return self._theta

    def _refit_from_new_rows(self, n: Ints, new: Ints, mixed: Mask) -> Mask:
        """Refit sparse trials that have a model and few new rows; returns which of them reached their optimum."""
        done = np.zeros(self.trials, dtype=bool)
        trials = np.flatnonzero((new > 0) & mixed & self._warm & (new < self._theta.shape[1]))
        if self._training.compiled and self._inverse is not None and trials.size:
            settings, before = (self.learner.C, self.learner.tol, STEP), self._theta[trials]
            self._training.refit_sparse(trials, self._fitted, *settings, self._theta, self._inverse, self._norm)
            done[trials] = reached = np.isfinite(self._norm[trials])
            # the solver starts from the last optimum, not from where the quick way got lost
            self._theta[trials[~reached]] = before[~reached]
        return done

    def _refit(self, pick: Pick, n: int, new: int) -> None:
        """Refit trials that all have n rows, `new` of them new."""
        warm, C = bool(self._warm[pick][0]), self.learner.C
        scale = C * np.maximum(n, self._training.size[pick])
        theta = self._theta[pick] if warm else np.zeros((len(scale), self.features + 1))
        inverse = None if self._inverse is None else self._inverse[pick]
        # with more new rows than parameters a new inverse costs less than adding them one by one
        follows = warm and new < theta.shape[1] and not self._training.compiled
        # rank-one updates for few new rows keep the inverse good enough; sparse trials have their own method
        if inverse is not None and follows:
            append(BinaryBlock(self._training.part(pick, n - new, n), C, scale), theta, inverse)
        elif inverse is not None:
            inverse[:] = np.nan
        problem = self._training.problem(pick, n, C, scale)
        self._norm[pick] = minimise(problem, theta, inverse, self.learner.tol, STEP)
        if inverse is not None and not follows:
            inverse[:] = inverse_hessian(problem, theta)
        # a slice gave a view, which was changed in place; numbers gave a copy
        if self._inverse is not None and not isinstance(pick, slice):
            self._inverse[pick] = inverse
        self._theta[pick], self._warm[pick] = theta, True

    def _fit_all(self, trials: Positions) -> tuple[Floats, Floats]:
        """Optimum and norm of trials on all their rows; they have the same numbers of both kinds."""
        one, two = int(self._training.n[trials[0]]), int(self._validation.n[trials[0]])
        sign = np.where(self._label[trials, :two], 1.0, -1.0)
        size = (self._training.size + self._validation.size)[trials]
        theta = np.where(self._warm[trials, None], self._theta[trials], 0.0)
        # NaN: the solver makes an inverse of its own, and the trial's stays that of its training rows
        inverse = None if self._inverse is None else np.full_like(self._inverse[trials], np.nan)
        C, both = self.learner.C, self._validation
        problem = self._training.joined(both, trials, sign, C, C * np.maximum(one + two, size))
        return theta, minimise(problem, theta, inverse, self.learner.tol)

    def _add_scores(self, pick: Pick, first: int, last: int) -> None:
        """Score validation rows first … last − 1 of some trials; if `first` is 0, their sums start again."""
        label, cell = self._label[pick, first:last], self._cell[pick, first:last]
        margin = self._validation.margins(pick, self._theta[pick], first, last)
        if self._tally is None:
            if first == 0:
                self._errors[pick] = 0
            self._errors[pick] += self._count(cell[(margin > 0.0) != label])[pick]
            return
        if first == 0:
            self._tally.clear(pick)
        self._tally.add(pick, self._outcomes(pick, first, last, label, margin), cell.ravel())

    def _outcomes(self, pick: Pick, first: int, last: int, label: Mask, margin: Floats) -> Outcomes:
        """Outcomes of validation rows by another risk than the error, trial after trial."""
        if self._measure.risk.function is not None:
            # a function of the user's is given a model, rows and labels as they are, never margins
            rows, y = self._validation.part(pick, first, last), self.classes[label.astype(np.intp)]
            models = [self.models()[t] for t in np.arange(self.trials)[pick]]
            parts = [self._measure.of_model(models[i], rows[i, :-1].T, y[i]) for i in range(len(models))]
            return Outcomes.joined(parts)
        values = margin_log_losses(margin, label).ravel() if self._measure.table is None else None
        codes, predicted = label.ravel().astype(np.int64), (margin > 0.0).ravel().astype(np.int64)
        return self._measure.of_codes(codes, predicted, values)

    def _count(self, cell: Ints) -> Ints:
        return np.bincount(cell, minlength=self.trials * self.groups).reshape(self.trials, self.groups)


def _kind_of_block(X: Features) -> Any:
    if not sparse.issparse(X):
        return DenseBlock
    from evenhand.engine.memories.sparse_blocks import SparseBlocks

    return SparseBlocks


def _alike(wanted: Mask, *keys: Values, limit: int | None = None) -> Iterator[Pick]:
    """The wanted trials in sets that agree in every key, of at most `limit` trials; slices where that is possible."""
    trials = np.flatnonzero(wanted)
    if not trials.size:
        return
    # nearly always in a simulation, where all trials get a row a round: sorting them would cost more than the solve
    if all((key[trials] == key[trials[0]]).all() for key in keys):
        found = np.zeros(len(trials), dtype=np.intp)
    else:
        found = np.unique(np.stack([key[trials] for key in keys]), axis=1, return_inverse=True)[1].ravel()
    for number in range(int(found.max()) + 1):
        members = trials[found == number]
        for start in range(0, len(members), limit or len(members)):
            part = members[start : start + (limit or len(members))]
            first, last = int(part[0]), int(part[-1])
            yield slice(first, last + 1) if last - first == len(part) - 1 else part


def _constant(n: Ints, positive: Ints, features: int) -> Floats:
    """Parameters of the constant classifiers of the one class seen: probability (k+1)/(k+2) after k examples."""
    theta = np.zeros((len(n), features + 1))
    # the logit of (k+1)/(k+2) is log(k+1): Laplace's rule of succession, so that a certain answer stays a finite one
    theta[:, -1] = np.where(positive > 0, 1.0, -1.0) * np.log(n + 1.0)
    return theta
