"""What is known per group at one moment: the input of every strategy."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, Ints, Mask
from evenhand.notation import JsonObject

__all__ = ["Standing", "awaited", "offered", "request_size"]

_SHARED = ("groups", "population", "batch")
_PATIENCE = 20
"""After this many labels of a group, warm-up no longer waits for one that the risk is about."""


@dataclass(frozen=True, eq=False)
class Standing:
    """A frozen snapshot of what is known per group.

    Arrays have the groups on their last axis and any leading axes: one campaign has shape `(m,)`, a
    block of trials `(T, m)`. Rules that use the last axis only serve both.

    Attributes:
        groups: the names of the groups, in the order of the last axis.
        counts: training examples told so far, N_z.
        pending: training examples of requests still open.
        validated: scored validation examples that the risk is about: what is behind the loss.
        pending_validation: validation examples of requests still open.
        loss_sum: sum of the current model's losses on the examples that `validated` counts.
        accuracies: recent validation accuracies, or 1 − risk for other risks than the error and the log loss; oldest
            first, NaN where there is none yet; shape `(…, m, window)`.
        trend: Mann–Kendall's S/√var(S) of those accuracies, 0 while there are fewer than three.
        available: whether the group can still deliver.
        starting: whether warm-up is still running: its rounds are not over, or it waits for a group (`awaited`).
        population: the population's share of each group, where known.
        batch: examples of each role a request asks for.
        scored: all scored validation examples, including those the risk is not about; None if it is about all of them.
    """

    groups: tuple[str, ...]
    counts: Ints
    pending: Ints
    validated: Ints
    pending_validation: Ints
    loss_sum: Floats
    accuracies: Floats
    trend: Floats
    available: Mask
    starting: Mask
    population: Floats | None = None
    batch: int = 1
    scored: Ints | None = None

    @classmethod
    def of(
        cls,
        groups: tuple[str, ...],
        *,
        counts: Ints,
        told: Ints,
        pending: Ints,
        pending_validation: Ints,
        scored: Ints,
        relevant: Ints,
        loss_sum: Floats,
        accuracies: Floats,
        trend: Floats,
        available: Mask,
        warming_up: Mask,
        population: Floats | None,
        batch: int,
    ) -> Standing:
        """The standing of campaigns, with arrays of shape `(m,)`, and of simulations, `(T, m)`.

        Args:
            groups: the names of the groups.
            counts: training examples.
            told: labels so far, of both roles.
            pending: examples of open requests.
            pending_validation: those of them that will validate.
            scored: scored validation examples.
            relevant: those that the risk is about, the same array if it is all.
            loss_sum: the sum of the losses on them.
            accuracies: the newest accuracies.
            trend: their trend.
            available: whether the group can still deliver.
            warming_up: whether the rounds of the warm-up are not over; a group without a score prolongs it.
            population: the population's share of each group.
            batch: examples of each role a request asks for.
        """
        waits = awaited(available, scored, relevant, told, batch)
        return cls(
            groups=groups,
            counts=counts,
            pending=pending,
            validated=relevant,
            pending_validation=pending_validation,
            loss_sum=loss_sum,
            accuracies=accuracies,
            trend=trend,
            available=available,
            starting=np.asarray(warming_up | waits.any(axis=-1)),
            population=population,
            batch=batch,
            scored=None if scored is relevant else scored,
        )

    @property
    def examples(self) -> Ints:
        """N_z with open requests counted in: what confidence, mixture and forced exploration use."""
        return self.counts + self.pending

    @property
    def mixture(self) -> Floats:
        """π_t(z): each group's share of the training examples, open requests counted in."""
        n = self.examples
        total: Ints = n.sum(axis=-1, keepdims=True)
        return n / np.maximum(total, 1)

    @property
    def mean_loss(self) -> Floats:
        """Mean loss on each validation set; validation examples of open requests count as predicted correctly.

        They enter the loss in the same proportion as the examples scored so far. A group with scored examples, but none
        that the risk is about, gets the largest loss of the other groups that can still deliver, or 0 if there is none.
        """
        # the usual case, a risk about every example; also the one that campaigns wait for
        if self.scored is None:
            # open examples count as right: a group that is being answered looks better off, so others are asked meanwhile
            return np.asarray(self.loss_sum / np.maximum(self.validated + self.pending_validation, 1))
        share = np.where(self.scored > 0, self.validated / np.maximum(self.scored, 1), 1.0)
        mean = self.loss_sum / np.maximum(self.validated + self.pending_validation * share, 1)
        # not 0 for a group that nothing is known of: it would never be asked
        # of. Not the largest loss there could be either: it would always be
        known = np.where((self.validated > 0) & self.available, mean, 0.0)
        unknown = (self.scored > 0) & (self.validated == 0)
        return np.asarray(np.where(unknown, known.max(axis=-1, keepdims=True), mean))

    def trial(self, j: int) -> Standing:
        """The snapshot of one trial of a block, as copies."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _SHARED}
        return replace(self, **{name: array[j].copy() for name, array in arrays.items() if array is not None})

    def as_dict(self) -> dict[str, JsonObject]:
        """The snapshot of a single campaign as plain numbers, group by group."""
        fields = ("counts", "pending", "validated", "pending_validation", "mixture", "mean_loss", "available")
        columns = {name: getattr(self, name).tolist() for name in fields}
        return {group: {name: column[i] for name, column in columns.items()} for i, group in enumerate(self.groups)}


def awaited(
    available: Mask,
    scored: Ints,
    validated: Ints,
    told: Ints,
    batch: int,
) -> Mask:
    """Which groups warm-up waits for: a group without a score cannot be compared with the others.

    `Standing.starting` is true while any group is awaited. A group that can deliver is awaited until it has a scored example that the risk is about or, after max(20, 2·batch) labels, any
    scored example: a group without positives must not hold up the others.

    Args:
        available: whether the group can still deliver.
        scored: its scored validation examples.
        validated: those of them that the risk is about.
        told: its labels so far, of both roles.
        batch: examples of each role a request asks for.
    """
    if scored is validated:
        return np.asarray((scored == 0) & available)
    # a group may have no positives at all: after twenty labels the campaign goes on without its loss
    lacking = (validated == 0) & (told < max(_PATIENCE, 2 * batch))
    return np.asarray(((scored == 0) | lacking) & available)


def offered(left: Ints | None, shape: tuple[int, ...]) -> Mask:
    """Which groups can be asked for: a request is at least a pair, one to train and one to validate."""
    return np.ones(shape, dtype=bool) if left is None else np.asarray(left >= 2)


def request_size(batch: int, unspent: ArrayLike, left: ArrayLike | None = None) -> Ints:
    """How many labels a request is for: a batch of each role, as far as budget and group go; 0 if not even a pair.

    >>> request_size(5, [100, 7, 1]).tolist(), int(request_size(5, 100, left=4))
    ([10, 7, 0], 4)
    """
    size = np.minimum(2 * batch, np.asarray(unspent))
    size = size if left is None else np.minimum(size, np.asarray(left))
    return np.where(size >= 2, size, 0)
