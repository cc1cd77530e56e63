"""One run over a pool, with the row numbers, reasons and accuracies of every round; it can be stopped and resumed."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from evenhand.arrays import Floats, Ints, Mask
from evenhand.curation.figures import Predictions
from evenhand.curation.model import CHUNK, CuratedModel, chances_of
from evenhand.engine.deploying import choose_models
from evenhand.engine.run import Record, Round, each_round
from evenhand.engine.trials import Settings, Trials
from evenhand.errors import InputError
from evenhand.learners.choosing import Choice, FinalModel
from evenhand.learners.columns import needs_columns
from evenhand.risks import Outcomes, Risk
from evenhand.sources.base import Draw
from evenhand.sources.table.pool import TestPart
from evenhand.sources.table.stream import TableStream
from evenhand.sources.table.table import Table
from evenhand.strategies.decision import KINDS

__all__ = ["Curation", "Rounds", "hold_interrupt"]

KEEP_EVERY = 5.0
"""Seconds between two checkpoints of a run."""


@dataclass
class Rounds:
    """What happened, one entry a round: the choice, its reason and what was known after it."""

    group: list[int] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    terms: list[dict[str, float]] = field(default_factory=list)
    counts: list[list[int]] = field(default_factory=list)
    validation_loss: list[list[float | None]] = field(default_factory=list)
    accuracy: list[list[float | None] | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.group)


class Curation:
    """Chooses rows of a pool round by round.

    Args:
        table: the pool.
        strategy: which group next.
        learner: what is trained.
        settings: budget, batch, seed and so on.
    """

    def __init__(self, table: Table, strategy: Any, learner: Any, settings: Settings) -> None:
        self.table, self.settings, self._learner = table, settings, learner
        self._trial = Trials(table, strategy, learner, settings, [0])
        self.rounds = Rounds()
        self.used_up: dict[str, int] = {}
        self.interrupted = False
        self._rows: list[Ints] = []
        self._validates: list[Mask] = []

    def run(
        self,
        on_labels: Callable[[int], None] = lambda labels: None,
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        """Continue to the end of the budget; Ctrl-C ends the run after the current round.

        Args:
            on_labels: called after every round with the labels it took.
            keep: called every few seconds, to save what was chosen so far.
        """
        kept = time.monotonic()
        # one thread: the fits are small, and more threads would change the last bits of a result that must be repeatable
        with threadpool_limits(1), hold_interrupt() as stopped:
            # the flag is looked at between rounds only, so that a round is in all lists or in none
            rounds = each_round(self._trial, first=len(self.rounds), score=True)
            while not stopped() and (done := next(rounds, None)) is not None:
                self._keep(done.step.drawn, done.step.validation)
                self._note(done)
                on_labels(len(done.step.drawn.trial))
                if time.monotonic() - kept > KEEP_EVERY:
                    keep()
                    kept = time.monotonic()
            self.interrupted = stopped()

    def replay(self, earlier: Rounds, rows: Sequence[int], digest: str) -> None:
        """Repeat the rounds of an earlier run on the same pool, which chose these rows, with this fingerprint."""
        engine = self._trial.engine
        for group, labels in zip(earlier.group, earlier.labels, strict=True):
            self._keep(*self._trial.take(np.array([group]), np.array([labels - self.labels])))
            # a rule that looks back on accuracies (A_opt+) needs the scores of every round again; others only the last ones
            if engine.track:
                engine.refit()
        # draws depend on seed and position alone, so the same pool gives the same rows; the digest sees cells that changed
        if not np.array_equal(self.rows, rows) or self.table.digest_of_rows(self.rows) != digest:
            raise InputError("cannot resume: the pool is not the one these rows were chosen from.")
        engine.refit()
        self.rounds = earlier

    @property
    def labels(self) -> int:
        """Labels spent so far."""
        return int(self._trial.used[0])

    def _keep(self, drawn: Draw, validation: Mask) -> None:
        """Record the rows of a round, and which groups are used up after it."""
        assert drawn.rows is not None
        self._rows.append(drawn.rows)
        self._validates.append(validation)
        left = self._trial.stream.left()
        if left is not None:
            # a round takes one row to train and one to validate: with a single row left the group cannot be asked again
            for z in np.flatnonzero(left[0] < 2):
                self.used_up.setdefault(self.table.groups[z], len(self._rows))

    def _note(self, done: Round) -> None:
        decision, rounds = done.step.decision, self.rounds
        chosen = int(decision.index[0])
        rounds.group.append(chosen)
        rounds.kind.append(KINDS[int(decision.code[0])])
        rounds.labels.append(self.labels)
        terms = {name: float(values[0, chosen]) for name, values in decision.terms.items()}
        rounds.terms.append({name: value for name, value in terms.items() if np.isfinite(value)})
        rounds.counts.append(self._trial.engine.counts[0].tolist())
        assert done.losses is not None
        rounds.validation_loss.append(_plain(done.losses[0]))
        rounds.accuracy.append(None if done.accuracy is None else _plain(done.accuracy[0]))

    @property
    def rows(self) -> Ints:
        """The row numbers chosen, in the order in which they were drawn."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._rows])

    @property
    def round_of_row(self) -> Ints:
        """The round of every chosen row, from 1."""
        return np.repeat(np.arange(1, len(self._rows) + 1), [len(rows) for rows in self._rows])

    @property
    def group_of_row(self) -> Ints:
        """The group of every chosen row, as a position in the table's groups."""
        chosen = np.array(self.rounds.group, dtype=np.int64)
        return np.repeat(chosen, [len(rows) for rows in self._rows])

    @property
    def validates(self) -> Mask:
        """Which of the chosen rows validate."""
        return np.concatenate([np.empty(0, dtype=np.bool_), *self._validates])

    @cached_property
    def final(self) -> FinalModel:
        """The model to deploy, fitted on every chosen row: the best candidate, or the plain one if `final` is plain."""
        plain: list[Any] = list(self._trial.memory.final_models())
        if self.settings.final == "chosen" and self._trial.drawn:
            return choose_models(self._trial, self.table, self._learner, plain)[0]
        return FinalModel(plain[0], Choice("plain", "asked for", str(self.settings.risk)))

    def model(self) -> CuratedModel:
        """The model to deploy, which takes rows as they are."""
        encoder = None if needs_columns(self._learner) else self._stream.encoder(0)
        return CuratedModel(self.table.schema, encoder, self.final.model, self.final.choice)

    def test_part(self) -> TestPart:
        """The test rows."""
        return self._stream.tests()[0]

    @property
    def _stream(self) -> TableStream:
        assert isinstance(self._trial.stream, TableStream)  # a table's stream is
        return self._trial.stream

    def tested(self, model: CuratedModel, risk: Risk, positive: int | None) -> Predictions:
        """A model's predictions on the test rows."""
        part, classes = self.test_part(), self.table.classes
        measure = risk.for_classes(classes)
        y, m = part.y.astype(np.int64), len(self.table.groups)
        # in chunks: the encoded features of a large test part would not fit into memory at once
        found, predicted, chances = [], [], []
        for i in range(0, len(y), CHUNK):
            X = self._stream.test_features(0, slice(i, i + CHUNK))
            labels = classes[y[i : i + CHUNK]]
            found.append(measure.of_model(model.classifier, X, labels))
            predicted.append(measure.codes(model.classifier.predict(X)))
            chances.append(chances_of(model.classifier, X, classes))
        empty = measure.of_codes(y[:0], y[:0], np.empty(0))
        return Predictions(
            self.table.groups,
            # test rows lie group by group
            np.repeat(np.arange(m), part.counts),
            y,
            np.concatenate([y[:0], *predicted]),
            None if not chances or chances[0] is None else np.concatenate([c for c in chances if c is not None]),
            measure,
            Outcomes(*(np.concatenate(values) for values in zip(empty, *found, strict=True))),
            int(np.argmax(np.bincount(self.table.labels(self.rows), minlength=len(classes)))),
            positive,
        )

    def record(self) -> Record:
        """The run as the record of a simulation with one trial."""
        rounds, m = self.rounds, len(self.table.groups)
        risk = self.settings.risk
        accuracy = [[None] * m if found is None else found for found in rounds.accuracy]
        # an interrupted run ends where no test was due, and results read the accuracy at the end
        if rounds.accuracy and rounds.accuracy[-1] is None:
            accuracy[-1] = _plain(self._trial.accuracies()[0])
        return Record(
            groups=self.table.groups,
            trials=np.array([0]),
            labels=np.array(rounds.labels)[:, None],
            chosen=np.array(rounds.group)[:, None],
            kind=np.array([KINDS.index(kind) for kind in rounds.kind])[:, None],
            counts=np.array(rounds.counts)[:, None, :],
            validation_loss=np.array(rounds.validation_loss, dtype=float)[:, None, :],
            accuracy=np.array(accuracy, dtype=float)[:, None, :],
            **self._final("final", self._trial.memory.final_models()),
            **(self._final("chosen", [self.final.model]) if self.settings.final == "chosen" else {}),
            seconds=0.0,
            risk=None if risk.is_error else np.full((len(rounds), 1, m), np.nan),
        )

    def _final(self, name: str, models: Sequence[Any]) -> dict[str, Floats]:
        """Test accuracy of a model, and its risk if that is not the error, under the names of a record."""
        accuracy, risk = self._trial.tested(models)
        return {f"{name}_accuracy": np.asarray(accuracy)} | ({} if risk is None else {f"{name}_risk": risk})


def _plain(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


@contextmanager
def hold_interrupt() -> Iterator[Callable[[], bool]]:
    """Turns the first Ctrl-C into a flag, so that nothing is left half done; the second one interrupts at once."""
    stop = False
    # Python handles signals in the main thread only; elsewhere Ctrl-C cannot be held back
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    # the old handler comes back at once, so that a second Ctrl-C is not swallowed
    def handle(number: int, frame: Any) -> None:
        nonlocal stop
        stop = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: stop
    finally:
        signal.signal(signal.SIGINT, before)
