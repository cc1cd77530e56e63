"""Reads tables that are to become a pool: ids and groups of all rows, the columns, and every problem with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.campaign.features import LARGEST
from evenhand.campaign.labels import check_text, read_id
from evenhand.campaign.pool_files import file_facts
from evenhand.campaign.state import State
from evenhand.errors import InputError
from evenhand.ledger.text import as_text
from evenhand.notation import MISSING, JsonMapping, JsonObject

if TYPE_CHECKING:
    import pyarrow as pa

    from evenhand.tables.frame import InMemory
    from evenhand.tables.parquet import ParquetFiles

__all__ = ["BATCH", "PoolTable", "read_pool", "stored_rows"]

BATCH = 20_000
"""Rows registered at a time."""
_SHOWN = 5
# only ids that are longer or not printable go through the full check, which spares nearly all of them
_LONGEST_PLAIN = 200


@dataclass(frozen=True)
class PoolTable:
    """A table about to be registered.

    Attributes:
        data: where the rows are.
        ids: the id of every row.
        groups, codes: the groups there are, and every row's place among them; −1 for a row that is left out.
        labels: the labels that are there already, by row number.
        columns: what the rows look like, as the ledger keeps it.
        file: path, size, time and digest of a Parquet file, which stays where it is; None for what is copied.
        written: whether the labels were read from a file in which all is text.
    """

    data: InMemory | ParquetFiles
    ids: pa.Array
    groups: tuple[str, ...]
    codes: np.ndarray
    labels: dict[int, object]
    columns: JsonObject
    file: JsonObject | None
    written: bool

    def __len__(self) -> int:
        return len(self.ids)

    def names(self, start: int) -> list[str]:
        """The ids of a batch of rows."""
        found: list[str] = self.ids.slice(start, BATCH).to_pylist()
        return found

    def stored(self) -> Iterator[Sequence[str | None]]:
        """The stored form of all rows, a batch at a time; None for each row of a file that stays where it is."""
        if self.file is not None:
            yield from ([None] * BATCH for _ in range(0, len(self), BATCH))
            return
        table = self.data.table.select(self.columns["names"])  # type: ignore[union-attr]
        for start in range(0, len(self), BATCH):
            yield stored_rows(table.slice(start, BATCH), self.columns)

    def stored_at(self, rows: Sequence[int]) -> list[str]:
        """The stored form of some rows, ascending."""
        if self.file is None:
            table = self.data.table.select(self.columns["names"]).take(list(rows))  # type: ignore[union-attr]
        else:
            table = self.data.take(np.asarray(rows), self.columns["names"])
        return stored_rows(table, self.columns)

    def like(self, state: State) -> PoolTable:
        """The table with the columns of earlier rows, in their order; refuses unknown groups and columns."""
        unknown = {z for z, group in enumerate(self.groups) if state.groups and group not in state.groups}
        if unknown:
            rows = np.flatnonzero(np.isin(self.codes, list(unknown)))
            raise InputError(
                f"unknown group {self.groups[min(unknown)]!r} ({_rows(rows.tolist())}): the groups are "
                f"{', '.join(map(repr, state.groups))}"
            )
        for group in self.groups:
            check_text(group, "the group")
        return replace(self, columns=_like(self.columns, state.columns))


def read_pool(
    data: Any,
    *,
    id: str | None,
    group: str | Sequence[str],
    features: Sequence[str] | None,
    label: str,
    ignore: Sequence[str] = (),
    exclude: Sequence[str] = (),
    merge_below: int = 0,
    use_group_as_feature: bool = False,
    form: JsonMapping | None = None,
    needs_numbers: bool = False,
    earlier: JsonMapping | None = None,
) -> PoolTable:
    """Read what a pool needs to know of a frame or file; every problem is named with its rows.

    Without an `id` the number of a row, from 0 up, is its id. `form` is how a CSV file is written.
    """
    from evenhand.tables.groups import GroupRule, find_groups
    from evenhand.tables.parquet import ParquetFiles
    from evenhand.tables.reading import Format, check_format, is_parquet, read
    from evenhand.tables.schema import group_names

    wanted = [group] if isinstance(group, str) else list(group)
    if not wanted:
        raise InputError("name the column that tells the group, group=...")
    given = Format(**(form or {}))
    check_format([data], given)
    frame = read(data, given)
    frame.refuse_skipped()
    available = frame.schema.names
    by = group_names(wanted, available)
    table = frame if isinstance(frame, ParquetFiles) else _typed(frame.in_memory(), {id, label, *by}, given.decimal)
    # a second table of the same pool is read with the features of the first
    if features is None and "features" in (earlier or {}):
        features = [name for name in (earlier or {})["features"] if name in available]
    kept = set() if use_group_as_feature else set(by)
    columns = _columns(table, features, id, label, ignore, kept, needs_numbers)
    for name in (id, label, *columns["names"]):
        if name in table.broken:
            raise InputError(table.broken[name])
    ids = _row_numbers(table) if id is None else _ids(table, id)
    found = find_groups(frame, GroupRule(tuple(wanted), tuple(exclude), merge_below))[0]
    labels = {row: value for row, value in _labels(table, label).items() if found.codes[row] >= 0}
    written = isinstance(data, str | Path) and not is_parquet(data)
    file = file_facts(Path(data)) if isinstance(table, ParquetFiles) else None
    return PoolTable(table, ids, found.names, found.codes, labels, columns, file, written)


def _typed(frame: InMemory, as_written: set[str | None], decimal: str | None) -> InMemory:
    """A frame whose columns of text are what they hold, but for those that are kept as they are written."""
    from evenhand.tables.arrow import is_text
    from evenhand.tables.frame import InMemory
    from evenhand.tables.kinds import look, read_as

    table = frame.table
    for place, field in enumerate(frame.schema):
        if is_text(field.type):
            found = look(frame.column(field.name), field.type, decimal=decimal)
            typed = found.kind in ("number", "yes/no", "date") and field.name not in as_written
            kind = found.kind if typed else "category"
            values = read_as(table.column(place), kind, (), found.decimal or decimal)
            table = table.set_column(place, field.name, values)
    return InMemory(table, frame.name, broken=frame.broken, dialect=frame.dialect)


def _rows(rows: Sequence[int]) -> str:
    shown = ", ".join(str(row + 1) for row in rows[:_SHOWN])
    rest = f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{rest}"


# -------------------------------------------------------------------- ids, labels


def _row_numbers(table: InMemory | ParquetFiles) -> pa.Array:
    """Numbers of the rows, from 0 up, as ids."""
    import pyarrow as pa

    first = table.schema.names[0]
    return pa.array(np.arange(sum(len(chunk) for chunk in table.column(first)))).cast(pa.string())


def _ids(table: InMemory | ParquetFiles, id: str) -> pa.Array:
    """The ids as text, each one once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = table.schema.field(id).type
    found = pa.chunked_array([_plain(chunk) for chunk in table.column(id)]).combine_chunks()
    # combine_chunks gives a chunked array again where the text is too long for one array
    found = found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
    if pa.types.is_floating(found.type):
        # pandas writes a gap among numbers as NaN
        found = pc.if_else(pc.is_nan(found), None, found)
    if found.null_count:
        rows = np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False)).tolist()
        raise InputError(f"the id {id!r} is missing in {_rows(rows)}")
    # whole numbers in a column with gaps come as floats: 17.0 was written 17
    if pa.types.is_floating(found.type) and pc.all(pc.equal(pc.floor(found), found)).as_py():
        found = pc.cast(found, pa.int64())
    if not (pa.types.is_integer(found.type) or _is_text(found.type)):
        raise InputError(f"row 1: {found[0].as_py()!r} is no id: ids are text or whole numbers, not {kind}")
    found = pc.cast(found, pa.string())
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
            f"an id may be there only once, but one comes again in {_rows(twice)}: the first is {names[twice[0]]!r}"
        )
    return found


