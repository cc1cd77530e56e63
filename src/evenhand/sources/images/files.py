"""Which image files there are, with their labels and groups: from a folder tree or from a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
from numpy.typing import NDArray

from evenhand.arrays import Values
from evenhand.errors import InputError
from evenhand.sources.table.grouping import GroupColumn, code_column, group_column, intersect
from evenhand.sources.table.problems import TableError, missing_column
from evenhand.sources.table.reading import CsvFormat, is_parquet, read

__all__ = ["SUFFIXES", "Part", "is_manifest", "listed", "tree"]

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp")

Part = tuple[list[Path], Values, NDArray[np.str_]]


def tree(folder: Path) -> dict[str, Part]:
    """The files in folders `group/label/file`, or `train/group/label/file` and `test/group/label/file`."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}")
    split = (folder / "train").is_dir() and (folder / "test").is_dir()
    return {part: _branch(folder / part if split else folder) for part in (("train", "test") if split else ("train",))}


def _branch(folder: Path) -> Part:
    files = sorted(path for path in folder.glob("*/*/*") if path.suffix.lower() in SUFFIXES)
    if not files:
        raise InputError(f"there are no images in {str(folder)!r}: they are looked for in group/label/file")
    return files, np.array([path.parent.name for path in files]), np.array([path.parts[-3] for path in files])


def is_manifest(table: object, path: str = "path") -> bool:
    """Whether a table names image files in its column `path`."""
    try:
        first = _first_row(table)
    except (ValueError, OSError):
        return False
    return path in first and Path(str(first[path])).suffix.lower() in SUFFIXES


def _first_row(table: object) -> dict[str, Any]:
    """The first row alone: a large table is not read to look at it."""
    if not isinstance(table, str | Path):
        rows = read(table, CsvFormat()).table.slice(0, 1).to_pylist()
    elif is_parquet(table):
        head = next(ds.dataset(table, format="parquet").to_batches(batch_size=1), None)
        rows = [] if head is None else head.slice(0, 1).to_pylist()
    else:
        rows = pd.read_csv(table, nrows=1, sep="\t" if ".tsv" in Path(table).suffixes else ",").to_dict("records")
    return dict(rows[0]) if rows else {}


def listed(
    table: object, label: str, groups: Sequence[str], path: str, split: str
) -> tuple[dict[str, Part], list[str]]:
    """Files named by a table, with the columns that tell label, group and part; and the groups of the training part."""
    frame = read(table, CsvFormat())
    columns = frame.table.column_names
    wanted = [(path, "the image's path"), (label, "label"), *([(split, "split")] if split in columns else [])]
    for name, what in wanted:
        if name not in columns:
            raise TableError(f"{frame.name}: {missing_column(name, columns, what)}")
        if frame.table.column(name).null_count:
            raise TableError(f"{frame.name}: column {name!r} is missing in some rows; remove them.")
    parts = [group_column(text, columns) for text in groups]
    found = intersect([part.name for part in parts], [code_column(frame.column(part.name), part) for part in parts])
    home = Path(table).parent if isinstance(table, str | Path) else Path()
    labels = code_column(frame.column(label), GroupColumn(label))
    files = [home / str(name) for name in frame.table.column(path).to_pylist()]
    y, group = np.array(labels.values)[labels.codes], np.array(found.names)[found.codes]
    if split not in columns:
        return {"train": (files, y, group)}, list(found.names)
    kind = np.array([str(value) for value in frame.table.column(split).to_pylist()])
    strange = sorted(set(kind.tolist()) - {"train", "test"})
    if strange:
        raise TableError(f"{frame.name}: column {split!r} must say 'train' or 'test', not {strange[0]!r}.")
    rows = {part: np.flatnonzero(kind == part) for part in ("train", "test")}
    if not len(rows["train"]):
        raise TableError(f"{frame.name}: column {split!r} has no row 'train'.")
    parts_of = {part: ([files[i] for i in at], y[at], group[at]) for part, at in rows.items() if len(at)}
    return parts_of, [name for name in found.names if name in parts_of["train"][2]]
