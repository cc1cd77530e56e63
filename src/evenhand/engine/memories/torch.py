"""Example sets of one trial and the network that every round updates.

**Cost of a round.** One pass forward and backward over the distinct training examples, one pass forward over the
distinct validation examples; without an update, only new validation examples are scored.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import Floats, Ints, Mask, Values
from evenhand.engine.memories.base import Scores
from evenhand.engine.memories.checkpoint import Checkpoint
from evenhand.engine.memories.rows import take
from evenhand.learners.base import Model
from evenhand.learners.torch.data import Batch
from evenhand.learners.torch.learner import TorchLearner, TorchModel, log_softmax
from evenhand.learners.torch.trainer import Trainer
from evenhand.notation import JsonObject
from evenhand.risks import Measure, Outcomes, of_log_chances

if TYPE_CHECKING:
    from evenhand.arrays import Features


class TorchMemory:
    """Training and validation sets of one trial, kept on the device, and their network.

    Args:
        learner: the network's settings.
        measure: the risk, with the labels, sorted; examples carry positions in them.
        groups: how many groups there are.
        seed: the seed of initial weights, the order of mini-batches and augmentation.
        names: the groups' names, for messages.
        run: what distinguishes this run's checkpoint from others.
    """

    def __init__(
        self,
        learner: TorchLearner,
        measure: Measure,
        groups: int,
        seed: int,
        *,
        names: tuple[str, ...] = (),
        run: str = "run",
    ) -> None:
        self.learner, self.groups, self.names = learner, groups, names
        self.measure, self.classes = measure, np.asarray(measure.classes)
        self.trainer = Trainer(learner, seed)
        self.fits: list[int] = []
        self._training, self._validation = self.trainer.new_set(), self.trainer.new_set()
        self._scored: _Scored | None = None
        self._came = sha256()
        self._checkpoint = self._open(learner, seed, run)

    def _open(self, learner: TorchLearner, seed: int, run: str) -> Checkpoint | None:
        if learner.checkpoint is None:
            return None
        names = [
            # a run may continue on another device or with more threads; any other change makes it another run
            f.name
            for f in fields(learner)
            if f.name not in ("device", "threads", "checkpoint", "checkpoint_every")
        ]
        settings = ", ".join(f"{name}={_lasting(getattr(learner, name))}" for name in names)
        risk = self.measure.risk
        settings += "" if risk.is_error else f", risk={risk}, positive={risk.positive!r}"
        checkpoint = Checkpoint(learner.checkpoint, run, f"seed={seed}, {settings}")
        state = checkpoint.open()
        if state is not None:
            self.trainer.load(state)
        return checkpoint

    # ---------------------------------------------------------------- examples

    def add(
        self,
        trial: Ints,
        X: Features,
        y: Ints,
        group: Ints,
        validation: Mask,
    ) -> None:
        """Take in rows; one that comes again is not stored again, it only counts once more."""
        for array in (y, group, validation):
            # a digest of all that came tells a checkpoint of this run from one of other examples
            self._came.update(array.tobytes())
        for kept, mask in ((self._training, ~validation), (self._validation, validation)):
            if mask.any():
                first = kept.n == 0
                kept.add(take(X, mask), y[mask], group[mask])
                if first:
                    # with the first rows already: a network of the wrong shape is refused before an hour of training
                    self.trainer.check(next(kept.blocks()).X, len(self.classes))

    # ---------------------------------------------------------------- training

    def fit(self) -> None:
        """The updates of a round on all training examples, where new ones have come."""
        n = self._training.total
        if n == 0 or (self.fits and self.fits[-1] == n):
            return
        if self._checkpoint is None:
            self._update()
        else:
            # while a killed run catches up nothing is trained: the checkpoint has the results
            trained = self._checkpoint.fit(n, self._came.hexdigest(), self._update)
            if trained and (len(self.fits) + 1) % self.learner.checkpoint_every == 0:
                self._checkpoint.save(self.trainer.state())
        self.fits.append(n)

    def _update(self) -> None:
        self.trainer.round([self._training], self.names)

    def replay(self, fits: list[int]) -> None:
        """Repeat the same updates, to get the same network after loading."""
        X, y, group = self._all()
        # in the same portions as the first time: a set draws its mini-batches from what it has at the time
        self._training = self.trainer.new_set()
        for n in fits:
            done = self._training.total
            self._training.add(X[done:n], y[done:n], group[done:n])
            self._update()
        rest = self._training.total
        self._training.add(X[rest:], y[rest:], group[rest:])
        self.fits = list(fits)

    def _all(self) -> tuple[Any, Ints, Ints]:
        import torch

        blocks = list(self._training.blocks())
        y, group = (torch.cat([getattr(b, name) for b in blocks]).cpu().numpy() for name in ("y", "group"))
        return torch.cat([b.X for b in blocks]), y, group

    def models(self) -> list[Model | None]:
        """The current network."""
        return [self._recorded(TorchModel(self.trainer, self.classes), "test") if self.fits else None]

    def final_models(self) -> list[Model]:
        """A copy of the network, fitted on training and validation examples together.

        It gets `final_updates` more updates. New examples can throw a trained network far off at first, so of all
        networks on the way, including the first, the one with the smallest loss on all labels is returned.
        """
        trainer, sets = self.trainer.copy(), [self._training, self._validation]
        if self.learner.final_updates and (self._checkpoint is None or not self._checkpoint.replaying):
            # state_dict gives references, which the next update would change
            best, kept = trainer.mean_loss(sets), deepcopy(trainer.state())
            for _ in range(self.learner.final_updates):
                trainer.update(sets, self.names)
                if (loss := trainer.mean_loss(sets)) < best:
                    best, kept = loss, deepcopy(trainer.state())
            trainer.load(kept)
        return [self._recorded(TorchModel(trainer, self.classes), "final")]

    def _recorded(self, model: TorchModel, kind: str) -> Model:
        return model if self._checkpoint is None else _RecordedModel(model, kind, self._checkpoint, self.trainer.state)

    # ---------------------------------------------------------------- scores

    def score(self) -> Scores:
        """Losses and correct answers on the validation set."""
        if not self.fits or self._validation.n == 0:
            return Scores.none(1, self.groups)
        if self._checkpoint is None:
            return self._score()
        return self._checkpoint.scores(self._validation.total, self._score)

    def _score(self) -> Scores:
        kept, known = self._validation, self._scored
        # scores of an earlier network: every row is scored again
        if known is not None and known.updates != self.trainer.updates:
            known = None
        done = 0 if known is None else len(known.outcomes.values)
        new = [self._outcomes(batch) for batch in kept.blocks(done)]
        outcomes = Outcomes.joined(new if known is None else [known.outcomes, *new])
        self._scored = _Scored(self.trainer.updates, outcomes)
        blocks = list(kept.blocks())
        group, weight = (
            np.concatenate([getattr(b, name).cpu().numpy() for b in blocks]) for name in ("group", "weight")
        )
        return Scores.of(self.measure, self.measure.tally(outcomes, group, self.groups, weight))

    def _outcomes(self, batch: Batch) -> Outcomes:
        y = batch.y.cpu().numpy()
        if self.measure.risk.function is not None:
            return self.measure.of_model(TorchModel(self.trainer, self.classes), batch.X.cpu().numpy(), self.classes[y])
        # a network may have more outputs than there are classes so far
        outputs = self.trainer.logits(batch.X)[:, : len(self.classes)]
        values = of_log_chances(log_softmax(outputs.cpu().numpy()), y) if self.measure.table is None else None
        return self.measure.of_codes(y, outputs.argmax(dim=1).cpu().numpy(), values)


def _lasting(value: object) -> str:
    """A text that is the same in every process; a user's function is described by its type alone."""
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text


@dataclass(frozen=True)
class _Scored:
    """How well the network does on the validation examples after a given number of updates."""

    updates: int
    outcomes: Outcomes


@dataclass(frozen=True)
class _RecordedModel:
    """A model whose test results are written into the checkpoint, and read from it while a killed run catches up."""

    model: TorchModel
    kind: str
    checkpoint: Checkpoint
    state: Callable[[], JsonObject]

    @property
    def classes(self) -> Values:
        return self.model.classes

    def predict(self, X: Features) -> Values:
        def places() -> NDArray[np.int16]:
            return np.searchsorted(self.classes, self.model.predict(X)).astype(np.int16)

        return np.asarray(self.classes[self._recorded("predict", X, places)])

    def predict_log_proba(self, X: Features) -> Floats:
        found = self._recorded("predict_log_proba", X, lambda: self.model.predict_log_proba(X))
        return np.asarray(found, dtype=np.float64)

    def predict_proba(self, X: Features) -> Floats:
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def _recorded(self, what: str, X: Any, compute: Callable[[], Values]) -> Values:
        live = not self.checkpoint.replaying
        found = self.checkpoint.answers(X.shape[0], compute, self.kind, what)
        if self.kind == "final" and live:
            self.checkpoint.save(self.state())
        return found
