"""The rows of a pool that serve the worst-off group best, the model they give, and a report on both."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from evenhand.arrays import Ints
from evenhand.curation.checkpoint import Checkpoint, checkpoint_path
from evenhand.curation.figures import Predictions
from evenhand.curation.files import check_output, like_given, with_columns, write_rows, write_text
from evenhand.curation.model import CuratedModel
from evenhand.curation.noting import notes_on
from evenhand.curation.page import render
from evenhand.curation.rounds import Curation, hold_interrupt
from evenhand.curation.summary import Facts, frame_of, summarise
from evenhand.engine.run import Settings
from evenhand.engine.settings import check_settings, forced_warning
from evenhand.errors import InputError
from evenhand.learners import Logistic, as_learner
from evenhand.notation import lasting_text
from evenhand.risks import ERROR, Risk
from evenhand.simulation.result import Result
from evenhand.simulation.simulate import label_of, simulate
from evenhand.sources.table.table import Table
from evenhand.strategies import Optimistic, Uncurated, Uniform, parse_strategy, strategy_text

__all__ = ["Curated", "curate"]

MIN_TEST = 30


@dataclass
class Curated:
    """The rows chosen, how they were chosen, the model they give, and how well it serves every group.

    Attributes:
        model: fitted on every chosen row, with its encoder: `curated.model.predict(frame)`.
        result: the run beside Uniform and Uncurated on the same trials, as `simulate` gives it.
        interrupted: whether Ctrl-C came before the budget was spent, or before the comparison was done.
        notes: what is worth knowing about the settings.
    """

    model: CuratedModel
    result: Result
    interrupted: bool
    notes: tuple[str, ...]
    _data: Any
    _run: Curation
    _settings: dict[str, Any]
    _risk: Risk
    _positive: Any
    _min_test: int

    @property
    def rows(self) -> Any:
        """The chosen rows with all their columns, and row number, round, role and group; the frame type given."""
        return like_given(self._data, self._run.rows, self._extra(), self._arrow)

    @property
    def test_rows(self) -> Any:
        """The test rows with all their columns, and row number, role, group and the label predicted."""
        given = self._data if self._run.table.holds_out else None
        return like_given(given, self._run.test_part().numbers, self._test_extra(), self._test_arrow)

    def _extra(self) -> dict[str, Any]:
        run = self._run
        roles = np.where(run.validates, "validation", "train")
        return {"row": run.rows, "round": run.round_of_row, "role": roles, "group": self._names(run.group_of_row)}

    def _test_extra(self) -> dict[str, Any]:
        tested, numbers = self._tested, self._run.test_part().numbers
        labels = [*self._run.table.classes.tolist(), None]  # −1, a label that is no class, takes the last entry
        predicted = [labels[k] for k in tested.predicted.tolist()]
        roles = np.full(len(numbers), "test")
        return {"row": numbers, "role": roles, "group": self._names(tested.group), "predicted": predicted}

    def _names(self, groups: Ints) -> Any:
        return np.array(self._run.table.groups)[groups]

    def _arrow(self) -> pa.Table:
        return with_columns(self._run.table.take(self._run.rows), self._extra())

    def _test_arrow(self) -> pa.Table:
        return with_columns(self._run.table.take_test(self._run.test_part().numbers), self._test_extra())

    @cached_property
    def _tested(self) -> Predictions:
        return self._run.tested(self.model, self._risk, _positive(self._positive, self._risk, self._run.table))

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Everything the report shows, as plain values."""
        run, table = self._run, self._run.table
        trained, validated = (
            np.bincount(run.group_of_row[part], minlength=len(table.groups)) for part in (~run.validates, run.validates)
        )
        facts = Facts(
            settings=self._settings,
            group_columns=table.group_columns,
            features=table.feature_columns,
            notes=[*table.notes, *self.notes, *_unstored(self.model)],
            interrupted=self.interrupted,
            labels=run.labels,
            counts={"train": trained, "validation": validated, "pool": table.counts},
            used_up=run.used_up,
            min_test=self._min_test,
            rounds=run.rounds,
        )
        return summarise(facts, self._tested, self.result, "final_test_accuracy")

    @property
    def by_group(self) -> pd.DataFrame:
        """Figures of every group, as fairlearn's `MetricFrame.by_group`; index: the group's name.

        `accuracy` with `low` and `high`, which hold for all groups at once with 95 % confidence; `count`, the test rows
        behind it; how many rows train and validate; further measures.
        """
        return frame_of(self.summary["by_group"])

    @property
    def overall(self) -> pd.Series:
        """The same figures for all test rows together, as fairlearn's `MetricFrame.overall`."""
        return pd.Series(self.summary["overall"], dtype=float)

    def report(self) -> str:
        """The report as a self-contained HTML page."""
        return render(self.summary)

    def save(self, path: str | PathLike[str]) -> list[Path]:
        """Write the rows (`.parquet` or `.csv`) and what goes with them; gives back the files.

        For `train.parquet` these are also `train.test.parquet`, `train.model.zip`, `train.report.html`,
        `train.report.json` and `train.checkpoint.json`. A model that cannot be stored safely is left out.
        """
        target = Path(path)
        check_output(target, self._run.table.inputs)
        with hold_interrupt() as stopped:
            rows, page, values = self._arrow(), self.report(), json.dumps(self.summary, allow_nan=False)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_rows(target, rows)
            Checkpoint.of(self._run, self._settings).write(checkpoint_path(target))
            written = [target]
            if self.summary["test"]:
                written.append(target.with_suffix(f".test{target.suffix}"))
                write_rows(written[-1], self._test_arrow())
            if self.model.problem() is None:
                written.append(target.with_suffix(".model.zip"))
                self.model.save(written[-1])
            for ending, text in ((".report.html", page), (".report.json", values)):
                written.append(target.with_suffix(ending))
                write_text(written[-1], text)
        if stopped():
            raise KeyboardInterrupt
        return written


