"""Parquet files that stay on disk: columns are scanned, and only the rows that are wanted are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.arrays import Ints
from evenhand.tables.arrow import is_text, plain, plain_schema
from evenhand.tables.frame import BATCH, Frame
from evenhand.tables.problems import TableError

__all__ = ["ParquetFiles"]

SAMPLED_ROW_GROUPS = 4
SAMPLE = 10_000
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


class ParquetFiles(Frame):
    """The Parquet files of a path, in order of their names, as one table that stays on disk."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        super().__init__(self.path.name)
        if not self.path.exists():
            raise TableError(f"there is no file {str(path)!r}.")
        # sorted: row numbers count through the files, and a folder has no order of its own
        self.files = sorted(self.path.rglob("*.parquet")) if self.path.is_dir() else [self.path]
        if not self.files:
            raise TableError(f"the folder {str(path)!r} holds no .parquet file.")
        if len({tuple(zip(schema.names, schema.types, strict=True)) for schema in self._schemas}) > 1:
            raise TableError(f"the files in {str(path)!r} do not have the same columns.")

    @cached_property
    def _schemas(self) -> list[pa.Schema]:
        try:
            return [pq.read_schema(file) for file in self.files]
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(f"{self.name} cannot be read as Parquet: {error}") from error

    def __len__(self) -> int:
        return sum(rows for _, _, rows in self.pieces)

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types, those that folders name (`sex=f`) last."""
        return self._schema

    @cached_property
    def _schema(self) -> pa.Schema:
        found = self._schemas[0]
        for name, said in self._partitions[0].items():
            found = found.append(pa.field(name, said.type))
        return plain_schema(found)

    @cached_property
    def _partitions(self) -> list[dict[str, pa.Scalar]]:
        """The values that folder names such as `sex=f` give to every file's rows; whole numbers if all of them are."""
        inside = set(self._schemas[0].names)
        found = [_partition(file.relative_to(self.path).parent, inside) for file in self.files]
        if len({tuple(partition) for partition in found}) > 1:
            raise TableError(f"the files in {str(self.path)!r} do not have the same partitions.")
        # over all files: year=2024 beside year=unknown is text in both
        kinds = {name: pa.int64() if all(_is_whole(said[name]) for said in found) else pa.string() for name in found[0]}
        return [{name: _scalar(value, kinds[name]) for name, value in said.items()} for said in found]

    @cached_property
    def _by_file(self) -> dict[Path, dict[str, pa.Scalar]]:
        return dict(zip(self.files, self._partitions, strict=True))

    def _said(self, file: Path) -> dict[str, pa.Scalar]:
        return self._by_file[file]

    @cached_property
    def pieces(self) -> list[tuple[Path, int, int]]:
        """File, row group and number of rows of every row group."""
        found = []
        with self._reading():
            for file in self.files:
                metadata = pq.read_metadata(file)
                found += [(file, i, metadata.row_group(i).num_rows) for i in range(metadata.num_row_groups)]
        return found

    def read(self) -> pa.Table:
        """The whole table."""
        with self._reading():
            whole = [_with(pq.ParquetFile(file).read(), self._said(file)) for file in self.files]
        return plain(pa.concat_tables(whole))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """These columns of all rows, some rows at a time."""
        wanted = list(columns)
        with self._reading():
            for file in self.files:
                said = self._said(file)
                inside = [name for name in wanted if name not in said]
                with pq.ParquetFile(file) as opened:
                    for batch in opened.iter_batches(BATCH, columns=inside):
                        yield plain(_with(pa.Table.from_batches([batch]), said).select(wanted))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turns what Arrow says of a damaged file into a sentence."""
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.name} cannot be read as Parquet: {error}") from None

    def column(self, name: str) -> Iterator[pa.Array]:
        """One column, chunk by chunk, text as dictionaries."""
        text = [name] if is_text(self.schema.field(name).type) else []
        with self._reading():
            for file in self.files:
                said = self._said(file)
                if name in said:
                    yield pa.repeat(said[name], pq.read_metadata(file).num_rows)
                else:
                    yield from plain(pq.ParquetFile(file, read_dictionary=text).read([name])).column(0).chunks

    def sample(self, columns: Sequence[str]) -> pa.Table:
        """Some rows of some row groups, spread over the files, to learn what the columns hold."""
        pieces = self.pieces
        # spread out, for files are often sorted by date: the first rows alone would not show later categories
        picked = {int(i) for i in np.linspace(0, len(pieces) - 1, min(len(pieces), SAMPLED_ROW_GROUPS))}
        batches = []
        for i in sorted(picked):
            file, row_group, _ = pieces[i]
            said = self._said(file)
            inside = [name for name in columns if name not in said]
            with pq.ParquetFile(file) as opened:
                batch = next(opened.iter_batches(SAMPLE, row_groups=[row_group], columns=inside))
            batches.append(_with(pa.Table.from_batches([batch]), said).select(list(columns)))
        return plain(pa.concat_tables(batches))

    def take(self, rows: Ints, columns: Sequence[str]) -> pa.Table:
        """These rows, ascending, in one pass over the row groups that hold them."""
        wanted = list(columns)
        taken = [self.schema.empty_table().select(wanted)]
        first = 0
        for file, row_group, size in self.pieces:
            start, stop = np.searchsorted(rows, [first, first + size])
            if stop > start:
                said = self._said(file)
                inside = [name for name in wanted if name not in said]
                parts = _take(file, row_group, rows[start:stop] - first, inside)
                taken += [plain(_with(part, said).select(wanted)) for part in parts]
            first += size
        return pa.concat_tables(taken)


def _partition(folder: Path, inside: set[str]) -> dict[str, str]:
    """The columns that a folder like `sex=f/year=2020` names, except those that the files hold themselves."""
    pairs = [part.partition("=") for part in folder.parts]
    return {unquote(name): unquote(value) for name, sign, value in pairs if sign and unquote(name) not in inside}


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number in its usual form, or stands for a missing value."""
    # 007 is kept as text: as a number it would come back as 7
    return text == _NOTHING or (text.lstrip("-").isdecimal() and str(int(text)) == text)


def _scalar(text: str, kind: pa.DataType) -> pa.Scalar:
    value = None if text == _NOTHING else int(text) if pa.types.is_integer(kind) else text
    return pa.scalar(value, kind)


def _with(table: pa.Table, said: dict[str, pa.Scalar]) -> pa.Table:
    """A table with the columns that its folder names."""
    for name, value in said.items():
        table = table.append_column(name, pa.repeat(value, table.num_rows))
    return table


def _take(file: Path, row_group: int, rows: Ints, columns: list[str]) -> list[pa.Table]:
    taken = []
    first = 0
    with pq.ParquetFile(file) as opened:
        # a row group may be larger than memory; its batches are not
        for batch in opened.iter_batches(BATCH, row_groups=[row_group], columns=columns):
            start, stop = np.searchsorted(rows, [first, first + batch.num_rows])
            if stop > start:
                taken.append(pa.Table.from_batches([batch.take(pa.array(rows[start:stop] - first))]).select(columns))
            first += batch.num_rows
    return taken
