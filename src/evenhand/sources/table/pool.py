"""Prepares a table: groups, labels and coded rows; everything that is wrong with it is reported at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evenhand.arrays import Ints, Values
from evenhand.sources.table.columns import (
    Coded,
    Layout,
    column_problem,
    counts_the_rows,
    holds_dates_as_text,
    is_free_text,
    plan,
)
from evenhand.sources.table.grouping import (
    OTHER,
    Coding,
    GroupColumn,
    Groups,
    code_column,
    group_column,
    intersect,
    merge_small,
    value_text,
)  # fmt: skip
from evenhand.sources.table.parquet import ParquetFiles, ParquetRows
from evenhand.sources.table.problems import TableError, missing_column, names, raise_all
from evenhand.sources.table.reading import Frame

__all__ = ["Columns", "Pool", "TestPart", "make_pool", "make_test"]

MOST_CLASSES = 200
TINY = 30
FEW = 30
"""With fewer rows than this, all values of a column may differ by chance."""
_OURS = (("row", "round", "role", "group"), ("row", "role", "group", "predicted"))
_ROLES = {"train", "validation", "test"}


class CodedRows(Protocol):
    """Coded rows by row number."""

    def __getitem__(self, rows: Ints) -> Coded: ...


@dataclass(frozen=True)
class Columns:
    """What each column of a table is used for."""

    label: str
    groups: tuple[str, ...]
    features: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    use_group_as_feature: bool = False
    max_categories: int = 1000
    unseen: str = "error"
    id: str | None = None
    split_by: str | None = None
    merge_below: int = 0


@dataclass(frozen=True)
class Pool:
    """Everything a source needs to know of its table.

    `merged` are small groups that became one; `units` says which person, or other unit, each row belongs to.
    `features` are all columns to predict from. Those of `texts` are free text, which has no place in the layout: only
    learners that take columns as they are can use it.
    """

    groups: Groups
    merged: tuple[str, ...]
    units: Ints | None
    by_group: list[Ints]
    y: NDArray[np.int16]
    classes: Values
    features: tuple[str, ...]
    texts: tuple[str, ...]
    layout: Layout
    rows: CodedRows
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TestPart:
    """Test rows, sorted by group, how many each group has, and their row numbers in the table they come from."""

    rows: Coded
    y: NDArray[np.int16]
    counts: Ints
    numbers: Ints

    __test__ = False


def make_pool(data: Frame | ParquetFiles, columns: Columns) -> Pool:
    """Check a table and prepare it; pools on disk are scanned for groups and labels only."""
    title, available = data.name, list(data.schema.names)
    parts = _group_columns(columns, available, title)
    problems = _missing(columns, available)
    problems += [_unusable(data, name) for name in (columns.label, *(part.name for part in parts)) if name in available]
    raise_all(problems, title)
    labels = code_column(data.column(columns.label), GroupColumn(columns.label), keep_order=False)
    codings = [code_column(data.column(part.name), part) for part in parts]
    groups = intersect([part.name for part in parts], codings, columns.exclude)
    groups, merged = merge_small(groups, columns.merge_below)
    ours = bookkeeping(data, columns)
    features = _features(columns, available, [part.name for part in parts], ours)
    # what a column is, is read off a sample where the pool
    # stays on disk: a full scan would read every byte of it
    sample = data.sample(features)
    problems = _label_problems(columns.label, labels) + _group_problems(groups)
    texts = tuple(name for name in features if is_free_text(sample.column(name), columns.max_categories))
    sample = sample.drop_columns(list(texts))
    for name in sample.column_names:
        problems.append(data.broken.get(name) or column_problem(name, sample.column(name), columns.max_categories))
    # before the layout is made, which takes for granted that every column can be used
    raise_all(problems, title)
    layout = plan(sample)
    rows: CodedRows = ParquetRows(data, layout) if isinstance(data, ParquetFiles) else layout.code(sample)
    return Pool(
        groups=groups,
        merged=merged,
        units=_units(data, columns.split_by),
        by_group=_by_group(groups),
        y=labels.codes.astype(np.int16),
        classes=np.array(labels.values),
        features=tuple(features),
        texts=texts,
        layout=layout,
        rows=rows,
        notes=(*_notes(columns, groups, merged, ours), *_row_numbers(sample), *_dates(sample), *map(_is_text, texts)),
    )


def make_test(frame: Frame, columns: Columns, pool: Pool) -> tuple[TestPart, tuple[str, ...]]:
    """A test table with the pool's groups, classes and features, and notes about it."""
    table = frame.table
    title = f"the test part ({frame.name})"
    parts = _group_columns(columns, table.column_names, title)
    needed = [(columns.label, "label"), *((name, "a feature of the pool") for name in pool.features)]
    raise_all(_absent(needed, table.column_names), title)
    labels = code_column(frame.column(columns.label), GroupColumn(columns.label), keep_order=False)
    groups = intersect([p.name for p in parts], [code_column(frame.column(p.name), p) for p in parts])
    # by text: 1 in the pool may be 1.0 or "1" in a test file that was saved by another program
    known = {value_text(value): code for code, value in enumerate(pool.classes.tolist())}
    strange = [value for value in labels.values if value_text(value) not in known]
    # merged groups are the last one, `other`
    place = {name: z for z, name in enumerate(pool.groups.names)} | dict.fromkeys(
        pool.merged, len(pool.groups.names) - 1
    )
    unseen = [name for name in groups.names if name not in place and name not in columns.exclude]
    problems = [f"label {columns.label!r} has values the pool has not: {names(strange)}."] if strange else []
    problems += [f"there are groups the pool has not: {names(unseen)}; exclude them."] if unseen else []
    problems += [f"label {columns.label!r} is missing in some rows; remove them."] if labels.missing else []
    new = _unseen_categories(table, pool.layout)
    # of a pool on disk only a sample was read: a category that it lacks may well be in the pool
    refuse = columns.unseen == "error" and not isinstance(pool.rows, ParquetRows)
    problems += [f"{each}; remove those rows, or let them count as none (unseen='ignore')." for each in new if refuse]
    raise_all(problems, title)
    position = np.array([place.get(name, -1) for name in groups.names])
    group = position[groups.codes]
    # rows of excluded groups have −1 and stand first
    order = np.argsort(group, kind="stable")[np.count_nonzero(group < 0) :]
    y = np.array([known[value_text(value)] for value in labels.values], dtype=np.int16)[labels.codes]
    try:
        coded = pool.layout.code(table)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TableError(f"{title}: a column has another type than in the pool: {error}") from error
    counts = np.bincount(group[order], minlength=len(pool.groups.names))
    notes = [f"no test row of group {pool.groups.names[z]!r}" for z in np.flatnonzero(counts == 0)]
    return TestPart(coded[order], y[order], counts, order), (*notes, *(f"{each}: they count as none" for each in new))


