"""The rows of one campaign as they were told, and the memory built from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.engine import rows
from evenhand.engine.build import make_memory, runs_in_lockstep
from evenhand.engine.labels import Labels
from evenhand.engine.memory import Memory
from evenhand.learners.logistic import numeric

__all__ = ["Delivery", "Examples", "Shelf"]


@dataclass(frozen=True)
class Delivery:
    """Rows as they were told, with their roles; request 0 is data that was there before."""

    request: int
    X: Any
    y: list[Any]
    group: NDArray[np.int64]
    validation: NDArray[np.bool_]


class Examples(NamedTuple):
    """Labelled examples: features in the kind they were delivered, labels, group names."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[np.str_]


class Shelf:
    """Keeps deliveries in the order they came and feeds them to the learner's memory."""

    def __init__(self, groups: tuple[str, ...], learner: Any, labels: Labels, seed: int) -> None:
        self.groups, self.learner, self.labels, self.seed = groups, learner, labels, seed
        self.deliveries: list[Delivery] = []
        self.memory: Memory | None = None

    def check(self, X: Any, y: Any) -> tuple[Any, list[Any]]:
        """Rows and labels in their plain form, or an error that says which is wrong."""
        labels = self.labels.read(y)
        X = rows.as_rows(X)
        rows.check_finite(X)
        if X.shape[0] != len(labels):
            raise ValueError(f"X has {X.shape[0]} rows and y {len(labels)} labels: they must be as many")
        if self.deliveries:
            kept = self.deliveries[0].X
            X = rows.like(X, kept)
            if X.shape[1] != kept.shape[1]:
                raise ValueError(f"X has {X.shape[1]} features, earlier rows had {kept.shape[1]}")
        if self.learner is not None:
            self.matrix(X)
        return X, labels

    def put(self, delivery: Delivery) -> None:
        """Keep a checked delivery; a class never seen before has the memory built anew."""
        new = self.labels.learn(delivery.y)
        self.deliveries.append(delivery)
        if self.learner is None:
            return
        if new or self.memory is None:
            self.memory = make_memory(self.learner, self.labels, len(self.groups), seed=self.seed)
            for each in self.deliveries:
                self._feed(self.memory, each)
        else:
            self._feed(self.memory, delivery)

    def examples(self, *, validation: bool) -> Examples:
        """All examples of one role, in the order they came."""
        chosen = [(d, d.validation == validation) for d in self.deliveries]
        chosen = [(d, mask) for d, mask in chosen if mask.any()]
        if not chosen:
            raise ValueError(f"there are no {'validation' if validation else 'training'} examples yet")
        X = rows.stack([rows.take(d.X, mask) for d, mask in chosen])
        y = np.asarray([label for d, mask in chosen for label, kept in zip(d.y, mask, strict=True) if kept])
        group = np.concatenate([d.group[mask] for d, mask in chosen])
        return Examples(X, y, np.asarray(self.groups)[group])

    def _feed(self, memory: Memory, delivery: Delivery) -> None:
        trial = np.zeros(len(delivery.group), dtype=np.int64)
        codes = self.labels.codes(delivery.y)
        memory.add(trial, self.matrix(delivery.X), codes, delivery.group, delivery.validation)

    def matrix(self, X: Any) -> Any:
        """X as the learner's memory takes it: numbers in lockstep, as it is for any other learner."""
        if not runs_in_lockstep(self.learner):
            return X
        X = numeric(X)
        return X if hasattr(X, "tocsr") else np.asarray(X, dtype=float)
