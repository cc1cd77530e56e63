"""Typed rows as the ledger keeps them, a JSON list of values a row, and back; as frames for learners that take them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evenhand.tables.schema import Schema
from evenhand.tables.writing import time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_frame", "from_text", "to_text"]

_TYPES = {"yes/no": pa.bool_(), "category": pa.string(), "text": pa.string(), "image": pa.string()}


def to_text(table: pa.Table) -> list[str]:
    """Every row of a typed table as JSON."""
    columns = [_plain(table.column(name)) for name in table.column_names]
    return [orjson.dumps(row).decode() for row in zip(*columns, strict=True)]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    found: list[Any] = column.to_pylist()
    if pa.types.is_binary(column.type):  # an image, kept until it can be encoded
        return [None if value is None else b64encode(value).decode() for value in found]
    if pa.types.is_timestamp(column.type):
        return [None if value is None else time_text(value) for value in found]
    return found


def from_text(rows: Sequence[str], schema: Schema) -> pa.Table:
    """The typed table of such rows, in the order of the columns that the schema stores."""
    names = schema.stored
    values = orjson.loads(f"[{','.join(rows)}]")
    columns = list(zip(*values, strict=True)) if values else [()] * len(names)
    return pa.table({name: _typed(column, schema[name].kind) for name, column in zip(names, columns, strict=True)})


def _typed(values: Sequence[object], kind: str) -> pa.Array:
    if kind == "number":
        return pa.array(values, pa.float64() if any(isinstance(v, float) or v is None for v in values) else pa.int64())
    if kind == "date":
        return pc.cast(pa.array(values, pa.string()), pa.timestamp("us"))
    return pa.array(values, _TYPES.get(kind))


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Typed rows as pandas has them: numbers, text with NaN where it is missing, truth values, times.

    >>> as_frame(pa.table({"t": ["a", None], "x": [1, None]})).isna().sum().tolist()
    [1, 1]
    """
    import numpy as np
    import pandas as pd

    found = {}
    for name in table.column_names:
        series = table.column(name).to_pandas()
        # scikit-learn looks for NaN, which is also what pandas reads from files
        text = series.dtype == object or isinstance(series.dtype, pd.StringDtype)
        found[name] = series.astype(object).where(series.notna(), np.nan) if text else series
    return pd.DataFrame(found)
