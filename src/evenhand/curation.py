"""One run over a pool, with the row numbers, reasons and accuracies of every round; it can stop and go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from evenhand.decision import KINDS, Decision
from evenhand.engine.build import make_memory
from evenhand.engine.engine import Engine
from evenhand.engine.labels import Labels
from evenhand.engine.run import Record, Settings
from evenhand.engine.settings import learner_seed
from evenhand.sources.table import Table

__all__ = ["Curation", "Rounds", "hold_interrupt"]

Floats = NDArray[np.float64]


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
        self.table, self.settings = table, settings
        self._stream = table.open(settings.seed, [0])
        labels = Labels(table.classes.tolist())
        self._engine = Engine(
            table.groups,
            strategy,
            make_memory(learner, labels, len(table.groups), trials=1, seed=learner_seed(settings.seed, 0)),
            seed=settings.seed,
            n0=settings.n0 or 0,
            validation=settings.validation,
            population=table.population,
        )
        self.rounds = Rounds()
        self.used_up: dict[str, int] = {}
        self.interrupted = False
        self.labels = 0
        self._rows: list[NDArray[np.int64]] = []
        self._validates: list[NDArray[np.bool_]] = []

    def run(self, on_labels: Callable[[int], None] = lambda labels: None) -> None:
        """Go on to the end of the budget; Ctrl-C ends the run after the round it came in."""
        tested = self.settings.evaluated()
        with threadpool_limits(1), hold_interrupt() as stopped:
            while not stopped() and (size := self._next_size()) >= 2:
                decision = self._engine.choose()
                drawn = self._draw(int(decision.index[0]), size)
                self._engine.refit()
                self._note(decision, bool(tested[min(len(self.rounds), len(tested) - 1)]))
                on_labels(drawn)
            self.interrupted = stopped()

    def replay(self, earlier: Rounds, rows: NDArray[np.int64]) -> None:
        """Take over the rounds of an earlier run on the same pool, whose rows these were."""
        trend = bool(getattr(self._engine.strategy, "c1", 0.0))
        for group, labels in zip(earlier.group, earlier.labels, strict=True):
            self._next_size()
            self._draw(group, labels - self.labels)
            if trend:
                self._engine.refit()
        if not np.array_equal(self.rows, rows):
            raise ValueError("cannot go on: the pool is not the one these rows were chosen from.")
        self._engine.refit()
        self.rounds = earlier

    def _next_size(self) -> int:
        left = self._stream.left()
        if left is not None:
            self._engine.available = left >= 2
            for z in np.flatnonzero(~self._engine.available[0]):
                self.used_up.setdefault(self.table.groups[z], len(self._rows))
        if not self._engine.available.any():
            return 0
        return min(2 * self.settings.batch, self.settings.budget - self.labels)

    def _draw(self, group: int, size: int) -> int:
        drawn = self._stream.draw(np.array([group]), np.array([size]))
        assert drawn.rows is not None
        self._validates.append(self._engine.record(drawn.trial, drawn.group, drawn.X, drawn.y, drawn.validation))
        self._rows.append(drawn.rows)
        self.labels += len(drawn.rows)
        self._engine.asked += 1
        return len(drawn.rows)

    def _note(self, decision: Decision, test: bool) -> None:
        engine, rounds = self._engine, self.rounds
        chosen = int(decision.index[0])
        rounds.group.append(chosen)
        rounds.kind.append(KINDS[int(decision.code[0])])
        rounds.labels.append(self.labels)
        terms = {name: float(values[0, chosen]) for name, values in decision.terms.items()}
        rounds.terms.append({name: value for name, value in terms.items() if np.isfinite(value)})
        rounds.counts.append(engine.counts[0].tolist())
        scored = engine.scored[0] > 0
        mean = engine.loss_sum[0] / np.maximum(engine.scored[0], 1)
        rounds.validation_loss.append([float(v) if s else None for v, s in zip(mean, scored, strict=True)])
        rounds.accuracy.append(_plain(self._stream.accuracies(self._memory.models())[0]) if test else None)

    @property
    def _memory(self) -> Any:
        return self._engine.memory

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row numbers chosen, in the order in which they were drawn."""
        return np.concatenate([np.empty(0, dtype=np.int64), *self._rows])

    @property
    def round_of_row(self) -> NDArray[np.int64]:
        """The round of every chosen row, from 1."""
        return np.repeat(np.arange(1, len(self._rows) + 1), [len(rows) for rows in self._rows])

    @property
    def group_of_row(self) -> NDArray[np.int64]:
        """The group of every chosen row, as a position in the table's groups."""
        chosen = np.array(self.rounds.group, dtype=np.int64)
        return np.repeat(chosen, [len(rows) for rows in self._rows])

    @property
    def validates(self) -> NDArray[np.bool_]:
        """Which of the chosen rows validate."""
        return np.concatenate([np.empty(0, dtype=np.bool_), *self._validates])

    def final_accuracy(self) -> Floats:
        """Test accuracy of every group with the model fitted on every chosen row."""
        accuracies: Floats = self._stream.accuracies(self._memory.final_models())[0]
        return accuracies

    def test_rows(self) -> NDArray[np.int64]:
        """How many test rows every group has."""
        return self._stream.tests()[0].counts

    def record(self) -> Record:
        """The run as a simulation of one trial would tell it."""
        rounds, m = self.rounds, len(self.table.groups)
        accuracy = [[None] * m if found is None else found for found in rounds.accuracy]
        if rounds.accuracy and rounds.accuracy[-1] is None:
            accuracy[-1] = _plain(self._stream.accuracies(self._memory.models())[0])
        return Record(
            groups=self.table.groups,
            trials=np.array([0]),
            labels=np.array(rounds.labels)[:, None],
            chosen=np.array(rounds.group)[:, None],
            kind=np.array([KINDS.index(kind) for kind in rounds.kind])[:, None],
            counts=np.array(rounds.counts)[:, None, :],
            validation_loss=np.array(rounds.validation_loss, dtype=float)[:, None, :],
            accuracy=np.array(accuracy, dtype=float)[:, None, :],
            final_accuracy=self.final_accuracy()[None],
            seconds=0.0,
        )


def _plain(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


@contextmanager
def hold_interrupt() -> Iterator[Callable[[], bool]]:
    """Turns the first Ctrl-C into a flag, so that nothing is left half done; the second one interrupts at once."""
    stop = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def handle(number: int, frame: Any) -> None:
        nonlocal stop
        stop = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: stop
    finally:
        signal.signal(signal.SIGINT, before)
