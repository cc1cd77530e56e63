"""Pools: examples a campaign knows of before they are labelled, handed out by id.

Within a group they are handed out in the order of a hash of their ids with a secret salt, which is drawn when a table is
registered, after its ids are fixed. So neither names nor the order of a file can steer who comes when; nothing shows
salts or places, and an id keeps its place whatever is registered later. Frames and CSV files are copied into the ledger at once. Parquet files stay where they are:
their rows are copied for the next thousand places of each group.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evenhand.campaign.deciding import Chooser, Proposal
from evenhand.campaign.features import schema_of
from evenhand.campaign.pool_files import digest_of_files, stamp
from evenhand.campaign.pool_tables import PoolTable, stored_rows
from evenhand.campaign.state import OUTSIDE, ROLES, State
from evenhand.errors import InputError
from evenhand.ledger.base import Example, Reader, RowOrder, Writer
from evenhand.notation import JsonMapping
from evenhand.uniforms import places

if TYPE_CHECKING:
    from evenhand.campaign.store import CampaignStore

__all__ = [
    "AHEAD",
    "Registered",
    "assign",
    "check_file",
    "draw_order",
    "fetch",
    "fetch_ahead",
    "order_anew",
    "register",
]

AHEAD = 1000
"""Places of each group whose rows are copied from a Parquet file at a time."""
_SHOWN = 5


def draw_order(settings: JsonMapping, event: int, salt: str | None = None) -> RowOrder:
    """The salt of the order of the rows that an event registers, from the system's random numbers.

    In a campaign in memory that was given a seed, the seed is the salt, so that a run can be repeated.
    """
    known = settings["seed"] if settings["order"] == "seed" else secrets.token_hex(32)
    return RowOrder(event, known if salt is None else salt)


def order_anew(writer: Writer, examples: Sequence[Example]) -> None:
    """Make a campaign a copy: its examples come in an order of their own, which tells nothing of the original's."""
    event = writer.append("changed", {"order": "copy"})
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


def _forget(found: Registered, table: PoolTable, old: JsonMapping, writer: Writer) -> None:
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


def assign(state: State, reader: Reader, chooser: Chooser, proposal: Proposal, seq: int) -> tuple[list[Example], int]:
    """The examples of a proposed request with their roles, and how many of them are handed out for the first time."""
    group = proposal.decision.group
    z = state.groups.index(group)
    examples = reader.next_in_pool(group, proposal.size)
    outside = OUTSIDE.get(proposal.decision.kind)
    if outside is None:
        roles = iter(["validate" if v else "train" for v in chooser.roles(z, state.dealt[z], len(examples)).tolist()])
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
        stored = stored_rows(table, schema, file["path"], complete=file["columns"]["complete"])
        found |= dict(zip((e.id for e in mine), stored, strict=True))
    return [e._replace(features=found.get(e.id, e.features)) for e in examples]


def fetch_ahead(store: CampaignStore, wanted: int = 1) -> None:
    """Copy rows of Parquet files for the next places of every group, outside the write lock."""
    if not store.state.files:
        return
    for file in store.refresh().files:  # another process may have registered it anew
        check_file(file)
    with store.moment() as (reader, state):
        short = [g for g in state.groups if any(e.features is None for e in reader.next_in_pool(g, wanted))]
        missing = [e for g in short for e in reader.next_in_pool(g, AHEAD + wanted) if e.features is None]
    if not missing:
        return
    rows = {e.id: e.features for e in fetch(state, missing)}  # reading a file takes long, so nobody waits for it

    def write(now: State, writer: Writer) -> None:
        # between the reading and this lock another process may have handed them out or erased them
        still = writer.find(list(rows)).values()
        writer.put([e._replace(features=rows[e.id]) for e in still if e.features is None])

    store.write(write)


def check_file(file: JsonMapping, *, thoroughly: bool = False) -> None:
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
