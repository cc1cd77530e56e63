"""Feature rows of any kind that users hold, as the ledger stores them row by row, and back again.

A row is JSON text (a list of values in the order of the columns), or the bytes of an array in NumPy's format. The first
delivery of a campaign sets what the columns are, and later ones have to match it. Tables are read by `evenhand.tables`;
their columns are a schema.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.arrays import is_frame
from evenhand.errors import InputError
from evenhand.ledger.text import as_text, from_text
from evenhand.notation import JsonMapping, JsonObject

if TYPE_CHECKING:
    import pyarrow as pa

    from evenhand.tables.frame import Frame
    from evenhand.tables.schema import Columns, Schema

__all__ = [
    "KINDS", "LARGEST", "MOST_COLUMNS", "Rows", "as_rows", "check_width", "columns_of", "decode", "feature_names", "schema_of", "table_rows",
    "typed_rows",
]  # fmt: skip

LARGEST = 1e100
"""Numbers beyond this overflow in any model's arithmetic: squares of it are still finite, sums of squares too."""
MOST_COLUMNS = 20_000
"""A table with more columns is refused: the first delivery of a campaign fixes them."""
KINDS = ("number", "yes/no", "date", "category", "text", "image", "vector")
"""What a column of features can be said to hold before there are rows."""


class Rows:
    """Feature rows ready to be stored: what the columns are, every row's text or bytes, and what is wrong with rows.

    `columns` has `kind` (`dense`, `sparse`, `array` or `table`), and by kind `width`, `shape` and `dtype`, or a schema.
    `problems` says by row number why a row cannot be stored.
    """

    def __init__(self, columns: JsonObject, stored: list[str | bytes], problems: dict[int, str] | None = None) -> None:
        self.columns, self.stored, self.problems = columns, stored, problems or {}

    def __len__(self) -> int:
        return len(self.stored)


def as_rows(X: Any, like: JsonMapping | None = None, features: Sequence[str] | None = None) -> Rows:
    """X as rows to store; `like` are the columns of earlier deliveries, `features` those to learn from."""
    if is_frame(X):
        from evenhand.tables.reading import read
        from evenhand.tables.schema import Columns

        return table_rows(read(X), like, Columns.of(features=features, delivered=True))
    rows = _sparse(X) if hasattr(X, "tocsr") else _array(X)
    if like is None:
        return rows
    if rows.columns["kind"] == "dense" and like["kind"] == "sparse":
        import scipy.sparse as sp

        rows = _sparse(sp.csr_array(decode(rows.columns, rows.stored)))
    elif rows.columns["kind"] == "sparse" and like["kind"] == "dense":
        rows = _array(decode(rows.columns, rows.stored).toarray())
    _check_like(rows.columns, like)
    return rows


def decode(columns: JsonMapping, stored: Sequence[str | bytes], *, encoded: bool = False) -> Any:
    """The features of stored rows: arrays as they came, tables as pandas frames.

    `encoded` leaves out columns of a table that cannot become numbers yet, such as free text.
    """
    kind = columns["kind"]
    if kind == "array":
        return np.stack([np.load(io.BytesIO(row), allow_pickle=False) for row in stored])  # type: ignore[arg-type]
    if kind == "table":
        from evenhand.tables.stored import as_frame

        schema = schema_of(columns)
        return as_frame(typed_rows(stored, schema).select(list(schema.encoded if encoded else schema.features)))
    values = from_text(f"[{','.join(stored)}]")  # type: ignore[arg-type]
    if kind == "dense":
        return np.array(values, dtype=float).reshape(len(stored), columns["width"])
    return _unsparse(values, columns["width"])


# -------------------------------------------------------------------- tables


def columns_of(features: Mapping[str, str] | Sequence[str] | None) -> JsonObject | None:
    """The columns of a campaign that were fixed when it was made, by name and kind; None where the first rows tell."""
    if not isinstance(features, Mapping):
        return None
    # as a schema writes itself; nothing here needs Arrow, which takes a while to import
    plain = {"use": "feature", "note": "", "cleaned": False, "decimal": None}
    columns = [{"name": name, "kind": kind, **plain} for name, kind in features.items()]
    return {"kind": "table", "complete": False, "columns": columns, "missing": [], "decimal": None}


