"""Pools: examples a campaign knows of before they are labelled, handed out by id."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evenhand.campaign.deliveries import Delivery
from evenhand.campaign.events import COPIED, POOLED, ColumnFacts, FileFacts, PoolFile, Settings, Stamp
from evenhand.campaign.events import Pooled as PooledFacts
from evenhand.campaign.examples import Rows, check_width, schema_of
from evenhand.campaign.labels import check_text, read_id
from evenhand.campaign.log import Log
from evenhand.campaign.requests import Proposal
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import MADE, ORDER_BY_SEED, OUTSIDE, ROLES, State
from evenhand.engine.settings import as_population, check_settings
from evenhand.errors import InputError
from evenhand.ledger.base import Event, Example, Reader, RowOrder, Writer
from evenhand.uniforms import places

if TYPE_CHECKING:
    import pyarrow as pa

    from evenhand.tables.frame import Frame
    from evenhand.tables.groups import GroupRule
    from evenhand.tables.schema import Columns, Schema


AHEAD = 1000
"""Places of each group whose rows are copied from a Parquet file at a time."""
_SHOWN = 5


def draw_order(settings: Settings, event: int, salt: str | None = None) -> RowOrder:
    """The salt of the order of the rows that an event registers, from the system's random numbers.

    In a campaign in memory that was given a seed, the seed is the salt, so that a run can be repeated.
    """
    known = settings["seed"] if settings["order"] == "seed" else secrets.token_hex(32)
    return RowOrder(event, known if salt is None else salt)


def order_anew(writer: Writer, examples: Sequence[Example]) -> None:
    """Make a campaign a copy: its examples come in an order of their own, which tells nothing of the original's."""
    event = COPIED.append(writer, {})
    order = RowOrder(event.seq, secrets.token_hex(32))
    writer.put_order(order)
    drawn = places(order.salt, (example.id for example in examples))
    writer.put(
        example._replace(place=place, registered=order.event) for example, place in zip(examples, drawn, strict=True)
    )


@dataclass
class Registered:
    """The result of registering a table.

    Attributes:
        new: examples that were not known, by group.
        change: by how many every group's pool grew or shrank.
        removed: examples not handed out yet that are gone, have another row now, or came with a label.
        known: ids known before.
        handed_out: ids with a label in the table that had been handed out before: the table is refused.
    """

    new: dict[str, int]
    change: dict[str, int]
    removed: dict[str, int]
    known: int = 0
    handed_out: list[str] = field(default_factory=list)


def register(
    table: PoolTable, state: State, writer: Writer, groups: Sequence[str], salt: str | None = None
) -> Registered:
    """Store the examples of a table in the pool.

    An id that was never handed out takes its row from this table; one that was handed out or labelled stays as it is.
    Either keeps its place, also one that had left. Ids of the same file that are no longer in it leave the pool. Rows with
    a label do not enter it.
    """
    # drawn here, where the table has been read to its end: who knew the salt could still choose ids that come last
    order = draw_order(state.settings, state.seq + 1, salt)
    writer.put_order(order)
    none = dict.fromkeys(groups, 0)
    found = Registered(dict(none), dict(none), dict(none))
    # nothing can be known yet, so the millions of rows of
    # a first table are registered without looking each one up
    empty = state.pool is None and not state.examples and not any(state.taken.values())
    same = {old["digest"] for old in state.files}
    for old in state.files if table.file is not None else ():
        if table.file is not None and old["path"] == table.file["path"]:
            _forget(found, table, old, writer)
    # rows of a file are not in the ledger to compare with; the file's digest stands for them
    unchanged = table.file is not None and table.file["digest"] in same
    for start, names, stored in table.batches():
        known = {} if empty else writer.find(names)
        found.known += len(known)
        writer.put(_entries(found, table, state, order, known, start, names, stored, unchanged=unchanged))
    if found.handed_out:
        shown = ", ".join(map(repr, found.handed_out[:_SHOWN])) + (" …" if len(found.handed_out) > _SHOWN else "")
        raise InputError(
            f"{len(found.handed_out)} rows have labels of examples that were handed out ({shown}): tell them by id, and "
            "leave their labels out of the pool's table"
        )
    return found


def _forget(found: Registered, table: PoolTable, old: PoolFile, writer: Writer) -> None:
    """Take out what an earlier version of the file brought: it is registered anew, or gone."""
    last = old["first"] + old["rows"] - 1
    for group, count in writer.leave_pool(old["first"], last).items():
        found.change[group] -= count
        found.removed[group] += 0 if table.file and old["digest"] == table.file["digest"] else count
    back = writer.came_back(old["first"], last)
    there = set(table.ids.to_pylist()) if back else set()
    for example in back:
        if example.id not in there:
            found.change[example.group] -= 1
            found.removed[example.group] += 1
            writer.put([example._replace(fate="gone")])


