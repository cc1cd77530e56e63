"""What is known of a table's columns: what each holds and what it is used for.

A schema is told once from the rows, shown before anything is spent, kept as a fact of the campaign, and every later
table is checked against it. The same rows give the same schema, whichever way they come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, Self

import pyarrow as pa

from evenhand.tables.arrow import is_text
from evenhand.tables.frame import BATCH, Frame
from evenhand.tables.kinds import Kind, Values, bad_rows, cleaned, decimal_mark, has_numbers, kind_of, look, read_as
from evenhand.tables.problems import TableError, missing_column, names, raise_all, refuse_rows

__all__ = [
    "NUMBERS",
    "Column",
    "Columns",
    "Rows",
    "Schema",
    "Use",
    "check_names",
    "infer",
    "not_numbers",
    "typed_schema",
]

Use = Literal["feature", "kept", "label", "group", "id", "unit", "ignored"]
"""`kept` columns are shown to people and exported, and no learner sees them."""

FEW = 30
"""With fewer rows than this, all values of a column may differ by chance."""
MOST_CATEGORIES = 1000
_NEARLY_ALL = 0.9
_LEARNED = ("number", "yes/no", "date", "category")
"""The kinds that are encoded; texts, images and vectors are kept, and left out of the features until they are."""
NUMBERS = ("number", "yes/no")
"""The kinds that learners of numbers take."""
_PLURAL = {"category": "categories", "yes/no": "yes/no"}


@dataclass(frozen=True)
class Columns:
    """What a user says of a table's columns; the rest is told from the rows.

    Attributes:
        label: the column to predict.
        groups: the columns that tell the group; a number may have bins, like `age:25,45,65`.
        id: a column that identifies every row.
        features: the columns to predict from; all others unless given.
        ignore: columns to leave out.
        numbers: columns of texts such as `$1,000` to read as numbers.
        text, image, vector: columns of these kinds.
        missing: words for a missing value, beside the empty cell.
        decimal: the decimal mark, where it is not told from the numbers.
        unit: a column such as a person's number; all rows of a person stay on one side of every split.
        use_group_as_feature: whether to predict from the group columns too.
        max_categories: a column of categories with more values than this is left out; by default 1,000, or another value in nearly every row.
        needs_numbers: whether the learner takes numbers alone.
        delivered: whether the rows are the first delivery of more to come: no column is left out for what these few hold.
    """

    label: str | None = None
    groups: tuple[str, ...] = ()
    id: str | None = None
    features: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    image: tuple[str, ...] = ()
    vector: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    decimal: str | None = None
    unit: str | None = None
    use_group_as_feature: bool = False
    max_categories: int | None = None
    needs_numbers: bool = False
    delivered: bool = False

    @classmethod
    def of(cls, **given: Any) -> Self:
        """The same from what a user gives: a name stands for a list of one, None for nothing; names are text.

        >>> Columns.of(groups="sex", ignore=None, text=["review"])
        Columns(label=None, groups=('sex',), id=None, features=None, ignore=(), numbers=(), text=('review',), ...)
        """
        several = {field.name for field in fields(cls) if str(field.type).startswith("tuple")}
        plain = {}
        for name, value in given.items():
            if name not in several or (name == "features" and value is None):
                plain[name] = value
            else:
                values = () if value is None else (value,) if isinstance(value, str) else value
                plain[name] = tuple(str(each) for each in values)
        return cls(**plain)


@dataclass(frozen=True)
class Column:
    """A column: what it holds, what it is used for, and why it is left out of the features, or what is odd about it."""

    name: str
    kind: Kind
    use: Use
    note: str = ""
    cleaned: bool = False
    decimal: str | None = None

    @property
    def encoded(self) -> bool:
        """Whether models see it as numbers."""
        return self.use == "feature" and self.kind in _LEARNED


@dataclass(frozen=True)
class Rows:
    """Rows read as a schema says: one Arrow column for each of its features, and the rows that are refused, by number."""

    table: pa.Table
    problems: dict[int, str]

    def refuse(self, name: str) -> pa.Table:
        """The table, if no row is refused."""
        refuse_rows(name, self.problems)
        return self.table


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in its order, and how its texts are read.

    Attributes:
        columns: all columns.
        missing: words for a missing value, beside the empty cell.
        decimal: the decimal mark that its owner named.
    """

    columns: tuple[Column, ...]
    missing: tuple[str, ...] = ()
    decimal: str | None = None

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The columns that learners may see."""
        return tuple(column.name for column in self.columns if column.use == "feature")

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """The columns that a campaign keeps of its rows: the features, and what is shown to people beside them."""
        return tuple(column.name for column in self.columns if column.use in ("feature", "kept"))

    @cached_property
    def encoded(self) -> tuple[str, ...]:
        """Those of them that become numbers."""
        return tuple(column.name for column in self.columns if column.encoded)

    @property
    def left_out(self) -> dict[str, str]:
        """For every column that models do not see as numbers, why."""
        return {column.name: column.note or column.use for column in self.columns if not column.encoded}

    def summary(self) -> str:
        """What a user is shown before anything is spent.

        >>> Schema((Column("age", "number", "feature"), Column("sex", "category", "group", "a group"))).summary()
        '1 number; left out: `sex` (a group)'
        """
        counts = Counter(column.kind for column in self.columns if column.encoded)
        parts = [f"{n} {kind if n == 1 else _PLURAL.get(kind, kind + 's')}" for kind, n in counts.items()]
        left = [f"`{name}` ({why})" for name, why in self.left_out.items()]
        more = f" and {len(left) - 12} more" if len(left) > 12 else ""
        return ", ".join(parts or ["no features"]) + (f"; left out: {', '.join(left[:12])}{more}" if left else "")

    def notes(self) -> tuple[str, ...]:
        """What is odd about columns that are features."""
        return tuple(
            f"column {column.name!r}: {column.note}" for column in self.columns if column.encoded and column.note
        )

    def read(
        self,
        table: pa.Table,
        start: int = 0,
        names: Sequence[str] | None = None,
        marks: Mapping[str, str] | None = None,
    ) -> Rows:
        """The features of rows, as this schema says, or other columns of it; `start` is the number of the first row.

        Columns that are only kept may be absent: their values are then missing. `marks` are the decimal marks of columns
        where these rows are some of more.
        """
        there = set(table.column_names)
        wanted = self.features if names is None else names
        self.check_names(table.column_names, wanted=wanted)
        found, problems = {}, dict[int, str]()
        for name in wanted:
            column = self[name]
            if name not in there:
                found[name] = read_as(pa.nulls(table.num_rows), column.kind)
                continue
            raw = self._bare(column, table.column(name))
            found[name] = self._values(column, raw, (marks or {}).get(name))
            for row, why in bad_rows(raw, found[name], column.kind, self.missing).items():
                problems.setdefault(start + row, f"{name}: {why}")
        return Rows(pa.table(found), problems)

    def check_names(
        self, available: Sequence[str], name: str = "the table", wanted: Sequence[str] | None = None
    ) -> None:
        """Refuse a table without one of the features; `name` is its name for the message."""
        there = set(available)
        gone = [each for each in (self.features if wanted is None else wanted) if each not in there]
        problems = [missing_column(each, available, "a feature") for each in gone if self[each].use == "feature"]
        raise_all(problems, name)

    def read_column(self, name: str, raw: Any) -> pa.Array:
        """The values of one column; what is none of its kind is missing."""
        return self._values(self[name], self._bare(self[name], raw))

    def _values(self, column: Column, bare: Any, mark: str | None = None) -> pa.Array:
        if column.kind == "number" and is_text(bare.type) and mark is None:
            mark = decimal_mark([bare], column.decimal or self.decimal)
        return read_as(bare, column.kind, self.missing, mark)

    def marks(self, frame: Frame) -> dict[str, str]:
        """The decimal mark of every column of a frame that holds numbers as text; another file may have another one."""
        return {
            column.name: decimal_mark(frame.column(column.name), column.decimal or self.decimal)
            for column in self.columns
            if column.kind == "number" and not column.cleaned
            and column.name in frame.schema.names and is_text(frame.schema.field(column.name).type)
        }  # fmt: skip

    def _bare(self, column: Column, raw: Any) -> Any:
        """Texts of numbers without signs such as `$`, where the column is read so."""
        if column.cleaned and is_text(raw.type):
            return cleaned(raw, column.decimal or self.decimal)
        return raw

    def batches(self, frame: Frame, columns: Sequence[str] = ()) -> Iterator[tuple[Rows, pa.Table]]:
        """The features of all rows of a frame, some rows at a time, each with further columns as they are."""
        start, there = 0, set(frame.schema.names)
        marks = self.marks(frame) if len(frame) > BATCH else None
        for batch in frame.batches([name for name in dict.fromkeys([*self.features, *columns]) if name in there]):
            yield self.read(batch, start, marks=marks), batch.select(list(columns))
            start += batch.num_rows

    def only(self, names: Sequence[str]) -> Self:
        """The schema with these features alone."""
        return replace(self, columns=tuple(c for c in self.columns if c.use != "feature" or c.name in names))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The schema of `to_json`."""
        columns = tuple(Column(**column) for column in given["columns"])
        return cls(columns, tuple(given["missing"]), given["decimal"])


