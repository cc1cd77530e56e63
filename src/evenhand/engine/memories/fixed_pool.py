"""Fixed pools of T trials and a linear model of each, moved by stochastic gradient steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from evenhand.arrays import Floats, Ints, Mask, Values
from evenhand.engine.memories.base import Scores
from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.learners.logistic.learner import Logistic
from evenhand.risks import ERROR, Measure, Outcomes, margin_log_losses

__all__ = ["PoolMemory"]


@dataclass(frozen=True)
class _Part:
    """Rows of one role, ordered by trial and group."""

    trial: Ints
    X: sparse.csr_array
    y: Ints
    group: Ints

    def counts(self, trials: int, groups: int) -> Ints:
        found = np.bincount(self.trial * groups + self.group, minlength=trials * groups)
        return np.asarray(found.reshape(trials, groups))

    @cached_property
    def wide(self) -> sparse.csr_array:
        """The rows with separate columns for every trial, so that one product serves all trials."""
        width, trials = self.X.shape[1], int(self.trial.max()) + 1
        # trial t's features begin at column t × width: a block matrix whose product with all coefficients in a row is one call
        columns = self.X.indices + np.repeat(self.trial * width, np.diff(self.X.indptr))
        return sparse.csr_array((self.X.data, columns, self.X.indptr), shape=(len(self.y), trials * width))


class PoolMemory:
    """Training and validation examples of T trials, all added before the first step.

    A step on examples (x, y) moves coefficients and intercept by rate × the mean of (y − σ(x·w + b))·(x, 1): logistic
    regression without a penalty, from zero.

    Args:
        classes: the two labels, sorted.
        groups: the names of the groups.
        trials: how many trials there are.
        rate: step size.
        measure: the risk for these classes; the error by default.
    """

    def __init__(
        self,
        classes: Values,
        groups: Sequence[str],
        trials: int,
        rate: float,
        measure: Measure | None = None,
    ) -> None:
        if len(classes) != 2:
            raise InputError(f"the peers' rule knows two classes, not {len(classes)}")
        self.measure = ERROR.for_classes(classes) if measure is None else measure
        self.classes, self.groups, self.rate = np.asarray(classes), tuple(groups), rate
        self.coef, self.intercept = np.zeros((trials, 0)), np.zeros(trials)
        self._added: list[tuple[Ints, sparse.csr_array, Ints, Ints, Mask]] = []

    def add(
        self,
        trial: Ints,
        X: Any,
        y: Ints,
        group: Ints,
        validation: Mask,
    ) -> None:
        """Take in rows of the pool."""
        if np.ndim(X) != 2 and not sparse.issparse(X):
            raise InputError("the peers' rule trains a linear model: it takes rows of numbers, not images")
        # the width is known only once the first rows come; no step was taken before
        self.coef = np.zeros((len(self.coef), X.shape[1]))
        self._added.append((trial, sparse.csr_array(X, dtype=float), y, group, validation))

    @cached_property
    def _parts(self) -> tuple[_Part, _Part]:
        """The training and the validation rows."""
        trial, y, group, validation = (np.concatenate([rows[i] for rows in self._added]) for i in (0, 2, 3, 4))
        X = sparse.csr_array(sparse.vstack([rows[1] for rows in self._added]))
        # the parts are copies; holding both would double the memory of a pool
        self._added.clear()
        parts = []
        for role, does in ((False, "train"), (True, "validate")):
            rows = np.flatnonzero(validation == role)
            # sorted by trial and then group, so that a group's rows are a stretch that a uniform number picks from
            rows = rows[np.lexsort((group[rows], trial[rows]))]
            part = _Part(trial[rows], X[rows], y[rows], group[rows])
            empty = part.counts(len(self.coef), len(self.groups)) == 0
            if empty.any():
                name = self.groups[int(np.argwhere(empty)[0, 1])]
                raise InputError(f"the pool has no example of group {name!r} to {does} with: raise the budget")
            parts.append(part)
        return parts[0], parts[1]

    @cached_property
    def _places(self) -> tuple[Ints, Ints]:
        """The position where the training rows of every trial and group begin, and how many there are."""
        counts = self._parts[0].counts(*self._shape)
        return (np.cumsum(counts) - counts.ravel()).reshape(self._shape), counts

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.coef), len(self.groups)

    def _margins(self, X: sparse.csr_array, trial: Ints) -> Floats:
        return np.asarray(X @ self.coef.ravel() + self.intercept[trial])

    def step(self, group: Ints, uniforms: Floats) -> None:
        """A gradient step of every trial on examples of its group, one for each of its uniforms."""
        training, every = self._parts[0], np.arange(len(self.coef))
        start, count = (values[every, group][:, None] for values in self._places)
        # with replacement, as the peers' rule draws from the rows it has bought
        rows = (start + (uniforms * count).astype(np.int64)).ravel()
        X = training.wide[rows]
        move = (training.y[rows] - expit(self._margins(X, training.trial[rows]))) * self.rate / uniforms.shape[1]
        self.coef += (X.T @ move).reshape(self.coef.shape)
        self.intercept += move.reshape(uniforms.shape).sum(axis=1)

    def fit(self) -> None:
        """Nothing to do: steps are all the fitting there is."""

    def score(self) -> Scores:
        """Losses and correct answers on the validation sets."""
        held = self._parts[1]
        margin = self._margins(held.wide, held.trial)
        cell, cells = held.trial * len(self.groups) + held.group, len(self.coef) * len(self.groups)
        if self.measure.risk.is_error:
            errors = np.bincount(cell[(margin > 0) != (held.y == 1)], minlength=cells)
            return Scores.of_errors(errors.reshape(self._shape), held.counts(*self._shape))
        tally = self.measure.tally(self._outcomes(held, margin), cell, cells)
        return Scores.of(self.measure, tally, len(self.coef))

    def _outcomes(self, held: _Part, margin: Floats) -> Outcomes:
        """Outcomes by another risk than the error, trial after trial."""
        if self.measure.risk.function is None:
            values = margin_log_losses(margin, held.y == 1) if self.measure.table is None else None
            return self.measure.of_codes(held.y, (margin > 0).astype(np.int64), values)
        found = []
        for t, model in enumerate(self._fitted()):
            rows = held.trial == t
            found.append(self.measure.of_model(model, held.X[rows], self.classes[held.y[rows]]))
        return Outcomes.joined(found)

    def _fitted(self) -> list[Model]:
        theta = np.column_stack([self.coef, self.intercept])
        # NaN for the gradient's norm: these models are not the optimum of any objective
        return [Logistic.fitted(Logistic(), self.classes, row[None], np.nan) for row in theta]

    def models(self) -> list[Model | None]:
        """The current model of every trial."""
        return list(self._fitted())

    def final_models(self) -> list[Model]:
        """The models as they are: this rule has no fit on training and validation examples together."""
        return self._fitted()
