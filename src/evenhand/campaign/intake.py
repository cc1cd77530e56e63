"""Turns tables read from files into deliveries: finds what each column is, and what is wrong with rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evenhand.campaign.deliveries import Delivery
from evenhand.campaign.features import decode, table_rows
from evenhand.campaign.requests import Refused
from evenhand.campaign.state import State
from evenhand.campaign.tables import FileTable, need_column, write_csv
from evenhand.errors import InputError

__all__ = ["OURS", "as_delivery", "features_in", "write_refused"]

OURS = ("role", "request", "origin", "first_label", "corrected_by", "fate")
"""Columns that an export adds; they are not features."""


def as_delivery(table: FileTable, state: State, *, needs_numbers: bool, group: str | None) -> Delivery:
    """The delivery a table holds; `group` is the request's, None where every row must name its own."""
    settings, columns = state.settings, table.columns
    label, by, name = settings["label"], settings["group"], settings["id"]
    known = None if state.columns is None else state.columns.get("names")
    if known is None and state.columns is not None and "width" in state.columns:
        known = [str(j) for j in range(state.columns["width"])]
    # an export can be told to another campaign as it is
    others = (label, by, name, *OURS)
    features = known or settings["features"] or [column for column in columns if column not in others]
    need_column(table, label, "the label")
    for feature in features:
        need_column(table, feature, "a feature")
    if group is None:
        need_column(table, by, "the group")
    if not features:
        raise InputError(f"{table.name} has no features: every row needs a column beside label, group and id")
    rows = table_rows(features, [columns[f] for f in features], state.columns, numbers=needs_numbers)
    problems = dict(table.problems)
    # a file for the wrong request is noticed by its group column, where it has one
    for row, value in enumerate(columns.get(by, ())):
        if value is None:
            problems.setdefault(row, "no group")
        elif group is not None and str(value) != group:
            problems.setdefault(row, f"it is of group {str(value)!r}, the request is for {group!r}")
    groups = None if group is not None else ["" if value is None else str(value) for value in columns[by]]
    return Delivery(rows, columns[label], columns.get(name), groups, table.written, problems)


def features_in(table: FileTable, state: State) -> Any:
    """The features in a table, as models take them; its other columns are left alone."""
    columns = state.columns or {}
    if "names" in columns:
        chosen: list[str] = columns["features"] if "features" in columns else columns["names"]
        types = dict(zip(columns["names"], columns["types"], strict=True))
        columns = {**columns, "names": chosen, "types": [types[name] for name in chosen]}
    names = columns["names"] if "names" in columns else [str(j) for j in range(columns.get("width", 0))]
    for name in names:
        need_column(table, name, "a feature")
    rows = table_rows(names, [table.columns[name] for name in names], columns, numbers=False)
    problems = {**rows.problems, **table.problems}
    if problems:
        row, why = min(problems.items())
        raise InputError(f"{table.name}, row {row + 1}: {why}")
    return decode(columns, rows.stored)


def write_refused(path: Path, table: FileTable, refused: Iterable[Refused]) -> None:
    """Write refused rows and their reasons as CSV."""
    names = list(table.columns)
    rows: list[list[object]] = [[r.row + 1, r.reason, *(table.columns[n][r.row] for n in names)] for r in refused]
    write_csv(path, ["row", "reason", *names], rows)