def curate(
    data: Any,
    label: str | None = None,
    groups: str | Sequence[str] | None = None,
    budget: int = 1000,
    *,
    strategy: Any = None,
    learner: Any = None,
    batch: int = 1,
    warmup: int | None = None,
    seed: int = 0,
    evaluate: int = 50,
    compare: int = 5,
    min_test: int = MIN_TEST,
    jobs: int = 1,
    progress: bool = False,
    resume: str | PathLike[str] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    **settings: Any,
) -> Curated:
    """Choose the rows of a pool that serve the worst-off group best.

    Args:
        data: a pandas, polars or Arrow table, the path of a CSV or Parquet pool, or a `Table`.
        label: the column to predict.
        groups: the columns that tell the group.
        budget: how many rows to choose, to train on and to validate together.
        strategy: which group next; `Optimistic()` by default.
        learner: what is trained; `Logistic()` by default.
        batch: rows of each role a round takes.
        warmup: warm-up rounds, groups in turn.
        seed: the same seed, the same rows.
        evaluate: at how many rounds test accuracy is taken.
        compare: on how many trials Uniform and Uncurated are run beside, this run being the first; 0 for none.
        min_test: groups with fewer test rows are shown apart, never as the headline.
        jobs: processes for the comparison.
        progress: whether to show a bar.
        resume: the path an earlier, interrupted run was saved to; its `.checkpoint.json` is read, nothing else. All
            settings must be the same, but the budget may be larger.
        checkpoint: the path it will be saved to, to keep a checkpoint there while it runs.
        settings: as for `Table`: `test`, `features`, `ignore`, `use_group_as_feature` and so on.

    >>> from evenhand.datasets import load
    >>> curated = curate(load("german"), budget=40, compare=0)
    >>> len(curated.rows), curated.by_group.index.tolist()
    (40, ['men', 'women'])
    """
    table = _as_table(data, label, groups, settings)
    for path in (resume, checkpoint):
        if path is not None:
            check_output(Path(path), table.inputs)
    if not compare and jobs != 1:
        raise InputError(f"jobs={jobs} has no effect without a comparison: it is for compare=5 and the like.")
    strategy = Optimistic() if strategy is None else strategy
    rule = parse_strategy(strategy)[1] if isinstance(strategy, str) else strategy
    name = strategy_text(strategy) if isinstance(strategy, str) else label_of(strategy)
    fitted = as_learner(Logistic() if learner is None else learner)
    plan = Settings(budget, batch, warmup, table.validation, seed, evaluate)
    check_settings(table.groups, rule, budget=budget, batch=batch, warmup=warmup, validation=table.validation)
    chosen = {
        "pool": table.name,
        **table.description,
        "holds_out": table.holds_out,
        "strategy": name,
        "learner": lasting_text(fitted),
        "seed": seed,
        "batch": batch,
        "warmup": warmup,
        "budget": budget,
    }
    run = Curation(table, rule, fitted, plan)
    if resume is not None:
        earlier = Checkpoint.read(checkpoint_path(Path(resume)))
        earlier.check(chosen)
        run.replay(earlier.rounds, earlier.rows, earlier.digest)
    step = _bar("labels", budget, progress, run.labels)
    try:
        run.run(step, _keeper(run, chosen, checkpoint))
    finally:
        step(0)
    warning = forced_warning(rule, len(table.groups), budget * (1 - table.validation))
    result = _compare(run, name, rule, fitted, compare, jobs, progress)
    return Curated(
        model=run.model(),
        result=result,
        interrupted=run.interrupted or result.interrupted,
        notes=(*((warning,) if warning else ()), *notes_on(table)),
        _data=data,
        _run=run,
        _settings=chosen,
        _risk=ERROR,
        _positive=None,
        _min_test=min_test,
    )


