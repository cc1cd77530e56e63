"""Turns feature rows of any kind that users hold into what the ledger stores, row by row, and back again.

A row is JSON text (a list of values in the order of the columns), or the bytes of an array in NumPy's format. The first
delivery of a campaign sets what the columns are, and later ones have to match it.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from evenhand.arrays import is_frame, is_missing
from evenhand.errors import InputError
from evenhand.ledger.text import as_text, from_text
from evenhand.notation import JsonMapping, JsonObject

__all__ = ["Rows", "as_rows", "cells", "decode", "table_rows", "unmixed"]

# squares of it are still finite, sums of squares too
LARGEST = 1e100
"""Numbers beyond this overflow in any model's arithmetic."""

_ARRAYS = ("dense", "sparse", "array")


class Rows:
    """Feature rows ready to be stored: what the columns are, every row's text or bytes, and what is wrong with rows.

    `columns` has `kind` (`dense`, `sparse`, `array`, or the library a frame came from), and by kind `names` and `types`,
    `width`, or `shape` and `dtype`. `problems` says by row number why a row cannot be stored.
    """

    def __init__(self, columns: JsonObject, stored: list[str | bytes], problems: dict[int, str] | None = None) -> None:
        self.columns, self.stored, self.problems = columns, stored, problems or {}

    def __len__(self) -> int:
        return len(self.stored)


def as_rows(X: Any, like: JsonMapping | None = None) -> Rows:
    """X as rows to store; `like` are the columns of earlier deliveries, whose order the rows take."""
    if hasattr(X, "tocsr"):
        rows = _sparse(X)
    elif is_frame(X):
        rows = _frame(X, like)
    else:
        rows = _array(X)
    if like is None:
        return rows
    if rows.columns["kind"] == "dense" and like["kind"] == "sparse":
        import scipy.sparse as sp

        rows = _sparse(sp.csr_array(decode(rows.columns, rows.stored)))
    elif rows.columns["kind"] == "sparse" and like["kind"] == "dense":
        rows = _array(decode(rows.columns, rows.stored).toarray())
    _check_like(rows.columns, like)
    return rows


def decode(columns: JsonMapping, stored: Sequence[str | bytes]) -> Any:
    """Stored rows, as the kind of array or frame they came in."""
    kind = columns["kind"]
    if kind == "array":
        return np.stack([np.load(io.BytesIO(row), allow_pickle=False) for row in stored])  # type: ignore[arg-type]
    values = from_text(f"[{','.join(stored)}]")  # type: ignore[arg-type]
    if kind == "dense":
        return np.array(values, dtype=float).reshape(len(stored), columns["width"])
    if kind == "sparse":
        return _unsparse(values, columns["width"])
    return _unframe(values, columns)


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


# -------------------------------------------------------------------- frames


def _frame(X: Any, like: JsonMapping | None) -> Rows:
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    names = [str(name) for name in frame.columns]
    if not names:
        raise InputError("X has no features: give every row at least one column")
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"more than one column is called {twice!r}: rename one")
    absent: set[str] = set()
    if like is not None and like["kind"] not in _ARRAYS:
        if sorted(names) == sorted(like.get("features", ())):  # a pool's other columns may be missing
            absent = set(like["names"]) - set(names)
        _check_names([*names, *absent], like["names"])
        names = like["names"]
    types, columns, problems = [], [], dict[int, str]()
    for name in names:
        if name in absent and like is not None:
            types.append(like["types"][names.index(name)])
            columns.append([None] * len(frame))
            continue
        kind = _type(name, frame[name].dtype, nw)
        types.append("text" if kind == "object" else kind)
        columns.append(cells(name, frame[name].to_list(), kind, problems))
    described = {"kind": str(frame.implementation.value), "names": names, "types": types}
    if like is not None and "features" in like:  # the other columns of a pool may be text, whatever the learner takes
        described["features"] = like["features"]
    return Rows(described, [as_text(row) for row in zip(*columns, strict=True)], problems)


