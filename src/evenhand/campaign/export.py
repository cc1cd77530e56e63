"""The data set a campaign has gathered, with groups, roles and how every label came."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.campaign.features import decode, schema_of
from evenhand.campaign.labels import as_label
from evenhand.campaign.state import State
from evenhand.errors import InputError
from evenhand.files import write_atomically
from evenhand.ledger.base import Example, Reader
from evenhand.ledger.text import from_text
from evenhand.notation import free_name
from evenhand.tables.writing import write_csv

__all__ = ["export"]


def export(state: State, reader: Reader, path: Path, *, force: bool = False) -> int:
    """Write the data set as CSV, Parquet or JSON lines, by the file's ending; gives the number of rows."""
    kind = path.suffix.lower()
    if kind not in (".csv", ".parquet", ".pq", ".jsonl", ".ndjson"):
        raise InputError(f"cannot write {path.name!r}: name a .csv, .parquet or .jsonl file")
    # replacing it, even with force, would take away rows that were not handed out yet
    for file in map(Path, (file["path"] for file in state.files)):
        if path.absolute() == file or file in path.absolute().parents:
            raise InputError(f"{path} is the pool's own file: name another")
    if path.exists() and not force:
        raise InputError(f"{path} is there already: name a new file, or replace it with force=True (--force)")
    rows = [row for row in reader.changed() if row.features is not None and row.fate is None]
    if state.columns is None or not rows:
        raise InputError("the campaign holds no rows yet: there is nothing to export")
    names, features = _features(state, rows)
    corrected_by = _correctors(reader)
    columns = [*_free(names, state), *names]
    records = [[*_facts(row, state, corrected_by), *values] for row, values in zip(rows, features, strict=True)]
    if kind == ".csv":
        write_atomically(path, lambda part: write_csv(part, columns, records))
    elif kind in (".jsonl", ".ndjson"):
        lines = (json.dumps(dict(zip(columns, record, strict=True)), ensure_ascii=False) for record in records)
        write_atomically(path, lambda part: part.write_text("\n".join(lines) + "\n", encoding="utf-8"))
    else:
        _write_parquet(path, columns, records)
    return len(rows)


def _free(names: list[str], state: State) -> list[str]:
    """Our columns, under names that no feature has."""
    ours = [state.settings[key] for key in ("id", "group")] + ["role", "request", "origin", state.settings["label"]]
    ours += ["first_label", "corrected_by"]
    return [free_name(name, names) for name in ours]


def _facts(row: Example, state: State, corrected_by: dict[str, str]) -> list[object]:
    label, first = (as_label(text or "", state.label_kind) for text in (row.label, row.first_label))
    return [row.id, row.group, row.role, row.request, row.origin, label, first, corrected_by.get(row.id)]


def _correctors(reader: Reader) -> dict[str, str]:
    """Who corrected each label last."""
    events = reader.events(kinds=("corrected",))
    return {name: event.actor or "somebody" for event in events for name in event.facts["ids"]}


def _features(state: State, rows: list[Example]) -> tuple[list[str], Iterator[Any]]:
    columns = state.columns or {}
    if columns["kind"] == "array":
        raise InputError("this campaign's rows are arrays, which a table cannot hold: use training_set() in Python")
    stored = [row.features for row in rows if row.features is not None]
    if columns["kind"] == "sparse":
        return [str(j) for j in range(columns["width"])], iter(decode(columns, stored).toarray().tolist())
    names = list(schema_of(columns).stored) if columns["kind"] == "table" else [str(j) for j in range(columns["width"])]
    return names, (from_text(text) for text in stored)


def _write_parquet(path: Path, names: list[str], records: list[list[object]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [_unmixed(list(column)) for column in zip(*records, strict=True)]
    table = pa.table(dict(zip(names, [pa.array(column) for column in columns], strict=True)))
    write_atomically(path, lambda part: pq.write_table(table, part))


def _unmixed(column: list[object]) -> list[object]:
    """Whole numbers as floats where there are floats beside them."""
    if any(isinstance(value, float) for value in column):
        return [float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in column]
    return column
