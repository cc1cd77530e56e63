"""Test rows that are rows of the pool: by id, by person, or equal in every column."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.tables.frame import Frame
from evenhand.tables.problems import TableError
from evenhand.tables.reading import read
from evenhand.tables.twins import copies, in_pool, row_keys, too_many_shared

__all__ = ["check_apart", "duplicates", "fingerprint"]


def check_apart(
    data: Frame, pool: pa.Table | None, name: str, test: pa.Table, *, id: str | None, unit: str | None
) -> tuple[str, ...]:
    """Refuse test rows that are also pool rows; returns notes on what could not be ruled out.

    Ids decide if there are any. Otherwise two rows are the same if all columns that both tables have are equal, unless
    rows of the pool equal each other as often: then that is coincidence, and a note says so.

    Args:
        data: the pool as it was read.
        pool: its rows, all columns of both tables read in one way; None if they stay on disk.
        name: of the test table.
        test: its rows.
        id: the column of ids.
        unit: the column of units that stay on one side of every split.
    """
    for column, what in ((id, "ids"), (unit, "units")):
        if column is None:
            continue
        if column not in test.column_names:
            raise TableError(f"the test part ({name}) has no column {column!r}: nobody can tell whether it is apart.")
        shared = _shared(data, test, column)
        if shared:
            raise TableError(
                f"{shared:,} test rows have {what} of the pool (column {column!r}): take them out of one of the two."
            )
    if id is not None:
        return ()
    if pool is None:
        return (
            "whether test rows are also in the pool was not looked at: the pool is large, and no column of ids was named",
        )
    both = [each for each in pool.column_names if each in test.column_names and not _is_nested(pool, test, each)]
    # columns both tables have: an export may carry columns of its own
    known, new = row_keys([pool, test], both)
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
    table = read(data).read()
    found = hashlib.blake2b(json.dumps(table.column_names).encode(), digest_size=16)
    found.update(row_keys([table], table.column_names)[0].tobytes())
    return found.hexdigest()


def _is_nested(pool: pa.Table, test: pa.Table, name: str) -> bool:
    return any(pa.types.is_nested(table.schema.field(name).type) for table in (pool, test))


def _shared(pool: Frame, test: pa.Table, column: str) -> int:
    """How many test rows have a value of this column that the pool has too."""
    ours = pa.chunked_array(list(pool.column(column)))
    new, known = row_keys([test.select([column]), pa.table({column: ours})], [column])
    there = ~np.asarray(test.column(column).is_null().to_numpy())
    return int(np.count_nonzero(in_pool(new, known) & there))
