"""Tables that are to become a pool: ids and groups of all rows, the schema, and every problem with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evenhand.campaign.features import check_width, schema_of
from evenhand.campaign.labels import check_text, read_id
from evenhand.campaign.pool_files import file_facts
from evenhand.campaign.state import MADE, State
from evenhand.errors import InputError
from evenhand.notation import JsonMapping, JsonObject

if TYPE_CHECKING:
    import pyarrow as pa

    from evenhand.tables.frame import Frame
    from evenhand.tables.groups import GroupRule
    from evenhand.tables.schema import Columns, Schema

__all__ = ["PoolTable", "read_pool", "stored_rows"]


@dataclass(frozen=True)
class PoolTable:
    """A table about to be registered.

    Attributes:
        frame: where the rows are.
        ids: the id of every row.
        groups, codes: the groups there are, and every row's place among them; −1 for a row that is left out.
        labels: the labels that are there already, by row number.
        schema: what the columns are.
        file: path, size, time and digest of a Parquet file, which stays where it is; None for what is copied.
        written: whether the labels are text as it is written in a file.
        complete: whether rows with missing values are refused, because the learner takes numbers alone.
    """

    frame: Frame
    ids: pa.Array
    groups: tuple[str, ...]
    codes: np.ndarray
    labels: dict[int, object]
    schema: Schema
    file: JsonObject | None
    written: bool
    complete: bool

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def columns(self) -> JsonObject:
        """What the rows look like, as the ledger keeps it."""
        return {"kind": "table", "complete": self.complete, **self.schema.to_json()}

    @property
    def said(self) -> tuple[str, str]:
        """What was read, and what its columns hold, in words."""
        new = [f"`{name}`" for name in self.frame.schema.names if name not in self.schema]
        more = f"; not in the first table, and left out: {', '.join(new[:12])}" if new else ""
        return f"read {self.frame}", self.schema.summary() + more

    @property
    def has_lookalikes(self) -> bool:
        """Whether an id looks like those that campaigns make."""
        import pyarrow.compute as pc

        return bool(pc.any(pc.match_substring_regex(self.ids, f"^({MADE.pattern})$")).as_py())

    @property
    def _there(self) -> list[str]:
        """The columns to store; those that are only kept may be absent from a later table."""
        available = set(self.frame.schema.names)
        return [name for name in self.schema.stored if name in available]

    def batches(self) -> Iterator[tuple[int, list[str], Sequence[str | None]]]:
        """The rows, some at a time: the number of the first, their ids, and their stored form.

        None stands for each row of a file that stays where it is.
        """
        start = 0
        for batch in self.frame.batches(self._there):
            names = self.ids.slice(start, batch.num_rows).to_pylist()
            if self.file is not None:
                yield start, names, [None] * batch.num_rows
            else:
                yield start, names, stored_rows(batch, self.schema, self.frame.name, start, complete=self.complete)
            start += batch.num_rows

    def stored_at(self, rows: Sequence[int]) -> list[str]:
        """The stored form of some rows, ascending."""
        table = self.frame.take(np.asarray(rows, dtype=np.int64), self._there)
        return stored_rows(table, self.schema, self.frame.name, complete=self.complete)

    def like(self, state: State) -> PoolTable:
        """The table with the schema of earlier rows; refuses unknown groups and columns."""
        from evenhand.tables.problems import rows_text

        unknown = {z for z, group in enumerate(self.groups) if state.groups and group not in state.groups}
        if unknown:
            rows = np.flatnonzero(np.isin(self.codes, list(unknown)))
            raise InputError(
                f"unknown group {self.groups[min(unknown)]!r} ({rows_text(rows.tolist())}): the groups are "
                f"{', '.join(map(repr, state.groups))}"
            )
        for group in self.groups:
            check_text(group, "the group")
        if state.columns is None or not state.has_rows:
            return self
        if state.columns["kind"] != "table":
            raise InputError("earlier rows were arrays, a pool is a table: deliver one kind")
        earlier = schema_of(state.columns)
        earlier.check_names(self.frame.schema.names, self.frame.name)
        return replace(self, schema=earlier)


def read_pool(
    frame: Frame,
    columns: Columns,
    rule: GroupRule,
    *,
    label: str,
    earlier: JsonMapping | None = None,
    is_first: bool = True,
    path: Path | None = None,
) -> PoolTable:
    """What a pool needs to know of a table; every problem is named with its rows.

    Args:
        frame: the table.
        columns: what is said of its columns; without an `id` the number of a row, from 0 up, is its id.
        rule: how groups are told.
        label: the column of labels, which the table need not have.
        earlier: the columns of rows that came before, or that were named when the campaign was made.
        is_first: whether no rows came before.
        path: where a Parquet file is that stays on disk.
    """
    from evenhand.tables.arrow import is_text
    from evenhand.tables.groups import find_groups
    from evenhand.tables.schema import check_names, infer

    frame.refuse_skipped()
    check_width(frame)
    there = label in frame.schema.names
    columns = replace(columns, label=label if there else None)
    check_names(frame, columns)
    found, _ = find_groups(frame, rule)
    # a second table of the same pool is read with the schema of the first
    if is_first:
        schema = infer(frame, columns) if earlier is None else _as_made(frame, columns, schema_of(earlier))
    elif earlier is not None and earlier["kind"] == "table":
        schema = schema_of(earlier)
        if columns.features is not None and set(columns.features) != set(schema.features):
            raise InputError(f"the features were {list(schema.features)} in earlier rows: give the same with features=")
    else:
        raise InputError("earlier rows were arrays, a pool is a table: deliver one kind")
    ids = _row_numbers(frame) if columns.id is None else _ids(frame, columns.id)
    labels = (
        {row: value for row, value in _labels(frame, label, rule).items() if found.codes[row] >= 0} if there else {}
    )
    file = None if path is None else file_facts(path)
    written = there and is_text(frame.schema.field(label).type)
    return PoolTable(frame, ids, found.names, found.codes, labels, schema, file, written, columns.needs_numbers)


def _as_made(frame: Frame, columns: Columns, made: Schema) -> Schema:
    """The schema with the features that were named when the campaign was made, and all other columns as they are."""
    from evenhand.tables.schema import infer

    made.check_names(frame.schema.names, frame.name)
    found = infer(frame, replace(columns, features=made.features, delivered=True, needs_numbers=False))
    return replace(found, columns=tuple(made[c.name] if c.name in made.features else c for c in found.columns))


# -------------------------------------------------------------------- ids, labels


def _row_numbers(frame: Frame) -> pa.Array:
    """Numbers of the rows, from 0 up, as ids."""
    import pyarrow as pa

    return pa.array(np.arange(len(frame))).cast(pa.string())


def _ids(frame: Frame, id: str) -> pa.Array:
    """The ids as text, as they are written, each one once."""
    from evenhand.tables.ids import find_ids, odd_ids

    found = find_ids(frame, id)
    for row in odd_ids(found).tolist():
        try:
            read_id(found[row].as_py())
        except InputError as error:
            raise InputError(f"{frame.name}, row {row + 1}: {error}") from None
    return found


def _labels(frame: Frame, label: str, rule: GroupRule) -> dict[int, object]:
    """The labels there are, by row number; only an empty cell is none."""
    from evenhand.tables.arrow import is_text
    from evenhand.tables.labels import find_labels

    found = find_labels(frame, label, missing=rule.missing, merge_spellings=rule.merge_spellings)
    # text as it is written means what the campaign's classes are; what is typed already is of that type
    written = is_text(frame.schema.field(label).type)
    values = [str(value) for value in found.classes] if written else list(found.classes)
    return {row: values[code] for row, code in enumerate(found.codes.tolist()) if code >= 0}


# -------------------------------------------------------------------- rows


def stored_rows(table: pa.Table, schema: Schema, name: str, start: int = 0, *, complete: bool = False) -> list[str]:
    """The stored form of rows; one that cannot be stored is refused, by its row number.

    `complete` refuses rows with missing values, too.
    """
    from evenhand.tables.problems import refuse_rows
    from evenhand.tables.stored import to_text

    rows = schema.read(table, start, schema.stored)
    problems = dict(rows.problems)
    for column in schema.features if complete else ():
        if rows.table.column(column).null_count:
            gaps = np.flatnonzero(rows.table.column(column).is_null().to_numpy())
            why = f"{column} is missing, which the learner cannot use: remove or impute it"
            problems = {**dict.fromkeys((gaps + start).tolist(), why), **problems}
    refuse_rows(name, problems)
    return to_text(rows.table)
