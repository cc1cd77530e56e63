"""Before the money is spent: which rule to use for buying labels, tried on rows that are already labelled.

The decision rule, fixed before any number is seen. Every rule is run on the same trials. What counts is the worst-off
group's risk on test rows, for the model one would deploy. All pairs of rules are compared, trial by trial, by Student's
interval at level 1 − 0.05 / (number of pairs), so that all of them hold at once. A rule is recommended only if its interval
against Uniform lies above 0; of several, the one with the largest mean. Otherwise the answer is Uniform.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import combinations
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from evenhand.arrays import Ints
from evenhand.claims.paired import HOLDS, OPEN, Interval, paired, together
from evenhand.engine.trials import open_stream
from evenhand.errors import InputError
from evenhand.learners import Logistic, as_learner
from evenhand.notation import JsonObject, real, whole
from evenhand.progress import bar, lasting, say
from evenhand.risks import OwnRisk, Risk, as_risk
from evenhand.simulation.metrics import spread, worst_by
from evenhand.simulation.result import Result
from evenhand.simulation.simulate import simulate
from evenhand.sources.table.stream import TableStream
from evenhand.sources.table.table import LARGE, Table
from evenhand.strategies import Strategy
from evenhand.tables.frame import InMemory
from evenhand.tables.groups import GroupColumn, code_column
from evenhand.tables.parquet import ParquetFiles
from evenhand.tables.reading import Format, read
from evenhand.tables.schema import Columns

__all__ = ["RULES", "Pilot", "pilot"]

RULES = ("uniform", "uncurated", "optimistic")
BASELINE = RULES[0]
FEWEST, FEW_TESTS = 10, 30
"""The fewest rows a group must have, and the test rows below which its accuracy is called rough."""
STEP = 5
"""Trials that run together."""
SHARE = 0.5
"""At most this fraction of the rows is bought in a simulation: with more, all rules would buy mostly the same rows."""


@dataclass(frozen=True)
class Lead:
    """How much lower the worst-off group's risk is under rule `a` than under `b`, with its interval."""

    a: str
    b: str
    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether it holds that `a` serves the worst-off group better than `b`."""
        return Interval(self.mean, self.low, self.high).above()

    def as_dict(self) -> dict[str, str | float | None]:
        """The lead as plain values; NaN becomes None."""
        return {key: None if isinstance(v, float) and isnan(v) else v for key, v in asdict(self).items()}

    def __str__(self) -> str:
        digits = 1 if max(map(abs, (self.low, self.high))) >= 1 else 3
        return f"{self.mean:+.{digits}f} [{self.low:+.{digits}f}, {self.high:+.{digits}f}]"


@dataclass(frozen=True)
class Pilot:
    """What a pilot found.

    Attributes:
        result: the simulation behind it.
        rule: the rule to use.
        gain: how much better than Uniform it is expected to serve the worst-off group; None if that is within noise.
        leads: every pair of rules, first − second: above 0 the first serves the worst-off group better.
        asked, simulated: the labels you plan to buy, and the labels of a simulated trial.
        worst: mean and deviation over trials of the worst-off group's risk, by rule.
        trials: how many trials all rules have finished.
        unit: the unit of gains.
        notes: what is worth knowing about the table, and what a pilot cannot see.
    """

    result: Result
    rule: str
    gain: Lead | None
    leads: tuple[Lead, ...]
    asked: int
    simulated: int
    batch: int
    worst: dict[str, tuple[float, float]]
    trials: int
    unit: str
    notes: tuple[str, ...] = field(default=())

    @property
    def sentence(self) -> str:
        """Which rule to use, and how much it is expected to gain."""
        if self.trials < 2:
            return "Interrupted before two trials were done: nothing can be said."
        labels = f"With {self.simulated:,} labels"
        if self.gain is not None:
            return (
                f"{labels}, use {self.rule}: it is expected to buy the worst-off group {self.gain} {self.unit} over {BASELINE} "
                f"(95 % interval, corrected for {len(self.leads)} comparisons)."
            )
        sure = [lead for lead in self.leads if lead.verdict != OPEN]
        if not sure:
            return f"{labels}, all rules are within noise of each other here: use Uniform."
        worse = [lead for lead in sure if lead.b == BASELINE]
        said = "; ".join(f"{lead.a} over {lead.b}: {lead} {self.unit}" for lead in worse or sure)
        return f"{labels}, no rule is better than Uniform beyond noise ({said}): use Uniform."

    @property
    def level(self) -> float:
        """The level of each interval, such that all hold at once with 95 %."""
        return together(len(self.leads))

    def as_dict(self) -> JsonObject:
        """Everything as plain values, for JSON."""
        return {
            "schema": 1,
            "sentence": self.sentence,
            "rule": self.rule,
            "gain": None if self.gain is None else self.gain.as_dict(),
            "unit": self.unit,
            "level": self.level,
            "differences": [lead.as_dict() for lead in self.leads],
            "budget": self.asked,
            "simulated": self.simulated,
            "batch": self.batch,
            "trials": self.trials,
            "worst_group_risk": {rule: {"mean": m, "sd": sd} for rule, (m, sd) in self.worst.items()},
            "notes": list(self.notes),
            "interrupted": self.result.interrupted,
            "settings": self.result.settings,
        }


def pilot(
    data: Any,
    label: str | None = None,
    groups: str | Sequence[str] | None = None,
    *,
    budget: int,
    rules: Sequence[str | Strategy] = RULES,
    learner: Any = None,
    batch: int = 1,
    warmup: int | None = None,
    validation: float = 0.5,
    risk: str | Risk | OwnRisk = "error",
    positive: Any = None,
    final: str = "chosen",
    trials: int = 40,
    minutes: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] | bool = False,
    **settings: Any,
) -> Pilot:
    """Which rule to use for buying labels, and how much it is expected to gain, tried on rows already labelled.

    Args:
        data: a table whose rows, or some of them, are labelled: a frame, a path, or a `Table`.
        label: the column to predict.
        groups: the columns that tell the group.
        budget: the labels you plan to buy, training and validation together.
        rules: the rules to compare; Uniform is always among them.
        learner: what is trained; `Logistic()` by default.
        batch: examples of each role a round draws.
        warmup: as for `simulate`.
        validation: as for `simulate`.
        risk: as for `simulate`.
        positive: as for `simulate`.
        final: the model that is judged: `"chosen"`, as `final_model()` chooses it, or `"plain"`, which is quicker.
        trials: how many trials.
        minutes: begin no further trials once the next ones would take longer than this; two are always run.
        seed: the same seed gives the same answer.
        jobs: how many processes.
        progress: True for a bar, or a callable (done, total).
        settings: as for `Table`.

    >>> from evenhand.datasets import load
    >>> found = pilot(load("german"), budget=40, trials=2, final="plain")
    >>> found.simulated
    40
    """
    if whole("trials", trials, 0) < 2:
        raise InputError(f"a pilot compares rules over trials: give 2 or more, not {trials}")
    if minutes is not None and real("minutes", minutes) <= 0:
        raise InputError(f"minutes must be above 0, not {minutes!r}")
    table, notes = _table(data, label, groups, settings)
    if progress is True:
        say(table.was_read)
    what = as_risk(risk, positive)
    fitted = as_learner(Logistic() if learner is None else learner, what)
    # one trial is opened for its counts: the rows that can be drawn and tested on depend on the split
    stream = open_stream(table.with_validation(validation), fitted, seed, [0])
    assert isinstance(stream, TableStream)  # a table's stream is
    left = stream.left()
    assert left is not None or table.description["replace"] == "halves"
    drawable = table.counts if left is None else left[0]
    notes += _check(table, drawable, stream.tests()[0].counts)
    simulated, batch, shrunk = _affordable(budget, batch, drawable)
    every = (BASELINE, *(rule for rule in rules if str(rule) != BASELINE))
    run = partial(
        simulate, table, every, fitted, budget=simulated, batch=batch, warmup=warmup, validation=validation, risk=what,
        # evaluate=1: only the model at the end is judged
        final=final, seed=seed, jobs=jobs, evaluate=1, trace="none",
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = _in_steps(run, trials, minutes, progress)
    if len(result.final) and (done := int(result.final["trial"].nunique())) < trials and not result.interrupted:
        notes.append(f"{done} of {trials} trials were run in {minutes:g} minutes")
    notes += [*shrunk, *dict.fromkeys(str(w.message) for w in caught)]
    return _judged(result, budget, simulated, batch, [*table.was_read, *notes, *_unseen(table, result)])


def _in_steps(
    run: Callable[..., Result], trials: int, minutes: float | None, progress: Callable[[int, int], None] | bool
) -> Result:
    """Run all trials, a few at a time: the result is the same, but Ctrl-C keeps those that are done.

    The first is run alone, so that it is soon known how long all will take.
    """
    report = bar("trials", trials) if progress is True else None
    result: Result | None = None
    done, began = 0, time.monotonic()
    try:
        while done < trials:
            upto = min(done + (1 if (done < 2 and minutes is not None) or not done else STEP), trials)
            if minutes is not None and done >= 2:
                passed = time.monotonic() - began
                upto = min(upto, done + int((60 * minutes - passed) / (passed / done)))
                if upto <= done:
                    break
            result = run(trials=upto, resume=result)
            if result.interrupted:
                break
            if report is not None:
                report(upto - done)
            elif callable(progress):
                progress(upto, trials)
            if not done and progress is True:
                seconds = (time.monotonic() - began) * trials
                print(f"the first trial is done: all {trials} take about {lasting(seconds)}", file=sys.stderr)
            done = upto
    finally:
        if report is not None:
            report(0)
    assert result is not None  # there are two trials or more
    return result


def _judged(result: Result, asked: int, simulated: int, batch: int, notes: Sequence[str]) -> Pilot:
    """The decision, by the rule at the top of this module."""
    risks = _worst_risks(result)
    rules = list(risks.columns)
    pairs = list(combinations(rules, 2))
    unit = "log loss" if result.settings["risk"] == "log" else "points"
    level, size = together(len(pairs)), 100.0 if unit == "points" else 1.0
    # the later rule first: the baseline is what others are measured against
    leads = [Lead(a, b, *paired(size * risks[b], size * risks[a], level)) for b, a in pairs]
    # intervals among the others do not count here: they only widen those against Uniform, as was fixed beforehand
    better = [lead for lead in leads if lead.b == BASELINE and lead.verdict == HOLDS]
    gain = max(better, key=lambda lead: lead.mean, default=None)
    worst = {rule: tuple(map(float, spread(risks[rule].to_numpy()))) for rule in rules if len(risks)}
    rule = BASELINE if gain is None else gain.a
    return Pilot(
        result, rule, gain, tuple(leads), asked, simulated, batch, worst, len(risks), unit, tuple(notes)  # type: ignore[arg-type]
    )  # fmt: skip


def _worst_risks(result: Result) -> pd.DataFrame:
    """The worst-off group's test risk, a row per trial that every rule has finished and a column per rule."""
    if not len(result.final):
        return pd.DataFrame(columns=list(result.labels), dtype=float)
    found = worst_by(result.deployed, ["trial", "strategy"], "risk").unstack("strategy").reindex(columns=result.labels)
    return pd.DataFrame(found.dropna())