# -------------------------------------------------------------------- telling


def infer(frame: Frame, wanted: Columns) -> Schema:
    """The schema of a frame's columns; every problem with them is named at once."""
    available = list(frame.schema.names)
    groups = group_names(wanted.groups, available)
    check_names(frame, wanted)
    raise_all([frame.broken.get(name) for name in _used(wanted, available, groups)], frame.name)
    found, problems = [], list[str | None]()
    named = set(wanted.features or ())
    for name in available:
        use, why = _use(name, wanted, groups)
        if use != "feature":
            found.append(Column(name, _kind_said(name, wanted) or "category", _storable(frame, name, use), why))
            continue
        column, problem = _feature(frame, name, wanted, name in named)
        found.append(column)
        problems.append(problem)
    raise_all(problems, frame.name)
    schema = Schema(tuple(found), wanted.missing, wanted.decimal)
    if not schema.features:
        raise TableError(
            f"{frame.name}: no column is left as a feature ({schema.summary()}); name some with features=[...]."
        )
    return schema


def check_names(frame: Frame, wanted: Columns) -> None:
    """Refuse names of columns that do not exist, or that are said to be two things."""
    available = frame.schema.names
    groups = group_names(wanted.groups, available)
    raise_all([*_absent(wanted, available, groups), *_clashing(wanted)], frame.name)


