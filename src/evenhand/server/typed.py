"""Tables in JSON with a type for every column; every value is checked, since anybody may have written them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal

import pyarrow as pa

from evenhand.campaign.features import Rows, as_rows, unmixed
from evenhand.campaign.state import State
from evenhand.errors import InputError

__all__ = ["ColumnType", "stored_rows", "typed_table"]

ColumnType = Literal["number", "text", "category", "bool", "date", "datetime"]
_ARROW = {"text": pa.string(), "category": pa.string(), "bool": pa.bool_()}


def typed_table(columns: Mapping[str, Sequence[Any]], types: Mapping[str, ColumnType]) -> pa.Table:
    """The columns as an Arrow table; values that do not have their column's type are refused."""
    if columns.keys() != types.keys():
        raise InputError("columns and types must have the same names: give the type of every column, or no types")
    if len({len(values) for values in columns.values()}) > 1:
        raise InputError("columns, y, ids and groups must have as many values each")
    return pa.table({name: _column(name, values, types[name]) for name, values in columns.items()})


def stored_rows(table: pa.Table, state: State) -> Rows:
    """The rows of a table as they are stored, in the order of earlier ones."""
    rows = as_rows(table, state.columns)
    # models learn from data frames of a library that every server has
    return Rows({**rows.columns, "kind": "pandas"}, rows.stored, rows.problems)


def _column(name: str, values: Sequence[Any], kind: ColumnType) -> Any:
    read, wanted = _READ[kind]
    for row, value in enumerate(values):
        # true is an int in Python
        if value is not None and (not isinstance(value, wanted) or (kind == "number" and isinstance(value, bool))):
            raise InputError(f"columns.{name}: {value!r} in row {row} is not of type {kind}")
    try:
        found = pa.array(
            unmixed([None if value is None else read(value) for value in values]), _ARROW.get(kind)
        )  # fmt: skip
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InputError(f"columns.{name} cannot be read as {kind}: {error}") from None
    if kind == "number" and pa.types.is_null(found.type):
        return found.cast(pa.float64())
    return found.dictionary_encode() if kind == "category" else found


def _date(text: str) -> date:
    return date.fromisoformat(text)


def _datetime(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    # a finer time would come back as another one
    if found.isoformat() != text:
        raise InputError(f"{text!r} is not a time as Python's isoformat() writes it, to the microsecond at most")
    return found


_READ: dict[str, tuple[Callable[[Any], Any], type | tuple[type, ...]]] = {
    "number": (lambda value: value, (int, float)),
    "text": (str, str),
    "category": (str, str),
    "bool": (bool, bool),
    "date": (_date, str),
    "datetime": (_datetime, str),
}
