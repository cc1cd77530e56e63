"""Pools: examples a campaign knows of before they are labelled, handed out by id.

Within a group they are handed out in the order of a hash of seed and id, so the order of a file does not matter and
examples added later mix in. Frames and CSV files are copied into the ledger at once. Parquet files stay where they are:
their rows are copied for the next thousand places of each group.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.campaign.deciding import Chooser, Proposal
from evenhand.campaign.labels import read_id
from evenhand.campaign.state import State
from evenhand.errors import InputError
from evenhand.ledger.base import Example, Reader
from evenhand.ledger.text import as_text

if TYPE_CHECKING:
    import pyarrow as pa

    from evenhand.sources.parquet import ParquetFiles
    from evenhand.sources.reading import Frame

__all__ = ["AHEAD", "PoolTable", "assign", "fetch", "pool_examples", "read_pool"]

AHEAD = 1000
"""Places of each group whose rows are copied from a Parquet file at a time."""
_BATCH = 20_000
_SHOWN = 5


@dataclass(frozen=True)
class PoolTable:
    """A table about to be registered: ids and groups of all rows, and where the rows are."""

    data: Frame | ParquetFiles
    ids: list[str]
    groups: tuple[str, ...]
    codes: np.ndarray
    labels: list[Any]
    columns: dict[str, Any]
    file: dict[str, Any] | None

    def rows(self) -> Iterator[list[str]]:
        """The stored form of all rows, a batch at a time; nothing for a file that stays where it is."""
        if self.file is None:
            table = self.data.table  # type: ignore[union-attr]
            for batch in table.select(self.columns["names"]).to_batches(max_chunksize=_BATCH):
                yield _stored(batch, self.columns)

    def stored_at(self, rows: Sequence[int]) -> list[str]:
        """The stored form of some rows."""
        names = self.columns["names"]
        if self.file is None:
            table = self.data.table.select(names).take(list(rows))  # type: ignore[union-attr]
        else:
            order = np.argsort(rows)
            table = self.data.take(np.asarray(rows)[order], names)  # type: ignore[union-attr]
            table = table.take(np.argsort(order).tolist())
        return [row for batch in table.combine_chunks().to_batches() for row in _stored(batch, self.columns)]


def place_of(seed: str, name: str) -> int:
    """Where an example stands in its group's order."""
    digest = hashlib.blake2b(name.encode(), digest_size=8, key=seed.encode()[:64]).digest()
    return int.from_bytes(digest, "big") >> 1


def read_pool(
    data: Any,
    *,
    id: str | None,
    group: str | Sequence[str],
    features: Sequence[str] | None,
    label: str,
    ignore: Sequence[str] = (),
    needs_numbers: bool = False,
) -> PoolTable:
    """Read what a pool needs to know of a frame or file; every problem is named with its rows."""
    from evenhand.sources.grouping import code_column, group_column, intersect
    from evenhand.sources.parquet import ParquetFiles
    from evenhand.sources.reading import CsvFormat, is_parquet, read

    text = tuple(name for name in (id, label) if name is not None)
    table: Frame | ParquetFiles = ParquetFiles(data) if is_parquet(data) else read(data, _format(data, CsvFormat, text))
    available = table.schema.names
    wanted = [group] if isinstance(group, str) else list(group)
    if not wanted:
        raise InputError("name the column that tells the group, group=...")
    by = [group_column(text, available) for text in wanted]
    ids = _ids(table, id, available)
    codings = [code_column(table.column(column.name), column) for column in by]
    _refuse_missing_groups(by, codings)
    found = intersect([column.name for column in by], codings)
    labels = _labels(table, label, available, len(ids))
    columns = _columns(table, available, features, {id, label, *ignore}, {column.name for column in by}, needs_numbers)
    return PoolTable(table, ids, found.names, found.codes, labels, columns, _file_facts(data, table))


def _format(data: Any, form: Any, text: tuple[str, ...]) -> Any:
    """How a CSV file is written: the separator its header has most of, a decimal comma with semicolons."""
    if not isinstance(data, str | Path) or Path(data).suffix.lower() not in (".csv", ".txt"):
        return form(text=text)
    try:
        with Path(data).open("rb") as file:
            header = file.readline().decode("utf-8", errors="replace")
            second = file.readline().decode("utf-8", errors="replace")
    except OSError:
        return form(text=text)
    separator = max((",", ";", "\t", "|"), key=header.count)
    comma = separator == ";" and re.search(r"(^|;)-?\d+,\d+(;|\s*$)", second) is not None
    return form(separator=separator, decimal="," if comma else ".", text=text)


