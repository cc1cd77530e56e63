"""T trials of a source in lockstep, one round at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.arrays import Floats, Ints, Mask
from evenhand.engine.engine import Engine
from evenhand.engine.labels import Labels
from evenhand.engine.memories.base import Memory
from evenhand.engine.memories.build import make_memory
from evenhand.engine.settings import learner_seed
from evenhand.errors import InputError
from evenhand.learners.base import name_of, traits_of
from evenhand.learners.columns import check_columns, needs_columns
from evenhand.risks import ERROR, Measure, Risk
from evenhand.sources.base import Draw, HasColumns, RiskStream, Source, Stream
from evenhand.strategies.base import Strategy, needs_of
from evenhand.strategies.decision import Decision
from evenhand.strategies.standing import offered, request_size

if TYPE_CHECKING:
    from evenhand.learners.base import Learner


@dataclass(frozen=True)
class Settings:
    """What every trial of a simulation shares."""

    budget: int
    batch: int = 1
    warmup: int | None = None
    validation: float = 0.5
    seed: int = 0
    evaluate: int = 100
    risk: Risk = ERROR
    final: str = "plain"

    @property
    def rounds(self) -> int:
        """How many rounds the budget buys; it ends when fewer than two labels are left."""
        # the last round is cut to what is left and needs a pair, hence not simply rounded up
        return (self.budget + 2 * self.batch - 2) // (2 * self.batch)

    def evaluated(self) -> Mask:
        """Which of the rounds that the budget buys are tested: evenly spaced, always with the last one."""
        rounds = self.rounds
        chosen = np.zeros(rounds, dtype=bool)
        # one point more, and the first one dropped: evenly spaced tests up to the last round
        chosen[np.linspace(0, rounds - 1, min(max(self.evaluate, 1), rounds) + 1).round().astype(int)[1:]] = 1
        chosen[-1] = True
        return chosen


@dataclass(frozen=True)
class Step:
    """One round: the decisions, the groups drawn from (−1 where a trial is over), the rows and which of them validate."""

    decision: Decision
    chosen: Ints
    drawn: Draw
    validation: Mask


class Trials:
    """An engine that answers its own asks from a source."""

    def __init__(
        self, source: Source, strategy: Strategy, learner: Learner, settings: Settings, trials: Sequence[int]
    ) -> None:
        self.settings, self.name = settings, source.name
        self.stream = open_stream(source, learner, settings.seed, trials)
        self.measure: Measure = settings.risk.for_classes(source.classes)
        self.incremental = traits_of(learner).incremental
        self.memory: Memory = make_memory(
            learner,
            Labels(source.classes.tolist()),
            len(source.groups),
            risk=settings.risk,
            trials=len(trials),
            # named by the first trial: a learner that uses its seed fits one trial at a time, so a block is that trial
            seed=learner_seed(settings.seed, trials[0]),
            names=tuple(source.groups),
            run=f"{source.name} {getattr(strategy, '__name__', strategy)} seed {settings.seed} trial {trials[0]}",
        )
        self.engine = Engine(
            source.groups,
            strategy,
            self.memory,
            trials=trials,
            seed=settings.seed,
            warmup=settings.warmup or 0,
            batch=settings.batch,
            validation=settings.validation,
            population=source.population,
            track=needs_of(strategy).trend,
            risk=settings.risk,
        )
        self.used = np.zeros(len(trials), dtype=np.int64)
        self.drawn: list[Draw] = []
        """All draws, kept only if the final model will be chosen on them."""

    def sizes(self) -> Ints:
        """Labels of the next round, 0 if a trial is over; groups with less than a pair left are no longer offered."""
        self.engine.available = offered(self.stream.left(), self.engine.counts.shape)
        size = request_size(self.settings.batch, self.settings.budget - self.used)
        return np.where(self.engine.available.any(axis=-1), size, 0)

    def step(self) -> Step | None:
        """Choose, draw and record a round; None when every trial is over."""
        size = self.sizes()
        if not size.any():
            return None
        decision = self.engine.choose()
        chosen = np.where(size > 0, decision.index, -1)
        drawn, validation = self.take(chosen, size)
        return Step(decision, chosen, drawn, validation)

    def take(self, group: Ints, size: Ints) -> tuple[Draw, Mask]:
        """Draw from these groups and record the rows."""
        drawn = self.stream.draw(group, size)
        # kept only then: all rows of a long simulation take more memory than its models
        if self.settings.final == "chosen":
            self.drawn.append(drawn)
        validation = self.engine.record(drawn.trial, drawn.group, drawn.X, drawn.y, drawn.validation)
        # a trial that is over asks no more: its random numbers must not move on
        self.engine.asked += group >= 0
        self.used += np.bincount(drawn.trial, minlength=len(self.used))
        return drawn, validation

    def mean_losses(self) -> Floats:
        """Mean validation loss by trial and group, NaN where nothing is behind it."""
        n = self.engine.validated
        return np.where(n > 0, self.engine.loss_sum / np.maximum(n, 1), np.nan)

    def accuracies(self) -> Floats:
        """Test accuracy of the current models, by trial and group."""
        return self.stream.accuracies(self.memory.models())

    def tested(self, models: Sequence[Any] | None = None) -> tuple[Floats, Floats | None]:
        """Test accuracy of the current or other models, by trial and group, and their risk if it is not the error."""
        models = self.memory.models() if models is None else models
        if self.settings.risk.is_error:
            return self.stream.accuracies(models), None
        return check_tests(self.name, self.stream, self.settings.risk).accuracies_and_risks(models, self.measure)


def open_stream(source: Source, learner: object, seed: int, trials: Sequence[int]) -> Stream:
    """The draws of a source in the form the learner takes: columns as they are if it needs them, else numbers."""
    if not needs_columns(learner):
        return source.open(seed, trials)
    if not isinstance(source, HasColumns):
        name = name_of(learner)
        raise InputError(f"{name} takes columns by name, and the source {source.name} has none: it is for tables")
    check_columns(learner, source.raw_columns, source.left_out)
    return source.open_columns(seed, trials)


def check_tests(name: str, stream: Stream, risk: Risk) -> RiskStream:
    """The stream of a source, after checking that it can test models by this risk."""
    if not isinstance(stream, RiskStream):
        raise InputError(
            f"the source {name} tests accuracy only, not the risk {str(risk)!r}: its streams need accuracies_and_risks(models, measure); "
            "or use risk='error'"
        )
    return stream