def _plain(chunk: pa.Array) -> pa.Array:
    import pyarrow as pa

    chunk = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
    return chunk.cast(pa.string()) if _is_text(chunk.type) else chunk


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _labels(table: InMemory | ParquetFiles, label: str) -> dict[int, object]:
    """The labels there are, by row number."""
    if label not in table.schema.names:
        return {}
    values = (value for chunk in table.column(label) for value in chunk.to_pylist())
    return {
        row: value
        for row, value in enumerate(values)
        if value is not None and value == value and not (isinstance(value, str) and value.strip() in MISSING)
    }


# -------------------------------------------------------------------- columns


def _columns(
    table: InMemory | ParquetFiles,
    features: Sequence[str] | None,
    id: str | None,
    label: str,
    ignore: Sequence[str],
    by: set[str],
    needs_numbers: bool,
) -> JsonObject:
    """What the rows look like: all columns but id, label and those to ignore, and which of them models see."""
    from evenhand.tables.problems import missing_column

    available = table.schema.names
    named = [] if id is None else [(id, "the id")]
    for name, what in (*named, *((f, "a feature") for f in features or ()), *((i, "ignored") for i in ignore)):
        if name not in available and name != label:
            raise InputError(missing_column(name, list(available), what))
    names = [name for name in available if name not in {id, label, *ignore}]
    for name in features or ():
        if name not in names:
            why = "the id" if name == id else "the label" if name == label else "ignored"
            raise InputError(f"the column {name!r} is {why}: it cannot be a feature as well")
    # group columns are no features unless somebody says so: a model must not learn the group by default
    used = list(features) if features is not None else [name for name in names if name not in by]
    if not used:
        raise InputError("there are no features: every example needs a column beside id, group and label")
    types = [_type(name, table.schema.field(name).type) for name in names]
    for name, kind in zip(names, types, strict=True):
        # refused now, not when the first fit fails after people have labelled for a day
        if needs_numbers and name in used and kind not in ("number", "bool"):
            raise InputError(
                f"column {name!r} is {'text' if kind == 'empty' else kind}, which the learner cannot use: choose others "
                "with features=, or take the learner 'table', which encodes text by itself"
            )
    return {"kind": "pandas", "names": names, "types": types, "features": used, "complete": needs_numbers}