def _ids(table: Any, id: str | None, available: Sequence[str]) -> list[str]:
    from evenhand.sources.problems import missing_column

    if id is None:
        raise InputError("name the column of the ids, id=...: every example needs its own")
    if id not in available:
        raise InputError(missing_column(id, list(available), "the id"))
    values = [value for chunk in table.column(id) for value in chunk.to_pylist()]
    missing = [row for row, value in enumerate(values) if value is None or value != value]
    if missing:
        raise InputError(f"{len(missing)} rows have no id: {_rows(missing)}")
    ids = [value if type(value) is str else _as_id(value) for value in values]
    for row, name in enumerate(ids):
        if not name.isprintable() or not name.strip() or len(name) > 200:
            try:
                read_id(name)
            except InputError as error:
                raise InputError(f"row {row + 1}: {error}") from None
    if len(set(ids)) < len(ids):
        seen: dict[str, int] = {}
        twice = [row for row, name in enumerate(ids) if seen.setdefault(name, row) != row]
        raise InputError(f"{len(twice)} ids come twice: {_rows(twice)}, the first is {ids[twice[0]]!r}")
    return ids


def _as_id(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return read_id(value)


def _rows(rows: Sequence[int]) -> str:
    shown = ", ".join(str(row + 1) for row in rows[:_SHOWN])
    return f"rows {shown}{' …' if len(rows) > _SHOWN else ''}"


def _refuse_missing_groups(by: Sequence[Any], codings: Sequence[Any]) -> None:
    for column, coding in zip(by, codings, strict=True):
        if coding.missing:
            rows = np.flatnonzero(coding.codes == len(coding.values)).tolist()
            raise InputError(f"{len(rows)} rows have no {column.name!r}, which tells their group: {_rows(rows)}")


def _labels(table: Any, label: str, available: Sequence[str], count: int) -> list[Any]:
    if label not in available:
        return [None] * count
    found = [value for chunk in table.column(label) for value in chunk.to_pylist()]
    return [None if value is None or value != value or value == "" else value for value in found]


def _columns(
    table: Any, available: Sequence[str], features: Sequence[str] | None, others: set[Any], by: set[str], numbers: bool
) -> dict[str, Any]:
    from evenhand.sources.problems import missing_column

    names = [name for name in available if name not in others]
    for feature in features or ():
        if feature not in available:
            raise InputError(missing_column(feature, list(available), "a feature"))
    used = list(features) if features is not None else [name for name in names if name not in by]
    if not used:
        raise InputError("there are no features: every example needs a column beside id, group and label")
    types = [_type(name, table.schema.field(name).type) for name in names]
    for name, kind in zip(names, types, strict=True):
        if numbers and name in used and kind not in ("number", "bool"):
            raise InputError(
                f"column {name!r} is {kind}, which the learner cannot use: choose others with features=, or take the "
                "learner 'table', which encodes text by itself"
            )
    return {"kind": "pandas", "names": names, "types": types, "features": used}


def _type(name: str, kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return "category"
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "datetime"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return "text"
    raise InputError(f"column {name!r} holds {kind}: make it numbers, text, true or false, or times, or leave it out")


def _stored(batch: pa.RecordBatch, columns: Mapping[str, Any]) -> list[str]:
    from evenhand.campaign.features import cells

    problems: dict[int, str] = {}
    found = [
        cells(name, batch.column(name).to_pylist(), kind, problems)
        for name, kind in zip(columns["names"], columns["types"], strict=True)
    ]
    if problems:
        row, why = next(iter(problems.items()))
        raise InputError(f"row {row + 1} of a batch: {why}")
    return [as_text(row) for row in zip(*found, strict=True)]


def _file_facts(data: Any, table: Any) -> dict[str, Any] | None:
    from evenhand.sources.parquet import ParquetFiles

    if not isinstance(table, ParquetFiles):
        return None
    path = Path(data).absolute()
    return {"path": str(path), **stamp(path), "digest": digest_of_files(path)}


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.parquet")) if path.is_dir() else [path]


def stamp(path: Path) -> dict[str, Any]:
    """Size and time of the files, which tell whether one changed."""
    stats = [file.stat() for file in _files(path)]
    return {"size": sum(s.st_size for s in stats), "mtime": max((s.st_mtime_ns for s in stats), default=0)}


def digest_of_files(path: Path) -> str:
    """A fingerprint of the files' content."""
    found = hashlib.blake2b(digest_size=16)
    for file in _files(path):
        with file.open("rb") as opened:
            while block := opened.read(1 << 22):
                found.update(block)
    return found.hexdigest()


def pool_examples(table: PoolTable, state: State, taken: Collection[str], first: int) -> Iterator[list[Example]]:
    """The examples to register, in batches; ids that the campaign has already are left out."""
    seed, seq, names = state.settings["seed"], state.seq + 1, table.groups
    rows = table.rows()
    for start in range(0, len(table.ids), _BATCH):
        stored: Sequence[str | None] = [None] * _BATCH if table.file is not None else next(rows)
        batch = []
        for k, name in enumerate(table.ids[start : start + _BATCH]):
            if name in taken or table.labels[start + k] is not None:
                continue
            group = names[int(table.codes[start + k])]
            place = place_of(seed, name)
            position = first + start + k if table.file is not None else 0
            batch.append(Example(id=name, group=group, place=place, features=stored[k], position=position, changed=seq))
        yield batch


def assign(
    state: State, reader: Reader, chooser: Chooser, proposals: Sequence[Proposal], seq: int
) -> list[tuple[list[Example], int]]:
    """The examples of every proposed request with their roles, and how many of them are handed out for the first time."""
    wanted: dict[str, int] = {}
    for proposal in proposals:
        wanted[proposal.decision.group] = wanted.get(proposal.decision.group, 0) + proposal.size
    pools = {group: reader.next_in_pool(group, count)[::-1] for group, count in wanted.items()}
    dealt = dict(zip(state.groups, state.dealt, strict=True))
    found: list[tuple[list[Example], int]] = []
    for proposal in proposals:
        group = proposal.decision.group
        z = state.groups.index(group)
        chosen, new = [], 0
        for _ in range(proposal.size):
            example = pools[group].pop()
            if example.role is None:
                validates = bool(chooser.roles(z, dealt[group], 1)[0])
                example = example._replace(role="validate" if validates else "train")
                dealt[group] += 1
                new += 1
            chosen.append(example._replace(held=True, request=state.asked + len(found) + 1, changed=seq + len(found)))
        found.append((chosen, new))
    return found


def fetch(state: State, examples: Sequence[Example]) -> list[Example]:
    """The examples with their rows read from the Parquet files they lie in; a file that changed is refused."""
    from evenhand.sources.parquet import ParquetFiles

    missing = [e for e in examples if e.features is None]
    found: dict[str, str] = {}
    for file in state.files:
        mine = [e for e in missing if file["first"] <= e.position < file["first"] + file["rows"]]
        if not mine:
            continue
        check_file(file)
        mine.sort(key=lambda e: e.position)
        rows = np.array([e.position - file["first"] for e in mine], dtype=np.int64)
        table = ParquetFiles(file["path"]).take(rows, file["columns"]["names"])
        stored = [row for batch in table.combine_chunks().to_batches() for row in _stored(batch, file["columns"])]
        found |= dict(zip([e.id for e in mine], stored, strict=True))
    return [e._replace(features=found.get(e.id, e.features)) for e in examples]


def check_file(file: Mapping[str, Any], *, thoroughly: bool = False) -> None:
    """Refuse a pool file that is gone or has changed since it was registered."""
    path = Path(file["path"])
    if not path.exists():
        raise InputError(f"the pool's file {path} is gone: put it back, or call pool again with another")
    now = stamp(path)
    same = (now["size"], now["mtime"]) == (file["size"], file["mtime"])
    if (not same or thoroughly) and digest_of_files(path) != file["digest"]:
        raise InputError(
            f"the pool's file {path} has changed: call pool again, which registers anew what was not handed out"
        )
