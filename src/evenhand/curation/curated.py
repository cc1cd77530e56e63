"""A curated set: the chosen rows, the model fitted on them, the test rows and a report on all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.arrays import Ints
from evenhand.curation.checkpoint import Checkpoint, checkpoint_path
from evenhand.curation.comparison import compared
from evenhand.curation.figures import Predictions
from evenhand.curation.files import check_output, like_given, with_columns, write_beside, write_rows
from evenhand.curation.model import CuratedModel, unstored
from evenhand.curation.reported import Reported
from evenhand.curation.rounds import Curation, hold_interrupt
from evenhand.curation.summary import Facts, summarise
from evenhand.notation import JsonObject
from evenhand.risks import Risk
from evenhand.simulation.result import Result

__all__ = ["Curated"]


@dataclass
class Curated(Reported):
    """The chosen rows, how they were chosen, the model fitted on them, and how well it serves every group.

    Attributes:
        model: fitted on every chosen row, with its encoder: `curated.model.predict(frame)`.
        result: the run and, on the same trials, Uniform and Uncurated, as `simulate` returns it.
        interrupted: whether Ctrl-C came before the budget was spent, or before the comparison was done.
        notes: what is worth knowing about the settings.
    """

    model: CuratedModel
    result: Result
    interrupted: bool
    notes: tuple[str, ...]
    _data: Any
    _run: Curation
    _settings: JsonObject
    _risk: Risk
    _positive: int | None
    _min_test: int

    @property
    def rows(self) -> Any:
        """The chosen rows with all their columns, and row number, round, role and group, in the type of frame given."""
        return like_given(self._data, self._run.rows, self._extra(), self._arrow)

    @property
    def test_rows(self) -> Any:
        """The test rows with all their columns, and row number, role, group and the label predicted."""
        given = self._data if self._run.table.holds_out else None
        return like_given(given, self._run.test_part().numbers, self._test_extra(), self._test_arrow)

    def _extra(self) -> JsonObject:
        run = self._run
        roles = np.where(run.validates, "validation", "train")
        return {"row": run.rows, "round": run.round_of_row, "role": roles, "group": self._names(run.group_of_row)}

    def _test_extra(self) -> JsonObject:
        tested, numbers = self._tested, self._run.test_part().numbers
        labels = [*self._run.table.classes.tolist(), None]  # −1, a label that is not a class, takes the last entry
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
        return self._run.tested(self.model, self._risk, self._positive)

    @cached_property
    def summary(self) -> JsonObject:
        """Everything the report shows, as plain values."""
        run, table = self._run, self._run.table
        trained, validated = (
            np.bincount(run.group_of_row[part], minlength=len(table.groups)) for part in (~run.validates, run.validates)
        )
        facts = Facts(
            settings=self._settings,
            group_columns=table.group_columns,
            features=self.model.columns,
            notes=[*table.was_read, *table.notes, *self.notes, *unstored(self.model)],
            interrupted=self.interrupted,
            labels=run.labels,
            counts={"train": trained, "validation": validated, "pool": table.counts},
            used_up=run.used_up,
            min_test=self._min_test,
            rounds=run.rounds,
            choice=self.model.choice,
        )
        return summarise(facts, self._tested, self._compared)

    def _compared(self, groups: Sequence[str]) -> JsonObject:
        """The comparison of the rules, by the model one would deploy."""
        return compared(self.result.deployed, self.result.labels, groups)

    def save(self, path: str | PathLike[str]) -> list[Path]:
        """Write the rows (`.parquet` or `.csv`) and what goes with them; returns the files.

        For `train.parquet` these are also `train.test.parquet`, `train.model.zip`, `train.report.html`,
        `train.report.json` and `train.checkpoint.json`. A model that cannot be stored safely is left out.
        """
        target = Path(path)
        check_output(target, self._run.table.inputs)
        # Ctrl-C between two files would leave rows and report of different runs
        with hold_interrupt() as stopped:
            # all that can fail is computed first, so that a failure leaves the files of an earlier run untouched
            rows, texts = self._arrow(), self.texts()
            test = self._test_arrow() if self.summary["test"] else None
            target.parent.mkdir(parents=True, exist_ok=True)
            write_rows(target, rows)
            Checkpoint.of(self._run, self._settings).write(checkpoint_path(target))
            save_model = None if unstored(self.model) else self.model.save
            written = [target, *write_beside(target, test, save_model, texts)]
        if stopped():
            raise KeyboardInterrupt
        return written