def _table(data: Any, label: str | None, groups: Any, settings: dict[str, Any]) -> tuple[Table, list[str]]:
    """The labelled rows as a `Table`, and notes about the others."""
    if isinstance(data, Table):
        if label is not None or groups is not None or settings:
            raise InputError("a Table knows its label, groups and settings already: give them to Table(...) alone.")
        return data, []
    if label is None or not groups:
        raise InputError("a pilot needs labelled rows: name the label and the groups (--label, --group).")
    form = Format(*(settings.get(key) for key in ("separator", "decimal", "encoding")))
    frame = read(data, form)
    # too large to be read as a whole for the sake of missing labels; `Table` refuses those by itself
    large = isinstance(frame, ParquetFiles) and len(frame) > LARGE
    if large or label not in frame.schema.names:
        return Table(data, label=label, groups=groups, **settings), []
    words = Columns.of(missing=settings.get("missing")).missing
    there = code_column(frame.column(label), GroupColumn(label), words).codes >= 0
    missing = len(there) - int(there.sum())
    if not missing:
        return Table(data, label=label, groups=groups, **settings), []
    if missing == len(there):
        raise InputError(f"no row has a label in {label!r}: a pilot is run on rows whose labels are known")
    name = Path(data).stem if isinstance(data, str | Path) else "table"
    rows = frame.read().filter(pa.array(there))
    labelled = InMemory(rows, frame.name, broken=frame.broken, skipped=frame.skipped, dialect=frame.dialect)
    table = Table(labelled, label=label, groups=groups, name=name, **settings)
    return table, [
        f"{missing:,} of {len(there):,} rows have no label: the pilot is about the other {len(there) - missing:,}"
    ]