def group_names(groups: Sequence[str], available: Sequence[str]) -> tuple[str, ...]:
    """The columns that tell the group, without bins."""
    return tuple(text if text in available or ":" not in text else text.rpartition(":")[0] for text in groups)


def _absent(wanted: Columns, available: Sequence[str], groups: Sequence[str]) -> list[str | None]:
    asked = [(wanted.label, "label"), (wanted.id, "id"), (wanted.unit, "split by")]
    asked += [(name, "group") for name in groups]
    asked += [(name, "feature") for name in wanted.features or ()] + [(name, "ignore") for name in wanted.ignore]
    for what in ("numbers", "text", "image", "vector"):
        asked += [(name, what) for name in getattr(wanted, what)]
    return [missing_column(name, available, what) for name, what in asked if name is not None and name not in available]


def _clashing(wanted: Columns) -> list[str]:
    """Columns named as features that are something else already."""
    uses = {wanted.label: "the label", wanted.id: "the id", wanted.unit: "what the rows are split by"}
    uses |= dict.fromkeys(wanted.ignore, "ignored")
    return [
        f"column {name!r} is {uses[name]}: it cannot be a feature as well"
        for name in wanted.features or ()
        if name in uses
    ]


def _used(wanted: Columns, available: Sequence[str], groups: Sequence[str]) -> list[str]:
    return [name for name in available if _use(name, wanted, groups)[0] != "ignored"]


