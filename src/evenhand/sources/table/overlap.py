"""Test rows that are rows of the pool: by id, by person, or equal in every column."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evenhand.sources.table.parquet import ParquetFiles
from evenhand.sources.table.problems import TableError
from evenhand.sources.table.reading import CsvFormat, read
from evenhand.sources.table.twins import copies, in_pool, row_keys, too_many_shared

if TYPE_CHECKING:
    from evenhand.sources.table.pool import Columns
    from evenhand.sources.table.reading import Frame

__all__ = ["check_apart", "duplicates", "fingerprint"]


def check_apart(pool: Frame | ParquetFiles, test: Frame, columns: Columns) -> tuple[str, ...]:
    """Refuse test rows that are also pool rows; returns notes on what could not be ruled out.

    Ids decide if there are any. Otherwise two rows are the same if all columns that both tables have are equal, unless
    rows of the pool equal each other as often: then that is coincidence, and a note says so.
    """
    for column, what in ((columns.id, "ids"), (columns.split_by, "units")):
        if column is None:
            continue
        if column not in test.schema.names:
            raise TableError(
                f"the test part ({test.name}) has no column {column!r}: nobody can tell whether it is apart."
            )
        shared = _shared(pool, test, column)
        if shared:
            raise TableError(
                f"{shared:,} test rows have {what} of the pool (column {column!r}): take them out of one of the two."
            )
    if columns.id is not None:
        return ()
    if isinstance(pool, ParquetFiles):
        return (
            "whether test rows are also in the pool was not looked at: the pool is large, and no column of ids was named",
        )
    both = [name for name in pool.schema.names if name in test.schema.names and not _is_nested(pool, test, name)]
    # columns both tables have: an export may carry columns of its own
    known, new = row_keys([pool.table, test.table], both)
    found = np.flatnonzero(in_pool(new, known))
    if too_many_shared(len(found), len(new), known):
        rows = ", ".join(str(row + 1) for row in found[:5])
        raise TableError(
            f"{len(found):,} test rows are rows of the pool too, equal in every column (rows {rows}{' …' * (len(found) > 5)}): "
            "take them out of one of the two, or name a column of ids (id=..., --id) if they are different examples."
        )
    if not len(found):
        return ()
    return (
        f"{len(found):,} test rows equal rows of the pool, no more than chance would give in columns as coarse as these",
    )


def duplicates(table: pa.Table, id: str | None) -> int:
    """How many rows of a table are exact copies of earlier ones, apart from their ids."""
    flat = [n for n in table.column_names if n != id and not pa.types.is_nested(table.schema.field(n).type)]
    return copies(row_keys([table], flat)[0])


def fingerprint(data: Any) -> str:
    """A digest of a frame's names and values."""
    table = read(data, CsvFormat()).table
    found = hashlib.blake2b(json.dumps(table.column_names).encode(), digest_size=16)
    found.update(row_keys([table], table.column_names)[0].tobytes())
    return found.hexdigest()


def _is_nested(pool: Frame, test: Frame, name: str) -> bool:
    return any(pa.types.is_nested(frame.schema.field(name).type) for frame in (pool, test))


def _shared(pool: Frame | ParquetFiles, test: Frame, column: str) -> int:
    """How many test rows have a value of this column that the pool has too."""
    ours = pa.chunked_array(list(pool.column(column)))
    new, known = row_keys([pa.table({column: test.table.column(column)}), pa.table({column: ours})], [column])
    there = ~np.asarray(test.table.column(column).is_null().to_numpy())
    return int(np.count_nonzero(in_pool(new, known) & there))