def _check(table: Table, drawable: Ints, tests: Ints) -> list[str]:
    """Refuse tables that a pilot can say nothing about; returns notes on groups that it can say little about."""
    if len(table.groups) == 1:
        raise InputError(f"there is one group only, {table.groups[0]!r}: there is nothing to choose between")
    if not tests.sum():
        raise InputError("a pilot needs test rows: give a share to hold out or a test file (test=0.3, --test 0.3)")
    tiny = [(name, int(n)) for name, n in zip(table.groups, table.counts, strict=True) if n < FEWEST]
    if tiny:
        raise InputError(
            f"group {tiny[0][0]!r} has {tiny[0][1]} labelled rows, too few to try anything on (at least {FEWEST}): merge small "
            f"groups (merge_below={FEWEST}, --merge-below {FEWEST}), exclude it (--exclude), or label more"
        )
    notes = []
    for name, n in zip(table.groups, tests.tolist(), strict=True):
        if n < FEW_TESTS:
            notes.append(
                f"group {name!r} is tested on {n} rows a trial: its figures, and the worst-off group's, are rough"
            )
    return notes


def _affordable(budget: int, batch: int, drawable: Ints) -> tuple[int, int, list[str]]:
    """Labels and batch of a trial, and notes for a table that is too small for the budget."""
    m, rows = len(drawable), int(drawable.sum())
    most = int(SHARE * rows)
    least = FEWEST * m
    if budget < least:
        raise InputError(
            f"a budget of {budget} is less than {FEWEST} labels for each of {m} groups: nothing can be told"
        )
    if most < least:
        raise InputError(
            f"the table has {rows:,} labelled rows beside the test rows, too few for a pilot of {m} groups (at least {2 * least})"
        )
    notes = []
    simulated = min(budget, most)
    if simulated < budget:
        # as many rounds as there would be: a rule that chooses seldom is another rule
        smaller = max(1, round(batch * simulated / budget))
        rounds = "" if smaller == batch else f", {smaller} of each role a round instead of {batch}"
        notes.append(
            f"{budget:,} labels cannot be tried on {rows:,} rows beside the test rows: {simulated:,} were, half of them{rounds}. "
            "A rule's lead may be larger or smaller at the budget you mean"
        )
        batch = smaller
    low = [z for z in range(m) if drawable[z] < simulated / m]
    if low:
        notes.append(
            f"{len(low)} of {m} groups have fewer rows than Uniform's equal share of {simulated // m}: they are used up, "
            "as they would not be where labels are bought"
        )
    return simulated, batch, notes


def _unseen(table: Table, result: Result) -> list[str]:
    """What the interval does not cover."""
    smallest = int(table.counts.min())
    risks = _worst_risks(result)
    error = float(np.clip(risks.to_numpy().mean(), 0, 1)) if len(risks) else 0.5
    # 0.01 stands for an error rate of a hundredth: at 0 the formula would claim that nothing is left to chance
    half = 100 * 1.96 * np.sqrt(max(error * (1 - error), 0.01) / smallest)
    return [
        f"the interval is about drawing labels and test rows again from these {int(table.counts.sum()):,} rows. It cannot see "
        f"that other rows differ: with {smallest:,} rows of the smallest group an error rate is known to about ±{half:.0f} points"
    ]
