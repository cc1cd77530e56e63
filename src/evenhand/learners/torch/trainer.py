"""A network with its optimiser, and the update that a round makes.

`"step"` is the paper's gradient step read literally: the gradient of the mean loss over the whole training set,
accumulated chunk by chunk, then one step of the optimiser. `"epoch"` is one pass of mini-batches in random order.
Predictions may use the mean of the last weights; training always continues from the last ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.arrays import Singles
from evenhand.errors import InputError, LearnerError
from evenhand.learners.torch.data import Batch, DeviceSet, as_tensor
from evenhand.learners.torch.device import check_precision, choose_device, on_threads, seeded
from evenhand.learners.torch.transform import plain_input

if TYPE_CHECKING:
    import torch

    from evenhand.learners.torch.learner import TorchLearner


class NonFiniteLoss(LearnerError):
    """The training loss became NaN or infinite; that update changed nothing."""

    def __init__(self, round: int, groups: list[str]) -> None:
        self.round, self.groups = round, groups
        where = f"group {' and '.join(map(repr, groups))}" if groups else "the sum over all groups"
        super().__init__(
            f"the training loss is NaN or infinite in round {round}, in {where}: "
            "lower the learning rate, or look at those examples"
        )


class Trainer:
    """A network on its device. Everything random in update k depends on the seed and k alone."""

    def __init__(self, learner: TorchLearner, seed: int) -> None:
        self.learner, self.seed, self.updates = learner, seed, 0
        self.device = choose_device(learner.device)
        check_precision(learner.precision, self.device)
        self.transform = learner.transform or plain_input
        # update k is seeded with k, so 0 is left for the initial weights
        with seeded(seed, 0, self.device):
            self.module = learner.module_factory().to(self.device)
        if learner.channels_last:
            import torch

            self.module = self.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks the bare keyword
        self.optimizer: torch.optim.Optimizer = learner.make_optimizer(self.module.parameters())
        self._recent: deque[dict[str, torch.Tensor]] = deque(maxlen=learner.average)
        self._mean: tuple[int, torch.nn.Module] | None = None

    # ---------------------------------------------------------------- training

    def new_set(self) -> DeviceSet:
        """An empty set of examples on the same device, in blocks of the chunk's size."""
        return DeviceSet(self.learner.chunk, self.device)

    def round(self, sets: list[DeviceSet], names: tuple[str, ...] = ()) -> None:
        """The updates of one round."""
        for _ in range(self.learner.updates):
            self.update(sets, names)

    def update(self, sets: list[DeviceSet], names: tuple[str, ...] = ()) -> None:
        """One update on these examples; a loss that is not finite stops it before the weights change."""
        with seeded(self.seed, self.updates + 1, self.device), on_threads(self.learner.threads):
            self.module.train()
            if self.learner.update == "step":
                self._step([block for kept in sets for block in kept.blocks()], sum(k.weight for k in sets), names)
            else:
                for batch in self._minibatches(sets):
                    parts = [self._slice(batch, i) for i in range(0, len(batch.y), self.learner.chunk)]
                    self._step(parts, float(batch.weight.sum()), names)
        self.updates += 1
        if self.learner.average > 1:
            self._recent.append({name: value.clone() for name, value in self.module.state_dict().items()})

    def _step(self, parts: list[Batch], total: float, names: tuple[str, ...]) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for part in parts:
            # over the whole set's weight, not the chunk's: gradients of chunks then add up to that of the mean
            loss = (self._losses(part) * part.weight).sum() / total
            loss.backward()  # type: ignore[no-untyped-call]
            losses.append(loss.detach())
        # before the step: weights that are NaN cannot be mended, those of the last round can be used
        if not np.isfinite(sum(float(loss) for loss in losses)):
            raise NonFiniteLoss(self.updates // self.learner.updates + 1, self._blame(parts, names))
        self.optimizer.step()

    def _losses(self, batch: Batch) -> torch.Tensor:
        outputs = self._forward(self.module, batch.X, training=True).float()
        losses = self.learner.losses_of(outputs, batch.y)
        if losses.shape != batch.y.shape:
            raise InputError(
                f"the loss gives shape {tuple(losses.shape)} for {len(batch.y)} examples: it must give one number for "
                "each, e.g. partial(torch.nn.functional.cross_entropy, reduction='none')"
            )
        return losses

    def _minibatches(self, sets: list[DeviceSet]) -> Iterator[Batch]:
        """All examples in random order, a mini-batch at a time; several sets take turns."""
        import torch

        for kept in sets:
            order = torch.randperm(kept.n).numpy()
            for start in range(0, kept.n, self.learner.minibatch):
                yield kept.take(order[start : start + self.learner.minibatch])

    def _slice(self, batch: Batch, start: int) -> Batch:
        where = slice(start, start + self.learner.chunk)
        return Batch(batch.X[where], batch.y[where], batch.weight[where], batch.group[where])

    def _blame(self, parts: list[Batch], names: tuple[str, ...]) -> list[str]:
        import torch

        bad: set[int] = set()
        with torch.no_grad():
            for part in parts:
                bad |= set(part.group[~torch.isfinite(self._losses(part))].tolist())
        return [names[z] if z < len(names) else f"number {z}" for z in sorted(bad)]

    # ---------------------------------------------------------------- answering

    def answering(self) -> torch.nn.Module:
        """The network that predicts: the one in training, or one with the mean of its last weights."""
        if not self._recent:
            return self.module
        if self._mean is None or self._mean[0] != self.updates:
            module = deepcopy(self.module)
            module.load_state_dict({name: self._mean_of(name) for name in self._recent[-1]})
            self._mean = self.updates, module
        return self._mean[1]

    def _mean_of(self, name: str) -> torch.Tensor:
        import torch

        last = self._recent[-1][name]
        # counters, such as batch norm's, have no mean
        return torch.stack([kept[name] for kept in self._recent]).mean(dim=0) if last.is_floating_point() else last

    def logits(self, X: torch.Tensor) -> torch.Tensor:
        """The network's outputs for raw rows, in evaluation mode, chunk by chunk."""
        import torch

        module = self.answering().eval()
        with torch.inference_mode(), on_threads(self.learner.threads):
            parts = [self._forward(module, part, training=False).float() for part in torch.split(X, self.learner.chunk)]
        return torch.cat(parts)

    def mean_loss(self, sets: list[DeviceSet]) -> float:
        """The mean loss on these examples, in evaluation mode; infinite where it is not a number."""
        found, total = 0.0, 0.0
        for block in (block for kept in sets for block in kept.blocks()):
            losses = self.learner.losses_of(self.logits(block.X), block.y).double() * block.weight
            found, total = found + float(losses.sum()), total + float(block.weight.sum())
        return found / total if np.isfinite(found) and total else np.inf

    def outputs(self, X: Any) -> Singles:
        """`logits` of rows of any kind; image rows are decoded a chunk at a time."""
        size = self.learner.chunk
        X = X if hasattr(X, "rows") else as_tensor(X)
        parts = [self.logits(as_tensor(X[i : i + size])).cpu().numpy() for i in range(0, X.shape[0], size)]
        return np.concatenate(parts)

    def _forward(self, module: torch.nn.Module, X: torch.Tensor, *, training: bool) -> torch.Tensor:
        import torch

        batch = self.transform(X.to(self.device), training)
        if self.learner.channels_last and batch.ndim == 4:
            batch = batch.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.learner.precision == "bf16"):
            found: torch.Tensor = module(batch)
        return found

    def check(self, X: torch.Tensor, classes: int) -> None:
        """Refuse examples the network cannot take, or a network with too few outputs."""
        try:
            shape = tuple(self.logits(X[:1]).shape)
        except (RuntimeError, IndexError) as error:
            raise InputError(
                f"the network cannot take examples of shape {tuple(X.shape[1:])}; check channels and size: {error}"
            ) from error
        if len(shape) != 2 or shape[1] < max(classes, 2):
            raise InputError(
                f"the network gives outputs of shape {shape[1:]} for an example, but there are {classes} classes: "
                "its last layer must have one output for each class, two at least"
            )

    # ---------------------------------------------------------------- keeping

    def state(self) -> dict[str, Any]:
        """Weights, optimiser, number of updates and the weights that go into the mean."""
        states = {"module": self.module.state_dict(), "optimizer": self.optimizer.state_dict()}
        return {**states, "updates": self.updates, "recent": list(self._recent)}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        self.module.load_state_dict(state["module"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.updates = int(state["updates"])
        self._recent, self._mean = deque(maxlen=self.learner.average), None
        for kept in state["recent"]:
            self._recent.append({name: value.to(self.device) for name, value in kept.items()})

    def copy(self) -> Trainer:
        """An independent copy of the network."""
        # not deepcopy of all: the optimiser must hold the new module's parameters, not the old one's
        other = Trainer(self.learner, self.seed)
        other.load(deepcopy(self.state()))
        return other
