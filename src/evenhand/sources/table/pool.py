"""Prepares a table: groups, labels and coded rows; everything that is wrong with it is said at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenhand.arrays import Ints, Values
from evenhand.sources.table.rows import OnDisk, RowsByNumber
from evenhand.tables.encoder import Coded, Layout
from evenhand.tables.frame import Frame, InMemory
from evenhand.tables.groups import OTHER, GroupColumn, GroupRule, Groups, code_column, find_groups
from evenhand.tables.ids import find_ids
from evenhand.tables.labels import Labels, find_labels
from evenhand.tables.parquet import ParquetFiles
from evenhand.tables.problems import TableError, names, raise_all, refuse_rows
from evenhand.tables.schema import Columns, Schema, group_names, infer
from evenhand.tables.spelling import alike

__all__ = ["Pool", "TestPart", "Wanted", "make_pool", "make_test"]

MOST_CLASSES = 200
TINY = 30
_OURS = (("row", "round", "role", "group"), ("row", "role", "group", "predicted"))
_ROLES = {"train", "validation", "test"}


@dataclass(frozen=True)
class Wanted:
    """What a user says of a table: its columns, the groups, and what becomes of categories that only test rows have."""

    columns: Columns
    groups: GroupRule
    unseen: str = "error"


@dataclass(frozen=True)
class Pool:
    """Everything a source needs to know of its table.

    Attributes:
        schema: what the columns hold.
        groups, merged: the groups, and the small ones among them that became one.
        units: which person, or other unit, each row belongs to.
        by_group: the rows of every group.
        y, classes: the labels.
        layout, rows: the coded rows.
        typed: all rows as the schema reads them; of a pool on disk some rows, which the layout is told from.
        notes: what is worth knowing about the table.
    """

    schema: Schema
    groups: Groups
    merged: tuple[str, ...]
    units: Ints | None
    by_group: list[Ints]
    y: NDArray[np.int16]
    classes: Values
    layout: Layout
    rows: RowsByNumber
    typed: pa.Table
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TestPart:
    """Test rows, sorted by group, how many each group has, and their row numbers in the table they come from."""

    rows: Coded
    y: NDArray[np.int16]
    counts: Ints
    numbers: Ints

    __test__ = False


def make_pool(frame: Frame, wanted: Wanted) -> Pool:
    """Check a table and prepare it; pools on disk are scanned for groups and labels only."""
    frame.refuse_skipped()
    columns, by = wanted.columns, group_names(wanted.groups.columns, frame.schema.names)
    _check_roles(frame.name, columns, by)
    ours = bookkeeping(frame, columns, by)
    # what a column is, is told from a sample where the pool stays on disk: a full scan would read every byte of it
    seen = InMemory(frame.sample(frame.schema.names), frame.name, broken=frame.broken)
    # data sets name their features: a user may still ignore some of them
    features = None if columns.features is None else tuple(f for f in columns.features if f not in columns.ignore)
    schema = infer(seen, replace(columns, features=features, ignore=(*columns.ignore, *ours)))
    if columns.id is not None and not isinstance(frame, ParquetFiles):
        # only looked at: the rows of a pool on disk are too many for that
        find_ids(frame, columns.id)
    labels = _labels(frame, wanted)
    groups, merged = find_groups(frame, wanted.groups)
    raise_all(_label_problems(str(columns.label), labels) + _group_problems(groups), frame.name)
    typed = schema.read(seen.table).refuse(frame.name)
    layout = Layout.of(typed.select(list(schema.encoded)))
    rows = OnDisk(frame, schema, layout.code) if isinstance(frame, ParquetFiles) else layout.code(typed)
    return Pool(
        schema=schema,
        groups=groups,
        merged=merged,
        units=_units(frame, columns.unit),
        by_group=_by_group(groups),
        y=labels.codes.astype(np.int16),
        classes=np.array(labels.classes),
        layout=layout,
        rows=rows,
        typed=typed,
        notes=(*_notes(wanted, groups, merged, ours), *schema.notes(), *_texts(schema)),
    )


def make_test(frame: InMemory, wanted: Wanted, pool: Pool) -> tuple[TestPart, pa.Table, tuple[str, ...]]:
    """A test table with the pool's groups, classes and features, its typed rows, and notes about it."""
    title = f"the test part ({frame.name})"
    refuse_rows(title, frame.skipped)
    raise_all([frame.broken.get(name) for name in (str(wanted.columns.label), *pool.schema.features)], title)
    typed = pool.schema.read(frame.table).refuse(title)
    labels = _labels(frame, wanted)
    groups, _ = find_groups(frame, replace(wanted.groups, exclude=(), merge_below=0))
    same = alike if wanted.groups.merge_spellings else str
    # by text: 1 in the pool may be 1.0 or "1" in a test file that was saved by another program
    known = {same(str(label)): code for code, label in enumerate(pool.classes.tolist())}
    strange = [label for label in labels.classes if same(str(label)) not in known]
    place = {same(name): z for z, name in enumerate(pool.groups.names)}
    # merged groups are the last one, `other`
    place |= dict.fromkeys(map(same, pool.merged), len(pool.groups.names) - 1)
    left_out = set(map(same, wanted.groups.exclude))
    unseen = [name for name in groups.names if same(name) not in place and same(name) not in left_out]
    problems = [f"label {wanted.columns.label!r} has values the pool has not: {names(strange)}."] if strange else []
    problems += [f"there are groups the pool has not: {names(unseen)}; exclude them."] if unseen else []
    problems += [_unlabelled(str(wanted.columns.label), labels)] if (labels.codes < 0).any() else []
    new = [
        f"test column {name!r} has values never seen in the pool ({names(values, 3)})"
        for name, values in pool.layout.unseen(typed).items()
    ]
    # of a pool on disk only a sample was read: a category that it lacks may well be in the pool
    refuse = wanted.unseen == "error" and not isinstance(pool.rows, OnDisk)
    problems += [f"{each}; remove those rows, or let them count as none (unseen='ignore')." for each in new if refuse]
    raise_all(problems, title)
    group = np.array([place.get(same(name), -1) for name in groups.names])[groups.codes]
    # rows of excluded groups have −1 and stand first
    order = np.argsort(group, kind="stable")[np.count_nonzero(group < 0) :]
    y = np.array([known[same(str(label))] for label in labels.classes], dtype=np.int16)[labels.codes]
    counts = np.bincount(group[order], minlength=len(pool.groups.names))
    part = TestPart(pool.layout.code(typed)[order], y[order], counts, order)
    notes = [f"no test row of group {pool.groups.names[z]!r}" for z in np.flatnonzero(counts == 0)]
    return part, typed, (*notes, *(f"{each}: they count as none" for each in new))


