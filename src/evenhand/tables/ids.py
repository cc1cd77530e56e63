"""The ids of a table: text as it is written, one for each row, each one once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenhand.arrays import Ints
from evenhand.tables.frame import Frame
from evenhand.tables.kinds import read_as
from evenhand.tables.problems import TableError, missing_column, rows_text

__all__ = ["find_ids", "id_texts", "odd_ids"]

_LONGEST = 200


def id_texts(frame: Frame, name: str) -> pa.Array:
    """The ids as text, as they are written; typed whole numbers without `.0`, and nothing where a cell is empty."""
    if name not in frame.schema.names:
        raise TableError(f"{frame.name}: {missing_column(name, frame.schema.names, 'the id')}")
    kind, is_ = frame.schema.field(name).type, pa.types
    if is_.is_boolean(kind) or is_.is_timestamp(kind) or is_.is_nested(kind) or is_.is_binary(kind):
        raise TableError(f"{frame.name}: column {name!r} holds {kind}: ids are text or whole numbers.")
    found = pa.concat_arrays([pa.array([], pa.string()), *(read_as(each, "category") for each in frame.column(name))])
    if is_.is_floating(kind) and (row := pc.index(pc.match_substring(found, "."), True).as_py()) >= 0:
        raise TableError(
            f"{frame.name}, row {row + 1}: {found[row].as_py()!r} is no id: ids are text or whole numbers."
        )
    return found


def find_ids(frame: Frame, name: str) -> pa.Array:
    """The ids of all rows; missing and repeated ones are refused."""
    found = id_texts(frame, name)
    if found.null_count:
        rows = np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False)).tolist()
        raise TableError(f"{frame.name}: the id {name!r} is missing in {rows_text(rows)}.")
    # counted by Arrow first, because a dict of ten million ids takes gigabytes
    if pc.count_distinct(found).as_py() < len(found):
        first: dict[str, int] = {}
        names = found.to_pylist()
        twice = [row for row, text in enumerate(names) if first.setdefault(text, row) != row]
        raise TableError(
            f"{frame.name}: an id may be there only once, but one comes again in {rows_text(twice)}: the first is "
            f"{names[twice[0]]!r}."
        )
    return found


def odd_ids(ids: pa.Array) -> Ints:
    """The rows whose ids are long, blank, not printable, or have blanks around them: perhaps no ids at all."""
    length = pc.utf8_length(ids)
    plain = pc.and_(pc.utf8_is_printable(ids), pc.equal(ids, pc.utf8_trim_whitespace(ids)))
    usual = pc.and_(plain, pc.and_(pc.greater(length, 0), pc.less_equal(length, _LONGEST)))
    return np.flatnonzero(~np.asarray(usual.to_numpy(zero_copy_only=False), dtype=bool))
