"""A pool of labelled rows as a source: a frame or a file, its label, and the columns that tell the group."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict
from dataclasses import replace as with_changes
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from evenhand.arrays import Floats, Ints, Values
from evenhand.sources.identity import digest_of, files
from evenhand.sources.order import Replace
from evenhand.sources.table.overlap import check_apart, duplicates
from evenhand.sources.table.pool import TestPart, Wanted, make_pool, make_test
from evenhand.sources.table.rows import FrameRows, OnDisk, RowsByNumber
from evenhand.sources.table.stream import Settings, TableStream
from evenhand.tables.arrow import is_text
from evenhand.tables.encoder import Coded, Fill, Layout, Scale
from evenhand.tables.frame import Frame, InMemory
from evenhand.tables.groups import GroupRule
from evenhand.tables.kinds import read_as
from evenhand.tables.parquet import ParquetFiles
from evenhand.tables.problems import TableError, names
from evenhand.tables.reading import Format, check_format, read
from evenhand.tables.schema import Columns, Schema, group_names
from evenhand.tables.spelling import Spellings

__all__ = ["LARGE", "Table"]

LARGE = 2_000_000
"""A Parquet pool with more rows than this stays on disk."""


class Table:
    """Rows of a table, drawn group by group.

    Every trial shuffles each group's rows, holds out its test part (where `test` is a share), and gives every other
    row one role for good: to train on or to validate. Numbers are standardised and categories made one-hot by what
    the trial's training rows show, never by rows that validate or test.

    Args:
        data: a pandas, polars or Arrow table, or the path of a CSV, JSON lines or Parquet file, or of a folder of
            Parquet files.
        label: the column to predict.
        groups: the columns that tell the group; a number may have bins, like `"age:25,45,65"`.
        features: the columns to predict from; all others unless given.
        ignore: columns to leave out.
        numbers: columns of texts such as `$1,000` to read as numbers.
        text, image, vector: columns that hold texts, paths of images, or vectors.
        missing: words that stand for a missing value, beside the empty cell.
        spellings: texts that tell groups or labels and differ only by case, blanks or Unicode form are refused
            (`"refuse"`), or become the most frequent of their spellings (`"merge"`).
        exclude: groups to leave out, by name.
        test: a share held out of every group (at most 10,000 rows of each), a separate frame or file, or None.
        stratify: whether to hold the share out of every group; False: out of all rows at random, so that the number of
            a group's test rows varies.
        use_group_as_feature: whether to predict from the group columns too.
        fill: a missing number becomes its own category (`"category"`), or the median and its own category (`"median"`).
        scale: numbers with mean 0 and deviation 1 (`"standard"`), from 0 to 1 (`"minmax"`), or as they are (`"none"`).
        scale_by: encode by the trial's training rows (`"training"`), or by all rows outside the test part (`"pool"`).
        replace: never draw a row twice (`"never"`), or draw the two halves again once a group is used up (`"halves"`).
        validation: the share of each group's rows that validates.
        max_categories: a column of categories with more values than this is left out; by default 1,000, or another
            value in nearly every row.
        unseen: refuse a test table with categories the pool does not have (`"error"`), or count them as no category
            (`"ignore"`).
        id: a column that identifies every row; it is not a feature, and a test table must not share any id.
        split_by: a column such as a person's number; all rows of a person stay on one side of every split.
        merge_below: groups with fewer rows than this are merged into one, called other.
        on_disk: leave a Parquet pool on disk and read only what is drawn; by default from 2,000,000 rows on.
        separator: what separates the cells of a CSV file; recognised unless given.
        decimal: its decimal mark; a comma is recognised.
        encoding: its encoding, UTF-8 unless given.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": range(8), "sex": ["f", "m"] * 4, "y": [0, 1, 1, 0] * 2})
    >>> Table(frame, label="y", groups="sex").groups
    ('f', 'm')
    """

    def __init__(
        self,
        data: Any,
        *,
        label: str,
        groups: str | Sequence[str],
        features: Sequence[str] | None = None,
        ignore: str | Sequence[str] | None = None,
        numbers: str | Sequence[str] | None = None,
        text: str | Sequence[str] | None = None,
        image: str | Sequence[str] | None = None,
        vector: str | Sequence[str] | None = None,
        missing: str | Sequence[str] | None = None,
        spellings: Spellings = "refuse",
        exclude: Sequence[str] = (),
        test: Any = 0.3,
        stratify: bool = True,
        use_group_as_feature: bool = False,
        fill: Fill = "category",
        scale: Scale = "standard",
        scale_by: Literal["training", "pool"] = "training",
        replace: Replace = "never",
        validation: float = 0.5,
        max_categories: int | None = None,
        unseen: Literal["error", "ignore"] = "error",
        id: str | None = None,
        split_by: str | None = None,
        merge_below: int = 0,
        on_disk: bool | None = None,
        separator: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        name: str | None = None,
    ) -> None:
        _check_choice("fill", fill, ("category", "median"))
        _check_choice("scale", scale, ("standard", "minmax", "none"))
        _check_choice("scale_by", scale_by, ("training", "pool"))
        _check_choice("replace", replace, ("never", "halves"))
        _check_choice("unseen", unseen, ("error", "ignore"))
        _check_choice("spellings", spellings, ("refuse", "merge"))
        _check_share("validation", validation)
        if merge_below < 0:
            raise TableError(f"merge_below must be a number of rows from 0 up, got {merge_below!r}.")
        columns = Columns.of(
            label=str(label), groups=groups, id=id, features=features, ignore=ignore, numbers=numbers, text=text,
            image=image, vector=vector, missing=missing, decimal=decimal, unit=split_by,
            use_group_as_feature=use_group_as_feature, max_categories=max_categories,
        )  # fmt: skip
        rule = GroupRule(columns.groups, tuple(exclude), merge_below, spellings == "merge", columns.missing)
        self._wanted = Wanted(columns, rule, unseen)
        own_test = test is not None and not isinstance(test, int | float)
        inputs, form = [data, test] if own_test else [data], Format(separator, decimal, encoding)
        check_format(inputs, form)
        if unseen == "ignore" and not own_test:
            raise TableError("unseen='ignore' has no effect: it is about a test table of its own.")
        if not stratify and (split_by is not None or own_test or test is None):
            raise TableError(
                "stratify=False has no effect here: it is about a share of the rows (test=0.3), and does not go with split_by."
            )
        frame = read(data, form)
        if on_disk and not isinstance(frame, ParquetFiles):
            raise TableError("on_disk=True needs the path of a Parquet file or of a folder of them.")
        stays = on_disk or (on_disk is None and isinstance(frame, ParquetFiles) and len(frame) > LARGE)
        self._data: Frame = frame if stays else frame.in_memory()
        self._pool = make_pool(self._data, self._wanted)
        self._test: tuple[InMemory, pa.Table] | None = None
        part, notes = self._test_part(test, form)
        self._settings = Settings(
            held_out=part if isinstance(part, float) else 0.0,
            test=None if isinstance(part, float) else part,
            fill=fill,
            by_training=scale_by == "training",
            replace=replace,
            validation=float(validation),
            scale=scale,
            stratify=stratify,
        )
        self.name = name or (Path(data).stem if isinstance(data, str | Path) else "table")
        self.groups = self._pool.groups.names
        self.notes = (*self._pool.notes, *notes)
        self.inputs = tuple(Path(given) for given in inputs if isinstance(given, str | Path))

    def _test_part(self, test: Any, form: Format) -> tuple[float | TestPart | None, tuple[str, ...]]:
        if test is None:
            return 0.0, ()
        if isinstance(test, int | float):
            _check_share("test as a share", test)
            return float(test), ()
        frame = read(test, form).in_memory()
        part, typed, notes = make_test(frame, self._wanted, self._pool)
        self._test = (frame, typed)
        shown = self._shown(frame.table, typed)
        pool = self._shown(self._data.table, self._pool.typed) if isinstance(self._data, InMemory) else None
        columns = self._wanted.columns
        apart = check_apart(self._data, pool, frame.name, shown, id=columns.id, unit=columns.unit)
        return part, (*notes, *apart)

    @property
    def schema(self) -> Schema:
        """What the columns hold and what they are used for."""
        return self._pool.schema

    @property
    def was_read(self) -> tuple[str, str]:
        """What a user is shown before anything is spent: what was read, and what the columns are."""
        return f"read {self._data}", self._pool.schema.summary()

    @property
    def label(self) -> str:
        """The column to predict."""
        return str(self._wanted.columns.label)

    @property
    def column_names(self) -> list[str]:
        """All columns of the table."""
        return list(self._data.schema.names)

    @property
    def classes(self) -> Values:
        """The labels, sorted."""
        return self._pool.classes

    @property
    def population(self) -> Floats:
        """Each group's share of the pool."""
        shares: Floats = self._pool.groups.counts / self._pool.groups.counts.sum()
        return shares

    @property
    def counts(self) -> Ints:
        """How many rows of each group the table has."""
        return self._pool.groups.counts

    @property
    def group_columns(self) -> tuple[str, ...]:
        """The columns that tell the group."""
        return self._pool.groups.columns

    @property
    def empty_groups(self) -> tuple[str, ...]:
        """The intersections without rows."""
        return self._pool.groups.empty

    @property
    def feature_names(self) -> list[str]:
        """The features after one-hot coding."""
        return self._pool.layout.names

    @property
    def feature_columns(self) -> list[str]:
        """The columns that are encoded."""
        return self._pool.layout.columns

    @property
    def description(self) -> dict[str, Any]:
        """What decides the draws of this table, as plain values: columns, groups, splits, encoding, and its size."""
        settings, wanted = self._settings, self._wanted
        said = {key: value for key, value in asdict(wanted.columns).items() if key not in ("needs_numbers", "unit")}
        kept = ("fill", "scale", "by_training", "replace", "validation", "stratify")
        own = self._test
        return {
            **said,
            "exclude": wanted.groups.exclude,
            "merge_below": wanted.groups.merge_below,
            "merge_spellings": wanted.groups.merge_spellings,
            "unseen": wanted.unseen,
            "split_by": wanted.columns.unit,
            "features": list(self._pool.schema.features),
            "rows": int(self.counts.sum()),
            "test": settings.held_out if own is None else f"{own[0].name}, {len(own[0]):,} rows",
            **{key: getattr(settings, key) for key in kept},
        }

    @property
    def layout(self) -> Layout:
        """Which column is a number and which a category."""
        return self._pool.layout

    @property
    def validation(self) -> float:
        """The share of each group's rows that validates."""
        return self._settings.validation

    def with_validation(self, share: float) -> Table:
        """The same table with another share of rows that validate."""
        _check_share("validation", share)
        table = copy(self)
        table._settings = with_changes(self._settings, validation=float(share))
        return table

    def digest(self) -> str:
        """A text that differs where the rows, their columns, or how they are split and encoded differ."""
        pool = self._pool
        rows = files(self._data.files) if isinstance(self._data, ParquetFiles) else pool.rows
        about = (self._wanted, self._settings, pool.layout, pool.classes)
        # the files of a pool on disk stand for its texts
        texts = [] if isinstance(self._data, ParquetFiles) else self._texts(pool.typed)
        return digest_of(*about, pool.groups, pool.units, pool.y, rows, *texts)

    def _texts(self, typed: pa.Table) -> list[list[Any]]:
        """The features that are not among the coded ones."""
        return [typed.column(name).to_pylist() for name in self.schema.features if not self.schema[name].encoded]

    def open(self, seed: int, trials: Sequence[int]) -> TableStream:
        """The draws of these trials, with columns as numbers."""
        if not self._pool.layout.width:
            raise TableError(
                f"no column can be made numbers: {names(self.schema.features)} are kept as they are. Give a Pipeline that "
                "takes one by its name, such as "
                f"ColumnTransformer([('text', TfidfVectorizer(), {self.schema.features[0]!r}), ...])."
            )
        return TableStream(self._pool, self._settings, seed, trials)

    def open_columns(self, seed: int, trials: Sequence[int]) -> TableStream:
        """The draws of these trials, with columns as they are, in frames."""
        return TableStream(self._pool, self._settings, seed, trials, *self._frames)

    @cached_property
    def _frames(self) -> tuple[RowsByNumber, RowsByNumber | None]:
        """The typed rows of the pool, and those of a test table, as frames."""
        if isinstance(self._data, ParquetFiles):
            rows: RowsByNumber = OnDisk(self._data, self.schema, FrameRows)
        else:
            rows = FrameRows(self._pool.typed)
        return rows, None if self._test is None else FrameRows(self._test[1])

    @property
    def raw_columns(self) -> list[str]:
        """The columns to predict from, in the order they have in the table."""
        return list(self.schema.features)

    @property
    def left_out(self) -> dict[str, str]:
        """For every column that is not encoded, why."""
        advice = "a group column, which is not a feature: say use_group_as_feature=True (--use-group-as-feature) if it is to be one"
        found = self.schema.left_out
        return found | {name: advice for name in found if self.schema[name].use == "group"}

    def labels(self, rows: Ints) -> Ints:
        """The labels of rows by number, as positions in the classes."""
        return self._pool.y[rows].astype(np.int64)

    def coded(self, rows: Ints) -> Coded:
        """The features of rows by number, before scaling."""
        found: Coded = self._pool.rows[rows]
        return found

    def group_of(self, rows: Ints) -> Ints:
        """The groups of rows by number, as positions in the groups."""
        return self._pool.groups.codes[rows].astype(np.int64)

    def sample_rows(self, most: int) -> Ints:
        """At most `most` row numbers, spread over the groups' rows; for a pool on disk, only rows that were read."""
        if isinstance(self._pool.rows, OnDisk):
            known = self._pool.rows.known
        else:
            known = np.flatnonzero(self._pool.groups.codes >= 0)
        generator = np.random.default_rng(0)
        return known if len(known) <= most else np.sort(generator.choice(known, most, replace=False))

    def copies(self) -> int:
        """How many rows are exact copies of earlier ones; 0 for a pool on disk, which is not searched."""
        return 0 if isinstance(self._data, ParquetFiles) else duplicates(self._data.read(), self._wanted.columns.id)

    def digest_of_rows(self, rows: Ints) -> str:
        """A text that differs where the features and labels of these rows do."""
        kept = [name for name in self.schema.features if not self.schema[name].encoded]
        texts = self._take(rows, kept) if kept else pa.table({})
        return digest_of(self.coded(rows), self._pool.y[rows], *(texts.column(name).to_pylist() for name in kept))

    @property
    def holds_out(self) -> bool:
        """Whether the test rows are rows of the table itself."""
        return self._test is None

    def take_test(self, rows: Ints) -> pa.Table:
        """Test rows by number, as an Arrow table: of the test table where there is one, else of the table itself."""
        if self._test is None:
            return self.take(rows)
        frame, typed = self._test
        return self._shown(frame.table, typed).take(pa.array(rows))

    def take(self, rows: Ints) -> pa.Table:
        """Rows of the table by number, every column, as an Arrow table."""
        return self._take(rows, self.column_names)

    def _take(self, rows: Ints, columns: Sequence[str]) -> pa.Table:
        if isinstance(self._data, InMemory):
            features = [name for name in self.schema.features if name in columns]
            typed = self._pool.typed.select(features).take(pa.array(rows))
            return self._shown(self._data.table.select(columns).take(pa.array(rows)), typed)
        order = np.argsort(rows, kind="stable")
        taken = self._data.take(rows[order], columns)
        return self._shown(taken.take(pa.array(np.argsort(order, kind="stable"))))

    def _shown(self, raw: pa.Table, typed: pa.Table | None = None) -> pa.Table:
        """Rows with columns of text as what they hold: numbers, dates, classes; ids and groups as they are written."""
        said = self._wanted.columns
        binned = {name for name in group_names(said.groups, raw.column_names) if name not in said.groups}
        shown = []
        for name, column in zip(raw.column_names, raw.columns, strict=True):
            if not is_text(column.type) or name not in self.schema:
                pass
            elif name == said.label and self.classes.dtype.kind == "i":
                column = read_as(column, "number")
            elif name in binned:
                column = read_as(column, "number", said.missing, said.decimal)
            elif name in self.schema.features and self.schema[name].kind not in ("category", "text"):
                column = self.schema.read_column(name, column) if typed is None else typed.column(name)
            shown.append(column)
        return pa.table(shown, names=raw.column_names)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, label={self.label!r}, groups={list(self.groups)})"


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise TableError(f"{name} must lie strictly between 0 and 1, got {value!r}.")


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise TableError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")
