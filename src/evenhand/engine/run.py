"""A block of simulated trials in lockstep: the engine answers its own asks from a source."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from evenhand.engine.build import make_memory
from evenhand.engine.engine import Engine
from evenhand.engine.labels import Labels
from evenhand.engine.lockstep import LockstepLogistic
from evenhand.engine.settings import learner_seed
from evenhand.sources.base import Source, Stream
from evenhand.strategies.base import Strategy

__all__ = ["Record", "Settings", "run_block"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Settings:
    """What every trial of a simulation shares."""

    budget: int
    batch: int = 1
    n0: int | None = None
    validation: float = 0.5
    seed: int = 0
    evaluate: int = 100

    @property
    def rounds(self) -> int:
        """How many rounds the budget buys; fewer than two labels left end it."""
        return (self.budget + 2 * self.batch - 2) // (2 * self.batch)

    def evaluated(self) -> NDArray[np.bool_]:
        """Which rounds are tested: evenly spaced, the last one always."""
        chosen = np.zeros(self.rounds, dtype=bool)
        chosen[np.linspace(0, self.rounds - 1, min(max(self.evaluate, 1), self.rounds) + 1).round().astype(int)[1:]] = 1
        chosen[-1] = True
        return chosen


@dataclass
class Record:
    """What happened in a block of T trials over R rounds; NaN where nothing was computed, −1 where nothing chosen."""

    groups: tuple[str, ...]
    trials: NDArray[np.int64]
    labels: Counts
    chosen: Counts
    kind: Counts
    counts: Counts
    validation_loss: Floats
    accuracy: Floats
    final_accuracy: Floats
    seconds: float
    rows: list[dict[str, NDArray[Any]]] = field(default_factory=list)


class _Log:
    """Arrays of a run, filled round by round and cut to the rounds that happened."""

    def __init__(self, rounds: int, trials: int, groups: int) -> None:
        self.labels = np.zeros((rounds, trials), dtype=np.int64)
        self.chosen = np.full((rounds, trials), -1)
        self.kind = np.full((rounds, trials), -1)
        self.counts = np.zeros((rounds, trials, groups), dtype=np.int64)
        self.validation_loss = np.full((rounds, trials, groups), np.nan)
        self.accuracy = np.full((rounds, trials, groups), np.nan)
        self.coef: list[tuple[Floats, Floats]] = []

    def cut(self, rounds: int) -> dict[str, Any]:
        names = ("labels", "chosen", "kind", "counts", "validation_loss", "accuracy")
        return {name: getattr(self, name)[:rounds] for name in names}


def run_block(
    source: Source,
    strategy: Strategy,
    learner: Any,
    settings: Settings,
    trials: Sequence[int],
    *,
    keep_rows: bool = False,
    tick: Callable[[], None] | None = None,
) -> Record:
    """Run these trials to the end of their budget; `tick` is called after every round."""
    with threadpool_limits(1):
        return _run(source, strategy, learner, settings, trials, keep_rows, tick)


def _run(
    source: Source,
    strategy: Strategy,
    learner: Any,
    settings: Settings,
    trials: Sequence[int],
    keep_rows: bool,
    tick: Callable[[], None] | None,
) -> Record:
    started = time.perf_counter()
    stream = source.open(settings.seed, trials)
    engine = _engine(source, strategy, learner, settings, trials)
    log = _Log(settings.rounds, len(trials), len(source.groups))
    tested = settings.evaluated()
    closed_form = hasattr(stream, "linear_accuracies") and isinstance(engine.memory, LockstepLogistic)
    scores_wanted = getattr(strategy, "needs_scores", True) or closed_form
    used = np.zeros(len(trials), dtype=np.int64)
    kept: list[dict[str, NDArray[Any]]] = []
    t = 0
    while t < settings.rounds:
        size = np.minimum(2 * settings.batch, settings.budget - used)
        left = stream.left()
        if left is not None:
            engine.available = left >= 2
        active = (size >= 2) & engine.available.any(axis=-1)
        if not active.any():
            break
        decision = engine.choose()
        chosen = np.where(active, decision.index, -1)
        drawn = stream.draw(chosen, np.where(active, size, 0))
        validation = engine.record(drawn.trial, drawn.group, drawn.X, drawn.y, drawn.validation)
        engine.asked += active
        used += np.bincount(drawn.trial, minlength=len(trials))
        if scores_wanted or tested[t]:
            engine.refit()
            log.validation_loss[t] = np.where(engine.scored > 0, engine.loss_sum / np.maximum(engine.scored, 1), np.nan)
        elif getattr(learner, "incremental", False) and engine.memory is not None:
            engine.memory.fit()
        if closed_form:
            log.coef.append(_linear(engine.memory))
        elif tested[t]:
            log.accuracy[t] = _test(stream, engine)
        log.labels[t], log.chosen[t], log.kind[t] = used, chosen, np.where(active, decision.code, -1)
        log.counts[t] = engine.counts
        if keep_rows and drawn.rows is not None:
            kept.append({"trial": drawn.trial, "rows": drawn.rows, "validation": validation, "group": drawn.group})
        t += 1
        if tick is not None:
            tick()
    if closed_form:
        _evaluate_closed_form(stream, log)
    elif t and np.isnan(log.accuracy[t - 1]).all():
        engine.refit()
        log.accuracy[t - 1] = _test(stream, engine)
    final = _final(stream, engine, closed_form)
    seconds = time.perf_counter() - started
    return Record(
        groups=source.groups,
        trials=np.asarray(trials),
        final_accuracy=final,
        seconds=seconds,
        rows=kept,
        **log.cut(t),
    )


def _engine(source: Source, strategy: Strategy, learner: Any, settings: Settings, trials: Sequence[int]) -> Engine:
    labels = Labels(source.classes.tolist())
    seed = learner_seed(settings.seed, trials[0])
    run = f"{source.name} {getattr(strategy, '__name__', strategy)} seed {settings.seed} trial {trials[0]}"
    return Engine(
        source.groups,
        strategy,
        make_memory(
            learner, labels, len(source.groups), trials=len(trials), seed=seed, names=tuple(source.groups), run=run
        ),
        trials=trials,
        seed=settings.seed,
        n0=settings.n0 or 0,
        validation=settings.validation,
        population=source.population,
        track=getattr(strategy, "needs_trend", True),
    )


def _linear(memory: Any) -> tuple[Floats, Floats]:
    return memory.coef.copy(), memory.intercept.copy()


def _test(stream: Stream, engine: Engine) -> Floats:
    assert engine.memory is not None
    return stream.accuracies(engine.memory.models())


def _final(stream: Any, engine: Engine, closed_form: bool) -> Floats:
    assert engine.memory is not None
    models: list[Any] = list(engine.memory.final_models())
    if not closed_form:
        accuracies: Floats = stream.accuracies(models)
        return accuracies
    coef, intercept = (np.stack([getattr(f, name)[0] for f in models]) for name in ("coef_", "intercept_"))
    found: Floats = stream.linear_accuracies(coef, intercept)
    return found


def _evaluate_closed_form(stream: Any, log: _Log) -> None:
    coef = np.stack([coef for coef, _ in log.coef], axis=1)
    intercept = np.stack([intercept for _, intercept in log.coef], axis=1)
    log.accuracy[: coef.shape[1]] = np.moveaxis(stream.linear_accuracies(coef, intercept), 1, 0)
