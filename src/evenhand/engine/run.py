"""A block of simulated trials from the first label to the last, and the record of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from evenhand.arrays import Floats, Ints
from evenhand.engine.fixed_pool import PooledTrials
from evenhand.engine.memories.fixed_pool import PoolMemory
from evenhand.engine.memories.lockstep import LockstepLogistic
from evenhand.engine.trials import Settings, Step, Trials
from evenhand.sources.base import ExactStream, Source
from evenhand.strategies.base import Strategy

__all__ = ["Record", "Round", "Settings", "each_round", "run_block"]


@dataclass
class Record:
    """What happened in a block of T trials over R rounds; NaN where nothing was computed, −1 where nothing chosen."""

    groups: tuple[str, ...]
    trials: NDArray[np.int64]
    labels: Ints
    chosen: Ints
    kind: Ints
    counts: Ints
    validation_loss: Floats
    accuracy: Floats
    final_accuracy: Floats
    seconds: float


@dataclass(frozen=True)
class Round:
    """A round that is done: what was chosen and drawn, and by trial and group what was measured after it.

    Attributes:
        step: the decisions and the rows.
        losses: mean validation losses, None where the models were not scored.
        accuracy: test accuracy, None where it was not taken.
    """

    step: Step
    losses: Floats | None
    accuracy: Floats | None


def each_round(block: Trials, *, first: int = 0, score: bool = False, test: bool = True) -> Iterator[Round]:
    """Every round until all trials are over, yielded as they complete: the caller keeps what it needs and may stop.

    Args:
        block: the trials.
        first: how many rounds they have behind them.
        score: whether to score after every round, although the strategy and the tests may not need it.
        test: whether to take test accuracy at the rounds the settings name. A group that runs low gives short rounds, so
            there may be more of them than the budget has full ones: those are tested too.
    """
    tested = block.settings.evaluated(block.rounds)
    score = score or getattr(block.engine.strategy, "needs_scores", True)
    for t in count(first):
        step = block.step()
        if step is None:
            return
        due = bool(tested[min(t, len(tested) - 1)])
        if score or due:
            block.engine.refit()
        elif block.incremental:
            block.memory.fit()
        losses = block.mean_losses() if score or due else None
        yield Round(step, losses, block.accuracies() if test and due else None)


class _Log:
    """What a run leaves behind, round by round."""

    def __init__(self) -> None:
        self._rounds: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._rounds)

    def add(self, trials: Trials, done: Round) -> None:
        step, nothing = done.step, np.full(trials.engine.counts.shape, np.nan)
        self._rounds.append(
            {
                "labels": trials.used.copy(),
                "chosen": step.chosen,
                "kind": np.where(step.chosen >= 0, step.decision.code, -1),
                "counts": trials.engine.counts.copy(),
                "validation_loss": nothing if done.losses is None else done.losses,
                "accuracy": nothing if done.accuracy is None else done.accuracy,
            }
        )

    def arrays(self) -> dict[str, Any]:
        return {name: np.stack([kept[name] for kept in self._rounds]) for name in self._rounds[0]}


def run_block(
    source: Source,
    strategy: Strategy,
    learner: Any,
    settings: Settings,
    trials: Sequence[int],
    *,
    tick: Callable[[], None] | None = None,
) -> Record:
    """Run these trials to the end of their budget; `tick` is called after every round."""
    started = time.perf_counter()
    with threadpool_limits(1):
        block = (
            PooledTrials(source, strategy, settings, trials)
            if getattr(strategy, "buys_first", False)
            else Trials(source, strategy, learner, settings, trials)
        )
        linear = isinstance(block.memory, LockstepLogistic | PoolMemory)
        exact = block.stream if linear and isinstance(block.stream, ExactStream) else None
        log = _log(block, exact, tick)
        final = _final(block, exact)
    seconds = time.perf_counter() - started
    return Record(source.groups, np.asarray(trials), **log, final_accuracy=final, seconds=seconds)


def _log(block: Trials, exact: ExactStream | None, tick: Callable[[], None] | None) -> dict[str, Any]:
    log = _Log()
    linear: list[tuple[Floats, Floats]] = []
    for done in each_round(block, score=exact is not None, test=exact is None):
        if exact is not None:
            linear.append(_linear(block.memory))
        log.add(block, done)
        if tick is not None:
            tick()
    found = log.arrays()
    if exact is not None:
        found["accuracy"] = _closed_form(exact, linear)
    elif np.isnan(found["accuracy"][-1]).all():
        block.engine.refit()
        found["accuracy"][-1] = block.accuracies()
    return found


def _linear(memory: Any) -> tuple[Floats, Floats]:
    return memory.coef.copy(), memory.intercept.copy()


def _closed_form(stream: ExactStream, linear: Sequence[tuple[Floats, Floats]]) -> Floats:
    coef, intercept = (np.stack(values, axis=1) for values in zip(*linear, strict=True))
    return np.asarray(np.moveaxis(stream.linear_accuracies(coef, intercept), 1, 0))


def _final(block: Trials, exact: ExactStream | None) -> Floats:
    """Test accuracy of models fitted on training and validation examples together."""
    models: list[Any] = list(block.memory.final_models())
    if exact is None:
        return block.stream.accuracies(models)
    coef, intercept = (np.stack([getattr(f, name)[0] for f in models]) for name in ("coef_", "intercept_"))
    return np.asarray(_closed_form(exact, [(coef, intercept)])[0])