def _keeper(run: Curation, settings: dict[str, Any], path: str | PathLike[str] | None) -> Callable[[], None]:
    """Writes a checkpoint of the run as it stands; does nothing without a path."""
    if path is None:
        return lambda: None
    target = checkpoint_path(Path(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    return lambda: Checkpoint.of(run, settings).write(target)


def _unstored(model: CuratedModel) -> list[str]:
    problem = model.problem()
    return [] if problem is None else [f"the model is not among the files: {problem}"]


def _positive(given: Any, risk: Risk, table: Table) -> int | None:
    """The place of the positive class: as given, that of the risk, or the second of two, as scikit-learn has it."""
    wanted = risk.positive if given is None else given
    labels = table.classes.tolist()
    if wanted is None:
        return 1 if len(labels) == 2 else None
    return int(np.flatnonzero(Risk("fnr", positive=wanted).for_classes(labels).relevant)[0])


def _as_table(data: Any, label: str | None, groups: str | Sequence[str] | None, settings: dict[str, Any]) -> Table:
    if isinstance(data, Table):
        if label is not None or groups is not None or settings:
            raise InputError("a Table knows its label, groups and settings already: give them to Table(...) alone.")
        return data
    if label is None or not groups:
        raise InputError("name the label and the groups: label='y', groups=['sex'] (--label, --group).")
    return Table(data, label=label, groups=groups, **settings)


def _compare(run: Curation, name: str, rule: Any, learner: Any, trials: int, jobs: int, progress: bool) -> Result:
    others = {str(other): other for other in (Uniform(), Uncurated()) if str(other) != name}
    plan = run.settings
    if trials and not run.interrupted:
        with warnings.catch_warnings():
            # The report says so already.
            warnings.filterwarnings("ignore", message="with .* forced exploration")
            return simulate(
                run.table,
                {name: rule, **others},
                learner,
                budget=plan.budget,
                trials=trials,
                seed=plan.seed,
                jobs=jobs,
                evaluate=20,
                batch=plan.batch,
                warmup=plan.warmup,
                validation=plan.validation,
                trace="none",
                progress=progress,
            )
    result = Result.empty(run.table, {name: name}, learner, plan, 1, 1, "full")
    result.take_in(name, run.record())
    result.interrupted = run.interrupted
    return result


def _bar(what: str, total: int, show: bool, done: int) -> Any:
    if not show:
        return lambda finished: None
    from evenhand.progress import bar

    step = bar(what, total)
    if done:
        step(done)
    return step