def _type(name: str, dtype: Any, nw: Any) -> str:
    if dtype == nw.Object:
        return "object"
    if isinstance(dtype, nw.Categorical | nw.Enum) or dtype in (nw.Categorical, nw.Enum):
        return "category"
    if dtype.is_numeric():
        return "number"
    for kind, found in ((nw.Boolean, "bool"), (nw.String, "text"), (nw.Date, "date"), (nw.Datetime, "datetime")):
        if dtype == kind:
            return found
    if str(dtype) in ("Unknown", "Null"):
        return "text"
    raise InputError(f"column {name!r} holds {dtype}: make it numbers, text, true or false, or times")


def cells(name: str, values: list[Any], kind: str, problems: dict[int, str]) -> list[Any]:
    """The values of a column as JSON takes them, None where one is missing; bad rows are added to `problems`."""
    found = []
    for row, value in enumerate(values):
        try:
            found.append(None if is_missing(value) else _cell(value, kind))
        except InputError as error:
            problems.setdefault(row, f"{name}: {error}")
            found.append(None)
    return found


def _cell(value: Any, kind: str) -> Any:
    if kind == "number":
        number = value if isinstance(value, int) and not isinstance(value, bool) else float(value)
        if not abs(number) <= LARGEST:
            raise InputError(f"{number:g} is beyond ±{LARGEST:g}, the largest that can be learned from")
        return number if isinstance(number, float) or abs(number) < 2**63 else float(number)
    if kind in ("date", "datetime"):
        return value.isoformat()
    # a column of mixed values would come back from JSON as something other than it was
    if kind == "object" and not isinstance(value, str):
        raise InputError(f"{value!r} is not text like the others: make the column one type")
    # PostgreSQL stores no NUL, and half a surrogate pair is no UTF-8; isprintable spares nearly all texts the search
    if isinstance(value, str) and not value.isprintable() and ("\0" in value or _half_characters(value)):
        raise InputError(f"{value!r} has a character that cannot be stored")
    return value if kind == "bool" else str(value)


def _half_characters(text: str) -> bool:
    return any(0xD800 <= ord(character) < 0xE000 for character in text)


def _unframe(values: list[list[Any]], columns: JsonMapping) -> Any:
    """A frame in the library the rows came in."""
    names, types = columns["names"], columns["types"]
    values_of = [list(column) for column in zip(*values, strict=True)] if values else [[] for _ in names]
    times = ("date",) if columns["kind"] not in ("polars", "pyarrow") else ("date", "datetime")  # pandas has its own
    found = {
        name: [_moment(v, kind) for v in column] if kind in times else column
        for name, kind, column in zip(names, types, values_of, strict=True)
    }
    if "features" in columns:  # a pool keeps all columns of its rows, models see the features
        chosen = [(name, kind) for name, kind in zip(names, types, strict=True) if name in columns["features"]]
        found, types = {name: found[name] for name, _ in chosen}, [kind for _, kind in chosen]
    if columns["kind"] == "polars":
        import polars as pl

        return pl.DataFrame({name: pl.Series(name, column, strict=False) for name, column in found.items()})
    if columns["kind"] == "pyarrow":
        import pyarrow as pa

        return pa.table({name: pa.array(unmixed(column)) for name, column in found.items()})
    import pandas as pd

    return pd.DataFrame(
        {name: _pandas(column, kind, pd) for (name, column), kind in zip(found.items(), types, strict=True)}
    )


def unmixed(column: list[Any]) -> list[Any]:
    """Whole numbers as floats where there are floats beside them."""
    if any(isinstance(v, float) for v in column):
        return [float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in column]
    return column


def _pandas(column: list[Any], kind: str, pd: Any) -> Any:
    if kind == "number":
        whole = all(isinstance(v, int) for v in column)
        return pd.Series(column, dtype="int64" if whole else "float64")
    if kind == "category":
        return pd.Series(column, dtype="category")
    if kind == "datetime":
        return pd.Series(pd.to_datetime([None if v is None else v for v in column], format="ISO8601"))
    # NaN where text is missing, as pandas reads it from files and as scikit-learn looks for it
    whole = kind == "bool" and None not in column
    return pd.Series([np.nan if v is None else v for v in column], dtype=None if whole else object)


def _moment(value: str | None, kind: str) -> date | datetime | None:
    if value is None:
        return None
    return date.fromisoformat(value) if kind == "date" else datetime.fromisoformat(value)


