"""Delivered rows as they travel to the ledger and back: Arrow bytes that say what they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenhand.engine import rows

__all__ = ["SECOND", "Parcel"]

_KEY = b"evenhand"
_ARRAYS = ("dense", "sparse")
SECOND = "2:"
"""How the fingerprints begin that are of the numbers' bytes."""


@dataclass(frozen=True)
class Parcel:
    """A table exactly as delivered, and which of its columns are what.

    Attributes:
        table: the delivered columns.
        kind: `dense`, `sparse`, or the frame library the features came in.
        features: the feature columns.
        width: how many features there are.
        label: the label column.
        group: the group column, where every row names its group.
    """

    table: pa.Table
    kind: str
    features: tuple[str, ...]
    width: int
    label: str
    group: str | None = None

    @classmethod
    def of(cls, X: Any, y: Sequence[Any], groups: Sequence[str] | None = None) -> Parcel:
        """The parcel of features, labels and, where they differ, groups."""
        table = rows.as_table(X)
        named = rows.column_names(X)
        if not isinstance(named, int):
            table = table.select(named)  # pandas adds its index otherwise
        features = tuple(table.column_names)
        label = _free("label", features)
        table = table.append_column(label, _as_column(y))
        group = None
        if groups is not None:
            group = _free("group", features)
            table = table.append_column(group, pa.array([str(g) for g in groups]))
        return cls(table, rows.kind_of(X), features, int(X.shape[1]), label, group)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def X(self) -> Any:
        """The features, in the kind they came; frames of any library as pandas."""
        kind = self.kind if self.kind in _ARRAYS else "pandas"
        return rows.from_table(self.table.select(self.features).replace_schema_metadata(None), kind, self.width)

    @cached_property
    def y(self) -> list[Any]:
        """The labels."""
        found: list[Any] = self.table.column(self.label).to_pylist()
        return found

    @property
    def groups(self) -> list[str] | None:
        """The group of every row, where the rows name it."""
        if self.group is None:
            return None
        return [str(g) for g in self.table.column(self.group).to_pylist()]

    @cached_property
    def digest(self) -> str:
        """A fingerprint of features, labels and groups; ledgers hold it, so it stays as it is."""
        found = hashlib.sha256(repr(self.features).encode())
        for column in map(self.table.column, self.features):
            plain = column.type == pa.float64() and not column.null_count
            found.update(column.to_numpy().tobytes() if plain else repr(column.to_pylist()).encode())
        found.update(repr(self.y).encode())
        if self.group:
            found.update(repr(self.groups).encode())
        return f"{SECOND}{found.hexdigest()}"

    def matches(self, digest: str) -> bool:
        """Whether a fingerprint in a ledger is this parcel's."""
        return digest == (self.digest if digest.startswith(SECOND) else self.first_digest)

    @cached_property
    def first_digest(self) -> str:
        """The fingerprint that the first ledgers hold."""
        found = hashlib.sha256(repr(self.y).encode())
        for name in (*self.features, *([self.group] if self.group else [])):
            found.update(name.encode())
            found.update(repr(self.table.column(name).to_pylist()).encode())
        return found.hexdigest()

    def to_bytes(self) -> bytes:
        """The parcel in Arrow's stream format."""
        about = {"kind": self.kind, "features": self.features, "width": self.width}
        about |= {"label": self.label, "group": self.group}
        sink = pa.BufferOutputStream()
        table = self.table.replace_schema_metadata({_KEY: json.dumps(about, separators=(",", ":"))})
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Parcel:
        """The parcel that `to_bytes` wrote."""
        with pa.ipc.open_stream(data) as stream:
            table = stream.read_all()
        about = json.loads(table.schema.metadata[_KEY])
        return cls(table, about["kind"], tuple(about["features"]), about["width"], about["label"], about["group"])

    def take(self, mask: Any) -> Parcel:
        """The rows where the mask is true."""
        table = self.table.filter(pc.equal(pa.array(np.asarray(mask)), True))
        return Parcel(table, self.kind, self.features, self.width, self.label, self.group)


def _as_column(y: Sequence[Any]) -> Any:
    try:
        return pa.array(list(y))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise ValueError(f"these labels cannot be stored, use text or 64-bit numbers, not both: {error}") from error


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name