def _entries(
    found: Registered,
    table: PoolTable,
    state: State,
    order: RowOrder,
    known: Mapping[str, Example],
    start: int,
    names: Sequence[str],
    stored: Sequence[str | None],
    *,
    unchanged: bool,
) -> Iterator[Example]:
    """The examples of a batch of rows that enter the pool, change or leave it."""
    first = state.last_row + 1
    unplaced = [name for name in names if name not in known or known[name].place is None]
    drawn = dict(zip(unplaced, places(order.salt, unplaced), strict=True))
    for k, name in enumerate(names):
        row, earlier = start + k, known.get(name)
        # a row of a group that was left out
        if table.codes[row] < 0 and earlier is None:
            continue
        if earlier is not None and (earlier.label is not None or earlier.fate not in (None, "gone")):
            continue
        if earlier is not None and earlier.role is not None:  # handed out: its row and its role stay
            if row in table.labels:
                found.handed_out.append(name)
            elif earlier.fate == "gone":  # it had left the pool with an earlier version of its file
                found.change[earlier.group] += 1
                yield earlier._replace(fate=None)
            continue
        group = table.groups[int(table.codes[row])]
        if earlier is not None and earlier.in_pool:
            found.change[earlier.group] -= 1
            same_row = unchanged or (earlier.features is not None and earlier.features == stored[k])
            found.removed[earlier.group] += row in table.labels or group != earlier.group or not same_row
        if row in table.labels:
            if earlier is not None:
                yield earlier._replace(fate="gone")
            continue
        found.new[group] += earlier is None
        found.change[group] += 1
        position = first + row if table.file is not None else 0
        kept = (drawn[name], order.event) if name in drawn else (known[name].place, known[name].registered)
        yield Example(
            id=name, group=group, place=kept[0], registered=kept[1], features=stored[k], position=position,
            changed=order.event,
        )  # fmt: skip


def assign(state: State, reader: Reader, parts: Parts, proposal: Proposal, seq: int) -> tuple[list[Example], int]:
    """The examples of a proposed request with their roles, and how many of them are handed out for the first time."""
    group = proposal.decision.group
    z = state.groups.index(group)
    examples = reader.next_in_pool(group, proposal.size)
    outside = OUTSIDE.get(proposal.decision.kind)
    if outside is None:
        roles = iter(["validate" if v else "train" for v in parts.roles(z, state.dealt[z], len(examples)).tolist()])
        new = sum(example.role is None for example in examples)
    else:  # these labels are outside the validation share, so they do not change the next ordinary example's role
        roles, new = iter([ROLES[outside]] * len(examples)), 0
    chosen = [
        example._replace(
            # an example that comes back keeps the role it drew: drawing
            # again would let somebody who gives examples back choose
            role=example.role or next(roles),
            held=True,
            request=state.asked + 1,
            changed=seq,
        )
        for example in examples
    ]
    return chosen, new


def fetch(state: State, examples: Sequence[Example]) -> list[Example]:
    """The examples with their rows read from the Parquet files they lie in; a file that changed is refused."""
    missing = [e for e in examples if e.features is None]
    found: dict[str, str] = {}
    for file in state.files if missing else ():
        mine = [e for e in missing if file["first"] <= e.position < file["first"] + file["rows"]]
        if not mine:
            continue
        from evenhand.tables.parquet import ParquetFiles

        check_file(file)
        mine.sort(key=lambda e: e.position)
        rows = np.array([e.position - file["first"] for e in mine], dtype=np.int64)
        schema = schema_of(file["columns"])
        table = ParquetFiles(file["path"]).take(rows, schema.stored)
        stored = stored_rows(table, schema, file["path"], complete=bool(file["columns"]["complete"]))
        found |= dict(zip((e.id for e in mine), stored, strict=True))
    return [e._replace(features=found.get(e.id, e.features)) for e in examples]