def _check_roles(title: str, columns: Columns, by: Sequence[str]) -> None:
    """Refuse columns that are to be two things at once."""
    if not by:
        raise TableError("name at least one group column: groups=['sex'] (--group sex).")
    if len(set(by)) < len(by) or columns.label in by:
        raise TableError(f"{title}: label and group columns must all be different, got {[columns.label, *by]}.")
    useless = [name for name in columns.ignore if columns.features is not None and name not in columns.features]
    if useless:
        raise TableError(f"ignoring {names(useless)} has no effect: only the features you name are predicted from.")
    if columns.label in columns.ignore:
        raise TableError(f"{columns.label!r} is the label: it cannot be ignored.")


def bookkeeping(frame: Frame, columns: Columns, by: Sequence[str]) -> tuple[str, ...]:
    """The columns that `curate` added, if the table is a file that it wrote."""
    available = set(frame.schema.names)
    for names_ in _OURS:
        ours = [f"evenhand_{name}" if f"evenhand_{name}" in available else name for name in names_]
        role = ours[names_.index("role")]
        # a table may well have a column called role: only with our own values in it are the columns ours
        if available.issuperset(ours) and set(frame.sample([role]).column(0).unique().to_pylist()) <= _ROLES:
            named = {columns.label, *by, *(columns.features or ()), *columns.ignore}
            return tuple(name for name in ours if name not in named)
    return ()


