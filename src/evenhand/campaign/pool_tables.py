"""Tables that are to become a pool: ids and groups of all rows, the schema, and every problem with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evenhand.campaign.features import schema_of
from evenhand.campaign.labels import check_text, read_id
from evenhand.campaign.pool_files import file_facts
from evenhand.campaign.state import State
from evenhand.errors import InputError
from evenhand.notation import JsonMapping, JsonObject

if TYPE_CHECKING:
    import pyarrow as pa

    from evenhand.tables.frame import Frame
    from evenhand.tables.groups import GroupRule
    from evenhand.tables.schema import Columns, Schema

__all__ = ["PoolTable", "read_pool", "stored_rows"]

# only ids that are longer or not printable go through the full check, which spares nearly all of them
_LONGEST_PLAIN = 200


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
    """

    frame: Frame
    ids: pa.Array
    groups: tuple[str, ...]
    codes: np.ndarray
    labels: dict[int, object]
    schema: Schema
    file: JsonObject | None
    written: bool

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def columns(self) -> JsonObject:
        """What the rows look like, as the ledger keeps it."""
        return {"kind": "table", **self.schema.to_json()}

    def batches(self) -> Iterator[tuple[int, list[str], Sequence[str | None]]]:
        """The rows, some at a time: the number of the first, their ids, and their stored form.

        None stands for each row of a file that stays where it is.
        """
        start = 0
        for batch in self.frame.batches(list(self.schema.stored)):
            names = self.ids.slice(start, batch.num_rows).to_pylist()
            if self.file is not None:
                yield start, names, [None] * batch.num_rows
            else:
                yield start, names, stored_rows(batch, self.schema, start, self.frame.name)
            start += batch.num_rows

    def stored_at(self, rows: Sequence[int]) -> list[str]:
        """The stored form of some rows, ascending."""
        table = self.frame.take(np.asarray(rows, dtype=np.int64), list(self.schema.stored))
        return stored_rows(table, self.schema, 0, self.frame.name)

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
        if state.columns is None:
            return self
        if state.columns["kind"] != "table":
            raise InputError("earlier rows were arrays, a pool is a table: deliver one kind")
        earlier = schema_of(state.columns)
        gone = [name for name in earlier.features if name not in self.frame.schema.names]
        if gone:
            raise InputError(f"{self.frame.name}: the column {gone[0]!r} of earlier rows is gone")
        return replace(self, schema=earlier)


def read_pool(
    frame: Frame,
    columns: Columns,
    rule: GroupRule,
    *,
    label: str,
    earlier: JsonMapping | None = None,
    path: Path | None = None,
) -> PoolTable:
    """What a pool needs to know of a table; every problem is named with its rows.

    Args:
        frame: the table.
        columns: what is said of its columns; without an `id` the number of a row, from 0 up, is its id.
        rule: how groups are told.
        label: the column of labels, which the table need not have.
        earlier: the columns of rows registered before.
        path: where a Parquet file is that stays on disk.
    """
    from evenhand.tables.arrow import is_text
    from evenhand.tables.groups import find_groups
    from evenhand.tables.schema import infer

    frame.refuse_skipped()
    there = label in frame.schema.names
    found, _ = find_groups(frame, rule)
    # a second table of the same pool is read with the schema of the first
    known = earlier is not None and earlier["kind"] == "table"
    schema = (
        schema_of(earlier)
        if known and earlier is not None
        else infer(frame, replace(columns, label=label if there else None))
    )
    ids = _row_numbers(frame) if columns.id is None else _ids(frame, columns.id)
    labels = (
        {row: value for row, value in _labels(frame, label, rule).items() if found.codes[row] >= 0} if there else {}
    )
    file = None if path is None else file_facts(path)
    written = there and is_text(frame.schema.field(label).type)
    return PoolTable(frame, ids, found.names, found.codes, labels, schema, file, written)


# -------------------------------------------------------------------- ids, labels


def _row_numbers(frame: Frame) -> pa.Array:
    """Numbers of the rows, from 0 up, as ids."""
    import pyarrow as pa

    return pa.array(np.arange(len(frame))).cast(pa.string())


def _ids(frame: Frame, id: str) -> pa.Array:
    """The ids as text, as they are written, each one once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from evenhand.tables.kinds import read_as
    from evenhand.tables.problems import missing_column, rows_text

    if id not in frame.schema.names:
        raise InputError(f"{frame.name}: {missing_column(id, frame.schema.names, 'the id')}")
    kind = frame.schema.field(id).type
    if pa.types.is_boolean(kind) or pa.types.is_timestamp(kind) or pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise InputError(f"column {id!r} holds {kind}: ids are text or whole numbers")
    found = pa.concat_arrays([read_as(chunk, "category") for chunk in frame.column(id)])
    if found.null_count:
        rows = np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False)).tolist()
        raise InputError(f"the id {id!r} is missing in {rows_text(rows)}")
    if pa.types.is_floating(kind) and pc.any(pc.match_substring(found, ".")).as_py():
        row = pc.index(pc.match_substring(found, "."), True).as_py()
        raise InputError(f"row {row + 1}: {found[row].as_py()!r} is no id: ids are text or whole numbers")
    for row, name in enumerate(found.to_pylist()):
        if not name.isprintable() or name != name.strip() or not 0 < len(name) <= _LONGEST_PLAIN:
            try:
                read_id(name)
            except InputError as error:
                raise InputError(f"row {row + 1}: {error}") from None
    # counted by Arrow first, because a dict of ten million ids takes gigabytes
    if pc.count_distinct(found).as_py() < len(found):
        seen: dict[str, int] = {}
        names = found.to_pylist()
        twice = [row for row, name in enumerate(names) if seen.setdefault(name, row) != row]
        raise InputError(
            f"an id may be there only once, but one comes again in {rows_text(twice)}: the first is {names[twice[0]]!r}"
        )
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


def stored_rows(table: pa.Table, schema: Schema, start: int = 0, name: str = "the table") -> list[str]:
    """The stored form of rows; one that cannot be stored is refused, by its row number."""
    from evenhand.tables.stored import to_text

    return to_text(schema.read(table, start, schema.stored).refuse(name))