def fetch_ahead(log: Log, wanted: int = 1) -> None:
    """Copy rows of Parquet files for the next places of every group, outside the write lock."""
    if not log.state.files:
        return
    for file in log.refresh().files:  # another process may have registered it anew
        check_file(file)
    with log.moment() as (reader, state):
        short = [g for g in state.groups if any(e.features is None for e in reader.next_in_pool(g, wanted))]
        missing = [e for g in short for e in reader.next_in_pool(g, AHEAD + wanted) if e.features is None]
    if not missing:
        return
    rows = {e.id: e.features for e in fetch(state, missing)}  # reading a file takes long, so nobody waits for it

    def write(now: State, writer: Writer) -> None:
        # between the reading and this lock another process may have handed them out or erased them
        still = writer.find(list(rows)).values()
        writer.put([e._replace(features=rows[e.id]) for e in still if e.features is None])

    log.write(write)


def check_file(file: PoolFile, *, thoroughly: bool = False) -> None:
    """Refuse a pool file that is gone or has changed since it was registered."""
    path = Path(file["path"])
    if not path.exists():
        raise InputError(f"the pool's file {path} is gone: put it back, or call pool again with another")
    now = stamp(path)
    # a digest reads the whole file, which may be many gigabytes:
    # an unchanged stamp is taken for an unchanged file
    if (now["size"], now["mtime"]) == (file["size"], file["mtime"]) and not thoroughly:
        return
    digest = digest_of_files(path) if thoroughly else _digest_at(path, now["size"], now["mtime"])
    if digest != file["digest"]:
        raise InputError(
            f"the pool's file {path} has changed: call pool again, which registers anew what was not handed out"
        )


@cache
def _digest_at(path: Path, size: int, mtime: int) -> str:
    """The digest of files as they are now, taken once: a file that was only touched is not read at every ask."""
    return digest_of_files(path)


@dataclass(frozen=True)
class PoolTable:
    """A table about to be registered.

    Attributes:
        frame: where the rows are.
        ids: the id of every row.
        groups, codes: the groups there are, and every row's place among them; −1 for a row that is left out.
        labels: the labels that are there already, by row number.
        schema: what the columns are.
        file: path, size, time and digest of a Parquet file, which stays where it is; None for what is copied.
        written: whether the labels are text as it is written in a file.
        complete: whether rows with missing values are refused, because the learner takes numbers alone.
    """

    frame: Frame
    ids: pa.Array
    groups: tuple[str, ...]
    codes: np.ndarray
    labels: dict[int, object]
    schema: Schema
    file: FileFacts | None
    written: bool
    complete: bool

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def columns(self) -> ColumnFacts:
        """What the rows look like, as the ledger keeps it."""
        return {"kind": "table", "complete": self.complete, **self.schema.to_json()}

    @property
    def said(self) -> tuple[str, str]:
        """What was read, and what its columns hold, in words."""
        new = [f"`{name}`" for name in self.frame.schema.names if name not in self.schema]
        more = f"; not in the first table, and left out: {', '.join(new[:12])}" if new else ""
        return f"read {self.frame}", self.schema.summary() + more

    @property
    def has_lookalikes(self) -> bool:
        """Whether an id looks like those that campaigns make."""
        import pyarrow.compute as pc

        return bool(pc.any(pc.match_substring_regex(self.ids, f"^({MADE.pattern})$")).as_py())

    @property
    def _there(self) -> list[str]:
        """The columns to store; those that are only kept may be absent from a later table."""
        available = set(self.frame.schema.names)
        return [name for name in self.schema.stored if name in available]

    def batches(self) -> Iterator[tuple[int, list[str], Sequence[str | None]]]:
        """The rows, some at a time: the number of the first, their ids, and their stored form.

        None stands for each row of a file that stays where it is.
        """
        start = 0
        for batch in self.frame.batches(self._there):
            names = self.ids.slice(start, batch.num_rows).to_pylist()
            if self.file is not None:
                yield start, names, [None] * batch.num_rows
            else:
                yield start, names, stored_rows(batch, self.schema, self.frame.name, start, complete=self.complete)
            start += batch.num_rows

    def stored_at(self, rows: Sequence[int]) -> list[str]:
        """The stored form of some rows, ascending."""
        table = self.frame.take(np.asarray(rows, dtype=np.int64), self._there)
        return stored_rows(table, self.schema, self.frame.name, complete=self.complete)

    def like(self, state: State) -> PoolTable:
        """The table with the schema of earlier rows; refuses unknown groups and columns."""
        from evenhand.tables.problems import rows_text

        unknown = {z for z, group in enumerate(self.groups) if state.groups and group not in state.groups}
        if unknown:
            rows = np.flatnonzero(np.isin(self.codes, list(unknown)))
            raise InputError(
                f"unknown group {self.groups[min(unknown)]!r} ({rows_text(rows.tolist())}): the groups are "
                f"{', '.join(map(repr, state.groups))}"
            )
        for group in self.groups:
            check_text(group, "the group")
        if state.columns is None or not state.has_rows:
            return self
        if state.columns["kind"] != "table":
            raise InputError("earlier rows were arrays, a pool is a table: deliver one kind")
        earlier = schema_of(state.columns)
        earlier.check_names(self.frame.schema.names, self.frame.name)
        return replace(self, schema=earlier)