def _labels(frame: Frame, wanted: Wanted) -> Labels:
    label, merge = str(wanted.columns.label), wanted.groups.merge_spellings
    return find_labels(frame, label, missing=wanted.columns.missing, merge_spellings=merge)


def _label_problems(label: str, found: Labels) -> list[str | None]:
    if (found.codes < 0).any():
        return [_unlabelled(label, found)]
    if len(found.classes) < 2:
        return [f"label {label!r} is always {found.classes[0]!r}; there is nothing to learn."]
    if len(found.classes) > MOST_CLASSES:
        return [f"label {label!r} has {len(found.classes):,} values; make classes of it, at most {MOST_CLASSES}."]
    counts = np.bincount(found.codes, minlength=len(found.classes))
    single = [value for value, count in zip(found.classes, counts, strict=True) if count == 1]
    return [f"label {label!r} has a single example of {names(single)}; merge or remove it."] if single else []


def _unlabelled(label: str, found: Labels) -> str:
    return f"label {label!r} is missing in {np.count_nonzero(found.codes < 0):,} rows; remove them, or fill them in."


def _group_problems(groups: Groups) -> list[str | None]:
    single = [name for name, count in zip(groups.names, groups.counts, strict=True) if count == 1]
    if not groups.names:
        return ["every group is excluded."]
    if not single:
        return []
    return [
        f"a group needs 2 rows, one to train on and one to validate, and these have one: {names(single)}; make one group "
        "of all small ones (merge_below=..., --merge-below), or leave them out (exclude=[...], --exclude)."
    ]


def _by_group(groups: Groups) -> list[Ints]:
    order = np.argsort(groups.codes, kind="stable")
    if len(order) < np.iinfo(np.int32).max:
        # half the memory, which counts with a hundred million rows
        order = order.astype(np.int32)
    return np.split(order[len(order) - groups.counts.sum() :], np.cumsum(groups.counts)[:-1])


def _units(frame: Frame, column: str | None) -> Ints | None:
    """The unit of every row; a row without one is a unit of its own."""
    if column is None:
        return None
    coding = code_column(frame.column(column), GroupColumn(column))
    units = coding.codes.astype(np.int64)
    # missing units share one code, and must not become one large person
    units[coding.missing] = len(coding.values) + np.arange(len(coding.missing))
    return units


def _notes(wanted: Wanted, groups: Groups, merged: Sequence[str], ours: Sequence[str]) -> tuple[str, ...]:
    columns, rule = wanted.columns, wanted.groups
    notes = [f"no row of {name!r}" for name in groups.empty]
    notes += [f"{names(merged)} are one group, {OTHER!r}: fewer than {rule.merge_below:,} rows each"] if merged else []
    notes += [f"columns that curate wrote are left out: {', '.join(ours)}"] if ours else []
    notes += [f"all rows of one {columns.unit!r} stand on one side of every split"] if columns.unit else []
    notes += [
        f"{n} rows of {name!r}: too few to say much"
        for name, n in zip(groups.names, groups.counts, strict=True)
        if n < TINY
    ]
    notes += [f"rows of {name!r} left out" for name in rule.exclude]
    used = "also features" if columns.use_group_as_feature else "not features"
    return (*notes, f"group columns ({', '.join(groups.columns)}) are {used}")


def _texts(schema: Schema) -> list[str]:
    """What becomes of columns that are features and no numbers yet."""
    return [
        f"column {name!r} holds {schema[name].kind}s: only a Pipeline that takes columns as they are learns from it"
        for name in schema.features
        if not schema[name].encoded
    ]
