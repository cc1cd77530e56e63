"""A table as it was read: columns in Arrow, whole or batch by batch, in memory or on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from evenhand.arrays import Ints
from evenhand.tables.dialect import Dialect
from evenhand.tables.problems import refuse_rows

__all__ = ["BATCH", "Frame", "InMemory"]

BATCH = 20_000
"""Rows of a batch."""


class Frame(ABC):
    """A table as it was read; text is text as it is written, and what a cell means is not decided here.

    Attributes:
        name: of the file, or "the table".
        broken: what is wrong with columns that could not be converted, by name.
        skipped: what is wrong with rows that could not be read, by number; they are empty rows here.
        dialect: how a text file is written; None for others.
    """

    def __init__(
        self,
        name: str,
        *,
        broken: Mapping[str, str] | None = None,
        skipped: Mapping[int, str] | None = None,
        dialect: Dialect | None = None,
    ) -> None:
        self.name, self.broken, self.skipped, self.dialect = name, dict(broken or {}), dict(skipped or {}), dialect

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns and their Arrow types."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def column(self, name: str) -> Iterator[pa.Array]:
        """One column, chunk by chunk."""

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """These columns of all rows, some rows at a time."""

    @abstractmethod
    def take(self, rows: Ints, columns: Sequence[str]) -> pa.Table:
        """These rows by number, ascending."""

    @abstractmethod
    def sample(self, columns: Sequence[str]) -> pa.Table:
        """Rows that show what the columns hold; all of them where they are in memory."""

    @abstractmethod
    def read(self) -> pa.Table:
        """All rows at once."""

    def in_memory(self) -> InMemory:
        """The same with all rows in memory."""
        return InMemory(self.read(), self.name, broken=self.broken, skipped=self.skipped, dialect=self.dialect)

    def refuse_skipped(self) -> None:
        """Refuse a table with rows that could not be read."""
        refuse_rows(self.name, self.skipped)

    def __str__(self) -> str:
        """What was read: rows, columns, and how a text file is written."""
        said = f", {self.dialect}" if self.dialect is not None else ""
        return f"{len(self):,} rows, {len(self.schema.names):,} columns{said}"


class InMemory(Frame):
    """A table that is in memory."""

    def __init__(
        self,
        table: pa.Table,
        name: str,
        *,
        broken: Mapping[str, str] | None = None,
        skipped: Mapping[int, str] | None = None,
        dialect: Dialect | None = None,
    ) -> None:
        super().__init__(name, broken=broken, skipped=skipped, dialect=dialect)
        self.table = table

    @property
    def schema(self) -> pa.Schema:
        """The columns and their Arrow types."""
        return self.table.schema

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> Iterator[pa.Array]:
        """One column, chunk by chunk."""
        return iter(self.table.column(name).chunks)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """These columns of all rows, some rows at a time."""
        table = self.table.select(list(columns))
        return (table.slice(start, BATCH) for start in range(0, len(self), BATCH))

    def take(self, rows: Ints, columns: Sequence[str]) -> pa.Table:
        """These rows by number."""
        return self.table.select(list(columns)).take(pa.array(rows))

    def sample(self, columns: Sequence[str]) -> pa.Table:
        """All rows."""
        return self.table.select(list(columns))

    def read(self) -> pa.Table:
        """All rows at once."""
        return self.table

    def in_memory(self) -> InMemory:
        """Itself."""
        return self
