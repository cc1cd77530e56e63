"""Examples kept on the device: moved once, and each distinct one stored once, with its count as a weight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from evenhand.arrays import Floats, Ints, Values
from evenhand.errors import InputError

if TYPE_CHECKING:
    import torch

    from evenhand.arrays import Features


def as_tensor(X: Features) -> torch.Tensor:
    """Rows as a tensor: bytes stay bytes, other numbers become float32; no copy where none is needed."""
    import torch

    if isinstance(X, torch.Tensor):
        rows = X
    else:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        array = frame.to_numpy() if isinstance(frame, nw.DataFrame) else np.asarray(getattr(X, "toarray", lambda: X)())
        if array.dtype == object or array.dtype.kind not in "buif":
            raise InputError(f"a network needs numbers, not {array.dtype}: encode the features first")
        array = array if array.dtype in (np.uint8, np.float32) else array.astype(np.float32)
        # torch warns about memory it must not write to
        rows = torch.from_numpy(array if array.flags.writeable else array.copy())
    if rows.ndim < 2:
        raise InputError(f"examples must have at least two dimensions, not shape {tuple(rows.shape)}")
    return rows if rows.dtype in (torch.uint8, torch.float32) else rows.float()


@dataclass(frozen=True)
class Batch:
    """Some stored examples: rows, positions of their labels, counts or weights, groups."""

    X: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor
    group: torch.Tensor


class DeviceSet:
    """A growing set of examples in blocks of fixed size, so that growing never copies what is there.

    Rows that carry a number (`X.rows`, a row of a pool) are stored once, however often they come.
    """

    def __init__(self, block: int, device: torch.device) -> None:
        self.block, self.device = block, device
        self.n, self.total, self.weight = 0, 0, 0.0
        self._blocks: list[Batch] = []
        self._place: dict[int, int] = {}

    def add_weighted(self, X: Features, y: Ints, weight: Floats) -> None:
        """Take in rows that count as often as their weights say; those of weight 0 are left out."""
        used = weight > 0
        self.total, self.weight = self.total + int(used.sum()), self.weight + float(weight.sum())
        self._append(as_tensor(X)[used], y[used], np.zeros(used.sum(), dtype=np.int64), weight[used])

    def add(self, X: Any, y: Ints, group: Ints) -> None:
        """Take in rows, positions of their labels and groups."""
        self.total, self.weight = self.total + len(y), self.weight + len(y)
        numbers = getattr(X, "rows", None)
        if numbers is None:
            self._append(as_tensor(X), y, group, np.ones(len(y)))
            return
        # sampling with replacement draws the same image often; it
        # is stored and computed once, with its number as weight
        distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        times = np.bincount(inverse)
        known = np.array([int(number) in self._place for number in distinct], dtype=bool)
        for number, count in zip(distinct[known].tolist(), times[known].tolist(), strict=True):
            block, offset = divmod(self._place[number], self.block)
            self._blocks[block].weight[offset] += count
        # in the order they came, whatever their numbers: the order of mini-batches depends on it
        fresh = np.sort(first[~known])
        if len(fresh):
            self._place |= {int(numbers[row]): self.n + i for i, row in enumerate(fresh)}
            self._append(as_tensor(X[fresh]), y[fresh], group[fresh], times[inverse[fresh]])

    def _append(self, X: torch.Tensor, y: Ints, group: Ints, weight: Values) -> None:
        import torch

        if self._blocks and X.shape[1:] != self._blocks[0].X.shape[1:]:
            raise InputError(
                f"examples of shape {tuple(X.shape[1:])} after ones of {tuple(self._blocks[0].X.shape[1:])}"
            )
        parts = Batch(X, torch.from_numpy(y), torch.from_numpy(weight.astype(np.float32)), torch.from_numpy(group))
        done = 0
        while done < len(X):
            room = self.n % self.block
            if room == 0:
                self._blocks.append(self._empty(X))
            take = min(self.block - room, len(X) - done)
            for name in ("X", "y", "weight", "group"):
                getattr(self._blocks[-1], name)[room : room + take] = getattr(parts, name)[done : done + take]
            done, self.n = done + take, self.n + take

    def _empty(self, X: torch.Tensor) -> Batch:
        import torch

        one = (self.block,)
        whole, real = torch.int64, torch.float32
        rows = torch.empty(one + X.shape[1:], dtype=X.dtype, device=self.device)
        y, weight, group = (torch.empty(one, dtype=kind, device=self.device) for kind in (whole, real, whole))
        return Batch(rows, y, weight, group)

    def blocks(self, start: int = 0) -> Iterator[Batch]:
        """The examples from `start` on, block by block, as views: nothing is copied."""
        for number in range(start // self.block, len(self._blocks)):
            first = max(start - number * self.block, 0)
            last = min(self.n - number * self.block, self.block)
            if first < last:
                yield self._cut(self._blocks[number], slice(first, last))

    def take(self, places: Ints) -> Batch:
        """The examples at these places, in the order of the blocks."""
        import torch

        number = places // self.block
        parts = [
            self._cut(self._blocks[b], torch.from_numpy(places[number == b] % self.block).to(self.device))
            for b in np.unique(number).tolist()
        ]
        names = ("X", "y", "weight", "group")
        return Batch(*(torch.cat([getattr(part, name) for part in parts]) for name in names))

    @staticmethod
    def _cut(batch: Batch, where: Any) -> Batch:
        return Batch(batch.X[where], batch.y[where], batch.weight[where], batch.group[where])