def read_pool(
    frame: Frame,
    columns: Columns,
    rule: GroupRule,
    *,
    label: str,
    earlier: ColumnFacts | None = None,
    is_first: bool = True,
    path: Path | None = None,
) -> PoolTable:
    """What a pool needs to know of a table; every problem is named with its rows.

    Args:
        frame: the table.
        columns: what is said of its columns; without an `id` the number of a row, from 0 up, is its id.
        rule: how groups are told.
        label: the column of labels, which the table need not have.
        earlier: the columns of rows that came before, or that were named when the campaign was made.
        is_first: whether no rows came before.
        path: where a Parquet file is that stays on disk.
    """
    from evenhand.tables.arrow import is_text
    from evenhand.tables.groups import find_groups
    from evenhand.tables.schema import check_names, infer

    frame.refuse_skipped()
    check_width(frame)
    there = label in frame.schema.names
    columns = replace(columns, label=label if there else None)
    check_names(frame, columns)
    found, _ = find_groups(frame, rule)
    # a second table of the same pool is read with the schema of the first
    if is_first:
        schema = infer(frame, columns) if earlier is None else _as_made(frame, columns, schema_of(earlier))
    elif earlier is not None and earlier["kind"] == "table":
        schema = schema_of(earlier)
        if columns.features is not None and set(columns.features) != set(schema.features):
            raise InputError(f"the features were {list(schema.features)} in earlier rows: give the same with features=")
    else:
        raise InputError("earlier rows were arrays, a pool is a table: deliver one kind")
    ids = _row_numbers(frame) if columns.id is None else _ids(frame, columns.id)
    labels = (
        {row: value for row, value in _labels(frame, label, rule).items() if found.codes[row] >= 0} if there else {}
    )
    file = None if path is None else file_facts(path)
    written = there and is_text(frame.schema.field(label).type)
    return PoolTable(frame, ids, found.names, found.codes, labels, schema, file, written, columns.needs_numbers)


def _as_made(frame: Frame, columns: Columns, made: Schema) -> Schema:
    """The schema with the features that were named when the campaign was made, and all other columns as they are."""
    from evenhand.tables.schema import infer

    made.check_names(frame.schema.names, frame.name)
    found = infer(frame, replace(columns, features=made.features, delivered=True, needs_numbers=False))
    return replace(found, columns=tuple(made[c.name] if c.name in made.features else c for c in found.columns))


# -------------------------------------------------------------------- ids, labels


def _row_numbers(frame: Frame) -> pa.Array:
    """Numbers of the rows, from 0 up, as ids."""
    import pyarrow as pa

    return pa.array(np.arange(len(frame))).cast(pa.string())


def _ids(frame: Frame, id: str) -> pa.Array:
    """The ids as text, as they are written, each one once."""
    from evenhand.tables.ids import find_ids, odd_ids

    found = find_ids(frame, id)
    for row in odd_ids(found).tolist():
        try:
            read_id(found[row].as_py())
        except InputError as error:
            raise InputError(f"{frame.name}, row {row + 1}: {error}") from None
    return found


def _labels(frame: Frame, label: str, rule: GroupRule) -> dict[int, object]:
    """The labels there are, by row number; only an empty cell is none."""
    from evenhand.tables.arrow import is_text
    from evenhand.tables.labels import find_labels

    found = find_labels(frame, label, missing=rule.missing, merge_spellings=rule.merge_spellings)
    # text as it is written means what the campaign's classes are; what is typed already is of that type
    written = is_text(frame.schema.field(label).type)
    values = [str(value) for value in found.classes] if written else list(found.classes)
    return {row: values[code] for row, code in enumerate(found.codes.tolist()) if code >= 0}


# -------------------------------------------------------------------- rows