def _unusable(data: Frame | ParquetFiles, name: str) -> str | None:
    kind = data.schema.field(name).type
    if pa.types.is_nested(kind):
        return f"column {name!r} is nested ({kind}); flatten it."
    return data.broken.get(name)


def _group_columns(columns: Columns, available: Sequence[str], title: str) -> list[GroupColumn]:
    if not columns.groups:
        raise TableError("name at least one group column: groups=['sex'] (--group sex).")
    try:
        parts = [group_column(text, available) for text in columns.groups]
    except TableError as error:
        raise TableError(f"{title}: {error}") from error
    chosen = [part.name for part in parts]
    if len(set(chosen)) < len(chosen) or columns.label in chosen:
        raise TableError(f"{title}: label and group columns must all be different, got {[columns.label, *chosen]}.")
    return parts


def _missing(columns: Columns, available: Sequence[str]) -> list[str | None]:
    asked = [(columns.label, "label")]
    asked += [(name, what) for name, what in ((columns.id, "id"), (columns.split_by, "split by")) if name is not None]
    asked += [(name, "feature") for name in columns.features or ()] + [(name, "ignore") for name in columns.ignore]
    return _absent(asked, available)


def _absent(asked: Sequence[tuple[str, str]], available: Sequence[str]) -> list[str | None]:
    return [missing_column(name, available, what) for name, what in asked if name not in available]


def bookkeeping(data: Frame | ParquetFiles, columns: Columns) -> tuple[str, ...]:
    """The columns that `curate` added, if the table is a file that it wrote."""
    available = set(data.schema.names)
    for names_ in _OURS:
        ours = [f"evenhand_{name}" if f"evenhand_{name}" in available else name for name in names_]
        role = ours[names_.index("role")]
        # a table may well have a column called role: only with our own values in it are the columns ours
        if available.issuperset(ours) and set(data.sample([role]).column(0).to_pylist()) <= _ROLES:
            named = {columns.label, *columns.groups, *(columns.features or ())}
            return tuple(name for name in ours if name not in named)
    return ()


