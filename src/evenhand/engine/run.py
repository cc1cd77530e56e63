"""A block of simulated trials from the first label to the last, and the record of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from evenhand.arrays import Floats, Ints
from evenhand.engine.deploying import choose_models
from evenhand.engine.memories.lockstep import LockstepLogistic
from evenhand.engine.trials import Settings, Step, Trials
from evenhand.notation import JsonObject
from evenhand.risks import Measure
from evenhand.sources.base import ConfusionStream, ExactStream, Source
from evenhand.strategies.base import Strategy, needs_of

if TYPE_CHECKING:
    from evenhand.learners.base import Learner, Model


@dataclass
class Record:
    """What happened in a block of T trials over R rounds; NaN where nothing was computed, −1 where nothing chosen.

    `risk`, `final_risk` and `chosen_risk` are test risks; None if the risk is the error, which the accuracies show.
    """

    groups: tuple[str, ...]
    trials: Ints
    labels: Ints
    chosen: Ints
    kind: Ints
    counts: Ints
    validation_loss: Floats
    accuracy: Floats
    final_accuracy: Floats
    seconds: float
    risk: Floats | None = None
    final_risk: Floats | None = None
    chosen_accuracy: Floats | None = None
    chosen_risk: Floats | None = None


@dataclass(frozen=True)
class Round:
    """A finished round: what was chosen and drawn, and what was measured after it, by trial and group.

    Attributes:
        step: the decisions and the rows.
        losses: mean validation losses; None if the models were not scored.
        accuracy: test accuracy; None if it was not measured.
        risk: test risk; None if it was not measured or is the error.
    """

    step: Step
    losses: Floats | None
    accuracy: Floats | None
    risk: Floats | None = None


def each_round(
    block: Trials, *, first: int = 0, score: bool = False, test: bool = True, test_risk: bool = True
) -> Iterator[Round]:
    """Yield rounds as they complete, until all trials are over; the caller keeps what it needs and may stop early.

    Args:
        block: the trials.
        first: how many rounds they have already made.
        score: whether to score after every round, although the strategy and the tests may not need it.
        test: whether to measure test accuracy at the rounds the settings name. A group that runs low gives short
            rounds, so there may be more rounds than the budget has full ones: those are tested too.
        test_risk: whether to measure the test risk there too, if it is not the error.
    """
    test_risk = test_risk and not block.settings.risk.is_error
    tested = block.settings.evaluated()
    score = score or needs_of(block.engine.strategy).scores
    for t in count(first):
        step = block.step()
        if step is None:
            return
        # a group that runs low gives short rounds: there may be more rounds than the budget bought
        due = bool(tested[min(t, len(tested) - 1)])
        if score or due:
            block.engine.refit()
        elif block.incremental:
            # a network takes its step in every round whether or not anybody looks at the scores
            block.memory.fit()
        losses = block.mean_losses() if score or due else None
        accuracy, risk = None, None
        if due and test_risk:
            accuracy, risk = block.tested()
        elif due and test:
            accuracy = block.accuracies()
        yield Round(step, losses, accuracy if test else None, risk)


class _Log:
    """What a run leaves behind, round by round."""

    def __init__(self) -> None:
        self._rounds: list[JsonObject] = []

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
        if not trials.settings.risk.is_error:
            self._rounds[-1]["risk"] = nothing if done.risk is None else done.risk

    def arrays(self) -> JsonObject:
        return {name: np.stack([kept[name] for kept in self._rounds]) for name in self._rounds[0]}


def run_block(
    source: Source,
    strategy: Strategy,
    learner: Learner,
    settings: Settings,
    trials: Sequence[int],
    *,
    tick: Callable[[], None] | None = None,
) -> Record:
    """Run these trials to the end of their budget; `tick` is called after every round."""
    started = time.perf_counter()
    # blocks are spread over processes; threads of BLAS inside them would only fight for the same cores
    with threadpool_limits(1):
        block = Trials(source, strategy, learner, settings, trials)
        forms = _Forms.of(block)
        log = _log(block, forms, tick)
        models: list[Model] = list(block.memory.final_models())
        final, final_risk = _final(block, forms, models)
        chosen, chosen_risk = None, None
        if settings.final == "chosen":
            deployed = choose_models(block, source, learner, models)
            chosen, chosen_risk = _final(block, forms, [found.model for found in deployed])
    seconds = time.perf_counter() - started
    return Record(
        source.groups,
        np.asarray(trials),
        **log,
        final_accuracy=final,
        final_risk=final_risk,
        chosen_accuracy=chosen,
        chosen_risk=chosen_risk,
        seconds=seconds,
    )


@dataclass(frozen=True)
class _Forms:
    """Closed forms for the linear rules of a block: none, for accuracies only, or also for the risk."""

    accuracies: ExactStream | None
    confusions: ConfusionStream | None
    measure: Measure

    @classmethod
    def of(cls, block: Trials) -> _Forms:
        # it alone has all trials' coefficients as arrays
        linear = isinstance(block.memory, LockstepLogistic)
        stream = block.stream if linear and isinstance(block.stream, ExactStream) else None
        wanted = not block.settings.risk.is_error and block.measure.table is not None
        return cls(stream, stream if wanted and isinstance(stream, ConfusionStream) else None, block.measure)

    def of_rules(self, rules: Sequence[tuple[Floats, Floats]]) -> tuple[Floats | None, Floats | None]:
        """Accuracies and risks of (T, d) coefficients and (T,) intercepts of several rounds, (R, T, m) each."""
        coef, intercept = (np.stack(values, axis=1) for values in zip(*rules, strict=True))
        accuracy, risk = None, None
        if self.accuracies is not None:
            accuracy = np.moveaxis(self.accuracies.linear_accuracies(coef, intercept), 1, 0)
        if self.confusions is not None:
            risk = np.moveaxis(self.measure.of_confusion(self.confusions.linear_confusions(coef, intercept)), 1, 0)
        return accuracy, risk


def _log(block: Trials, forms: _Forms, tick: Callable[[], None] | None) -> JsonObject:
    log = _Log()
    exact, exact_risk = forms.accuracies is not None, forms.confusions is not None
    rules: list[tuple[Floats, Floats]] = []
    for done in each_round(block, score=exact, test=not exact, test_risk=not exact_risk):
        if exact:
            memory: Any = block.memory
            # kept and tested all at once in the end: one call of the closed form for a thousand rounds
            rules.append((memory.coef.copy(), memory.intercept.copy()))
        log.add(block, done)
        if tick is not None:
            tick()
    found = log.arrays()
    accuracy, risk = forms.of_rules(rules) if exact else (None, None)
    # the last round is tested even where the run ended before the round that was to be
    lacking = done.risk is None and not block.settings.risk.is_error
    # results read the last round, whether or not it was one to be tested
    if (accuracy is None and done.accuracy is None) or (risk is None and lacking):
        block.engine.refit()
        found["accuracy"][-1], last = block.tested()
        if last is not None:
            found["risk"][-1] = last
    return found | ({} if accuracy is None else {"accuracy": accuracy}) | ({} if risk is None else {"risk": risk})


def _final(block: Trials, forms: _Forms, models: Sequence[Model]) -> tuple[Floats, Floats | None]:
    """Test accuracy, and risk if it is not the error, of one model for every trial."""
    accuracy, risk = None, None
    if forms.accuracies is not None:
        coef, intercept = (np.stack([getattr(f, name)[0] for f in models]) for name in ("coef_", "intercept_"))
        accuracy, risk = (None if found is None else found[0] for found in forms.of_rules([(coef, intercept)]))
    if accuracy is None or (risk is None and not block.settings.risk.is_error):
        tested, by_risk = block.tested(models)
        return tested if accuracy is None else accuracy, by_risk if risk is None else risk
    return accuracy, risk
