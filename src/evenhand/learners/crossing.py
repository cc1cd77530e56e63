"""Risks of a learner under group weights, measured on rows it was not fitted on, again and again under other weights."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from evenhand.arrays import Features, Floats, Ints, Values, take_rows
from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.learners.penalty import with_penalty
from evenhand.risks import Measure, Outcomes, Risk

if TYPE_CHECKING:
    from evenhand.learners.base import Learner


class Rows(NamedTuple):
    """Labelled rows: features, labels, the position of each row's group, and how often each row counts."""

    X: Features
    y: Values
    group: Ints
    weight: Floats

    def at(self, places: Ints) -> Rows:
        """The rows at these places."""
        return Rows(take_rows(self.X, places), self.y[places], self.group[places], self.weight[places])


def group_places(groups: object, n: int) -> tuple[Values, Ints]:
    """The groups' names, sorted, and the position of every row's group among them."""
    if groups is None:
        raise InputError("the group of every row is needed: give groups=...")
    given = np.asarray(groups)
    if given.shape != (n,):
        raise InputError(f"groups has shape {given.shape} for {n} rows: give one group for each")
    names, place = np.unique(given.astype(str), return_inverse=True)
    return names, place.astype(np.int64)


def make_folds(group: Ints, label: Ints, folds: int, seed: int) -> Ints:
    """The fold of every row: rows are dealt out in turn within each group and label, in random order.

    >>> make_folds(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]), 2, seed=0).tolist() in ([0, 1, 0, 1], [0, 1, 1, 0],
    ...     [1, 0, 0, 1], [1, 0, 1, 0])
    True
    """
    # sorted by group and label and then dealt in turn, so
    # that no fold lacks the positives of a small group
    order = np.lexsort((np.random.default_rng(seed).random(len(group)), label, group))
    fold = np.empty(len(group), dtype=np.int64)
    fold[order] = np.arange(len(group)) % folds
    return fold


def group_weights(rows: Rows, q: Floats, strength: float = 1.0) -> Floats:
    """Every row's weight if group z counts q_z: its own times 1 + strength·(q_z·n/n_z − 1), with the sum unchanged."""
    size = np.bincount(rows.group, rows.weight, len(q))
    factor = np.divide(q * size.sum(), size, out=np.ones(len(q)), where=size > 0)
    weight = rows.weight * (1.0 + strength * (factor - 1.0))[rows.group]
    # the same sum as before: else a learner's penalty would count for more or less than it was set to
    return np.asarray(weight * rows.weight.sum() / weight.sum())


def measure_of(risk: Risk, y: Values, classes: Sequence[object] | None = None) -> Measure:
    """The risk for the classes there may be: those given, those its costs name, or those of the labels."""
    seen = np.unique(y)
    known = classes if classes is not None else risk.order or seen.tolist()
    # early on the positive class may not have come yet, which is no mistake of the user's then
    return risk.for_classes(sorted(known), final=len(seen) > 1 and classes is None)


class Refits(Protocol):
    """Fits on fixed rows under changing weights."""

    @property
    def last(self) -> Model | None:
        """The model of the last fit; None before the first."""

    def outcomes(self, weight: Floats, C: float | None, measure: Measure, X: Features, y: Ints) -> Outcomes:
        """Outcomes on other rows of the model under these weights; `y` are positions in the measure's classes.

        `C` replaces the learner's own, if it has one.
        """


class _AnyRefits:
    """Every learner, fitted again each time; an incremental learner continues from its previous model."""

    def __init__(self, learner: Learner, X: Features, y: Values, seed: int) -> None:
        self.learner, self.X, self.y, self.seed = learner, X, y, seed
        self.last: Model | None = None

    def outcomes(self, weight: Floats, C: float | None, measure: Measure, X: Features, y: Ints) -> Outcomes:
        learner = deepcopy(self.learner) if C is None else with_penalty(self.learner, C)
        # equal weights are left out, so that a learner without sample_weight can be fitted plainly
        more = {} if np.ptp(weight) == 0 else {"sample_weight": weight}
        self.last = learner.fit(self.X, self.y, previous=self.last, seed=self.seed, **more)
        return measure.of_model(self.last, X, np.asarray(measure.classes)[y])


def refits_of(learner: Learner, X: Features, y: Values, seed: int, tol: float | None = None) -> Refits:
    """Refits of this learner; if it has a quick method of its own, `learner.refits(X, y, tol)`, that is used."""
    own = getattr(learner, "refits", None)
    found: Refits = _AnyRefits(learner, X, y, seed) if own is None else own(X, y, tol)
    return found


