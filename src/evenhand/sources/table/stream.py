"""The draws of a table for a block of trials, and the accuracy on its test rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import Floats, Ints, Mask
from evenhand.learners.base import Model
from evenhand.risks import Measure, accuracy_of, is_wrong
from evenhand.sources.base import Draw
from evenhand.sources.order import Order, Replace
from evenhand.sources.scoring import LinearScores, by_group
from evenhand.sources.table.pool import Pool, TestPart
from evenhand.sources.table.rows import OnDisk, RowsByNumber
from evenhand.sources.table.splitting import UnitOrder, assign, check_sides
from evenhand.tables.encoder import Encoder, Fill, Scale

__all__ = ["Settings", "TableStream"]

# enough for an accuracy to within half a point; more would slow down every round of a simulation
MOST_TEST_ROWS = 10_000
READ_AHEAD = 2048
_SPLIT = 12_000_000
"""The purpose of a random split's numbers; orders of rows have the group's position in its place."""


@dataclass(frozen=True)
class Settings:
    """How a table's rows are split, encoded and drawn."""

    held_out: float
    test: TestPart | None
    fill: Fill
    by_training: bool
    replace: Replace
    validation: float
    scale: Scale = "standard"
    stratify: bool = True


class TableStream:
    """The rows of T trials in their drawing order, kept flat so that a draw for all of them is a few array steps.

    With `raw` rows, X is a frame of the columns as they are, and nothing is learnt from them here; `raw_test` are the
    rows of a separate test table.
    """

    def __init__(
        self,
        pool: Pool,
        settings: Settings,
        seed: int,
        trials: Sequence[int],
        raw: RowsByNumber | None = None,
        raw_test: RowsByNumber | None = None,
    ) -> None:
        self._pool, self._raw, self._raw_test = pool, raw, raw_test
        self._settings = settings
        self._sizes = pool.groups.counts
        self._orders = [self._trial_orders(seed, trial) for trial in trials]
        self._held_out = self._sizes - np.array([[order.pool for order in orders] for orders in self._orders])
        shape = (len(self._orders), len(self._sizes))
        self._taken, self._start, self._ready = np.zeros((3, *shape), dtype=np.int64)
        self._rows: Ints = np.empty(0, dtype=np.int64)
        self._validates: Mask = np.empty(0, dtype=np.bool_)
        self._fitted: Encoder | None = None
        self._tests: list[TestPart] | None = None
        # made once a trial: a rule is then tested by one product, at every round that asks
        self._linear: dict[int, LinearScores] = {}

    def _test_sizes(self, seed: int, trial: int) -> Ints:
        """How many rows of each group a trial holds out."""
        settings = self._settings
        if settings.stratify:
            wanted = np.round(self._sizes * settings.held_out).astype(np.int64)
        else:
            # which rows of a group these are is random anyway, so the counts are all that a split of all rows decides
            generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, trial, _SPLIT))))
            total = round(int(self._sizes.sum()) * settings.held_out)
            wanted = generator.multivariate_hypergeometric(self._sizes, total)
        # A group keeps two rows to draw, even if none is left to test on.
        found: Ints = np.clip(np.minimum(wanted, MOST_TEST_ROWS), int(settings.held_out > 0), self._sizes - 2)
        return found

    def _trial_orders(self, seed: int, trial: int) -> Sequence[Order | UnitOrder]:
        settings, m = self._settings, len(self._sizes)
        if self._pool.units is None:
            held_out = self._test_sizes(seed, trial)
            return [
                Order(
                    (seed, trial, z),
                    int(self._sizes[z]),
                    held_out=int(held_out[z]),
                    share=settings.validation,
                    replace=settings.replace,
                )
                for z in range(m)
            ]
        sides = assign(
            self._pool.units,
            self._pool.groups.codes.astype(np.int64),
            (seed, trial),
            held_out=settings.held_out,
            most=MOST_TEST_ROWS,
            validation=settings.validation,
        )
        found = [UnitOrder((seed, trial, z), sides, self._pool.by_group[z], settings.replace) for z in range(m)]
        check_sides(found, self._pool.groups.names)
        return found

    def _lay_out(self, wanted: Ints) -> None:
        """Put the known part of every order, at least `wanted` rows, end to end; read rows that are not in memory."""
        source = self._pool.rows if self._raw is None else self._raw
        on_disk = isinstance(source, OnDisk)
        rows, roles = [], []
        for t, orders in enumerate(self._orders):
            for z, order in enumerate(orders):
                while order.settled < wanted[t, z] and order.more():
                    pass
                known, validates = order.known()
                # rows on disk are fetched as far as they are wanted; those in memory cost nothing to lay out
                ready = int(min(len(known), wanted[t, z])) if on_disk else len(known)
                self._ready[t, z] = ready
                rows.append(self._pool.by_group[z][known[:ready]])
                roles.append(validates[:ready])
        lengths = self._ready.ravel()
        self._start = (np.cumsum(lengths) - lengths).reshape(self._ready.shape)
        self._rows = np.concatenate(rows)
        self._validates = np.concatenate(roles)
        if isinstance(source, OnDisk):
            source.fetch(np.concatenate([self._rows, *self._test_rows()]))

    def _test_rows(self) -> list[Ints]:
        return [self._pool.by_group[z][order.test] for orders in self._orders for z, order in enumerate(orders)]

    def _begin(self) -> None:
        """Lay out rows and fit the encoders when the first row is wanted: opening a stream reads nothing."""
        if not len(self._rows):
            self._lay_out(np.full(self._taken.shape, READ_AHEAD))
            self._fitted = self._fit() if self._raw is None else None

    @property
    def _encoders(self) -> Encoder:
        self._begin()
        assert self._fitted is not None  # only raw rows have none
        return self._fitted

    def _features(self, rows: Ints, trial: Ints) -> Any:
        """The features of rows by number, each for its trial."""
        return self._encoders.encode(self._pool.rows[rows], trial) if self._raw is None else self._raw[rows]

    def test_features(self, trial: int, part: slice = slice(None)) -> Any:
        """The features of a trial's test rows, or of some of them, as its models take them."""
        test = self.tests()[trial]
        if self._raw is not None:
            raw = self._raw if self._raw_test is None else self._raw_test
            return raw[test.numbers[part]]
        rows = test.rows[part]
        return self._encoders.encode(rows, np.full(len(rows), trial))

    def _fit(self) -> Encoder:
        bounds = [*self._start[:, 0].tolist(), len(self._rows)]
        training = []
        for start, stop in itertools.pairwise(bounds):
            rows = self._rows[start:stop]
            # means and categories by training rows alone: validation rows would leak into what they are to judge
            training.append(self._pool.rows[rows[~self._validates[start:stop]] if self._settings.by_training else rows])
        settings = self._settings
        return Encoder.fit(self._pool.layout, training, scale=settings.scale, fill=settings.fill)

    def draw(self, group: Ints, size: Ints) -> Draw:
        """The next `size[t]` rows of `group[t]` for every trial t, fewer where the group runs out."""
        self._begin()
        trial = np.flatnonzero(group >= 0)
        z = group[trial]
        wanted = self._taken[trial, z] + size[trial]
        if (wanted > self._ready[trial, z]).any():
            self._ahead(trial, z, wanted)
        first = self._taken[trial, z]
        count = np.minimum(wanted, self._ready[trial, z]) - first
        self._taken[trial, z] += count
        ends = np.cumsum(count)
        total = int(ends[-1]) if len(ends) else 0
        where = np.repeat(self._start[trial, z] + first - ends + count, count) + np.arange(total)
        rows = self._rows[where]
        of_trial = np.repeat(trial, count)
        return Draw(
            trial=of_trial,
            group=np.repeat(z, count),
            X=self._features(rows, of_trial),
            y=self._pool.y[rows].astype(np.int64),
            validation=self._validates[where],
            rows=rows.astype(np.int64),
        )

    def _ahead(self, trial: Ints, z: Ints, wanted: Ints) -> None:
        """Prepare more of the orders, four times as much for the groups that are drawn from most."""
        goal = self._ready.copy()
        short = wanted > self._ready[trial, z]
        ends = self._sizes - self._held_out
        # by factors, so that a group drawn from thousands of times is laid out again only a few times
        goal[trial[short], z[short]] = np.maximum(4 * self._ready[trial[short], z[short]], wanted[short])
        if self._settings.replace == "never":
            goal = np.minimum(goal, ends)
        if (goal > self._ready).any():
            self._lay_out(goal)

    def left(self) -> Ints | None:
        """How many labels are left, shape (T, m); None if the halves are drawn again and again."""
        if self._settings.replace == "halves":
            return None
        return np.asarray(self._sizes - self._held_out - self._taken)

    def tests(self) -> list[TestPart]:
        """The test rows of every trial, the same object for all where the test part is given."""
        if self._settings.test is not None:
            return [self._settings.test] * len(self._orders)
        if self._tests is None:
            self._tests = []
            for t, orders in enumerate(self._orders):
                rows = np.concatenate([self._pool.by_group[z][order.test] for z, order in enumerate(orders)])
                coded = self._pool.rows[rows if self._raw is None else rows[:0]]
                self._tests.append(TestPart(coded, self._pool.y[rows], self._held_out[t], rows))
        return self._tests

    def encoder(self, trial: int) -> Encoder:
        """The encoder of one trial, by its place in the block."""
        return self._encoders.of(trial)

    def accuracies(self, models: Sequence[Model | None]) -> Floats:
        """Test accuracy of every trial's model on every group; NaN without a model or without test rows."""

        def plain(model: Any, X: Any, y: NDArray[Any], counts: Ints) -> Floats:
            return by_group((~is_wrong(model, X, y)[:, None]).astype(float), counts)[:, 0]

        return self._tested(models, LinearScores.accuracies, plain)

    def accuracies_and_risks(self, models: Sequence[Model | None], measure: Measure) -> tuple[Floats, Floats]:
        """Test accuracy and risk of every trial's model on every group; NaN without a model or relevant test rows."""

        def plain(model: Any, X: Any, y: NDArray[Any], counts: Ints) -> Floats:
            group = np.repeat(np.arange(len(counts)), counts)
            tally = measure.tally(measure.of_model(model, X, y), group, len(counts))
            return np.stack([tally.accuracy, tally.mean], axis=-1)

        def linear(scores: LinearScores, *rules: Floats) -> Floats:
            confusions = scores.confusions(*rules)
            return np.stack([accuracy_of(confusions), measure.of_confusion(confusions)], axis=-1)

        found = self._tested(models, None if measure.table is None else linear, plain, (2,))
        return found[..., 0], found[..., 1]

    def _tested(
        self,
        models: Sequence[Model | None],
        linear: Callable[..., Floats] | None,
        plain: Callable[..., Floats],
        each: tuple[int, ...] = (),
    ) -> Floats:
        """What `linear` returns for rules on unscaled rows, and `plain` for all other models, by trial and group.

        `each` is the shape of what they return for a group.
        """
        found, tests = np.full(self._taken.shape + each, np.nan), self.tests()
        rules = [t for t, model in enumerate(models) if linear is not None and self._is_linear(model)]
        if linear is not None and rules:
            coef, intercept = (
                np.stack([getattr(models[t], name)[0] for t in rules]) for name in ("coef_", "intercept_")
            )
            found[rules] = self._of_rules(linear, np.array(rules), coef, intercept)
        for t, model in enumerate(models):
            if model is not None and t not in rules and len(tests[t].y):
                found[t] = plain(model, self.test_features(t), self._pool.classes[tests[t].y], tests[t].counts)
        return found

    def _is_linear(self, model: Any) -> bool:
        """Whether the model is a rule x·coef + intercept > 0 between the two classes."""
        coef, classes = getattr(model, "coef_", ()), getattr(model, "classes_", ())
        width = self._pool.layout.width
        return (
            self._raw is None
            and np.shape(coef) == (1, width)
            and len(self._pool.classes) == 2
            and np.array_equal(classes, self._pool.classes)
        )

    def _of_rules(self, give: Callable[..., Floats], trials: Ints, coef: Floats, intercept: Floats) -> Floats:
        """Rewrite linear rules for unscaled rows, so that a test part shared by all trials is multiplied once."""
        folded = self._encoders.fold(trials, coef, intercept)
        if self._settings.test is not None:
            return give(self._scores(0), *folded)
        rules = zip(trials.tolist(), *folded, strict=True)
        return np.concatenate([give(self._scores(t), *(part[None] for part in rule)) for t, *rule in rules])

    def _scores(self, trial: int) -> LinearScores:
        if trial not in self._linear:
            self._linear[trial] = LinearScores(self.tests()[trial], self._pool.layout.width)
        return self._linear[trial]