def check_width(frame: Frame) -> None:
    """Refuse a table with more columns than a campaign can keep."""
    if (count := len(frame.schema.names)) > MOST_COLUMNS:
        raise InputError(
            f"{frame.name} has {count:,} columns, and {MOST_COLUMNS:,} are the most: leave out what nobody learns from"
        )


def schema_of(columns: JsonMapping) -> Schema:
    """The schema of a campaign whose rows are tables."""
    from evenhand.tables.schema import Schema

    return Schema.from_json(columns)


def feature_names(columns: JsonMapping | None) -> list[str]:
    """The columns that labelled rows must have; none where they are arrays, or not known yet."""
    return list(schema_of(columns).features) if columns is not None and columns["kind"] == "table" else []


def typed_rows(stored: Sequence[str | bytes], schema: Schema) -> pa.Table:
    """Stored rows of a table with all the columns that are kept, typed."""
    from evenhand.tables.stored import from_text as typed

    return typed([str(row) for row in stored], schema)


def table_rows(frame: Frame, like: JsonMapping | None, wanted: Columns) -> Rows:
    """Rows of a table; the first table tells the schema, later ones have to match it.

    Args:
        frame: the table.
        like: the columns of earlier rows, None for the first.
        wanted: what is known of its columns.
    """
    from evenhand.tables.schema import infer
    from evenhand.tables.stored import to_text

    if like is not None and like["kind"] in ("dense", "sparse"):
        return _numbered(frame, like)
    if like is not None and like["kind"] != "table":
        raise InputError("this campaign's rows are arrays, which a table cannot hold: tell them from Python")
    check_width(frame)
    schema = schema_of(like) if like is not None else infer(frame, wanted)
    schema.check_names(frame.schema.names, frame.name)
    rows = schema.read(frame.read(), names=schema.stored)
    stored: list[str | bytes] = list(to_text(rows.table))
    return Rows({"kind": "table", "complete": False, **schema.to_json()}, stored, rows.problems)


def _numbered(frame: Frame, like: JsonMapping) -> Rows:
    """The rows of a table whose columns are the numbers 0, 1, … of a campaign of arrays."""
    from evenhand.tables.schema import Column, Schema

    names = [str(j) for j in range(like["width"])]
    if not set(names) & set(frame.schema.names):
        raise InputError(
            f"earlier rows were arrays of {len(names):,} numbers, which a table has in columns called 0 to {len(names) - 1}: "
            f"{frame.name} has others"
        )
    rows = Schema(tuple(Column(name, "number", "feature") for name in names)).read(frame.read())
    columns = [rows.table.column(name).to_numpy() for name in names]
    table = np.column_stack(columns).astype(float) if columns else np.empty((len(frame), 0))
    problems = dict(rows.problems)
    for row, column in zip(*np.nonzero(np.isnan(table)), strict=True):
        problems.setdefault(int(row), f"{names[int(column)]}: missing, or not a number")
    found = as_rows(np.where(np.isnan(table), 0.0, table), like)
    return Rows(found.columns, found.stored, problems)


# -------------------------------------------------------------------- arrays


def _array(X: Any) -> Rows:
    array = X if isinstance(X, np.ndarray) else _as_array(X)
    if array.ndim < 2:
        raise InputError(f"X must have rows and features, not shape {array.shape}: give a list of rows")
    if math.prod(array.shape[1:]) == 0:
        raise InputError("X has no features: give every row at least one")
    if array.dtype.kind == "c":
        raise InputError("X has complex numbers, which no learner takes: give their parts as features")
    if array.ndim > 2:
        return _tensor(array)
    try:
        numbers = np.asarray(array, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"X must be numbers or a data frame: {error}") from None
    problems = _bad_numbers(numbers)
    values = numbers.tolist() if not problems else np.where(np.isfinite(numbers), numbers, 0.0).tolist()
    return Rows({"kind": "dense", "width": int(array.shape[1])}, [as_text(row) for row in values], problems)


