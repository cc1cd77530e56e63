"""Two classes, dense rows: all trials in one array, features first, solved together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.engine.growing import enlarged
from evenhand.engine.memory import Scores
from evenhand.learners.base import Loss, Model
from evenhand.learners.logistic import Logistic
from evenhand.learners.objectives import BinaryBlock, Floats, Ints, margins
from evenhand.learners.solver import DENSE_LIMIT, append, minimise

__all__ = ["DenseTrials"]

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]
Pick = Any  # an index of trials: a slice where that spares a copy, else their numbers
_AT_ONCE = 1 << 20  # numbers copied at a time for the final models


class _Block:
    """Rows of T trials (T, p, capacity) with a trailing feature 1, and what is counted of them."""

    def __init__(self, trials: int, p: int, capacity: int) -> None:
        self.rows = np.empty((trials, p, capacity))
        self.n, self.positive = np.zeros(trials, dtype=np.int64), np.zeros(trials, dtype=np.int64)
        self.size = np.zeros((trials, p))

    def append(self, trial: Counts, X: Floats, label: Mask, sign: Floats) -> Counts:
        """Add rows times their signs, in their order within each trial; where they went."""
        arrived = np.bincount(trial, minlength=len(self.n))
        self.rows = enlarged(self.rows, int((self.n + arrived).max()), axis=2)
        at = self.n[trial]
        if arrived.max() > 1:
            order = np.argsort(trial, kind="stable")
            at[order] += np.arange(len(trial)) - (np.cumsum(arrived) - arrived)[trial[order]]
            np.add.at(self.size[:, :-1], trial, np.abs(X))
        else:
            self.size[trial, :-1] += np.abs(X)
        self.rows[trial, :-1, at], self.rows[trial, -1, at] = X * sign[:, None], sign
        self.n += arrived
        self.size[:, -1] = self.n
        self.positive += np.bincount(trial[label], minlength=len(self.n))
        return at


class DenseTrials:
    """Example sets of T trials; trials with the same number of rows are worked on together."""

    def __init__(
        self, learner: Logistic, classes: NDArray[Any], groups: int, trials: int, X: Floats, capacity: int
    ) -> None:
        self.learner, self.classes, self.groups, self.trials = learner, classes, groups, trials
        self.features = X.shape[1]
        p, shape = self.features + 1, (trials, groups)
        self._training, self._validation = _Block(trials, p, capacity), _Block(trials, p, capacity)
        self._label, self._cell = np.empty((trials, capacity), dtype=bool), np.empty((trials, capacity), dtype=np.int64)
        self._theta, self._norm = np.full((trials, p), np.nan), np.zeros(trials)
        self._inverse = np.full((trials, p, p), np.nan) if p <= DENSE_LIMIT else None
        self._fitted, self._scored = np.zeros(trials, dtype=np.int64), np.zeros(trials, dtype=np.int64)
        self._warm = np.zeros(trials, dtype=bool)
        self._loss: Loss = "zero_one"
        self._sums = np.zeros(shape)
        self._errors, self._held = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)

    def add(self, trial: Counts, X: Floats, y: Counts, group: Counts, validation: Mask) -> None:
        """Take in rows."""
        label = y == 1
        if not validation.all():
            t = ~validation
            self._training.append(trial[t], X[t], label[t], np.where(label[t], 1.0, -1.0))
        if validation.any():
            v, cell = validation, (trial * self.groups + group)[validation]
            at = self._validation.append(trial[v], X[v], label[v], np.ones(int(v.sum())))
            room = self._validation.rows.shape[2]
            self._label, self._cell = enlarged(self._label, room, axis=1), enlarged(self._cell, room, axis=1)
            self._label[trial[v], at], self._cell[trial[v], at] = label[v], cell
            self._held += self._count(cell)

    def fit(self) -> None:
        """Bring every trial with new rows to its optimum."""
        block = self._training
        new = block.n - self._fitted
        mixed = (block.positive > 0) & (block.positive < block.n)
        for pick in _alike((new > 0) & ~mixed, block.n):
            self._theta[pick] = _constant(block.n[pick], block.positive[pick], self.features)
        for pick in _alike((new > 0) & mixed, block.n, new, self._warm):
            self._refit(pick, int(block.n[pick][0]), int(new[pick][0]))
        moved = new > 0
        self._fitted[moved], self._scored[moved] = block.n[moved], 0

    def score(self, loss: Loss) -> Scores:
        """Scores; from the start where the model or the loss changed, else of the new rows only."""
        if loss != self._loss:
            self._loss, self._scored = loss, np.zeros_like(self._scored)
        block = self._validation
        for pick in _alike((self._fitted > 0) & (block.n > self._scored), block.n, self._scored):
            first, last = int(self._scored[pick][0]), int(block.n[pick][0])
            errors, sums = self._count_losses(pick, first, last)
            if first == 0:
                self._errors[pick], self._sums[pick] = 0, 0.0
            self._errors[pick] += errors
            self._sums[pick] += sums
            self._scored[pick] = last
        held = np.where(self._fitted[:, None] > 0, self._held, 0)
        return Scores(self._sums.copy(), held - self._errors, held)

    def models(self) -> list[Model | None]:
        """The current models."""
        return [
            self._model(self._theta[t], self._norm[t], bool(self._warm[t])) if self._fitted[t] else None
            for t in range(self.trials)
        ]

    def final_models(self) -> list[Model]:
        """Models of training and validation examples together."""
        n = self._training.n + self._validation.n
        positive = self._training.positive + self._validation.positive
        if not n.all():
            raise ValueError(f"trial {int(np.argmin(n))} has no example yet: nothing to fit")
        mixed = (positive > 0) & (positive < n)
        theta, norm = _constant(n, positive, self.features), np.zeros(self.trials)
        for pick in _alike(mixed, self._training.n, self._validation.n):
            trials = np.arange(self.trials)[pick]
            step = max(1, _AT_ONCE // (int(n[trials[0]]) * theta.shape[1]))
            for start in range(0, len(trials), step):
                part = trials[start : start + step]
                theta[part], norm[part] = self._fit_all(part)
        return [self._model(theta[t], norm[t], bool(mixed[t])) for t in range(self.trials)]

    def binary_parameters(self) -> Floats:
        """Weights and intercepts, (T, d+1)."""
        return self._theta

    def _refit(self, pick: Pick, n: int, new: int) -> None:
        """Refit trials that all have n rows, `new` of them new."""
        block, warm = self._training, bool(self._warm[pick][0])
        problem = BinaryBlock(block.rows[pick, :, :n], self.learner.C, self._scale(block.size[pick], n))
        theta = self._theta[pick] if warm else np.zeros((len(self._theta[pick]), self.features + 1))
        if self._inverse is None:
            self._norm[pick] = _one_by_one(problem, theta, self.learner.tol)
        else:
            inverse = self._inverse[pick]
            if warm and new < theta.shape[1]:
                append(problem, theta, inverse, new)
            else:
                inverse[:] = np.nan
            self._norm[pick] = minimise(problem, theta, inverse, self.learner.tol)
            if not isinstance(pick, slice):
                self._inverse[pick] = inverse
        self._theta[pick], self._warm[pick] = theta, True

    def _fit_all(self, trials: Ints) -> tuple[Floats, Floats]:
        """Optimum and norm of trials on all their rows; they have the same numbers of both kinds."""
        one, two = (int(block.n[trials[0]]) for block in (self._training, self._validation))
        sign = np.where(self._label[trials, :two], 1.0, -1.0)
        rows = np.concatenate(
            (self._training.rows[trials, :, :one], self._validation.rows[trials, :, :two] * sign[:, None, :]), axis=2
        )
        scale = self._scale((self._training.size + self._validation.size)[trials], one + two)
        theta = np.where(self._warm[trials, None], self._theta[trials], 0.0)
        problem = BinaryBlock(rows, self.learner.C, scale)
        if self._inverse is None:
            return theta, _one_by_one(problem, theta, self.learner.tol)
        return theta, minimise(problem, theta, np.full_like(self._inverse[trials], np.nan), self.learner.tol)

    def _count_losses(self, pick: Pick, first: int, last: int) -> tuple[Counts, Floats]:
        """Errors and loss sums of validation rows first … last − 1 of some trials, by group."""
        rows, label = self._validation.rows[pick, :, first:last], self._label[pick, first:last]
        cell = self._cell[pick, first:last]
        margin = margins(self._theta[pick], rows)
        errors = self._count(cell[(margin > 0.0) != label])[pick]
        if self._loss == "zero_one":
            return errors, errors.astype(float)
        if self._loss == "log":
            losses = np.logaddexp(0.0, np.where(label, -margin, margin))
        else:
            models = np.array(self.models(), dtype=object)[pick]
            losses = np.array(
                [
                    model.losses(x[:-1].T, self.classes[y.astype(np.intp)], self._loss)
                    for model, x, y in zip(models, rows, label, strict=True)
                ]
            )
        sums = np.bincount(cell.ravel(), weights=losses.ravel(), minlength=self._held.size)
        return errors, sums.reshape(self._held.shape)[pick]

    def _count(self, cell: Counts) -> Counts:
        return np.bincount(cell, minlength=self.trials * self.groups).reshape(self.trials, self.groups)

    def _scale(self, size: Floats, n: int) -> Floats:
        return self.learner.C * np.maximum(n, size)

    def _model(self, theta: Floats, norm: float, mixed: bool) -> Logistic:
        return Logistic.fitted(self.learner, self.classes, theta, norm)


def _alike(wanted: Mask, *keys: NDArray[Any]) -> Iterator[Pick]:
    """The wanted trials in sets that agree in every key."""
    trials = np.flatnonzero(wanted)
    if not trials.size:
        return
    if len(trials) == len(wanted) and all((key == key[0]).all() for key in keys):
        yield slice(None)
        return
    found = np.unique(np.stack([key[trials] for key in keys]), axis=1, return_inverse=True)[1].ravel()
    for number in range(int(found.max()) + 1):
        members = trials[found == number]
        yield members if len(members) > 1 else slice(members[0], members[0] + 1)


def _constant(n: Counts, positive: Counts, features: int) -> Floats:
    """Parameters of the constant classifiers of the one class seen: probability (k+1)/(k+2) after k examples."""
    theta = np.zeros((len(n), features + 1))
    theta[:, -1] = np.where(positive > 0, 1.0, -1.0) * np.log(n + 1.0)
    return theta


def _one_by_one(problem: BinaryBlock, theta: Floats, tol: float) -> Floats:
    """Optima of trials with too many parameters for a matrix."""
    norms = [
        minimise(BinaryBlock(problem.rows[t : t + 1], problem.C, problem.scale[t : t + 1]), theta[t : t + 1], None, tol)
        for t in range(len(theta))
    ]
    return np.concatenate(norms)
