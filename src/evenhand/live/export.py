"""The data set a live campaign has gathered, with groups and roles."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from evenhand.files import write_atomically
from evenhand.live.campaign import LiveCampaign
from evenhand.live.fitting import deliveries

__all__ = ["as_table", "export"]

_OURS = ("group", "role", "request")


def as_table(live: LiveCampaign) -> pa.Table:
    """All delivered rows in the order they came, as given, and the columns `group`, `role` and `request`."""
    parts = []
    for event, parcel in deliveries(live.ledger, live.number):
        table, n = parcel.table.replace_schema_metadata(None), len(parcel)
        groups = parcel.groups or [event.header["group"]] * n
        if parcel.group is not None:
            table = table.drop_columns([parcel.group])
        table = table.rename_columns([f"given_{name}" if name in _OURS else name for name in table.column_names])
        roles = [{"t": "training", "v": "validation"}[role] for role in event.header["roles"]]
        table = table.append_column("group", pa.array(groups)).append_column("role", pa.array(roles))
        parts.append(table.append_column("request", pa.array([event.request] * n, type=pa.int64())))
    if not parts:
        raise ValueError(f"the campaign {live.name!r} holds no rows yet: there is nothing to export")
    return pa.concat_tables(parts, promote_options="permissive")


def export(live: LiveCampaign, path: Path) -> int:
    """Write the data set as CSV, Parquet or JSON lines, by the file's ending; gives the number of rows."""
    table = as_table(live)
    kind = path.suffix.lower()
    if kind in (".parquet", ".pq"):
        write_atomically(path, lambda part: pq.write_table(table, part))
    elif kind == ".csv":
        write_atomically(path, lambda part: pacsv.write_csv(table, part))
    elif kind in (".jsonl", ".ndjson"):
        write_atomically(path, lambda part: table.to_pandas().to_json(part, orient="records", lines=True))
    else:
        raise ValueError(f"cannot write {path.name!r}: name a .csv, .parquet or .jsonl file")
    return int(table.num_rows)
