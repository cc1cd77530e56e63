"""Labels as positions in a sorted list of classes, given at the start or discovered on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from evenhand.arrays import Ints, Values
from evenhand.errors import InputError


class Labels:
    """The classes known so far; if they are `fixed`, any other label is refused."""

    def __init__(self, classes: Iterable[object] | None = None, *, fixed: bool = True) -> None:
        given = [] if classes is None else _plain(list(classes))
        if len(set(given)) != len(given):
            raise InputError(f"classes has a label twice: {given}")
        self.fixed = fixed and classes is not None
        self.classes: list[Any] = _sorted(given)

    def read(self, y: object) -> list[object]:
        """Labels as plain Python values; refuses missing ones and, with fixed classes, unknown ones."""
        labels = read_labels(y)
        if self.fixed:
            for row, label in enumerate(labels):
                if label not in self.classes:
                    raise InputError(f"the label {label!r} of row {row} is not among the classes {self.classes}")
        return labels

    def learn(self, labels: Sequence[object]) -> bool:
        """Take in labels; returns whether there was a new class among them."""
        new = set(labels) - set(self.classes)
        if new:
            self.classes = _sorted([*self.classes, *new])
        return bool(new)

    def codes(self, labels: Sequence[object]) -> Ints:
        """The position of each label."""
        position = {label: i for i, label in enumerate(self.classes)}
        return np.array([position[label] for label in labels], dtype=np.int64)

    def names(self, codes: Ints) -> Values:
        """The label at each position."""
        return np.asarray(self.classes)[codes]


def read_labels(y: object) -> list[object]:
    """Labels as plain Python values; refuses missing ones."""
    labels = _plain(y)
    for row, label in enumerate(labels):
        try:
            missing = label is None or bool(label != label)
        except TypeError:  # pandas' NA is neither
            missing = True
        if missing:
            raise InputError(f"the label of row {row} is missing: every row needs one")
    return labels


def _plain(y: object) -> list[object]:
    if isinstance(y, np.ndarray):
        array = y
    else:
        # through object, so that NumPy does not turn a mixed list of numbers and text into text alone
        values = y.to_list() if hasattr(y, "to_list") else y.to_pylist() if hasattr(y, "to_pylist") else y
        array = np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise InputError(f"y must be one label per row, not an array of shape {array.shape}")
    labels: list[object] = array.tolist()
    return labels if array.dtype != object else [v.item() if isinstance(v, np.generic) else v for v in labels]


def _sorted(labels: list[object]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        raise InputError(f"labels of different kinds cannot be compared: {labels}; use one kind") from None
