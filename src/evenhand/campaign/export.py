"""What leaves a campaign: its data set, and whole campaigns as files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from evenhand.campaign.events import ids_in
from evenhand.campaign.examples import decode, schema_of
from evenhand.campaign.labels import as_label
from evenhand.campaign.state import State
from evenhand.errors import InputError, LedgerError
from evenhand.files import write_atomically
from evenhand.ledger import Ledger, copy, open_ledger
from evenhand.ledger.base import Example, Reader
from evenhand.ledger.text import from_text
from evenhand.notation import free_name
from evenhand.tables.writing import write_csv


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
    return {name: event.actor or "somebody" for event in events for name in ids_in(event)}


def _features(state: State, rows: list[Example]) -> tuple[list[str], Iterator[list[object]]]:
    columns = state.columns or {}
    if columns["kind"] == "array":
        raise InputError("this campaign's rows are arrays, which a table cannot hold: use training_set() in Python")
    stored = [row.features for row in rows if row.features is not None]
    if columns["kind"] == "sparse":
        values: list[list[object]] = decode(columns, stored).toarray().tolist()
    else:
        values = [from_text(text) for text in stored]
    names = schema_of(columns).stored if columns["kind"] == "table" else map(str, range(len(values[0])))
    return list(names), iter(values)


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


def save(ledger: Ledger, name: str, path: str | PathLike[str]) -> None:
    """Write one campaign to a ledger file; a file that holds an earlier stage of the same campaign is replaced."""
    target = Path(path)
    if target.exists():
        _check_earlier_stage(ledger, name, target)
    _write(ledger, target, [name])


def backup(ledger: Ledger, path: str | PathLike[str]) -> list[str]:
    """Write all campaigns to a new ledger file, each as it is at one moment, while they run; gives their names."""
    target = Path(path)
    if target.exists():
        raise InputError(f"{target} is there already: name a new file for the backup")
    return _write(ledger, target, None)


def open_backup(path: str | PathLike[str]) -> Ledger:
    """The ledger of a backup file."""
    source = Path(path)
    if not source.exists():
        raise InputError(f"there is no backup {str(source)!r}")
    try:
        return open_ledger(_url(source), read_only=True)
    except LedgerError as error:
        raise InputError(f"{source} is no backup: {error}") from None


def restore(kept: Ledger, ledger: Ledger, names: list[str] | None = None) -> list[str]:
    """Put campaigns of a backup into a database that does not have them; gives their names."""
    wanted = list(kept.campaigns()) if names is None else names
    there = sorted(set(wanted) & ledger.campaigns().keys())
    if there:
        raise InputError(f"there is a campaign {there[0]!r} already: restore into a new database")
    return copy(kept, ledger, wanted)


def _write(ledger: Ledger, target: Path, names: list[str] | None) -> list[str]:
    found: list[str] = []

    def write(part: Path) -> None:
        # a file that is not in its place yet need not survive a crash event by event
        with open_ledger(_url(part) + "?synchronous=normal", create=True) as file:
            found.extend(copy(ledger, file, names))
            file.checkpoint()

    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, write)
    # SQLite would read the log of the file that stood here before into the new one
    for end in ("-wal", "-shm"):
        target.with_name(f"{target.name}{end}").unlink(missing_ok=True)
    return found


def _check_earlier_stage(ledger: Ledger, name: str, target: Path) -> None:
    """Refuse to replace anything but an earlier stage of the same campaign."""
    refused = InputError(f"{target} is there already and is not an earlier save of {name!r}: name a new file")
    try:
        with open_ledger(_url(target), read_only=True) as kept:
            # saving a campaign over the database it lives in would cut it off from its other processes
            if list(kept.campaigns()) != [name] or kept.name == ledger.name:
                raise refused
            with kept.reading(kept.find(name)) as old, ledger.reading(ledger.find(name)) as new:
                events = old.events()
                if events != new.events(limit=len(events)):
                    raise refused
    except (InputError, LedgerError):
        raise refused from None


def _url(path: Path) -> str:
    return f"sqlite:///{path.absolute()}"