def _as_array(X: Any) -> Any:
    try:
        return np.asarray(X)
    except ValueError as error:
        raise InputError(f"X must be rows of one length: {error}") from None


def _bad_numbers(numbers: Any) -> dict[int, str]:
    bad = ~np.isfinite(numbers) | (np.abs(numbers) > LARGEST)
    if not bad.any():
        return {}
    rows = np.flatnonzero(bad.any(axis=1)).tolist()
    return {row: _why(float(numbers[row, (c := int(np.argmax(bad[row])))]), f"feature {c}") for row in rows}


def _why(number: float, where: str) -> str:
    if math.isnan(number):
        return f"{where} is NaN: remove or impute it"
    return f"{where} is {number:g}: only numbers up to ±{LARGEST:g} can be learned from"


def _tensor(array: Any) -> Rows:
    if array.dtype.kind not in "biuf":
        raise InputError(f"arrays must hold numbers, not {array.dtype}")
    problems: dict[int, str] = {}
    if array.dtype.kind == "f":
        most = min(LARGEST, float(np.finfo(array.dtype).max))
        bad = ~(np.abs(array.reshape(len(array), -1)) <= most).all(axis=1)
        why = f"it has a number that is NaN, infinite or beyond ±{LARGEST:g}: remove or impute it"
        problems = dict.fromkeys(np.flatnonzero(bad).tolist(), why)
    stored: list[str | bytes] = []
    for row in array:
        file = io.BytesIO()
        np.save(file, np.ascontiguousarray(row), allow_pickle=False)
        stored.append(file.getvalue())
    return Rows({"kind": "array", "shape": list(array.shape[1:]), "dtype": array.dtype.str}, stored, problems)


def _sparse(X: Any) -> Rows:
    import scipy.sparse as sp

    rows = sp.csr_array(X, dtype=float)
    rows.sum_duplicates()
    if not rows.shape[1]:
        raise InputError("X has no features: give every row at least one")
    bad = np.flatnonzero(~np.isfinite(rows.data) | (np.abs(rows.data) > LARGEST))
    where = np.searchsorted(rows.indptr, bad, side="right") - 1
    found = zip(where.tolist(), rows.data[bad].tolist(), rows.indices[bad].tolist(), strict=True)
    problems = {row: _why(value, f"feature {column}") for row, value, column in found}
    rows.data[bad] = 0.0
    starts, indices, values = rows.indptr.tolist(), rows.indices.tolist(), rows.data.tolist()
    stored: list[str | bytes] = [as_text([indices[a:b], values[a:b]]) for a, b in pairwise(starts)]
    return Rows({"kind": "sparse", "width": int(rows.shape[1])}, stored, problems)


def _unsparse(values: list[Any], width: int) -> Any:
    import scipy.sparse as sp

    lengths = [len(indices) for indices, _ in values]
    indices = np.array([i for row, _ in values for i in row], dtype=np.int32)
    data = np.array([v for _, row in values for v in row], dtype=float)
    return sp.csr_array((data, indices, np.concatenate([[0], np.cumsum(lengths)])), shape=(len(values), width))


def _check_like(new: JsonMapping, earlier: JsonMapping) -> None:
    if new["kind"] != earlier["kind"]:
        kinds = ["a data frame" if columns["kind"] == "table" else columns["kind"] for columns in (earlier, new)]
        raise InputError(f"earlier rows were {kinds[0]}, these are {kinds[1]}: deliver one kind")
    for name, word in (("width", "features"), ("shape", "as shape"), ("dtype", "as type")):
        if new.get(name) != earlier.get(name):
            raise InputError(f"X has {new.get(name)} {word}, earlier rows had {earlier.get(name)}")
