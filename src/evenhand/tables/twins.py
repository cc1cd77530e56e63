"""Rows that are equal in every column: within a table, and between a pool and its test rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from evenhand.arrays import Mask, Words

__all__ = ["copies", "in_pool", "row_keys", "too_many_shared"]

_ODD = np.uint64(0x9E3779B97F4A7C15)
UNLIKELY = 1e-3


def row_keys(tables: Sequence[pa.Table], columns: Sequence[str]) -> list[Words]:
    """A number for each row of each table, equal where all these columns are equal by value: 0 and 0.0 are."""
    found = [np.zeros(table.num_rows, dtype=np.uint64) for table in tables]
    for name in columns:
        parts = [table.column(name) for table in tables]
        # one way for both tables: a number in one and its text in the other must have the same key
        plain = all(_is_plain(part.type) for part in parts)
        for i, part in enumerate(parts):
            with np.errstate(over="ignore"):
                # an odd factor keeps all 64 bits in play, so columns that are swapped give another key
                found[i] = found[i] * _ODD + (_numbers(part) if plain else _texts(part))
    return found


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _numbers(column: pa.ChunkedArray) -> Words:
    values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64) + 0.0  # −0.0 is 0.0
    values[np.isnan(values)] = np.nan  # one kind of it
    return np.asarray(pd.util.hash_array(values, categorize=False))


def _texts(column: pa.ChunkedArray) -> Words:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        whole = column.cast(pa.int64(), safe=False)
        column = whole if whole.cast(pa.float64()).equals(column) else column
    # bytes need not be text
    column = column if pa.types.is_binary(column.type) else column.cast(pa.string())
    text = column.combine_chunks().dictionary_encode()
    text = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    words = pd.util.hash_array(np.array(text.dictionary.to_pylist(), dtype=object), categorize=False)
    codes = text.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(np.append(words, np.uint64(1))[codes])


def copies(keys: Words) -> int:
    """How many rows are equal to an earlier one.

    >>> copies(np.array([7, 7, 8, 7], dtype=np.uint64))
    2
    """
    return len(keys) - len(np.unique(keys))


def in_pool(test: Words, pool: Words) -> Mask:
    """Which test rows are equal to a row of the pool."""
    return np.isin(test, pool)


def too_many_shared(shared: int, tests: int, pool: Words) -> bool:
    """Whether more test rows are in the pool than coincidence explains.

    Rows of coarse columns may be equal by chance. How often is known from the pool itself: the share of its rows that
    have a twin there. Without any twin in the pool every shared row is a leak.
    """
    from scipy.stats import binom

    if not shared:
        return False
    _, place, times = np.unique(pool, return_inverse=True, return_counts=True)
    # in a coarse table twins are no leak: as many as the pool has among its own rows are to be expected
    by_chance = float(np.mean(times[place] > 1))
    return by_chance == 0 or bool(binom.sf(shared - 1, tests, by_chance) < UNLIKELY)
