"""A table whose labels are still to be made: the rows worth labelling next, and the same report at every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from evenhand.campaign import Campaign
from evenhand.campaign.features import schema_of
from evenhand.curation.comparison import no_comparison
from evenhand.curation.figures import Predictions, positive_place
from evenhand.curation.files import check_output, free_names, write_beside, write_rows
from evenhand.curation.model import chances_of, save_model, unstored
from evenhand.curation.reported import Reported
from evenhand.curation.rounds import Rounds
from evenhand.curation.summary import Facts, summarise
from evenhand.errors import InputError, NothingToAsk
from evenhand.notation import JsonObject
from evenhand.risks import Risk
from evenhand.tables.problems import missing_column
from evenhand.tables.schema import Schema
from evenhand.tables.writing import write_table

__all__ = ["Labelling", "todo_path"]

_ROLES = {"train": "train", "validate": "validation", "certify": "validation", "test": "test"}


def todo_path(out: Path) -> Path:
    """The list of rows to label next, beside the output and named after it: two runs in a folder have two lists.

    >>> todo_path(Path("train.parquet")).name
    'train.todo.csv'
    """
    return out.with_suffix(".todo.csv")


@dataclass
class Labelling(Reported):
    """A pool that is being labelled: `todo` has the rows to label next, `tell` takes their labels.

    Results so far are available at every step: `rows`, `test_rows`, `model`, `by_group`, `report()`, `save(path)`.

    Attributes:
        campaign: the campaign behind it, with all its methods.
        settings: what was asked for, as plain values.
        per_round: how many rows `todo` has.
        min_test: groups with fewer test rows are shown apart.
        positive: the class whose misses are false negatives; None takes the second of two.
        inputs: the files that were read, which no output may replace.
        notes: what is worth knowing about the table.
        list_name: the name of the file that `todo` is written to; None if there is none.
        show: the columns that `todo` shows beside label and id; None for all.
    """

    campaign: Campaign
    settings: dict[str, Any]
    per_round: int
    min_test: int
    positive: Any
    inputs: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    list_name: str | None = None
    _columns: tuple[str, str] = ("row", "label")
    show: tuple[str, ...] | None = None

    interrupted = False

    # ---------------------------------------------------------------- the loop

    @property
    def todo(self) -> pd.DataFrame:
        """The rows to label next: an empty column for the label, the id, and the columns to show; empty once all is done."""
        names, rows = self._to_label()
        return pd.DataFrame(rows, columns=names)[self._listed(names)]

    def _to_label(self) -> tuple[list[str], list[list[Any]]]:
        return self.campaign.to_label(self.campaign.open_requests)

    def check_shown(self) -> None:
        """Refuse columns to show that the table does not have."""
        self._listed(self._to_label()[0])

    def _listed(self, names: Sequence[str]) -> list[str]:
        """The columns of the list for people, that of the answer first."""
        id, label = self._columns
        absent = [name for name in self.show or () if name not in names]
        if absent:
            raise InputError(missing_column(absent[0], names, "to show"))
        return [label, id, *(name for name in self.show or names if name not in (label, id))]

    def ask(self) -> None:
        """Fill `todo` up; rows that still wait for a label stay in it."""
        size = 2 * self.settings["batch"]
        try:
            while (more := self._lacking(size)) > 0:  # requests may be smaller than a whole one, so count again
                if not self.campaign.ask_many(more):
                    return
        except NothingToAsk:
            pass

    def _lacking(self, size: int) -> int:
        """How many requests of this size still fit into `todo`; at least one if it is empty."""
        waiting = sum(request.outstanding for request in self.campaign.open_requests)
        return max((self.per_round - waiting) // size, 0 if waiting else 1)

    def tell(self, labels: Any) -> int:
        """Take in labels and fill `todo` up again; returns how many were new.

        Args:
            labels: a file or frame with the columns of `todo`, of which only id and label are read, or a mapping from
                ids to labels. Rows without a label keep waiting.
        """
        given, written = self._read(labels)
        receipt = self.campaign.tell_labels(given, written=written)
        self._forget()
        self.ask()
        return receipt.rows

    def _read(self, labels: Any) -> tuple[JsonObject, bool]:
        if isinstance(labels, Mapping):
            return {str(name): label for name, label in labels.items()}, False
        names, values, table = self.campaign.labels_in(labels)
        table.refuse_skipped()
        given = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        if not given:
            raise InputError("no row has a label yet")
        return given, True

    @property
    def done(self) -> bool:
        """Whether every label that the budget buys has been told."""
        return not self.campaign.open_requests and self.campaign.done

    # ---------------------------------------------------------------- what is known so far

    def _forget(self) -> None:
        for name in ("model", "summary", "_predictions", "_labelled"):
            self.__dict__.pop(name, None)

    @cached_property
    def model(self) -> Any:
        """The model fitted on every label but those for testing; it takes rows as they are. None without labels."""
        # test labels come first, and a campaign without any other has nothing to fit on
        return self.campaign.final_model(plain=self.settings["final"] == "plain") if self.begun else None

    @property
    def begun(self) -> bool:
        """Whether there is a label to train on."""
        state = self.campaign.store.refresh()
        return sum(state.train) + sum(state.validate) > 0

    @cached_property
    def _labelled(self) -> pd.DataFrame:
        """All labelled rows: every column, then id, label, round, role and group."""
        ids, frame, facts = self.campaign.labelled()
        roles, groups, requests, labels = zip(*facts, strict=True)
        id, label = self._columns
        ours = {"round": requests, "role": [_ROLES[role] for role in roles], "group": groups}
        # a table may have columns called round, role or group: they stay, and the added ones get other names
        known = pd.DataFrame({label: labels} | free_names(ours, [*frame, id, label]))
        found: pd.DataFrame = pd.concat([pd.DataFrame({id: ids}), frame, known], axis="columns")
        return found

    @property
    def rows(self) -> pd.DataFrame:
        """The rows to train on and those that validated, with id, label, request (`round`), role and group."""
        return self._with_role(test=False)

    @property
    def test_rows(self) -> pd.DataFrame:
        """The rows labelled for testing, with the label predicted."""
        found = self._with_role(test=True)
        some = len(found) and self.begun
        predicted = self.model.predict(self._features(found)) if some else np.full(len(found), None)
        return found.assign(**free_names({"predicted": np.asarray(predicted)}, found.columns.tolist()))

    def _features(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The columns that models see."""
        return pd.DataFrame(rows[list(self._schema.features)])

    @property
    def _schema(self) -> Schema:
        """What the columns hold that models see, so that a stored model reads later rows in the same way."""
        return schema_of(self.campaign.store.state.columns or {})

    def _with_role(self, *, test: bool) -> pd.DataFrame:
        found = self._labelled
        role = found["evenhand_role" if "evenhand_role" in found else "role"]
        return pd.DataFrame(found[(role == "test") == test]).reset_index(drop=True)

    @cached_property
    def _predictions(self) -> Predictions:
        groups, classes = self.campaign.groups, np.unique(self._labelled[self._columns[1]].to_numpy())
        risk: Risk = self.campaign.store.parts.risk
        measure = risk.for_classes(classes)
        trained, test = self.rows, self.test_rows if self.begun else self.test_rows.head(0)
        seen = measure.codes(trained[self._columns[1]].to_numpy())
        majority = int(np.argmax(np.bincount(seen, minlength=len(classes))))
        place = {group: z for z, group in enumerate(groups)}
        name = "evenhand_group" if "evenhand_group" in test else "group"
        positive = positive_place(self.positive, risk, classes.tolist())
        y = test[self._columns[1]].to_numpy()
        codes = measure.codes(y) if len(test) else np.empty(0, dtype=np.int64)
        group = np.array([place[g] for g in test[name]], dtype=np.int64)
        if not len(test):
            outcomes = measure.of_codes(codes, codes, np.empty(0))
            return Predictions(groups, group, codes, codes, None, measure, outcomes, majority, positive)
        X = self._features(test)
        predicted, outcomes = measure.codes(self.model.predict(X)), measure.of_model(self.model, X, y)
        chances = chances_of(self.model, X, classes)
        return Predictions(groups, group, codes, predicted, chances, measure, outcomes, majority, positive)

    @cached_property
    def summary(self) -> JsonObject:
        """Everything the report shows, as plain values."""
        status = self.campaign.status()
        groups = [status["groups"][group] for group in self.campaign.groups]
        counts = {
            "train": np.array([g["training"] for g in groups]),
            "validation": np.array([g["validation"] + g["certify"] for g in groups]),
            "pool": np.array([g["left"] + g["training"] + g["validation"] + g["test"] + g["pending"] for g in groups]),
        }
        waiting = len(self._to_label()[1])
        facts = Facts(
            settings=self.settings,
            group_columns=self.settings["groups"],
            features=list(self._schema.features),
            notes=[*self.notes, *(unstored(self.model) if self.begun else ())],
            interrupted=False,
            labels=self.campaign.labels_used,
            counts=counts,
            used_up={},
            min_test=self.min_test,
            rounds=self._rounds(),
            choice=getattr(self.model, "choice", None),
            progress={
                "budget": self.campaign.budget,
                "to_label": waiting,
                "done": self.done,
                "list": self.list_name,
            },
        )
        return summarise(facts, self._predictions, no_comparison())

    def _rounds(self) -> Rounds:
        """The requests so far: the group and the reason, and the training rows as they were asked for."""
        found, groups = Rounds(), list(self.campaign.groups)
        counts, labels = [0] * len(groups), 0
        for event in self.campaign.events():
            if event["kind"] != "asked":
                continue
            facts = event["facts"]
            decision = facts["decision"]
            z = groups.index(decision["group"])
            # as asked for, not as delivered: labels that are late still show why the rule went where it did
            counts[z] += facts["roles"].count("t")
            labels += facts["size"]
            found.group.append(z)
            found.kind.append(decision["kind"])
            found.labels.append(labels)
            terms = {name: values.get(groups[z]) for name, values in decision.get("terms", {}).items()}
            found.terms.append({name: float(value) for name, value in terms.items() if value is not None})
            found.counts.append(list(counts))
            # the ledger has scores by refit, not by request, so these rounds have none to show
            found.validation_loss.append([None] * len(groups))
            found.accuracy.append(None)
        return found

    def save(self, path: str | PathLike[str]) -> list[Path]:
        """Write the rows so far and what goes with them, as `Curated.save` does; returns the files."""
        target = Path(path)
        check_output(target, self.inputs)
        rows, texts = _arrow(self.rows), self.texts()
        test = _arrow(self.test_rows) if self.summary["test"] else None
        stored = self.begun and not unstored(self.model)
        save = (lambda path: save_model(path, self.model, self._schema)) if stored else None
        target.parent.mkdir(parents=True, exist_ok=True)
        write_rows(target, rows)
        return [target, *write_beside(target, test, save, texts)]

    def write_todo(self, path: str | PathLike[str]) -> int:
        """Write the rows to label as CSV, or as Parquet if the path ends so, the empty column of labels first.

        A file with labels that were not told yet is not replaced. Returns the number of rows.
        """
        target, (names, rows) = Path(path), self._to_label()
        if target.exists():
            self._check_todo(target)
        values = {name: [row[j] for row in rows] for j, name in enumerate(names)}
        # a column without values is text, in which people write
        types = {name: None if any(v is not None for v in values[name]) else pa.string() for name in names}
        write_table(target, pa.table({name: pa.array(values[name], types[name]) for name in self._listed(names)}))
        return len(rows)

    def _check_todo(self, path: Path) -> None:
        try:
            names, values, _ = self.campaign.labels_in(path)
        except InputError:
            raise InputError(f"{path} is there already and is not a list of rows to label: move it away") from None
        filled = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        # until its labels are told, the file may hold somebody's afternoon of work
        known = set(self._labelled[self._columns[0]]) if self.campaign.labels_used else set()
        if new := [name for name in filled if name not in known]:
            raise InputError(
                f"{path} has {len(new)} labels that were not given yet: give them with labels={str(path)!r} (--labels {path})"
            )


def _arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)
