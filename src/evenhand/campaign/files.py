"""Deliveries from files and frames: which column is what, and what is wrong with rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.campaign.deliveries import Delivery
from evenhand.campaign.examples import decode, schema_of, table_rows
from evenhand.campaign.requests import Refused
from evenhand.campaign.settings import encodes
from evenhand.campaign.state import State
from evenhand.errors import InputError
from evenhand.notation import JsonMapping
from evenhand.tables.arrow import is_text
from evenhand.tables.ids import id_texts
from evenhand.tables.kinds import read_as
from evenhand.tables.problems import missing_column
from evenhand.tables.schema import Columns
from evenhand.tables.writing import write_csv

if TYPE_CHECKING:
    from evenhand.tables.frame import Frame

OURS = ("role", "request", "origin", "first_label", "corrected_by", "fate")
"""Columns that an export adds; they are not features."""


def need_column(frame: Frame, column: str, what: str) -> None:
    """Refuse a table without a column."""
    if column not in frame.schema.names:
        raise InputError(f"{frame.name}: {missing_column(column, frame.schema.names, what)}")


def cells(frame: Frame, column: str, missing: Sequence[str] = ()) -> list[object]:
    """A column's values; text as it is written, None where a cell is empty, or one of the words for a missing value."""
    found: list[object] = []
    for chunk in frame.column(column):
        values = read_as(chunk, "category", missing) if is_text(chunk.type) else chunk
        found += [None if value is None or value != value else value for value in values.to_pylist()]
    return found


def ids_in(frame: Frame, column: str) -> list[str]:
    """The ids of a table, each once; empty for rows that could not be read."""
    names: list[str | None] = id_texts(frame, column).to_pylist()
    seen: set[str] = set()
    for row, name in enumerate(names):
        if row in frame.skipped:
            continue
        if not name:
            raise InputError(f"{frame.name} has no id in row {row + 1}")
        if name in seen:
            raise InputError(f"{frame.name} has the id {name!r} twice")
        seen.add(name)
    return [name or "" for name in names]


def as_delivery(frame: Frame, state: State, *, needs_numbers: bool, group: str | None) -> Delivery:
    """The delivery a table holds; `group` is the request's, None where every row must name its own."""
    settings, available = state.settings, frame.schema.names
    label, by, name = settings["label"], settings["group"], settings["id"]
    need_column(frame, label, "the label")
    if group is None:
        need_column(frame, by, "the group")
    given = {column: column if column in available else None for column in (name, by)}
    wanted = Columns(
        label=label, id=given[name], groups=(by,) if given[by] else (),
        features=None if settings["features"] is None else tuple(settings["features"]),
        # an export can be told to another campaign as it is
        ignore=tuple(column for column in OURS if column in available and settings["features"] is None),
        needs_numbers=needs_numbers, delivered=True,
    )  # fmt: skip
    rows = table_rows(frame, state.columns, wanted)
    problems = rows.problems | frame.skipped
    missing = missing_words(state.columns)
    groups = _texts(frame, by, missing) if given[by] else None
    # a file for the wrong request is noticed by its group column, where it has one
    for row, value in enumerate(groups or ()):
        if not value:
            problems.setdefault(row, "no group")
        elif group is not None and value != group:
            problems.setdefault(row, f"it is of group {value!r}, the request is for {group!r}")
    written = is_text(frame.schema.field(label).type)
    names = None if given[name] is None else [text or "" for text in id_texts(frame, name).to_pylist()]
    return Delivery(rows, cells(frame, label, missing), names, groups if group is None else None, written, problems)


def _texts(frame: Frame, column: str, missing: Sequence[str]) -> list[str]:
    return [text or "" for chunk in frame.column(column) for text in read_as(chunk, "category", missing).to_pylist()]


def missing_words(columns: JsonMapping | None) -> Sequence[str]:
    """The words for a missing value that this campaign's tables have, beside the empty cell."""
    return schema_of(columns).missing if columns is not None and columns["kind"] == "table" else ()


def features_in(frame: Frame, state: State, learner: object) -> Any:
    """The features in a table, as models of this learner take them; its other columns are left alone."""
    rows = table_rows(frame, state.columns, Columns())
    problems = {**rows.problems, **frame.skipped}
    if problems:
        row, why = min(problems.items())
        raise InputError(f"{frame.name}, row {row + 1}: {why}")
    return decode(state.columns or rows.columns, rows.stored, encoded=encodes(learner))


def write_refused(path: Path, frame: Frame, refused: Iterable[Refused]) -> None:
    """Write refused rows and their reasons as CSV."""
    names = list(frame.schema.names)
    table = frame.read()
    rows: list[list[object]] = []
    for r in refused:
        [values] = table.slice(r.row, 1).to_pylist()
        rows.append([r.row + 1, r.reason, *values.values()])
    write_csv(path, ["row", "reason", *names], rows)
