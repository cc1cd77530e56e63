"""Any PyTorch network as a learner: the paper's heuristic form, for models too large to refit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Features, Floats, Singles, Values
from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.learners.torch.data import as_tensor
from evenhand.learners.torch.device import require_torch
from evenhand.learners.torch.trainer import Trainer
from evenhand.learners.weights import as_weights

if TYPE_CHECKING:
    import torch


_CHOICES = {"update": ("step", "epoch"), "precision": ("float32", "bf16")}
_COUNTS = ("updates", "average", "chunk", "minibatch", "threads", "checkpoint_every")


@dataclass(frozen=True)
class TorchLearner:
    """A network that is updated in every round instead of being refitted (extra `[torch]`).

    Args:
        module_factory: makes the module, with one output for each class; called once for each trial.
        optimizer: parameters → optimiser; Adam with learning rate 0.001 by default.
        loss: (outputs, positions of labels) → one loss per example; the cross entropy by default.
        update: `"step"`, one optimiser step over the whole training set, its gradient accumulated over chunks; or
            `"epoch"`, one pass of mini-batches.
        updates: how many updates a round makes.
        average: how many of the last updates' weights are averaged to predict; training continues from the last one.
            Full-batch Adam now and then throws a network off for some updates, which the mean evens out. It keeps this
            many copies of the weights.
        chunk: how many examples are computed at once. Memory is bounded by the data and one chunk.
        minibatch: how many examples a mini-batch of `"epoch"` has.
        device: `"auto"`, `"cpu"`, `"cuda"`, `"mps"`.
        transform: (batch, training) → network input, on the device; image bytes are divided by 255 by default.
        precision: `"float32"`, or `"bf16"` where the processor can.
        channels_last: PyTorch's layout for convolutions that is often faster.
        threads: CPU threads; the last digits of a result may depend on it.
        final_updates: how many more updates, on all labels together, are tried for the final model.
        checkpoint: a folder; a killed run that is started again continues from there and reaches the same result.
        checkpoint_every: updates between two checkpoints.
    """

    module_factory: Callable[[], torch.nn.Module]
    optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] | None = None
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None
    update: str = "step"
    updates: int = 1
    average: int = 1
    chunk: int = 200
    minibatch: int = 50
    device: str = "auto"
    transform: Callable[[torch.Tensor, bool], torch.Tensor] | None = None
    precision: str = "float32"
    channels_last: bool = False
    threads: int = 1
    final_updates: int = 10
    checkpoint: str | Path | None = None
    checkpoint_every: int = 25

    incremental = True
    gives_probabilities = True

    def __post_init__(self) -> None:
        require_torch()
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise InputError(f"{name} must be {' or '.join(map(repr, choices))}, not {getattr(self, name)!r}")
        for name in _COUNTS:
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} must be a whole number from 1 up, not {value!r}")
        # a module is callable too, and one shared by all trials would be trained by all of them
        if not callable(self.module_factory) or hasattr(self.module_factory, "parameters"):
            raise InputError("module_factory must make a new module when called: give lambda: MyNet(), or the class")

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        previous: Model | None = None,
        seed: int = 0,
    ) -> TorchModel:
        """Make one round's updates, on a copy of `previous` if it knows these classes, else on a new network."""
        y = np.asarray(y)
        weight = np.ones(len(y)) if sample_weight is None else as_weights(sample_weight, len(y))
        if isinstance(previous, TorchModel) and np.isin(y, previous.classes).all():
            # a copy: `previous` may be in use, and a fit that fails must leave it as it was
            classes, trainer = previous.classes, previous.trainer.copy()
        else:
            classes, trainer = np.unique(y), Trainer(self, seed)
        rows = as_tensor(X if not hasattr(X, "rows") else np.asarray(X))
        trainer.check(rows, len(classes))
        kept = trainer.new_set()
        kept.add_weighted(rows, np.searchsorted(classes, y).astype(np.int64), weight)
        trainer.round([kept])
        return TorchModel(trainer, classes)

    def make_optimizer(self, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser for these parameters."""
        import torch

        return torch.optim.Adam(parameters, lr=0.001) if self.optimizer is None else self.optimizer(parameters)

    def losses_of(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The training loss of every example."""
        import torch

        if self.loss is not None:
            return self.loss(outputs, y)
        return torch.nn.functional.cross_entropy(outputs, y, reduction="none")


@dataclass(frozen=True, eq=False)
class TorchModel:
    """A network in training. It changes with the next update of its campaign; `copy()` stays as it is."""

    trainer: Trainer
    classes: Values

    @property
    def module(self) -> torch.nn.Module:
        """The network that predicts."""
        return self.trainer.answering()

    def predict_proba(self, X: Features) -> Floats:
        """The probability of every class."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict_log_proba(self, X: Features) -> Floats:
        """The logarithm of the probability of every class, precise also where that is tiny."""
        # a network may have more outputs than classes: the others stand for labels nobody has seen
        return log_softmax(self.trainer.outputs(X)[:, : len(self.classes)])

    def predict(self, X: Features) -> Values:
        """The predicted label of every row."""
        return np.asarray(self.classes[self.trainer.outputs(X)[:, : len(self.classes)].argmax(axis=1)])

    def copy(self) -> TorchModel:
        """A copy of the network as it is now."""
        return TorchModel(self.trainer.copy(), self.classes)


def log_softmax(outputs: Singles) -> Floats:
    """Log-probabilities of a network's outputs, in double precision."""
    from scipy.special import log_softmax

    # float32 has no probability below 1e-45, whose logarithm a log loss needs
    return np.asarray(log_softmax(outputs.astype(float), axis=1))
