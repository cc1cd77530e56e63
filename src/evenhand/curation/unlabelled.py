"""Finds out whether a table's labels are still to be made, without reading more of it than the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenhand.tables.frame import Frame
from evenhand.tables.groups import GroupColumn, code_column
from evenhand.tables.problems import TableError, missing_column

__all__ = ["Labels", "Unlabelled", "labels_in"]


class Labels(NamedTuple):
    """How many rows of a table have a label."""

    there: int
    rows: int

    @property
    def missing(self) -> int:
        """Rows without one."""
        return self.rows - self.there


class Unlabelled(NamedTuple):
    """What is known of a table whose labels are still to be made; nothing if its labelling has begun already.

    Attributes:
        labels: how many rows have one.
        was_read: how the table was read, in words.
    """

    labels: Labels = Labels(0, 0)
    was_read: str = ""


def labels_in(frame: Frame, label: str, *, new: bool, missing: Sequence[str] = ()) -> Labels:
    """How many rows have a label; `new` says that there is no such column yet, and none of them has.

    A name that is not among the columns may be a typing error, which must not begin a labelling campaign.
    """
    if label in frame.schema.names:
        if new:
            raise TableError(
                f"{frame.name} has a column {label!r} already: if it holds the labels, say label={label!r} (--label {label})."
            )
        # empty cells, and nothing else: `NA` may be a class
        return Labels(
            len(frame) - len(code_column(frame.column(label), GroupColumn(label), missing).missing), len(frame)
        )
    if new:
        return Labels(0, len(frame))
    said = missing_column(label, frame.schema.names, "label")
    raise TableError(
        f"{frame.name}: {said} To have labels made for a table that has no column for them, name the column to fill: "
        f"new_label={label!r} (--new-label {label})."
    )
