"""From typed rows to numbers: scaled numbers, one-hot categories, a mark where a number is missing.

There is one fit of an encoder. Simulations fit it for all their trials at once, everybody else for one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from evenhand.arrays import Floats, Indices, Ints
from evenhand.tables.arrow import is_text, undictionary

__all__ = ["Coded", "Encoder", "Fill", "Layout", "Scale"]

Fill = Literal["category", "median"]
"""What a missing number becomes: a category of its own, or the median and a category of its own."""
Scale = Literal["standard", "minmax", "none"]
GAP = "(missing)"
DENSE_SHARE = 0.25
"""Features are dense where at least this share of a row's numbers is not 0."""
_DAY = 86_400_000_000.0  # microseconds


@dataclass(frozen=True)
class Coded:
    """Rows as numbers (NaN: missing) and positions of their categories; `~start` of a column's block means none."""

    numbers: Floats
    categories: Indices

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Coded:
        return Coded(self.numbers[rows], self.categories[rows])

    @classmethod
    def joined(cls, parts: Sequence[Coded]) -> Coded:
        """Rows behind each other."""
        return cls(np.concatenate([p.numbers for p in parts]), np.concatenate([p.categories for p in parts]))


@dataclass(frozen=True)
class Layout:
    """The position of every feature: numbers first, then a block of positions for every category column.

    Attributes:
        numbers: the columns of numbers; dates count in days, yes as 1.
        gaps: those of them that have missing values, which get a mark.
        categories: every category column, its values, and whether it has missing ones.
    """

    numbers: tuple[str, ...]
    gaps: tuple[str, ...]
    categories: tuple[tuple[str, tuple[str, ...], bool], ...]

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """The layout for typed rows: text one-hot, all else numbers."""
        numbers, gaps, categories = [], [], []
        for name in table.column_names:
            column = table.column(name)
            if is_text(column.type):
                text = undictionary(column)
                # sorted, so that the order of the rows does not decide the order of the features
                values = tuple(sorted(value for value in pc.unique(text).to_pylist() if value is not None))
                categories.append((name, values, text.null_count > 0))
            else:
                numbers.append(name)
                if np.isnan(_as_float(column)).any():
                    gaps.append(name)
        return cls(tuple(numbers), tuple(gaps), tuple(categories))

    @property
    def names(self) -> list[str]:
        """The name of every position."""
        blocks = [
            f"{name}={value}" for name, values, missing in self._blocks() for value in [*values, *[GAP] * missing]
        ]
        return [*self.numbers, *blocks]

    @property
    def width(self) -> int:
        """The number of features after one-hot coding."""
        return len(self.numbers) + sum(len(values) + missing for _, values, missing in self._blocks())

    @property
    def entries(self) -> int:
        """The most numbers of a row that are not 0."""
        return len(self.numbers) + len(self.gaps) + len(self.categories)

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [*self.numbers, *(name for name, _, _ in self.categories)]

    def _blocks(self) -> list[tuple[str, tuple[str, ...], bool]]:
        return [*((name, (), True) for name in self.gaps), *self.categories]

    def code(self, table: pa.Table) -> Coded:
        """Code typed rows; a category that the layout does not know counts as no category."""
        # codes, not one-hot columns: a row costs as many numbers
        # as the table has columns, however many values those have
        numbers = np.empty((table.num_rows, len(self.numbers)))
        for j, name in enumerate(self.numbers):
            numbers[:, j] = _as_float(table.column(name))
        blocks = self._blocks()
        categories = np.empty((table.num_rows, len(blocks)), dtype=np.int32)
        start = len(self.numbers)
        for j, (name, values, missing) in enumerate(blocks):
            if name in self.gaps:
                codes = np.where(np.isnan(numbers[:, self.numbers.index(name)]), 0, -1)
            else:
                codes = _positions(table.column(name), values, missing)
            # ~start is negative and still says which block
            # it was: sparse rows then have the same length
            categories[:, j] = np.where(codes < 0, ~start, start + codes)
            start += len(values) + missing
        return Coded(numbers, categories)

    def unseen(self, table: pa.Table) -> dict[str, list[str]]:
        """The values of category columns that the layout does not know, by column."""
        found = {}
        for name, values, _ in self.categories:
            new = sorted(set(pc.unique(undictionary(table.column(name))).drop_null().to_pylist()) - set(values))
            if new:
                found[name] = new
        return found


