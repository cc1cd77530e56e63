"""Many strategies, many trials, the same examples for all of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.arrays import plain
from evenhand.engine.memories.build import runs_in_lockstep
from evenhand.engine.run import Settings
from evenhand.engine.settings import as_seed, check_settings, forced_warning
from evenhand.engine.trials import check_tests
from evenhand.errors import InputError
from evenhand.extending import is_factory
from evenhand.learners import Logistic, as_learner
from evenhand.learners.base import Learner
from evenhand.learners.choosing import why_plain
from evenhand.notation import lasting_text, whole
from evenhand.risks import OwnRisk, Risk, as_risk
from evenhand.simulation.backends import spread
from evenhand.simulation.blocks import Block, cut, run
from evenhand.simulation.result import Result
from evenhand.simulation.store import Store
from evenhand.sources.base import HasLearner, HasValidation, Source
from evenhand.sources.catalogue import open_source
from evenhand.strategies import Strategy, parse_strategy, strategy_text

__all__ = ["BLOCK", "label_of", "simulate"]

BLOCK = 100
"""How many trials run in lockstep; fewer if the record of a block would grow large. It never depends on `jobs`."""

# numbers a block's record may hold in each of its arrays
_RECORD_SIZE = 4_000_000


def simulate(
    source: Source | str,
    strategies: Sequence[Strategy | str] | Mapping[str, Strategy | str],
    learner: Any = None,
    *,
    budget: int,
    trials: int = 100,
    seed: int = 0,
    jobs: int = 1,
    evaluate: int = 100,
    batch: int = 1,
    warmup: int | None = None,
    validation: float = 0.5,
    risk: str | Risk | OwnRisk = "error",
    positive: Any = None,
    final: str = "plain",
    trace: str = "full",
    progress: Callable[[int, int], None] | bool = False,
    resume: Result | None = None,
    keep: str | PathLike[str] | None = None,
    backend: str = "processes",
    address: str | None = None,
) -> Result:
    """Run every strategy on the same trials and compare them.

    The k-th example of a group in a trial is the same for every strategy, so differences are truly paired.
    Ctrl-C keeps the trials that are finished: the result says so in `interrupted`.

    Args:
        source: where the examples come from: an object such as `Table(...)`, or a text such as `"adult"`.
        strategies: objects and texts such as `"optimistic:c0=0.1"`, or a mapping from labels to them.
        learner: what is trained; the source's own (a network for images) or `Logistic()` by default.
        budget: labels of a trial, training and validation together.
        trials: how many trials.
        seed: the same seed gives the same result, whatever `jobs` is.
        jobs: how many processes.
        evaluate: at how many evenly spaced rounds test accuracy and risk are measured (closed forms: at every round).
        batch: examples of each role a round draws.
        warmup: warm-up rounds, groups in turn.
        validation: the share of each group's examples that validates.
        risk: what "worse off" means: `"error"`, `"log"`, `"fnr"`, `"fpr"`, `"balanced"`, `Costs(...)`, or a function
            `(model, X, y)` that returns a number in [0, 1] for every example and which examples are relevant.
        positive: the class that `"fnr"` and `"fpr"` are about.
        final: `"plain"`, or `"chosen"` to add the accuracy of the model a campaign's `final_model()` would choose.
        trace: `"full"` keeps a row per round and group, `"chosen"` a row per round, `"none"` no rows.
        progress: True for a bar, or a callable (done, total).
        resume: an earlier, interrupted result of the same settings to continue from.
        keep: a folder for finished trials. They are written block by block, so a killed run can continue from there;
            trials of the same data and settings are not run again.
        backend: `"processes"` on this machine, or `"dask"` for the cluster at `address`; the result is the same.
        address: a Dask scheduler's address, such as `tcp://10.0.0.5:8786`.

    >>> import evenhand as eh
    >>> result = eh.simulate(eh.SyntheticModel1.instance("I"), [eh.Uniform()], budget=20, trials=2)
    >>> len(result.trace)
    40
    """
    trials, evaluate, jobs = whole("trials", trials, 1), whole("evaluate", evaluate, 1), plain(jobs)
    source = _source(source)
    named, texts = _named(strategies)
    what = as_risk(risk, positive)
    if isinstance(source, HasValidation):
        # sources that draw roles themselves must know the share before the first row
        source = source.with_validation(validation)
    number, _ = as_seed(seed)
    # a network only fits images, and Logistic only rows of numbers: the source knows which
    if learner is None:
        learner = source.default_learner() if isinstance(source, HasLearner) else Logistic()
    fitted = as_learner(learner, what)
    settings = Settings(budget, batch, warmup, validation, number, evaluate, what, final)
    _check_risk(source, settings)
    _check(source, named, settings, fitted, trials, evaluate, trace)
    result = Result.empty(source, texts, fitted, settings, trials, jobs, trace)
    if resume is not None:
        result.take_over(resume)
    if keep is not None and what.function is not None and not is_factory(str(what)):
        raise InputError(
            f"kept trials are found again by their settings, and the function {what.name!r} has none: name it by a factory, "
            "risk='factory:package.module.function', or leave out keep"
        )
    store = None if keep is None else Store(Path(keep))
    if store is not None:
        _take_kept(result, store, trials)
    missing = {label: result.missing(label, range(trials)) for label in named}
    # blocks are cut before the processes are known, so that the same blocks run whatever `jobs` is
    pieces = cut(missing, _block(settings, source, fitted))
    given = partial(_given, source, fitted)
    blocks = [Block(label, named[label], numbers, settings, given) for label, numbers in pieces]
    started = time.perf_counter()
    # a trial of a network may take hours: its rounds are shown, where they are run in this process
    by_round = progress is True and jobs == 1 and backend == "processes" and not runs_in_lockstep(fitted)
    total = sum(len(block.trials) * (settings.rounds if by_round else 1) for block in blocks)
    report = _reporter(progress, total, "rounds" if by_round else "trials")
    tick = partial(report, 1) if by_round else None
    try:
        for done in spread(partial(run, tick=tick), blocks, jobs=jobs, backend=backend, address=address):
            if done.error is not None:
                # trials are compared in pairs: a strategy without its
                # trial would make the comparison say something else
                raise done.error
            label = blocks[done.index].label
            if store is not None:
                # before it is taken in: a run killed here has the trial on disk
                store.put(result.settings_of(label), done.value)
            result.take_in(label, done.value)
            if not by_round:
                report(len(blocks[done.index].trials))
    except KeyboardInterrupt:
        # hours of finished trials are worth more than a traceback
        result.interrupted = True
    finally:
        report(0)
    result.elapsed += time.perf_counter() - started
    return result


def _take_kept(result: Result, store: Store, trials: int) -> None:
    """Take in the trials that an earlier run left in the store."""
    store.refuse_others([result.settings_of(label) for label in result.labels])
    for label in result.labels:
        kept = store.get(result.settings_of(label), result.missing(label, range(trials)))
        if kept is not None:
            result.take_in(label, kept)


def _named(strategies: Any) -> tuple[dict[str, Strategy], dict[str, str]]:
    """The strategies by label, and the text that stands for each in the result's settings."""
    if isinstance(strategies, str) or callable(strategies):
        strategies = [strategies]
    if not isinstance(strategies, Iterable):
        raise InputError(f"give strategies, e.g. [Optimistic(), Uniform()], not {strategies!r}")
    found: dict[str, Strategy] = {}
    texts: dict[str, str] = {}
    for given, item in strategies.items() if isinstance(strategies, Mapping) else ((None, item) for item in strategies):
        own, strategy = parse_strategy(item) if isinstance(item, str) else (label_of(item), item)
        label = given or own
        if label in found:
            raise InputError(f"two strategies are named {label!r}: give one a label of its own, LABEL=name:…")
        found[label] = strategy
        # a factory's text makes the strategy again, which its own text may not
        factory = isinstance(item, str) and is_factory(strategy_text(item))
        texts[label] = strategy_text(item) if factory else lasting_text(strategy)
    if not found:
        raise InputError("there are no strategies: give at least one, e.g. [Optimistic(), Uniform()]")
    return found, texts


