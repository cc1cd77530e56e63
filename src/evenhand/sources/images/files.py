"""Which image files there are, with their labels and groups: from a folder tree or from a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import Values
from evenhand.errors import InputError
from evenhand.tables.groups import GroupRule, find_groups
from evenhand.tables.kinds import read_as
from evenhand.tables.labels import find_labels
from evenhand.tables.problems import TableError, missing_column
from evenhand.tables.reading import column_names, read

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
        # the names first: a large table is not read to look at it
        if path not in column_names(table):
            return False
        first = next(chunk for chunk in read(table).column(path) if len(chunk))
    except InputError:
        return False
    return Path(str(first[0].as_py())).suffix.lower() in SUFFIXES


def listed(
    table: object, label: str, groups: Sequence[str], path: str, split: str
) -> tuple[dict[str, Part], list[str]]:
    """Files named by a table, with the columns that tell label, group and part; and the groups of the training part."""
    frame = read(table).in_memory()
    columns = frame.schema.names
    wanted = [(path, "the image's path"), (label, "label"), *([(split, "split")] if split in columns else [])]
    for name, what in wanted:
        if name not in columns:
            raise TableError(f"{frame.name}: {missing_column(name, columns, what)}")
    found, _ = find_groups(frame, GroupRule(tuple(groups)))
    labels = find_labels(frame, label)
    home = Path(table).parent if isinstance(table, str | Path) else Path()
    said = {name: read_as(frame.table.column(name), "category").to_pylist() for name, _ in wanted}
    for name, _ in wanted:
        if any(not value for value in said[name]):
            raise TableError(f"{frame.name}: column {name!r} is missing in some rows; remove them.")
    files = [home / name for name in said[path]]
    y, group = np.array(labels.classes)[labels.codes], np.array(found.names)[found.codes]
    if split not in columns:
        return {"train": (files, y, group)}, list(found.names)
    kind = np.array(said[split])
    strange = sorted(set(kind.tolist()) - {"train", "test"})
    if strange:
        raise TableError(f"{frame.name}: column {split!r} must say 'train' or 'test', not {strange[0]!r}.")
    rows = {part: np.flatnonzero(kind == part) for part in ("train", "test")}
    if not len(rows["train"]):
        raise TableError(f"{frame.name}: column {split!r} has no row 'train'.")
    parts_of = {part: ([files[i] for i in at], y[at], group[at]) for part, at in rows.items() if len(at)}
    return parts_of, [name for name in found.names if name in parts_of["train"][2]]
