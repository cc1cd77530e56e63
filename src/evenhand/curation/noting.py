"""Notes for the report on what is odd about a table: columns that give the label or group away, copied rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenhand.arrays import Floats, Ints
from evenhand.sources.table.table import Table
from evenhand.tables.encoder import Coded

__all__ = ["notes_on"]

# enough for a share of 98 % to within a few tenths, and quick for a table of millions of rows
SAMPLE = 20_000
LABEL, GROUP = 0.98, 0.95
"""At this balanced accuracy or above, a single column gives the label, or the group, away."""
LEAVES = 32


def notes_on(table: Table) -> list[str]:
    """Sentences on columns that predict the label almost perfectly, columns that give the group away, and copies of rows."""
    rows = table.sample_rows(SAMPLE)
    notes = list(_giveaways(table, table.coded(rows), table.labels(rows), table.group_of(rows)))
    copied = table.copies()
    if copied:
        notes.append(
            f"{copied:,} rows are exact copies of others: copies may stand on both sides of a split; "
            "remove them, or keep them together with split_by (--split-by)"
        )
    return notes


def _giveaways(table: Table, coded: Coded, y: Ints, group: Ints) -> Iterator[str]:
    layout = table.layout
    columns: list[tuple[str, Floats | Ints]] = [(name, coded.numbers[:, j]) for j, name in enumerate(layout.numbers)]
    first = len(layout.gaps)
    columns += [
        (name, coded.categories[:, first + j].astype(np.int64)) for j, (name, _, _) in enumerate(layout.categories)
    ]
    for name, values in columns:
        if (found := _predicts(values, y)) >= LABEL:
            yield (
                f"column {name!r} alone predicts the label almost perfectly ({100 * found:.1f} % balanced accuracy on rows "
                "it was not fitted on): is it known before the label is?"
            )
        # group columns tell the group by what they are
        if name not in table.group_columns and len(table.groups) > 1 and (found := _predicts(values, group)) >= GROUP:
            yield (
                f"column {name!r} gives the group away ({100 * found:.1f} % balanced accuracy): the model can tell groups "
                "apart by it although group columns are left out"
            )


def _predicts(values: Floats | Ints, target: Ints) -> float:
    """Balanced accuracy of the best simple rule on one column, fitted on every other row and tested on the rest."""
    # fitted on one half and tested on the other: a column of unique values would otherwise predict anything
    half = np.arange(len(values)) % 2 == 0
    if len(np.unique(target[half])) < 2 or len(np.unique(target[~half])) < 2:
        return 0.0
    places = _bins(values, half)
    table = np.zeros((int(places.max()) + 1, int(target.max()) + 1))
    share = np.bincount(target[half], minlength=table.shape[1])
    np.add.at(table, (places[half], target[half]), 1.0)
    # by share of the class, not by count: balanced accuracy asks of rare classes as much as of frequent ones
    said = (table / np.maximum(share, 1)).argmax(axis=1)[places]
    right = said == target
    return float(np.mean([right[~half & (target == k)].mean() for k in np.unique(target[~half])]))


def _bins(values: Floats | Ints, half: np.ndarray) -> Ints:
    """Numbers in bins of equal size, missing ones in their own bin; categories as they are."""
    if values.dtype.kind != "f":
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    known = values[half & ~np.isnan(values)]
    distinct = np.unique(known)
    edges = (
        distinct[1:] if len(distinct) <= LEAVES else np.unique(np.quantile(known, np.linspace(0, 1, LEAVES + 1)[1:-1]))
    )
    found = np.searchsorted(edges, values, side="right").astype(np.int64)
    # a missing value may itself give the label away
    return np.where(np.isnan(values), len(edges) + 1, found)