def _type(name: str, kind: pa.DataType) -> str:
    import pyarrow as pa

    is_ = pa.types
    if is_.is_null(kind):
        return "empty"
    if is_.is_dictionary(kind):
        return "category"
    if is_.is_boolean(kind):
        return "bool"
    if is_.is_integer(kind) or is_.is_floating(kind) or is_.is_decimal(kind):
        return "number"
    if is_.is_date(kind):
        return "date"
    if is_.is_timestamp(kind):
        return "datetime"
    if _is_text(kind) or is_.is_time(kind):
        return "text"
    raise InputError(f"column {name!r} holds {kind}: make it numbers, text, true or false, or times, or leave it out")


def _like(new: JsonObject, earlier: JsonMapping | None) -> JsonObject:
    """The columns in the order of earlier rows, which have to be the same; one without any value fits every type."""
    now = dict(zip(new["names"], new["types"], strict=True))
    if earlier is None:
        return {**new, "types": ["text" if kind == "empty" else kind for kind in new["types"]]}
    if "names" not in earlier:
        raise InputError("earlier rows were arrays, a pool is a table: deliver one kind")
    was = dict(zip(earlier["names"], earlier["types"], strict=True))
    for name, kind in was.items():
        if name not in now:
            raise InputError(f"the column {name!r} of earlier rows is gone")
        # a library may write the same texts as a dictionary or plainly
        if now[name] not in (kind, "empty") and {now[name], kind} != {"text", "category"}:
            raise InputError(f"column {name!r} was {kind} in earlier rows and is {now[name]} now")
    if extra := sorted(now.keys() - was.keys()):
        raise InputError(f"the columns differ from earlier rows; not known {extra}: leave them out with ignore=")
    if "features" in earlier and sorted(earlier["features"]) != sorted(new["features"]):
        raise InputError(f"the features were {earlier['features']} in earlier rows: give the same with features=")
    return {**new, "names": list(was), "types": list(was.values()), "features": earlier.get("features", list(was))}


# -------------------------------------------------------------------- rows


def stored_rows(table: pa.Table, columns: JsonMapping, names: Sequence[str] = ()) -> list[str]:
    """The stored form of rows; one that cannot be stored is refused, by its row number or its name."""
    cells = []
    for name, kind in zip(columns["names"], columns["types"], strict=True):
        column = table.column(name)
        needed = columns.get("complete", False) and name in columns["features"]
        if (problem := _problem(column, kind, needed)) is not None:
            row, why = problem
            where = f"the example {names[row]!r}" if names else f"row {row + 1}"
            raise InputError(f"{where}: {name} {why}")
        cells.append(_cells(column, kind))
    return [as_text(row) for row in zip(*cells, strict=True)]


def _problem(column: pa.ChunkedArray, kind: str, needed: bool) -> tuple[int, str] | None:
    """The first row of a column that cannot be stored, and why."""
    import pyarrow as pa
    import pyarrow.compute as pc

    floating = pa.types.is_floating(column.type)
    if needed:
        gaps = pc.is_null(column, nan_is_null=floating)
        if pc.any(gaps).as_py():
            row = pc.index(gaps, True).as_py()
            return row, "is missing, which the learner cannot use: remove or impute it, or take the learner 'table'"
    if floating:
        large = pc.fill_null(pc.greater(pc.abs(column), LARGEST), False)
        if pc.any(large).as_py():
            row = pc.index(large, True).as_py()
            return row, f"is {column[row].as_py():g}: only numbers up to ±{LARGEST:g} can be learned from"
    if kind == "text" and _is_text(column.type):
        bad = pc.fill_null(pc.match_substring(column, "\0"), False)
        if pc.any(bad).as_py():
            return pc.index(bad, True).as_py(), "has a NUL character, which cannot be stored"
    return None


def _cells(column: pa.ChunkedArray, kind: str) -> list[Any]:
    """The values of a column as JSON takes them, None where one is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = pc.cast(column, pa.float64())
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    found: list[Any] = column.to_pylist()
    if kind in ("date", "datetime"):
        return [None if value is None else value.isoformat() for value in found]
    if kind in ("text", "category") and not _is_text(column.type):
        return [None if value is None else str(value) for value in found]
    return found