def _features(
    columns: Columns, available: Sequence[str], group_columns: Sequence[str], ours: Sequence[str]
) -> list[str]:
    chosen = columns.features if columns.features is not None else tuple(available)
    useless = [name for name in columns.ignore if columns.features is not None and name not in columns.features]
    if useless:
        raise TableError(f"ignoring {names(useless)} has no effect: only the features you name are predicted from.")
    if columns.label in columns.ignore:
        raise TableError(f"{columns.label!r} is the label: it cannot be ignored.")
    out = {columns.label, *columns.ignore, *ours, columns.id, columns.split_by}
    if not columns.use_group_as_feature:
        out |= set(group_columns)
    features = [name for name in chosen if name not in out]
    if not features:
        raise TableError("no column is left as a feature; name some with features=[...].")
    return features


def _label_problems(label: str, coding: Coding) -> list[str | None]:
    counts = np.bincount(coding.codes, minlength=len(coding.values))
    if coding.missing:
        return [f"label {label!r} is missing in {counts[-1]:,} rows; remove them, or fill them in."]
    if len(coding.values) < 2:
        return [f"label {label!r} is always {coding.values[0]!r}; there is nothing to learn."]
    if len(coding.values) > MOST_CLASSES:
        return [f"label {label!r} has {len(coding.values):,} values; make classes of it, at most {MOST_CLASSES}."]
    single = [value for value, count in zip(coding.values, counts, strict=True) if count == 1]
    return [f"label {label!r} has a single example of {names(single)}; merge or remove it."] if single else []


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


def _units(data: Frame | ParquetFiles, column: str | None) -> Ints | None:
    """The unit of every row; a row without one is a unit of its own."""
    if column is None:
        return None
    coding = code_column(data.column(column), GroupColumn(column), keep_order=False)
    units = coding.codes.astype(np.int64)
    alone = np.flatnonzero(units == len(coding.values))
    # missing units share one code, and must not become one large person
    units[alone] = len(coding.values) + np.arange(len(alone))
    return units


def _notes(columns: Columns, groups: Groups, merged: Sequence[str], ours: Sequence[str]) -> tuple[str, ...]:
    notes = [f"no row of {name!r}" for name in groups.empty]
    notes += (
        [f"{names(merged)} are one group, {OTHER!r}: fewer than {columns.merge_below:,} rows each"] if merged else []
    )
    notes += [f"columns that curate wrote are left out: {', '.join(ours)}"] if ours else []
    notes += [f"all rows of one {columns.split_by!r} stand on one side of every split"] if columns.split_by else []
    notes += [
        f"{n} rows of {name!r}: too few to say much"
        for name, n in zip(groups.names, groups.counts, strict=True)
        if n < TINY
    ]
    notes += [f"rows of {name!r} left out" for name in columns.exclude]
    used = "also features" if columns.use_group_as_feature else "not features"
    return (*notes, f"group columns ({', '.join(groups.columns)}) are {used}")


def _is_text(name: str) -> str:
    return f"column {name!r} is free text: the learner takes the columns as they are"


def _dates(sample: pa.Table) -> list[str]:
    return [
        f"column {name!r} holds dates as text, so every date is a category of its own: give real dates (2026-11-30 in a "
        "CSV file), which count as days, or ignore the column"
        for name in sample.column_names
        if holds_dates_as_text(sample.column(name))
    ]


def _row_numbers(sample: pa.Table) -> list[str]:
    found = [name for name in sample.column_names if counts_the_rows(sample.column(name))]
    notes = [f"column {name!r} only numbers the rows: you may want to ignore it" for name in found]
    return notes + [
        f"column {name!r} has another value in every row: if it is an id, say so (id={name!r}, --id {name})"
        for name in sample.column_names
        if _tells_rows_apart(sample.column(name))
    ]


def _tells_rows_apart(column: pa.ChunkedArray) -> bool:
    """Whether a text column has another value in every row: an id, most likely."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return text and len(column) >= FEW and len(column.unique()) == len(column)


def _unseen_categories(table: pa.Table, layout: Layout) -> list[str]:
    found = []
    for name, values, _ in layout.categories:
        column = table.column(name)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        new = sorted(set(column.cast(kind).unique().drop_null().to_pylist()) - set(values))
        if new:
            found.append(f"test column {name!r} has values never seen in the pool ({names(new, 3)})")
    return found
