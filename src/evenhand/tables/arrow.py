"""The few Arrow types that rows are read as."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["is_text", "plain", "plain_schema", "plain_type", "undictionary"]

_PANDAS_INDEX = "__index_level_"  # pandas writes it unasked


def plain(table: pa.Table) -> pa.Table:
    """The table with few Arrow types: one of text, one of times, float64 where a number is no whole one."""
    kept = [place for place, field in enumerate(table.schema) if not field.name.startswith(_PANDAS_INDEX)]
    columns = []
    for place in kept:
        column = table.column(place)
        kind = plain_type(column.type)
        columns.append(column if kind == column.type else _cast(column, kind))
    return pa.table(columns, names=[table.schema.names[place] for place in kept])


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The columns and types of `plain`."""
    kept = [field for field in schema if not field.name.startswith(_PANDAS_INDEX)]
    return pa.schema([(field.name, plain_type(field.type)) for field in kept])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that a column is read as."""
    is_ = pa.types
    if is_.is_dictionary(kind):
        # one of numbers is numbers: only one of texts says more than its values
        value = plain_type(kind.value_type)
        return pa.dictionary(pa.int32(), value, ordered=kind.ordered) if is_.is_string(value) else value
    if is_.is_large_string(kind) or is_.is_string_view(kind) or is_.is_time(kind):
        return pa.string()
    if is_.is_decimal(kind) or is_.is_floating(kind):
        return pa.float64()
    if is_.is_duration(kind):
        return pa.duration("us")
    if is_.is_timestamp(kind) or is_.is_date(kind):
        return pa.timestamp("us")
    return pa.binary() if is_.is_large_binary(kind) else kind


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(kind):
        # not decoded: the order of the values is their owner's
        chunks = [
            pa.DictionaryArray.from_arrays(
                chunk.indices.cast(kind.index_type), chunk.dictionary.cast(kind.value_type), ordered=kind.ordered
            )
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, kind)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(kind, safe=False)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text, plainly or as a dictionary."""
    return bool(pa.types.is_string(kind) or (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)))


def undictionary(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column of texts without a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
