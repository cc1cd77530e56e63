"""A pool of labelled rows as a source: a frame or a file, its label, and the columns that tell the group."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from evenhand.arrays import Floats, Ints, Values
from evenhand.sources.identity import digest_of, files
from evenhand.sources.order import Replace
from evenhand.sources.table.columns import Coded, Layout
from evenhand.sources.table.encoding import Missing, Scale
from evenhand.sources.table.overlap import check_apart, duplicates
from evenhand.sources.table.parquet import ParquetFiles, ParquetRows, larger_than
from evenhand.sources.table.pool import Columns, TestPart, make_pool, make_test
from evenhand.sources.table.problems import TableError, names
from evenhand.sources.table.raw import RawRows, raw_rows
from evenhand.sources.table.reading import CsvFormat, Frame, check_effects, is_parquet, read
from evenhand.sources.table.stream import Settings, TableStream

__all__ = ["Table"]

LARGE = 2_000_000
DENSE_SHARE = 0.25


class Table:
    """Rows of a table, drawn group by group.

    Every trial shuffles each group's rows, holds out its test part (where `test` is a share), and gives every other
    row one role for good: to train on or to validate. Numbers are standardised and categories made one-hot by what
    the trial's training rows show, never by rows that validate or test.

    Args:
        data: a pandas, polars or Arrow table, or the path of a CSV file, a Parquet file or a folder of Parquet files.
        label: the column to predict.
        groups: the columns that tell the group; a number may have bins, like `"age:25,45,65"`.
        features: the columns to predict from; all others unless given.
        ignore: columns to leave out.
        exclude: groups to leave out, by name.
        test: a share held out of every group (at most 10,000 rows of each), a separate frame or file, or None.
        stratify: whether to hold the share out of every group; False: out of all rows at random, so that the number of
            a group's test rows varies.
        use_group_as_feature: whether to predict from the group columns too.
        missing: a missing number is its own category (`"category"`), or the median and its own category (`"median"`).
        scale: numbers with mean 0 and deviation 1 (`"standard"`), from 0 to 1 (`"minmax"`), or as they are (`"none"`).
        scale_by: encode by the trial's training rows (`"training"`), or by all rows outside the test part (`"pool"`).
        replace: never draw a row twice (`"never"`), or draw the two halves again once a group is used up (`"halves"`).
        validation: the share of each group's rows that validates.
        max_categories: a text column with more values than this is refused; free text, of several words each, is
            refused only if the learner does not take the columns as they are.
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
        ignore: Sequence[str] = (),
        exclude: Sequence[str] = (),
        test: Any = 0.3,
        stratify: bool = True,
        use_group_as_feature: bool = False,
        missing: Missing = "category",
        scale: Scale = "standard",
        scale_by: Literal["training", "pool"] = "training",
        replace: Replace = "never",
        validation: float = 0.5,
        max_categories: int = 1000,
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
        _check_choice("missing", missing, ("category", "median"))
        _check_choice("scale", scale, ("standard", "minmax", "none"))
        _check_choice("scale_by", scale_by, ("training", "pool"))
        _check_choice("replace", replace, ("never", "halves"))
        _check_choice("unseen", unseen, ("error", "ignore"))
        _check_share("validation", validation)
        columns = Columns(
            label=str(label),
            groups=(groups,) if isinstance(groups, str) else tuple(map(str, groups)),
            features=None if features is None else tuple(features),
            ignore=tuple(ignore),
            exclude=tuple(exclude),
            use_group_as_feature=use_group_as_feature,
            max_categories=max_categories,
            unseen=unseen,
            id=id,
            split_by=split_by,
            merge_below=merge_below,
        )
        own_test = test is not None and not isinstance(test, int | float)
        inputs = [data, test] if own_test else [data]
        check_effects(inputs, {"separator": separator, "decimal": decimal, "encoding": encoding})
        if unseen == "ignore" and not own_test:
            raise TableError("unseen='ignore' has no effect: it is about a test table of its own.")
        if not stratify and (split_by is not None or own_test or test is None):
            raise TableError(
                "stratify=False has no effect here: it is about a share of the rows (test=0.3), and does not go with split_by."
            )
        if merge_below < 0:
            raise TableError(f"merge_below must be a number of rows from 0 up, got {merge_below!r}.")
        form = CsvFormat(separator, decimal, encoding or "utf-8", text=() if id is None else (id,))
        if on_disk is None:
            on_disk = is_parquet(data) and larger_than(data, LARGE)
        if on_disk and not is_parquet(data):
            raise TableError("on_disk=True needs the path of a Parquet file or of a folder of them.")
        self._data = ParquetFiles(data) if on_disk else read(data, form)
        self._pool = make_pool(self._data, columns)
        self._test_data: Frame | None = None
        self._raw: tuple[RawRows, RawRows | None] | None = None
        part, notes = self._test_part(test, columns, form)
        self._columns = columns
        layout = self._pool.layout
        entries = len(layout.numbers) + len(layout.gaps) + len(layout.categories)
        self._settings = Settings(
            held_out=part if isinstance(part, float) else 0.0,
            test=None if isinstance(part, float) else part,
            missing=missing,
            by_training=scale_by == "training",
            replace=replace,
            validation=float(validation),
            dense=entries >= DENSE_SHARE * layout.width,
            scale=scale,
            stratify=stratify,
        )
        self.name = name or (Path(data).stem if isinstance(data, str | Path) else "table")
        self.groups = self._pool.groups.names
        self.notes = (*self._pool.notes, *notes)
        self.inputs = tuple(Path(given) for given in inputs if isinstance(given, str | Path))

    def _test_part(
        self, test: Any, columns: Columns, form: CsvFormat
    ) -> tuple[float | TestPart | None, tuple[str, ...]]:
        if test is None:
            return 0.0, ()
        if isinstance(test, int | float):
            _check_share("test as a share", test)
            return float(test), ()
        self._test_data = read(test, form)
        part, notes = make_test(self._test_data, columns, self._pool)
        return part, (*notes, *check_apart(self._data, self._test_data, columns))

    @property
    def label(self) -> str:
        """The column to predict."""
        return self._columns.label

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
        """The columns to predict from."""
        return [*self._pool.layout.columns, *self._pool.texts]

    @property
    def description(self) -> dict[str, Any]:
        """What decides the draws of this table, as plain values: columns, groups, splits, encoding, and its size."""
        settings = self._settings
        own = self._test_data
        test = settings.held_out if own is None else f"{own.name}, {own.table.num_rows:,} rows"
        return {
            **asdict(self._columns),
            "features": self.feature_columns,
            "rows": int(self.counts.sum()),
            "test": test,
            **{
                key: getattr(settings, key)
                for key in ("missing", "scale", "by_training", "replace", "validation", "stratify")
            },
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
        about = (self._columns, self._settings, pool.layout, pool.classes)
        texts = [digest_of(*self._text_of(name)) for name in pool.texts]
        return digest_of(*about, pool.groups, pool.units, pool.y, rows, *texts)

    def _text_of(self, name: str) -> list[str | None]:
        if isinstance(self._data, ParquetFiles):
            return []  # its files stand for it
        found: list[str | None] = self._data.table.column(name).to_pylist()
        return found

    def open(self, seed: int, trials: Sequence[int]) -> TableStream:
        """The draws of these trials, with columns as numbers."""
        if self._pool.texts:
            raise TableError(
                f"column {names(self._pool.texts)} is free text, with more than max_categories="
                f"{self._columns.max_categories:,} values, which this learner cannot use: ignore it (ignore=[...], --ignore), "
                "or give a Pipeline that takes it by its name, such as ColumnTransformer([('text', TfidfVectorizer(), "
                f"{self._pool.texts[0]!r}), ...])."
            )
        return TableStream(self._pool, self._settings, seed, trials)

    def open_columns(self, seed: int, trials: Sequence[int]) -> TableStream:
        """The draws of these trials, with columns as they are, in frames."""
        return TableStream(self._pool, self._settings, seed, trials, *self._raw_rows())

    def _raw_rows(self) -> tuple[RawRows, RawRows | None]:
        if self._raw is None:
            columns, test = self._pool.features, self._test_data
            self._raw = raw_rows(self._data, columns), None if test is None else raw_rows(test, columns)
        return self._raw

    @property
    def raw_columns(self) -> list[str]:
        """The columns to predict from, in the order they have in the table."""
        return list(self._pool.features)

    @property
    def text_columns(self) -> list[str]:
        """Those of them that are text."""
        known = {name for name, _, _ in self._pool.layout.categories} | set(self._pool.texts)
        return [name for name in self._pool.features if name in known]

    @property
    def left_out(self) -> dict[str, str]:
        """For every other column of the table, why it is not used to predict."""
        columns = self._columns
        found = dict.fromkeys(self.column_names, "not among the features that were named")
        found |= dict.fromkeys(columns.ignore, "ignored")
        found |= dict.fromkeys(
            self.group_columns,
            "a group column, which is not a feature: say use_group_as_feature=True (--use-group-as-feature) if it is to be one",
        )
        found |= {columns.label: "the label"} | ({} if columns.id is None else {columns.id: "the id"})
        return {name: why for name, why in found.items() if name not in self._pool.features}

    def labels(self, rows: Ints) -> Ints:
        """The labels of rows by number, as positions in the classes."""
        return self._pool.y[rows].astype(np.int64)

    def coded(self, rows: Ints) -> Coded:
        """The features of rows by number, before scaling; for a pool on disk, only rows that were read."""
        return self._pool.rows[rows]

    def group_of(self, rows: Ints) -> Ints:
        """The groups of rows by number, as positions in the groups."""
        return self._pool.groups.codes[rows].astype(np.int64)

    def sample_rows(self, most: int) -> Ints:
        """At most `most` row numbers, spread over the groups' rows; for a pool on disk, only rows that were read."""
        if isinstance(self._pool.rows, ParquetRows):
            known = self._pool.rows.known
        else:
            known = np.flatnonzero(self._pool.groups.codes >= 0)
        generator = np.random.default_rng(0)
        return known if len(known) <= most else np.sort(generator.choice(known, most, replace=False))

    def copies(self) -> int:
        """How many rows are exact copies of earlier ones; 0 for a pool on disk, which is not searched."""
        return 0 if isinstance(self._data, ParquetFiles) else duplicates(self._data.table, self._columns.id)

    def digest_of_rows(self, rows: Ints) -> str:
        """A text that differs where the features and labels of these rows do."""
        texts = [self.take(rows).column(name).to_pylist() for name in self._pool.texts]
        return digest_of(self.coded(rows), self._pool.y[rows], *texts)

    @property
    def holds_out(self) -> bool:
        """Whether the test rows are rows of the table itself."""
        return self._test_data is None

    def take_test(self, rows: Ints) -> pa.Table:
        """Test rows by number, as an Arrow table: of the test table where there is one, else of the table itself."""
        return self.take(rows) if self._test_data is None else self._test_data.table.take(rows)

    def take(self, rows: Ints) -> pa.Table:
        """Rows of the table by number, every column as it is, as an Arrow table."""
        if isinstance(self._data, ParquetFiles):
            order = np.argsort(rows, kind="stable")
            taken = self._data.take(rows[order], self._data.schema.names)
            return taken.take(np.argsort(order, kind="stable"))
        return self._data.table.take(rows)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, label={self._columns.label!r}, groups={list(self.groups)})"


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise TableError(f"{name} must lie strictly between 0 and 1, got {value!r}.")


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise TableError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")
