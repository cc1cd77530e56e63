"""Labelled images as a source: arrays, a folder tree, or a table that names image files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.arrays import Floats, Ints, Values
from evenhand.errors import InputError
from evenhand.sources.base import HasDigest
from evenhand.sources.identity import digest_of
from evenhand.sources.images.store import ArrayStore, LazyStore, Store
from evenhand.sources.images.stream import ImagePart, ImageStream
from evenhand.sources.order import Replace

if TYPE_CHECKING:
    from evenhand.learners.torch.learner import TorchLearner


class Images:
    """Images drawn group by group. Their bytes are read when drawn; the learner augments them, in training only.

    Args:
        images: bytes, (n, height, width) or (n, channels, height, width); or a store that reads them when needed.
        labels: one for every image.
        groups: one for every image.
        test: a share held out of every group, drawn again for each trial with the labels in proportion; a separate test
            set `(images, labels, groups)`; or None.
        replace: `"halves"`: one half trains, the other validates, and each is drawn again once used up; or `"never"`.
        validation: the share of each group's images that validates.
        order: the order of the groups; sorted by default.
        network: the network that `default_learner` trains: the paper's `"cnn1"` or `"cnn2"`.
        transform: settings of `ImageTransform` for `default_learner`: mean, std, crop, padding, flip.

    `pool` and `test` are the images with labels and groups; `test` is None if rows of the pool are held out.

    From files: `Images.folder(path)`, `Images.manifest(table, label=..., groups=[...])`.

    >>> pictures = np.zeros((8, 5, 5), dtype=np.uint8)
    >>> Images(pictures, [0, 1] * 4, ["a", "a", "b", "b"] * 2, test=None).groups
    ('a', 'b')
    """

    def __init__(
        self,
        images: Any,
        labels: Sequence[object] | Values,
        groups: Sequence[object] | Values,
        *,
        test: float | tuple[Any, Any, Any] | None = 0.3,
        replace: Replace = "halves",
        validation: float = 0.5,
        order: Sequence[str] | None = None,
        network: str = "cnn2",
        transform: dict[str, Any] | None = None,
        name: str = "images",
    ) -> None:
        if replace not in ("halves", "never"):
            raise InputError(f"replace must be 'halves' or 'never', not {replace!r}")
        if network not in ("cnn1", "cnn2"):
            raise InputError(f"network must be 'cnn1' or 'cnn2', not {network!r}")
        if not 0 < validation < 1:
            raise InputError(f"validation must lie strictly between 0 and 1, not {validation!r}")
        self.name, self.network, self.transform = name, network, dict(transform or {})
        texts = np.array([str(group) for group in groups])
        self.groups = tuple(dict.fromkeys(order)) if order is not None else tuple(np.unique(texts).tolist())
        self.classes: Values = np.unique(np.asarray(labels))
        self.pool = self._part(images, np.asarray(labels), texts, "the pool")
        self.test, self._held_out = self._test_part(test)
        self._replace, self._validation = replace, validation

    def _test_part(self, test: Any) -> tuple[ImagePart | None, float]:
        if test is None:
            return None, 0.0
        if isinstance(test, int | float):
            if not 0 < test < 1:
                raise InputError(f"test as a share must lie strictly between 0 and 1, not {test!r}")
            return None, float(test)
        images, labels, groups = test
        part = self._part(images, np.asarray(labels), np.array([str(group) for group in groups]), "the test part")
        if part.store.shape != self.shape:
            raise InputError(f"test images have shape {part.store.shape}, those of the pool {self.shape}")
        return part, 0.0

    def _part(self, images: Any, labels: Values, groups: Values, what: str) -> ImagePart:
        store: Store = images if hasattr(images, "read") else ArrayStore(images)
        if not len(store) == len(labels) == len(groups):
            raise InputError(f"{what} has {len(store)} images, {len(labels)} labels and {len(groups)} groups")
        for names, known, kind in ((labels, self.classes, "label"), (groups, np.array(self.groups), "group")):
            strange = np.flatnonzero(~np.isin(names, known))
            if len(strange):
                name = names.tolist()[strange[0]]
                raise InputError(f"the {kind} {name!r} of image {strange[0]} of {what} is not among {known.tolist()}")
        position = {group: z for z, group in enumerate(self.groups)}
        z = np.array([position[str(group)] for group in groups.tolist()], dtype=np.int64)
        return ImagePart(store, np.searchsorted(self.classes, labels).astype(np.int64), z)

    @classmethod
    def folder(
        cls, path: str | Path, *, channels: int = 3, size: tuple[int, int] | None = None, **settings: Any
    ) -> Images:
        """Images from a folder tree `group/label/file`; top folders `train` and `test`, if there, are the two parts."""
        from evenhand.sources.images.files import tree

        return cls._parts(tree(Path(path)), channels, size, {"name": Path(path).name} | settings)

    @classmethod
    def manifest(
        cls,
        table: object,
        *,
        label: str,
        groups: str | Sequence[str],
        path: str = "path",
        split: str = "split",
        channels: int = 3,
        size: tuple[int, int] | None = None,
        **settings: Any,
    ) -> Images:
        """Images listed in a table with a row for each file: its path, its label, the columns that tell its group.

        Paths are relative to the table's folder. A column `split`, if there is one, says `train` or `test`.
        """
        from evenhand.sources.images.files import listed

        named = {"name": Path(table).stem} if isinstance(table, str | Path) else {}
        parts, order = listed(table, label, (groups,) if isinstance(groups, str) else tuple(groups), path, split)
        return cls._parts(parts, channels, size, named | {"order": order} | settings)

    @classmethod
    def _parts(
        cls, parts: dict[str, Any], channels: int, size: tuple[int, int] | None, settings: dict[str, Any]
    ) -> Images:
        files, labels, groups = parts["train"]
        store = LazyStore(files, channels=channels, size=size)
        if "test" in parts:
            held, *known = parts["test"]
            settings = {"test": (LazyStore(held, channels=channels, size=size or store.shape[1:]), *known)} | settings
        return cls(store, labels, groups, **settings)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        return self.pool.store.shape

    @property
    def counts(self) -> Ints:
        """How many images of each group the pool has."""
        return np.bincount(self.pool.group, minlength=len(self.groups))

    @property
    def population(self) -> Floats:
        """Each group's share of the pool."""
        shares: Floats = self.counts / self.counts.sum()
        return shares

    @property
    def validation(self) -> float:
        """The share of each group's images that validates."""
        return self._validation

    def digest(self) -> str:
        """A text that differs where the images, their labels, their groups, or how they are split differ."""
        parts = [(_digest(part.store), part.y, part.group) for part in (self.pool, self.test) if part is not None]
        return digest_of(parts, self.classes, self.groups, self._held_out, self._replace, self._validation)

    def open(self, seed: int, trials: Sequence[int]) -> ImageStream:
        """The draws of these trials."""
        return ImageStream(
            self.pool,
            self.test,
            self.classes,
            len(self.groups),
            held_out=self._held_out,
            replace=self._replace,
            validation=self._validation,
            seed=seed,
            trials=trials,
        )

    def default_learner(self, **settings: Any) -> TorchLearner:
        """The paper's network for these images, with their transform; settings as for `TorchLearner`.

        An epoch a round, not the paper's step (`update="step"`): far better from the same labels at little more cost.
        """
        from evenhand.learners.torch.learner import TorchLearner
        from evenhand.learners.torch.networks import CNN
        from evenhand.learners.torch.transform import ImageTransform

        channels, *size = self.shape
        crop = self.transform.get("crop")
        # the network sees the crop, not the image
        height, width = (crop, crop) if crop else size
        factory = CNN((channels, height, width), 1 if self.network == "cnn1" else 2, max(len(self.classes), 2))
        transform = ImageTransform(**self.transform)
        defaults: dict[str, Any] = {"update": "epoch", "transform": transform, "channels_last": True}
        return TorchLearner(factory, **(defaults | settings))

    def __repr__(self) -> str:
        return f"Images({self.name!r}, {len(self.pool.y):,} of shape {self.shape}, groups={list(self.groups)})"


def _digest(store: Store) -> str:
    """What identifies a store's images; a user's store may know only how many there are."""
    return store.digest() if isinstance(store, HasDigest) else digest_of(len(store), store.shape)