def stored_rows(table: pa.Table, schema: Schema, name: str, start: int = 0, *, complete: bool = False) -> list[str]:
    """The stored form of rows; one that cannot be stored is refused, by its row number.

    `complete` refuses rows with missing values, too.
    """
    from evenhand.tables.problems import refuse_rows
    from evenhand.tables.stored import to_text

    rows = schema.read(table, start, schema.stored)
    problems = dict(rows.problems)
    for column in schema.features if complete else ():
        if rows.table.column(column).null_count:
            gaps = np.flatnonzero(rows.table.column(column).is_null().to_numpy())
            why = f"{column} is missing, which the learner cannot use: remove or impute it"
            problems = {**dict.fromkeys((gaps + start).tolist(), why), **problems}
    refuse_rows(name, problems)
    return to_text(rows.table)


def file_facts(path: Path) -> FileFacts:
    """What the ledger keeps of a pool's file: where it is, its stamp and its digest."""
    path = path.absolute()
    return {"path": str(path), **stamp(path), "digest": digest_of_files(path)}


def _parts_of(path: Path) -> list[Path]:
    return sorted(path.rglob("*.parquet")) if path.is_dir() else [path]


def stamp(path: Path) -> Stamp:
    """The size and time of the files, which show whether one has changed."""
    stats = [file.stat() for file in _parts_of(path)]
    return {"size": sum(s.st_size for s in stats), "mtime": max((s.st_mtime_ns for s in stats), default=0)}


def digest_of_files(path: Path) -> str:
    """A fingerprint of the files' names and content."""
    found = hashlib.blake2b(digest_size=16)
    for file in _parts_of(path):
        if path.is_dir():
            # names and sizes too: else rows moved from one file to the next would go unnoticed
            found.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as opened:
            while block := opened.read(1 << 22):
                found.update(block)
    return found.hexdigest()


def register_event(
    parts: Parts, state: State, writer: Writer, table: PoolTable, id: str, by: str | None, salt: str | None
) -> tuple[Event, Registered, PoolTable]:
    """Store the examples of a table and the event that brings them; gives the table with the schema of earlier ones."""
    settings, groups = state.settings, state.groups or list(table.groups)
    population = settings["population"]
    if not state.groups:
        check_settings(
            groups, parts.strategy, budget=settings["budget"], batch=settings["batch"], warmup=settings["warmup"],
            validation=settings["validation"],
        )  # fmt: skip
        population = _shares(parts, table, population)
    if state.frozen is not None and settings["order"] == "seed":
        raise InputError(f"a model is frozen, and a pool would end its proof: {ORDER_BY_SEED}")
    table = table.like(state)  # another process may have brought columns or groups since
    found = register(table, state, writer, groups, salt)
    facts: PooledFacts = {
        "groups": groups, "population": population, "counts": [found.change[g] for g in groups],
        "removed": [found.removed[g] for g in groups],
        "columns": table.columns, "read": table.said[0], "files": _files(state, writer, table), "id": id,
        "last_row": state.last_row + (len(table) if table.file is not None else 0),
        "lookalikes": table.has_lookalikes,
    }  # fmt: skip
    return POOLED.append(writer, facts, actor=by), found, table


def _shares(parts: Parts, table: PoolTable, given: Any) -> list[float] | None:
    """The population's shares where the rule needs them: those of the pool, if none were given."""
    if given is not None or not parts.needs.population:
        return None if given is None else list(given)
    counts = [int((table.codes == z).sum()) for z in range(len(table.groups))]
    share = as_population(counts, table.groups, parts.strategy)
    return None if share is None else share.tolist()


class Pooled(NamedTuple):
    """What registering a pool brought.

    Attributes:
        groups: new examples by group.
        known: ids known already.
        labelled: labelled rows taken in.
        event: the number of the event.
        read: what was read, in words.
        schema: what its columns hold, in words.
    """

    groups: dict[str, int]
    known: int
    labelled: int
    event: int
    read: str
    schema: str


def _files(state: State, writer: Writer, table: PoolTable) -> list[PoolFile]:
    """The Parquet files that rows of the pool lie in, once a table is registered."""
    new = None if table.file is None else table.file["path"]
    known = [
        file
        for file in state.files
        if file["path"] != new and writer.pool_counts(file["first"], file["first"] + file["rows"] - 1)
    ]
    if table.file is not None:
        known.append({**table.file, "first": state.last_row + 1, "rows": len(table), "columns": table.columns})
    return known


def labelled_rows(table: PoolTable) -> Delivery:
    """The rows of a pool's table that have a label already."""
    rows, ids = list(table.labels), table.ids
    groups = [table.groups[int(table.codes[row])] for row in rows]
    names = [ids[row].as_py() for row in rows]
    features = Rows(table.columns, list(table.stored_at(rows)))
    return Delivery(features, list(table.labels.values()), names, groups, table.written)
