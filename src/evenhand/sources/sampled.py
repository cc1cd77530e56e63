"""A source made from one function that draws examples of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evenhand.arrays import Floats, Ints
from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.risks import Measure
from evenhand.sources.base import Draw

Drawing = Callable[[np.random.Generator, str, int], tuple[Any, Any]]
"""The function a user writes: from (random numbers, group, size) to features, one row per example, and labels."""

_CHUNK = 256
_TEST = -1


class Sampled:
    """A source for simulations made from one function, `draw(random, group, size)`, which returns features and labels.

    The function is asked for fixed portions, each with its own random numbers. So the k-th example of a group is the
    same for every strategy, whatever sizes they draw. Models are tested on fresh examples.

    Args:
        name: the source's name in results.
        groups: the names of the groups.
        draw: takes a NumPy generator, a group and a size; returns features, one row per example, and labels.
        classes: the labels there may be.
        population: each group's share of the population; equal unless given.
        tests: how many examples of each group test a model.

    >>> def draw(random, group, size):
    ...     x = random.random((size, 1))
    ...     return x, (x[:, 0] > (0.5 if group == "u" else 0.4)).astype(int)
    >>> source = Sampled("thresholds", ["u", "v"], draw)
    >>> source.open(seed=0, trials=[0]).draw(np.array([1]), np.array([3])).X.shape
    (3, 1)
    """

    def __init__(
        self,
        name: str,
        groups: Sequence[str],
        draw: Drawing,
        *,
        classes: Sequence[object] = (0, 1),
        population: Sequence[float] | None = None,
        tests: int = 2000,
    ) -> None:
        self.name, self.groups, self.sample, self.tests = name, tuple(groups), draw, tests
        self.classes = np.sort(np.asarray(classes))
        shares = (
            np.full(len(self.groups), 1 / len(self.groups)) if population is None else np.asarray(population, float)
        )
        if shares.shape != (len(self.groups),) or not np.isclose(shares.sum(), 1) or (shares < 0).any():
            raise InputError(f"population must be a share for each of {len(self.groups)} groups, with sum 1")
        self.population: Floats = shares

    def open(self, seed: int, trials: Sequence[int]) -> SampledStream:
        """The draws of these trials."""
        return SampledStream(self, seed, trials)

    def portion(self, seed: int, trial: int, group: int, number: int) -> tuple[Floats, Ints]:
        """A portion of a group's examples; number −1 is for testing, and the same in every trial."""
        testing = number == _TEST
        size = self.tests if testing else _CHUNK
        random = np.random.default_rng([seed, 0, group, 0] if testing else [seed, trial, group, number + 1])
        X, y = self.sample(random, self.groups[group], size)
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        if X.ndim != 2 or len(X) != size or y.shape != (size,):
            raise InputError(
                f"draw(random, {self.groups[group]!r}, {size}) gave arrays of shapes {X.shape} and {y.shape}"
            )
        if not np.isin(y, self.classes).all():
            raise InputError(
                f"draw gave labels that are not among the classes {self.classes.tolist()}: name them with classes="
            )
        return X, np.searchsorted(self.classes, y)


class SampledStream:
    """The draws of a block of trials."""

    def __init__(self, source: Sampled, seed: int, trials: Sequence[int]) -> None:
        self._source, self._seed, self._trials = source, seed, list(trials)
        self._drawn = np.zeros((len(self._trials), len(source.groups)), dtype=np.int64)
        self._portions: dict[tuple[int, int], tuple[int, tuple[Floats, Ints]]] = {}
        tests = [source.portion(seed, 0, group, _TEST) for group in range(len(source.groups))]
        self._X, self._y = (np.concatenate(part) for part in zip(*tests, strict=True))
        self._labels = source.classes[self._y]
        self._group = np.repeat(np.arange(len(source.groups)), source.tests)

    def draw(self, group: Ints, size: Ints) -> Draw:
        """The next `size[t]` examples of `group[t]` for every trial t; −1 draws nothing for that trial."""
        size = np.where(group >= 0, size, 0)
        wanted = [(int(t), int(group[t])) for t in np.flatnonzero(size)]
        parts = [self._next(t, z, int(size[t])) for t, z in wanted]
        X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
        counts = size[[t for t, _ in wanted]]
        trial, drawn = (np.repeat(np.array(column), counts) for column in zip(*wanted, strict=True))
        return Draw(trial, drawn, X, y)

    def _next(self, t: int, group: int, size: int) -> tuple[Floats, Ints]:
        """The next examples of a group in a trial, taken from as many portions as needed."""
        start = int(self._drawn[t, group])
        self._drawn[t, group] += size
        found = []
        for number in range(start // _CHUNK, (start + size - 1) // _CHUNK + 1):
            X, y = self._portion(t, group, number)
            low, high = max(start - number * _CHUNK, 0), min(start + size - number * _CHUNK, _CHUNK)
            found.append((X[low:high], y[low:high]))
        X, y = (np.concatenate(part) for part in zip(*found, strict=True))
        return X, y

    def _portion(self, t: int, group: int, number: int) -> tuple[Floats, Ints]:
        """A portion, kept until the next one of the group is wanted."""
        at, portion = self._portions.get((t, group), (-1, None))
        if portion is None or at != number:
            portion = self._source.portion(self._seed, self._trials[t], group, number)
            self._portions[t, group] = (number, portion)
        return portion

    def left(self) -> None:
        """None: these groups never run out."""

    def accuracies(self, models: Sequence[Model | None]) -> Floats:
        """Test accuracy of every trial's model on every group."""
        m = len(self._source.groups)
        right = [
            np.full(m, np.nan)
            if model is None
            else (model.predict(self._X) == self._labels).reshape(m, self._source.tests).mean(axis=1)
            for model in models
        ]
        return np.array(right)

    def accuracies_and_risks(self, models: Sequence[Model | None], measure: Measure) -> tuple[Floats, Floats]:
        """Test accuracy and risk of every trial's model on every group."""
        m = len(self._source.groups)
        nothing = np.full(m, np.nan)
        found = [
            None if model is None else measure.tally(measure.of_model(model, self._X, self._labels), self._group, m)
            for model in models
        ]
        accuracy = np.array([nothing if tally is None else tally.accuracy for tally in found])
        return accuracy, np.array([nothing if tally is None else tally.mean for tally in found])
