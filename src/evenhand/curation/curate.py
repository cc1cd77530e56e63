"""The rows of a pool that serve the worst-off group best, and a report on them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from evenhand.curation.checkpoint import Checkpoint, checkpoint_path
from evenhand.curation.page import by_group_rows, render
from evenhand.curation.rounds import Curation, hold_interrupt
from evenhand.engine.run import Settings
from evenhand.engine.settings import check_settings, forced_warning
from evenhand.errors import InputError
from evenhand.files import write_atomically
from evenhand.learners import Logistic, as_learner
from evenhand.notation import lasting_text
from evenhand.simulation.result import Result
from evenhand.simulation.simulate import label_of, simulate
from evenhand.sources.table.table import Table
from evenhand.strategies import Optimistic, Uncurated, Uniform, parse_strategy, strategy_text

__all__ = ["Curated", "curate"]

EXTRA = ("row", "round", "role", "group")


@dataclass
class Curated:
    """The rows chosen, how they were chosen, and how well they serve every group.

    Attributes:
        result: the run beside Uniform and Uncurated on the same trials, as `simulate` gives it.
        interrupted: whether Ctrl-C came before the budget was spent, or before the comparison was done.
        notes: what is worth knowing about the settings.
    """

    result: Result
    interrupted: bool
    notes: tuple[str, ...]
    _data: Any
    _run: Curation
    _settings: dict[str, Any]

    @property
    def rows(self) -> Any:
        """The chosen rows with all their columns, and row number, round, role and group; the frame type given."""
        columns, rows = self._extra(), self._run.rows
        if isinstance(self._data, pd.DataFrame):
            return self._data.iloc[rows].assign(**columns)
        if isinstance(self._data, str | PathLike | Table):
            return self._arrow().to_pandas()
        frame = nw.from_native(self._data)
        eager = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        added = [nw.new_series(name, values, backend=eager.implementation) for name, values in columns.items()]
        return eager[rows.tolist()].with_columns(*added).to_native()

    def _extra(self) -> dict[str, Any]:
        run = self._run
        groups = np.array(run.table.groups)[run.group_of_row]
        values = (run.rows, run.round_of_row, np.where(run.validates, "validation", "train"), groups)
        taken = set(self._run.table.column_names)
        return {f"evenhand_{k}" if k in taken else k: v for k, v in zip(EXTRA, values, strict=True)}

    def _arrow(self) -> pa.Table:
        table = self._run.table.take(self._run.rows)
        for name, values in self._extra().items():
            table = table.append_column(name, pa.array(values))
        return table

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Everything the report shows, as plain values."""
        run, table = self._run, self._run.table
        accuracy, n = run.final_accuracy(), run.test_rows()
        trained, validated = (
            np.bincount(run.group_of_row[part], minlength=len(table.groups)) for part in (~run.validates, run.validates)
        )
        return {
            "schema": 1,
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {name: version(name) for name in ("evenhand", "numpy", "scipy", "scikit-learn", "pyarrow")},
            "settings": self._settings,
            "interrupted": self.interrupted,
            "labels": run.labels,
            "train": int((~run.validates).sum()),
            "validation": int(run.validates.sum()),
            "features": table.feature_columns,
            "notes": [*table.notes, *self.notes],
            "used_up": run.used_up,
            "group_columns": list(table.group_columns),
            "by_group": by_group_rows(table, trained, validated, accuracy, n, self.result),
            "comparison": self.result.summary(),
            "rounds": asdict(run.rounds),
            "groups": list(table.groups),
        }

    @property
    def by_group(self) -> pd.DataFrame:
        """Accuracy, its 95 % interval and counts, a row for each group, as fairlearn's `MetricFrame.by_group`."""
        table = self._run.table
        frame = pd.DataFrame(self.summary["by_group"]).drop(columns="group")
        frame.index = pd.MultiIndex.from_tuples(table.group_values, names=table.group_columns)
        if len(table.group_columns) == 1:
            frame.index = pd.Index([value for (value,) in table.group_values], name=table.group_columns[0])
        return frame

    def report(self) -> str:
        """The report as a self-contained HTML page."""
        return render(self.summary)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the rows (`.parquet` or `.csv`), and beside them `.report.html`, `.report.json` and `.checkpoint.json`."""
        target = Path(path)
        write = pq.write_table if _format(target) == ".parquet" else pacsv.write_csv
        with hold_interrupt() as stopped:
            rows, page, values = self._arrow(), self.report(), json.dumps(self.summary, allow_nan=False)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, lambda file: write(rows, file))
            Checkpoint.of(self._run, self._settings).write(checkpoint_path(target))
            _write_text(target.with_suffix(".report.html"), page)
            _write_text(target.with_suffix(".report.json"), values)
        if stopped():
            raise KeyboardInterrupt


def _write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))


def _format(path: Path) -> str:
    if path.suffix not in {".parquet", ".csv"}:
        raise InputError(f"rows are written as .parquet or .csv, not as {path.suffix or 'a file without ending'!r}.")
    return path.suffix


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
    jobs: int = 1,
    progress: bool = False,
    resume: str | PathLike[str] | None = None,
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
        compare: on how many trials Uniform and Uncurated are run beside; 0 for none.
        jobs: processes for the comparison.
        progress: whether to show a bar.
        resume: the path an earlier, interrupted run was saved to; its `.checkpoint.json` is read, nothing else.
        settings: as for `Table`: `test`, `features`, `ignore`, `use_group_as_feature` and so on.

    >>> from evenhand.datasets import load
    >>> curated = curate(load("german"), budget=40, compare=0)
    >>> len(curated.rows), curated.by_group.index.tolist()
    (40, ['men', 'women'])
    """
    table = _as_table(data, label, groups, settings)
    strategy = Optimistic() if strategy is None else strategy
    rule = parse_strategy(strategy)[1] if isinstance(strategy, str) else strategy
    name = strategy_text(strategy) if isinstance(strategy, str) else label_of(strategy)
    fitted = as_learner(Logistic() if learner is None else learner, getattr(rule, "loss", "zero_one"))
    plan = Settings(budget, batch, warmup, table.validation, seed, evaluate)
    check_settings(table.groups, rule, budget=budget, batch=batch, warmup=warmup, validation=table.validation)
    chosen = {
        "pool": table.name,
        "label": table.label,
        "group_columns": list(table.group_columns),
        "strategy": name,
        "learner": lasting_text(fitted),
        "seed": seed,
        "batch": batch,
        "warmup": warmup,
        "validation": table.validation,
        "budget": budget,
    }
    run = Curation(table, rule, fitted, plan)
    if resume is not None:
        checkpoint = Checkpoint.read(checkpoint_path(Path(resume)))
        checkpoint.check(chosen)
        run.replay(checkpoint.rounds, checkpoint.rows)
    step = _bar("labels", budget, progress, run.labels)
    try:
        run.run(step)
    finally:
        step(0)
    warning = forced_warning(rule, len(table.groups), budget * (1 - table.validation))
    result = _compare(run, name, rule, fitted, compare, jobs, progress)
    return Curated(result, run.interrupted or result.interrupted, (warning,) if warning else (), data, run, chosen)


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
