"""What is known per group at one moment: the input of every strategy."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Standing"]

_SHARED = ("groups", "population", "batch")


@dataclass(frozen=True, eq=False)
class Standing:
    """A frozen snapshot of what is known per group.

    Arrays have the groups on their last axis and any leading axes: one campaign has shape `(m,)`, a
    block of trials `(T, m)`. Rules that use the last axis only serve both.

    Attributes:
        groups: the names of the groups, in the order of the last axis.
        counts: training examples told so far, N_z.
        pending: training examples of requests still open.
        validated: validation examples with a score behind them.
        pending_validation: validation examples of requests still open.
        loss_sum: sum of the current model's losses on the scored validation examples.
        accuracies: recent validation accuracies, oldest first, NaN where there is none yet; shape `(…, m, window)`.
        trend: Mann–Kendall's S/√var(S) of those accuracies, 0 while there are fewer than three.
        available: whether the group can still deliver.
        starting: whether warm-up is still running: its rounds are not over, or some group has no scored example.
        population: the population's share of each group, where known.
        batch: examples of each role a request asks for.
    """

    groups: tuple[str, ...]
    counts: NDArray[np.int64]
    pending: NDArray[np.int64]
    validated: NDArray[np.int64]
    pending_validation: NDArray[np.int64]
    loss_sum: NDArray[np.float64]
    accuracies: NDArray[np.float64]
    trend: NDArray[np.float64]
    available: NDArray[np.bool_]
    starting: NDArray[np.bool_]
    population: NDArray[np.float64] | None = None
    batch: int = 1

    @property
    def examples(self) -> NDArray[np.int64]:
        """N_z with open requests counted in: what confidence, mixture and forced exploration use."""
        return self.counts + self.pending

    @property
    def mixture(self) -> NDArray[np.float64]:
        """π_t(z): each group's share of the training examples, open requests counted in."""
        n = self.examples
        total: NDArray[np.int64] = n.sum(axis=-1, keepdims=True)
        return n / np.maximum(total, 1)

    @property
    def mean_loss(self) -> NDArray[np.float64]:
        """Mean loss on each validation set, open validation examples counted as already right."""
        return np.asarray(self.loss_sum / np.maximum(self.validated + self.pending_validation, 1))

    def trial(self, j: int) -> Standing:
        """The snapshot of one trial of a block, in arrays of its own."""
        arrays = {f.name: getattr(self, f.name)[j].copy() for f in fields(self) if f.name not in _SHARED}
        return replace(self, **arrays)

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """The snapshot of a single campaign as plain numbers, group by group."""
        fields = ("counts", "pending", "validated", "pending_validation", "mixture", "mean_loss", "available")
        columns = {name: getattr(self, name).tolist() for name in fields}
        return {group: {name: column[i] for name, column in columns.items()} for i, group in enumerate(self.groups)}
