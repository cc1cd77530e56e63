"""Draws from a synthetic source for a block of trials, made ahead in blocks."""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, Ints
from evenhand.learners.base import Model
from evenhand.learners.logistic.learner import Logistic
from evenhand.risks import Measure, Tally, is_wrong
from evenhand.sources.base import Draw

_HELD_OUT_ROWS = 10_000
_BUFFER_NUMBERS = 4_000_000


class Synthetic(Protocol):
    """What a stream needs of a synthetic model."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups."""

    @property
    def dimension(self) -> int:
        """Number of features."""

    @property
    def normals(self) -> int:
        """How many standard normal numbers make one example."""

    def examples(self, group: int, normals: Floats) -> tuple[Floats, Ints]:
        """Features and labels of a group, a row of normals each."""


class LinearModel(Synthetic, Protocol):
    """A synthetic model whose linear rules have closed forms."""

    def linear_accuracies(self, coef: ArrayLike, intercept: ArrayLike) -> Floats:
        """Exact accuracies of linear rules, (…, m)."""

    def linear_confusions(self, coef: ArrayLike, intercept: ArrayLike) -> Floats:
        """Exact confusions of linear rules, (…, m, 2, 2)."""


_Model = TypeVar("_Model", bound=LinearModel)


class SyntheticStream:
    """The draws of a block of trials: the k-th example of a group depends on (seed, trial, group, k) only.

    Every (trial, group) has its own generator, read in order, so the size of the blocks changes nothing but speed.
    """

    def __init__(self, model: Synthetic, seed: int, trials: Sequence[int]) -> None:
        self._model, self._seed, self._trials = model, int(seed), [int(t) for t in trials]
        cells = len(self._trials) * len(model.groups)
        # large enough that generators are seldom asked, small enough that a thousand trials of many groups fit into memory
        self._block = int(np.clip(_BUFFER_NUMBERS // (max(cells, 1) * (model.dimension + 1)), 16, 256))
        self._allocate(cells)
        # every block begins as used up: a group nobody draws from never makes a generator
        self._next = np.full(cells, self._block, dtype=np.int64)
        self._generators: dict[int, np.random.Generator] = {}
        self._held_out: list[tuple[Floats, Ints]] | None = None

    def _allocate(self, cells: int) -> None:
        self._X = np.empty((cells * self._block, self._model.dimension))
        self._y = np.empty(cells * self._block, dtype=np.int64)

    def draw(self, group: ArrayLike, size: ArrayLike) -> Draw:
        """The next `size[t]` examples of `group[t]` for every trial; −1 draws nothing."""
        groups, sizes = np.asarray(group, dtype=np.int64), np.asarray(size, dtype=np.int64)
        trials = np.nonzero((groups >= 0) & (sizes > 0))[0]
        sizes, groups = sizes[trials], groups[trials]
        if len(sizes) and int(sizes.max()) > self._block:
            self._widen(int(sizes.max()))
        cells = trials * len(self._model.groups) + groups
        for cell in cells[self._next[cells] + sizes > self._block].tolist():
            self._refill(cell)
        first = cells * self._block + self._next[cells]
        before = np.cumsum(sizes) - sizes
        # each trial's rows are consecutive: one index array for all of them instead of a loop
        rows = np.repeat(first - before, sizes) + np.arange(int(sizes.sum()))
        self._next[cells] += sizes
        return Draw(
            trial=np.repeat(trials, sizes),
            group=np.repeat(groups, sizes),
            X=self._X.take(rows, axis=0),
            y=self._y[rows],
        )

    def left(self) -> None:
        """None: a synthetic group never runs out."""

    def accuracies(self, models: Sequence[Model | None]) -> Floats:
        """Accuracy of every trial's model on a large held-out sample, the same for every trial."""
        values = [[np.mean(1.0 - is_wrong(f, X, y)) for X, y in self._sample()] for f in models]
        return np.asarray(values, dtype=float).reshape(len(models), len(self._model.groups))

    def accuracies_and_risks(self, models: Sequence[Model | None], measure: Measure) -> tuple[Floats, Floats]:
        """Accuracy and risk of every trial's model on every group: exact if a closed form exists, else on a sample."""
        accuracy, risk = np.full((2, len(models), len(self._model.groups)), np.nan)
        for t, model in enumerate(models):
            if model is None:
                continue
            # a model that has seen one class only has no weights for both
            if isinstance(model, Logistic) and np.array_equal(model.classes_, measure.classes):
                coef, intercept = model.coef_[0], model.intercept_[0]
                exact = self.exact_risks(coef, intercept, measure)
                if exact is not None:
                    accuracy[t], risk[t] = self.linear_accuracies(coef, intercept), exact
                    continue
            tally = self._sampled(model, measure)
            accuracy[t], risk[t] = tally.accuracy, tally.mean
        return accuracy, risk

    def linear_accuracies(self, coef: ArrayLike, intercept: ArrayLike) -> Floats:
        """Exact accuracies of linear rules; needed where there are exact risks."""
        raise NotImplementedError

    def exact_risks(self, coef: Floats, intercept: Floats, measure: Measure) -> Floats | None:
        """Risks of the rule x·coef + intercept > 0 on every group, (m,); None where there is no closed form."""
        return None

    def _sampled(self, model: object, measure: Measure) -> Tally:
        X, y = (np.concatenate(part) for part in zip(*self._sample(), strict=True))
        group = np.repeat(np.arange(len(self._model.groups)), _HELD_OUT_ROWS)
        return measure.tally(measure.of_model(model, X, y), group, len(self._model.groups))

    def _sample(self) -> list[tuple[Floats, Ints]]:
        if self._held_out is None:
            self._held_out = held_out(self._model, self._seed)
        return self._held_out

    def _refill(self, cell: int) -> None:
        """Move what is left of a cell's block to its front and draw the rest anew."""
        generator = self._generators.get(cell)
        trial, group = divmod(cell, len(self._model.groups))
        if generator is None:
            key = np.random.SeedSequence([self._seed, self._trials[trial], group])
            generator = self._generators[cell] = np.random.Generator(np.random.PCG64(key))
        start, used = cell * self._block, int(self._next[cell])
        kept, stop = self._block - used, start + self._block
        self._X[start : start + kept] = self._X[start + used : stop]
        self._y[start : start + kept] = self._y[start + used : stop]
        # exactly as many as were used: the generator's position stays that of the k-th example, whatever the block
        X, y = self._model.examples(group, generator.standard_normal((used, self._model.normals)))
        self._X[start + kept : stop], self._y[start + kept : stop] = X, y
        self._next[cell] = 0

    def _widen(self, size: int) -> None:
        """Blocks that hold a larger request, with what was drawn ahead kept at their ends."""
        old, X, y = self._block, self._X, self._y
        # twice the request, so that the next larger one does not copy everything again
        cells, extra = len(self._next), 2 * size - old
        self._block += extra
        self._allocate(cells)
        self._X.reshape(cells, self._block, -1)[:, extra:] = X.reshape(cells, old, -1)
        self._y.reshape(cells, self._block)[:, extra:] = y.reshape(cells, old)
        self._next += extra


def held_out(model: Synthetic, seed: int) -> list[tuple[Floats, Ints]]:
    """A large sample of every group from a stream no trial reads."""
    sample = []
    for group in range(len(model.groups)):
        # a spawn key is padded apart from the trials' (seed, trial, group), so the two never meet
        key = np.random.SeedSequence([int(seed), group], spawn_key=(1,))
        normals = np.random.Generator(np.random.PCG64(key)).standard_normal((_HELD_OUT_ROWS, model.normals))
        sample.append(model.examples(group, normals))
    return sample


class LinearStream(SyntheticStream, Generic[_Model]):
    """Draws of a model whose linear rules have closed forms."""

    def __init__(self, model: _Model, seed: int, trials: Sequence[int]) -> None:
        super().__init__(model, seed, trials)
        self.model = model

    def linear_accuracies(self, coef: ArrayLike, intercept: ArrayLike) -> Floats:
        """Exact accuracies of linear rules, (T, …, m)."""
        return self.model.linear_accuracies(coef, intercept)

    def linear_confusions(self, coef: ArrayLike, intercept: ArrayLike) -> Floats:
        """Exact confusions of linear rules, (T, …, m, 2, 2)."""
        return self.model.linear_confusions(coef, intercept)