class FoldRefits(Protocol):
    """Fits with each fold left out in turn, all at once, on fixed rows under changing weights."""

    @property
    def last(self) -> Model | None:
        """A model of the last fits; None before the first."""

    def outcomes(self, weight: Floats, C: float | None, measure: Measure, y: Ints) -> Outcomes:
        """Outcomes on every row of the model without its fold; `weight` is (rows, folds), the rest as in `Refits`."""


class _Apart:
    """Every learner, fold after fold, each fitted on its own copy of the rows; without folds, in sample."""

    def __init__(
        self, learner: Learner, rows: Rows, measure: Measure, fold: Ints | None, seed: int, tol: float
    ) -> None:
        self.measure, self.codes = measure, measure.codes(rows.y)
        self.parts: list[tuple[Rows, Refits, Features, Ints]] = []
        if fold is None:
            self.parts = [(rows, refits_of(learner, rows.X, rows.y, seed), rows.X, np.arange(len(rows.y)))]
            return
        for k in np.unique(fold):
            part, test = rows.at(np.flatnonzero(fold != k)), np.flatnonzero(fold == k)
            refits = refits_of(learner, part.X, part.y, seed, tol)
            self.parts.append((part, refits, take_rows(rows.X, test), test))

    @property
    def last(self) -> Model | None:
        return self.parts[0][1].last

    def outcomes(self, q: Floats, strength: float, C: float | None) -> Outcomes:
        n = len(self.codes)
        values, relevant = np.zeros(n), np.zeros(n, dtype=bool)
        wrong, stratum = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64)
        for part, refits, X, test in self.parts:
            weight = group_weights(part, q, strength)
            found = refits.outcomes(weight, C, self.measure, X, self.codes[test])
            values[test], relevant[test], wrong[test], stratum[test] = found
        return Outcomes(values, relevant, wrong, stratum)


class _Together:
    """All folds at once, for a learner that can do so: rows that are left out have weight 0."""

    def __init__(self, refits: FoldRefits, rows: Rows, measure: Measure, fold: Ints) -> None:
        self.refits, self.measure, self.codes = refits, measure, measure.codes(rows.y)
        self.parts = [rows._replace(weight=rows.weight * (fold != k)) for k in np.unique(fold)]

    @property
    def last(self) -> Model | None:
        return self.refits.last

    def outcomes(self, q: Floats, strength: float, C: float | None) -> Outcomes:
        weight = np.column_stack([group_weights(part, q, strength) for part in self.parts])
        return self.refits.outcomes(weight, C, self.measure, self.codes)


class CrossFit:
    """A learner fitted on all folds but one, and its outcomes on that one, for any weights; without folds, in sample.

    `tol` is the tolerance of the fits that leave a fold out; they compare weights and need not be exact. In sample the
    fit itself is the result, so the learner's own tolerance applies.
    """

    def __init__(
        self, learner: Learner, rows: Rows, measure: Measure, groups: int, folds: int, seed: int, tol: float = 1e-6
    ) -> None:
        self.measure, self.groups, self.group, self.weight = measure, groups, rows.group, rows.weight
        fold = make_folds(rows.group, measure.codes(rows.y), folds, seed) if folds else None
        quick = getattr(learner, "refits_of_folds", None)
        together: FoldRefits | None = None
        if quick is not None and fold is not None and measure.risk.function is None:
            together = quick(rows.X, rows.y, fold, tol)
        self._fits: _Apart | _Together
        if together is not None and fold is not None:
            self._fits = _Together(together, rows, measure, fold)
        else:
            self._fits = _Apart(learner, rows, measure, fold, seed, tol)

    @property
    def last(self) -> Model | None:
        """A model under the last weights, fitted on all rows but one fold's."""
        return self._fits.last

    def outcomes(self, q: Floats, strength: float = 1.0, C: float | None = None) -> Outcomes:
        """Outcomes of the models under these group weights on the held-out rows, in the order of the rows."""
        return self._fits.outcomes(q, strength, C)

    def risks(self, outcomes: Outcomes) -> Floats:
        """Each group's risk, rows counted as often as their weights say; NaN where it has no relevant row."""
        strata = self.measure.strata
        cell, counted = self.group * strata + outcomes.stratum, self.weight * outcomes.relevant
        total, n = (np.bincount(cell, w, self.groups * strata) for w in (counted * outcomes.values, counted))
        means = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0).reshape(self.groups, strata)
        some = ~np.isnan(means)
        mean = np.nansum(means, axis=1) / np.maximum(some.sum(axis=1), 1)
        return np.asarray(np.where(some.any(axis=1), mean, np.nan))