def _use(name: str, wanted: Columns, groups: Sequence[str]) -> tuple[Use, str]:
    """What a column is used for, and why it is no feature."""
    if name == wanted.label:
        return "label", "the label"
    if name in groups and not (wanted.use_group_as_feature or name in (wanted.features or ())):
        # the group itself is shown with every row: only what it was made from is kept beside it
        return ("group" if name in wanted.groups and len(groups) == 1 else "kept"), "a group"
    if name == wanted.id:
        return "id", "the id"
    if name == wanted.unit:
        return "unit", "tells whose row it is"
    if name in wanted.ignore:
        return "ignored", "ignored"
    if wanted.features is not None and name not in wanted.features:
        return "kept", "not among the features that were named"
    return "feature", ""


def _storable(frame: Frame, name: str, use: Use) -> Use:
    """Nested and binary values cannot be kept as text."""
    kind = frame.schema.field(name).type
    return "ignored" if use == "kept" and (pa.types.is_nested(kind) or pa.types.is_binary(kind)) else use


def _kind_said(name: str, wanted: Columns) -> Kind | None:
    said: tuple[Kind, ...] = ("text", "image", "vector")
    return next((kind for kind in said if name in getattr(wanted, kind)), None)


def _feature(frame: Frame, name: str, wanted: Columns, named: bool) -> tuple[Column, str | None]:
    """A column that is to be a feature, and what is wrong with it."""
    kind = frame.schema.field(name).type
    if name in wanted.numbers:
        return Column(name, "number", "feature", cleaned=is_text(kind)), None
    values = look(frame.column(name), kind, wanted.missing, wanted.decimal)
    if wanted.delivered and values.missing == values.rows:
        values.kind = kind_of(kind)
    values.kind = _kind_said(name, wanted) or values.kind
    if wanted.delivered and wanted.needs_numbers and values.kind == "category" and has_numbers(values):
        # the others are slips, which are refused row by row
        return Column(name, "number", "feature"), None
    if wanted.needs_numbers and values.kind not in (*NUMBERS, "other"):
        return Column(name, values.kind, "feature"), not_numbers(name, values.kind)
    if values.odd and values.kind == "category":
        return Column(name, "category", "feature"), (
            f"column {name!r} mixes numbers and text ({names(values.odd, 3)}); make those cells empty if they mean "
            f"missing, name the word for it (missing=[{values.odd[0]!r}], --missing), or ignore the column."
        )
    why = _unusable(values, wanted)
    if why and not named:
        use: Use = "ignored" if values.kind == "other" and not is_text(kind) else "kept"
        return Column(name, "category" if values.kind == "other" else values.kind, use, why), None
    if why:
        return Column(name, values.kind, "feature"), f"column {name!r} cannot be a feature: {why}."
    return Column(name, values.kind, "feature", _note(values), decimal=values.decimal), None


def _unusable(values: Values, wanted: Columns) -> str:
    """Why a column is left out, or the empty text."""
    if values.kind == "other":
        return values.note
    if values.kind != "category" or not values.distinct or wanted.delivered:
        return ""
    there = values.rows - values.missing
    note = f"; {values.note}" if values.note else ""
    if values.distinct > (wanted.max_categories or MOST_CATEGORIES):
        return f"{values.distinct:,} values{note}"
    if wanted.max_categories is None and there >= FEW and values.distinct >= _NEARLY_ALL * there:
        return f"{values.distinct:,} values in {there:,} rows{note}"
    return ""


def not_numbers(name: str, kind: str) -> str:
    """The message for a column that a learner of numbers cannot use."""
    word = {"category": "text", "date": "dates"}.get(kind, kind)
    return (
        f"column {name!r} is {word}, which the learner cannot use: choose others with features=, or take the learner "
        "'table', which encodes text by itself."
    )


def _note(values: Values) -> str:
    if values.kind in ("text", "image", "vector"):
        return f"{values.kind}s are not learned from yet"
    if values.counts_up and values.rows >= FEW:
        return "it only numbers the rows: you may want to ignore it"
    return values.note


def typed_schema(types: pa.Schema) -> Schema:
    """The schema of rows that are typed already, all of whose columns are features: texts are categories as they are.

    >>> typed_schema(pa.schema({"age": pa.int64(), "job": pa.string()})).summary()
    '1 number, 1 category'
    """
    return Schema(tuple(Column(field.name, kind_of(field.type), "feature") for field in types))