@dataclass(frozen=True)
class Encoder:
    """The encoding of T trials: numbers become (x − low)·scale, a category counts only where the trial has seen it.

    A missing number becomes `fill` before scaling; a separate position in the layout marks it as missing.

    Attributes:
        layout: the columns and their positions.
        low, scale, fill: of the numbers, one row a trial.
        seen: 1 for categories that the trial's rows have, else 0.
        dense: whether features are an array, instead of sparse rows.
    """

    layout: Layout
    low: Floats
    scale: Floats
    fill: Floats
    seen: Floats
    dense: bool

    @classmethod
    def fit(
        cls, layout: Layout, trials: Sequence[Coded], *, scale: Scale | str = "standard", fill: Fill = "category"
    ) -> Self:
        """The encoding that the rows of each trial show, from these rows alone."""
        p = len(layout.numbers)
        zero, factor, filled = np.zeros((3, len(trials), p))
        seen = np.zeros((len(trials), layout.width))
        for t, rows in enumerate(trials):
            zero[t], spread = _spread(rows.numbers, scale)
            # a constant column becomes 0, not a division by nothing
            factor[t] = np.divide(1.0, spread, out=np.zeros(p), where=spread > 0)
            # by default a missing number becomes 0 once scaled, and the mark beside it carries what it means
            filled[t] = _median(rows.numbers, zero[t]) if fill == "median" else zero[t]
            # a category that no training row has would have a weight of pure chance
            seen[t] = np.bincount(rows.categories[rows.categories >= 0], minlength=layout.width) > 0
        return cls(layout, zero, factor, filled, seen, layout.entries >= DENSE_SHARE * layout.width)

    def __call__(self, table: pa.Table) -> Any:
        """Features of typed rows, by the first trial."""
        rows = self.layout.code(table)
        return self.encode(rows, np.zeros(len(rows), dtype=np.int64))

    def to_json(self) -> dict[str, Any]:
        """The first trial's encoding as plain values."""
        layout = self.layout
        arrays = {name: getattr(self, name)[0].tolist() for name in ("low", "scale", "fill", "seen")}
        categories = [[name, list(values), missing] for name, values, missing in layout.categories]
        return {"numbers": list(layout.numbers), "gaps": list(layout.gaps), "categories": categories, **arrays}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The encoder of `to_json`."""
        categories = tuple((name, tuple(values), bool(missing)) for name, values, missing in given["categories"])
        layout = Layout(tuple(given["numbers"]), tuple(given["gaps"]), categories)
        low, scale, fill, seen = (np.array(given[name], dtype=float)[None] for name in ("low", "scale", "fill", "seen"))
        if (
            low.shape != (1, len(layout.numbers))
            or not low.shape == scale.shape == fill.shape
            or seen.shape != (1, layout.width)
        ):
            raise ValueError("the numbers of an encoder do not fit its columns")
        return cls(layout, low, scale, fill, seen, layout.entries >= DENSE_SHARE * layout.width)

    def encode(self, rows: Coded, trial: Ints) -> Any:
        """Features of these rows, each for its trial: an array, or CSR with the same number of entries in every row."""
        numbers = np.where(np.isnan(rows.numbers), self.fill[trial], rows.numbers)
        numbers = (numbers - self.low[trial]) * self.scale[trial]
        none = rows.categories < 0
        position = np.where(none, ~rows.categories, rows.categories)
        value = np.where(none, 0.0, self.seen[trial[:, None], position])
        k, p = numbers.shape
        d = self.seen.shape[1]
        if self.dense:
            features = np.zeros((k, d))
            features[:, :p] = numbers
            features[np.arange(k)[:, None], position] = value
            return features
        indices = np.empty((k, p + position.shape[1]), dtype=np.int32)
        indices[:, :p] = np.arange(p)
        indices[:, p:] = position
        data = np.concatenate([numbers, value], axis=1)
        indptr = np.arange(k + 1, dtype=np.int32) * np.int32(indices.shape[1])
        return sparse.csr_array((data.ravel(), indices.ravel(), indptr), shape=(k, d))

    def of(self, trial: int) -> Encoder:
        """The encoder of one trial, which becomes trial 0."""
        at = [trial]
        return Encoder(self.layout, self.low[at], self.scale[at], self.fill[at], self.seen[at], self.dense)

    def fold(self, trials: Ints, coef: Floats, intercept: Floats) -> tuple[Floats, Floats, Floats]:
        """Linear rules of these trials, (k, d) and (k,), for unscaled rows; and what a missing number adds, (k, p)."""
        # test rows stay unscaled: the rule is moved into
        # their scale instead, one product for all trials
        p = self.low.shape[1]
        slopes = coef[:, :p] * self.scale[trials]
        folded = np.concatenate([slopes, coef[:, p:] * self.seen[trials, p:]], axis=1)
        return folded, intercept - (slopes * self.low[trials]).sum(axis=1), slopes * self.fill[trials]


def _spread(numbers: Floats, scale: str) -> tuple[Floats, Floats]:
    """What to subtract from and divide by in every column: mean and deviation, minimum and range, or 0 and 1."""
    if scale == "none":
        return np.zeros(numbers.shape[1]), np.ones(numbers.shape[1])
    low, high = _range(numbers)
    if scale == "minmax":
        return low, high - low
    mean, deviation = low.copy(), np.zeros_like(low)
    for j in np.flatnonzero(high > low):  # the deviation of equal numbers comes out as rounding, not as 0
        known = numbers[~np.isnan(numbers[:, j]), j]
        mean[j], deviation[j] = known.mean(), known.std()
    return mean, deviation


def _range(numbers: Floats) -> tuple[Floats, Floats]:
    """Smallest and largest value of every column; 0 and 0 for a column without values."""
    empty = np.isnan(numbers).all(axis=0)
    low = np.where(empty, 0.0, np.fmin.reduce(numbers, axis=0, initial=np.inf))
    return low, np.where(empty, 0.0, np.fmax.reduce(numbers, axis=0, initial=-np.inf))


def _median(numbers: Floats, otherwise: Floats) -> Floats:
    middle = otherwise.copy()
    gaps = np.isnan(numbers)
    for j in np.flatnonzero(~gaps.all(axis=0)):
        middle[j] = np.median(numbers[~gaps[:, j], j])
    return middle


def _as_float(column: pa.ChunkedArray) -> Floats:
    """A typed column as numbers: times as days, yes as 1."""
    unit = _DAY if pa.types.is_timestamp(column.type) else 1.0
    column = column.cast(pa.int64()) if unit == _DAY else column
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64) / unit


def _positions(column: pa.ChunkedArray, values: Sequence[str], missing: bool) -> Ints:
    text = undictionary(column)
    # an unknown category is not missing: it is none of the known ones, missing is a category of its own
    found = pc.index_in(text, value_set=pa.array(values, pa.string()), skip_nulls=True)
    codes = np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int64)
    if missing and text.null_count:
        codes[np.asarray(pc.is_null(text).to_numpy())] = len(values)
    return codes