# -------------------------------------------------------------------- tables read from files


def table_rows(
    names: Sequence[str], columns: Sequence[Sequence[Any]], like: JsonMapping | None, *, numbers: bool
) -> Rows:
    """Rows of named columns of plain values, in the order of earlier deliveries; `numbers` where text cannot be used."""
    found: dict[str, Sequence[Any]] = dict(zip(names, columns, strict=True))
    problems: dict[int, str] = {}
    if like is not None and like["kind"] in ("dense", "sparse"):
        wanted = [str(j) for j in range(like["width"])]
        _check_names(list(names), wanted)
        numbered = [cells(name, [_number(v) for v in found[name]], "number", problems) for name in wanted]
        for row, values in enumerate(zip(*numbered, strict=True)):
            if None in values:
                problems.setdefault(row, f"{wanted[values.index(None)]}: missing, or not a number")
        table = np.array([[0.0 if v is None else v for v in row] for row in zip(*numbered, strict=True)], dtype=float)
        rows = as_rows(table, like)
        return Rows(rows.columns, rows.stored, problems)
    if like is not None and like["kind"] in _ARRAYS:
        raise InputError("this campaign's rows are arrays, which a table cannot hold: tell them from Python")
    if like is not None:
        _check_names(list(names), like["names"])
        names = like["names"]
    types = [_table_type(found[name], numbers) for name in names] if like is None else like["types"]
    table_cells = [_table_cells(name, found[name], kind, problems) for name, kind in zip(names, types, strict=True)]
    described = {"kind": "pandas", "names": list(names), "types": list(types)}
    return Rows(described, [as_text(row) for row in zip(*table_cells, strict=True)], problems)


def _table_type(values: Sequence[Any], numbers: bool) -> str:
    there = [value for value in values if value is not None]
    if numbers or (there and all(_number(value) is not None for value in there)):
        return "number"
    for kind, name in ((bool, "bool"), (datetime, "datetime"), (date, "date")):
        if there and all(isinstance(value, kind) for value in there):
            return name
    return "text"


def _table_cells(name: str, values: Sequence[Any], kind: str, problems: dict[int, str]) -> list[Any]:
    if kind == "number":
        for row, value in enumerate(values):
            if value is not None and _number(value) is None:
                problems.setdefault(row, f"{name}: {value!r} is not a number")
        values = [_number(value) for value in values]
    elif kind in ("text", "category"):
        values = [value if value is None or isinstance(value, str) else str(value) for value in values]
    return cells(name, list(values), kind, problems)


def _number(value: Any) -> int | float | None:
    """A number as written in a file; None for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        return None
    try:
        # whole numbers stay whole: above 2**53 a float would change them
        return int(value) if value.strip().lstrip("+-").isdecimal() and "_" not in value else float(value)
    except ValueError:
        return None


# -------------------------------------------------------------------- alike


def _check_names(names: list[str], earlier: list[str]) -> None:
    if sorted(names) != sorted(earlier):
        missing, extra = sorted(set(earlier) - set(names)), sorted(set(names) - set(earlier))
        raise InputError(f"columns differ from earlier rows: missing {missing}, not known {extra}")


def _check_like(new: JsonMapping, earlier: JsonMapping) -> None:
    frames = [columns["kind"] not in _ARRAYS for columns in (new, earlier)]
    if frames[0] != frames[1] or (not frames[0] and new["kind"] != earlier["kind"]):
        kinds = [columns["kind"] if columns["kind"] in _ARRAYS else "a data frame" for columns in (earlier, new)]
        raise InputError(f"earlier rows were {kinds[0]}, these are {kinds[1]}: deliver one kind")
    for name, word in (("width", "features"), ("shape", "as shape"), ("dtype", "as type")):
        if new.get(name) != earlier.get(name):
            raise InputError(f"X has {new.get(name)} {word}, earlier rows had {earlier.get(name)}")
    for name, was, now in zip(earlier.get("names", ()), earlier.get("types", ()), new.get("types", ()), strict=True):
        if was != now and {was, now} != {"text", "category"}:
            raise InputError(f"column {name!r} was {was} in earlier rows and is {now} now: deliver one type")