def label_of(strategy: Strategy) -> str:
    """A strategy's default name in results: its text, or the name of its function or class."""
    return str(strategy) if hasattr(strategy, "settings") else getattr(strategy, "__name__", type(strategy).__name__)


def _source(given: Source | str) -> Source:
    if isinstance(given, str):
        return open_source(given)
    if not hasattr(given, "open"):
        raise InputError(f"a {type(given).__name__} is not a source: give Table(...), or a text such as 'adult'")
    return given


def _check_risk(source: Source, settings: Settings) -> None:
    """Refuse a risk that the source cannot test, before anything is run."""
    settings.risk.for_classes(source.classes)
    if not settings.risk.is_error:
        check_tests(source.name, source.open(settings.seed, [0]), settings.risk)


def _check(
    source: Source,
    named: dict[str, Strategy],
    settings: Settings,
    learner: Learner,
    trials: int,
    evaluate: int,
    trace: str,
) -> None:
    if settings.final not in ("plain", "chosen"):
        raise InputError(f"final must be 'plain' or 'chosen', not {settings.final!r}")
    if trace not in ("full", "chosen", "none"):
        raise InputError(f"trace must be 'full', 'chosen' or 'none', not {trace!r}")
    for strategy in named.values():
        check_settings(
            source.groups,
            strategy,
            budget=settings.budget,
            batch=settings.batch,
            warmup=settings.warmup,
            validation=settings.validation,
            risk=settings.risk,
        )
        examples = settings.budget * (1 - settings.validation)
        if message := forced_warning(strategy, len(source.groups), examples):
            warnings.warn(message, stacklevel=3)
    if settings.final == "chosen" and (reason := why_plain(learner, source.classes, len(source.groups))):
        warnings.warn(f"the chosen models will be the plain ones: {reason}", stacklevel=3)


def _block(settings: Settings, source: Source, learner: Learner) -> int:
    if not runs_in_lockstep(learner):
        return 1
    return int(np.clip(_RECORD_SIZE // (settings.rounds * len(source.groups)), 1, BLOCK))


def _given(source: Source, learner: Learner) -> tuple[Source, Learner]:
    return source, learner


def _reporter(progress: Callable[[int, int], None] | bool, total: int, unit: str) -> Callable[[int], None]:
    """A callable that takes the number of trials just finished, 0 at the end."""
    if progress is False or total == 0:
        return lambda finished: None
    if callable(progress):
        done = 0

        def tell(finished: int) -> None:
            nonlocal done
            done += finished
            progress(done, total)

        return tell
    from evenhand.progress import bar

    return bar(unit, total)
