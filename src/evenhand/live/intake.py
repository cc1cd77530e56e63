"""Files of labelled rows: read, sorted row by row into what can be stored and what cannot, with the reason."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from evenhand.live.delivery import wants_numbers
from evenhand.live.learners import live_learner
from evenhand.live.parcel import Parcel
from evenhand.sources.problems import missing_column
from evenhand.sources.reading import CsvFormat, read

__all__ = ["Rejected", "read_rows", "sort_out", "write_rejected"]


@dataclass(frozen=True)
class Rejected:
    """A row that was refused: its number in the file from 1, its values, and why."""

    row: int
    values: dict[str, Any]
    reason: str


def read_rows(path: Path) -> tuple[pa.Table, list[Rejected]]:
    """A CSV, Parquet or JSON file as a table; lines of JSON that cannot be read are refused one by one."""
    if path.suffix.lower() not in (".jsonl", ".ndjson", ".json"):
        table = read(path, CsvFormat()).table.replace_schema_metadata(None)
        index = [name for name in table.column_names if name.startswith("__index_level_")]  # pandas writes it unasked
        return table.drop_columns(index), []
    found: list[dict[str, Any]] = []
    refused = []
    text = path.read_text(encoding="utf-8")
    if text.lstrip().startswith("["):
        text = "\n".join(json.dumps(record) for record in json.loads(text))
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            record = error
        if isinstance(record, dict):
            found.append(record)
        else:
            refused.append(Rejected(number, {"line": line}, "not a JSON object on one line"))
    if not found:
        raise ValueError(f"{path.name} holds no rows; JSON lines have one object per line")
    names = list(dict.fromkeys(name for record in found for name in record))
    return pa.table({name: _array([record.get(name) for record in found]) for name in names}), refused


def sort_out(
    table: pa.Table, settings: dict[str, Any], classes: list[Any], first: Parcel | None, group: str | None
) -> tuple[Parcel | None, list[Rejected]]:
    """The rows that can be stored, and those that cannot.

    Args:
        table: the rows as read.
        settings: the campaign's.
        classes: the labels known so far.
        first: the campaign's first delivery, whose columns later ones must have.
        group: the group the request is for; None where every row must name its own.
    """
    given, label, by = table, settings["label"], settings["group"]
    columns = table.column_names
    features = list(first.features if first else settings["features"] or [c for c in columns if c not in (label, by)])
    for name, what in [(label, "the label"), *((f, "a feature") for f in features)]:
        if name not in columns:
            raise ValueError(missing_column(name, columns, what))
    if group is None and by not in columns:
        raise ValueError(missing_column(by, columns, "the group"))
    if not features:
        raise ValueError("the rows have no features: every row needs at least one column beside label and group")
    reasons: list[list[str]] = [[] for _ in range(table.num_rows)]
    if by in columns:
        _check_groups(table.column(by).to_pylist(), group, settings["groups"], reasons)
    labels = _labels(table.column(label).to_pylist(), classes, settings["classes"] is not None, reasons)
    table = table.set_column(columns.index(label), label, _array(labels))
    strict = wants_numbers(live_learner(settings["learner"]))
    for name in features:
        numbers = strict or (first is not None and _is_number(first.table.schema.field(name).type))
        text = first is not None and pa.types.is_string(first.table.schema.field(name).type)
        column = _feature(name, table.column(name), numbers, text, strict, reasons)
        table = table.set_column(columns.index(name), name, column)
    good = [not found for found in reasons]
    parcel = Parcel(table, "pyarrow", tuple(features), len(features), label, by if by in columns else None)
    refused = [
        Rejected(i + 1, given.slice(i, 1).to_pylist()[0], "; ".join(found)) for i, found in enumerate(reasons) if found
    ]
    return parcel.take(good) if any(good) else None, refused


def write_rejected(path: Path, refused: Iterable[Rejected]) -> None:
    """Write refused rows and their reasons as CSV."""
    refused = list(refused)
    names = list(dict.fromkeys(name for row in refused for name in row.values))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "reason", *names])
        writer.writerows([row.row, row.reason, *(row.values.get(name) for name in names)] for row in refused)


def _check_groups(found: list[Any], group: str | None, groups: list[str], reasons: list[list[str]]) -> None:
    for i, value in enumerate(found):
        if value is None:
            reasons[i].append("no group")
        elif group is not None and str(value) != group:
            reasons[i].append(f"of group {str(value)!r}, the request is for {group!r}")
        elif str(value) not in groups:
            reasons[i].append(f"unknown group {str(value)!r}")


def _labels(found: list[Any], classes: list[Any], fixed: bool, reasons: list[list[str]]) -> list[Any]:
    """The labels, those written otherwise brought to the class they mean; `None` where there is none."""
    by_text = {str(known): known for known in classes}
    text = bool(classes) and all(isinstance(known, str) for known in classes)
    labels: list[Any] = []
    for i, value in enumerate(found):
        value = by_text.get(str(value), str(value) if text and value is not None else value)
        if value is None or value == "" or value != value:
            value, reason = None, "no label"
        elif fixed and value not in classes:
            reason = f"the label {value!r} is not among the classes {classes}"
        elif classes and isinstance(value, str) != isinstance(classes[0], str):
            reason = f"the label {value!r} is not of the kind of earlier ones, {classes}"
        else:
            reason = ""
        if reason:
            reasons[i].append(reason)
        labels.append(value)
    return labels


def _feature(
    name: str, column: pa.ChunkedArray, numbers: bool, text: bool, strict: bool, reasons: list[list[str]]
) -> pa.ChunkedArray | pa.Array:
    if text and not pa.types.is_string(column.type):
        return column.cast(pa.string())
    if not numbers:
        return column
    values = column.to_pylist()
    for i, value in enumerate(values):
        try:
            values[i] = _number(value)
        except ValueError:
            reasons[i].append(f"{name}: {value!r} is not a number")
            values[i] = None
            continue
        if strict and (values[i] is None or not math.isfinite(values[i])):
            reasons[i].append(f"{name}: {'missing' if values[i] is None else value}")
    return column if _is_number(column.type) else pa.array(values, type=pa.float64())


def _number(value: Any) -> float | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool | int | float | str):
        return float(value)
    raise ValueError


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _array(values: list[Any]) -> pa.Array:
    """Values as Arrow; those of different kinds as text, to be sorted out row by row."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])
