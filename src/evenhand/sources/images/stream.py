"""The draws of an image source for a block of trials, and the accuracy on its test images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import Floats, Ints, Mask, Values
from evenhand.learners.base import Model
from evenhand.risks import Measure, is_wrong
from evenhand.sources.base import Draw
from evenhand.sources.images.store import ImageRows, Store
from evenhand.sources.order import Order, Replace
from evenhand.sources.scoring import by_group


@dataclass(frozen=True)
class ImagePart:
    """Images with positions of their labels and groups."""

    store: Store
    y: Ints
    group: Ints


class ImageStream:
    """Each group's images in an order set by seed, trial and group.

    A separate test set is the same for all trials; a share held out is drawn again for each trial, with the labels in
    proportion.
    """

    def __init__(
        self,
        pool: ImagePart,
        test: ImagePart | None,
        classes: Values,
        groups: int,
        *,
        held_out: float,
        replace: Replace,
        validation: float,
        seed: int,
        trials: Sequence[int],
    ) -> None:
        self._pool, self._given, self._classes, self._replace = pool, test, classes, replace
        self._by_group = [np.flatnonzero(pool.group == z) for z in range(groups)]
        sizes = np.array([len(rows) for rows in self._by_group])
        self._held_out = np.rint(held_out * sizes).astype(np.int64)
        self._left = np.tile(sizes - self._held_out, (len(trials), 1))
        self._taken = np.zeros_like(self._left)
        self._orders = [
            [
                Order(
                    (seed, trial, z),
                    len(rows),
                    held_out=int(self._held_out[z]),
                    share=validation,
                    replace=replace,
                    # test sets of a few hundred images: by chance alone a label could be nearly absent
                    strata=pool.y[rows],
                )
                for z, rows in enumerate(self._by_group)
            ]
            for trial in trials
        ]

    def draw(self, group: Ints, size: Ints) -> Draw:
        """The next `size[t]` images of `group[t]` for every trial t, fewer where the group runs out."""
        parts = [self._next(t, int(group[t]), int(size[t])) for t in np.flatnonzero(group >= 0).tolist()]
        trial, z, rows, validation = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Draw(trial, z, ImageRows(self._pool.store, rows), self._pool.y[rows], validation, rows)

    def _next(self, t: int, z: int, size: int) -> tuple[Ints, Ints, Ints, Mask]:
        order, first = self._orders[t][z], int(self._taken[t, z])
        # orders are settled block by block, only as far as somebody draws
        while order.settled < first + size and order.more():
            pass
        places, validates = order.known()
        rows = self._by_group[z][places[first : first + size]]
        self._taken[t, z] += len(rows)
        self._left[t, z] -= len(rows)
        return np.full(len(rows), t), np.full(len(rows), z), rows, validates[first : first + size]

    def left(self) -> Ints | None:
        """How many images are left, shape (T, m); None if the halves are drawn again and again."""
        return None if self._replace == "halves" else self._left

    def accuracies(self, models: Sequence[Model | None]) -> Floats:
        """Test accuracy of every trial's model on every group; NaN for a group without test images."""
        found = np.full(self._taken.shape, np.nan)
        for t, model in enumerate(models):
            X, y, group = self._examples(t)
            if len(y):
                counts = np.bincount(group, minlength=len(self._by_group))
                found[t] = by_group((~is_wrong(model, X, y)[:, None]).astype(float), counts)[:, 0]
        return found

    def accuracies_and_risks(self, models: Sequence[Model | None], measure: Measure) -> tuple[Floats, Floats]:
        """Test accuracy and risk of every trial's model on every group; NaN without relevant test images."""
        accuracy, risk = np.full((2, *self._taken.shape), np.nan)
        for t, model in enumerate(models):
            X, y, group = self._examples(t)
            if len(y):
                tally = measure.tally(measure.of_model(model, X, y), group, len(self._by_group))
                accuracy[t], risk[t] = tally.accuracy, tally.mean
        return accuracy, risk

    def _examples(self, t: int) -> tuple[ImageRows, Values, Ints]:
        """The test images of a trial, their labels and groups, by group."""
        part = self._test(t)
        # `by_group` takes means over runs of rows
        in_order = np.argsort(part.group, kind="stable")
        X = ImageRows(part.store, in_order if self._given is not None else self._held(t)[in_order])
        return X, self._classes[part.y[in_order]], part.group[in_order]

    def _held(self, t: int) -> Ints:
        return np.concatenate([rows[order.test] for rows, order in zip(self._by_group, self._orders[t], strict=True)])

    def _test(self, t: int) -> ImagePart:
        if self._given is not None:
            return self._given
        rows = self._held(t)
        return ImagePart(self._pool.store, self._pool.y[rows], self._pool.group[rows])
