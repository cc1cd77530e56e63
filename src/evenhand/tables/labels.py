"""The labels of a table: the classes there are, and every row's among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evenhand.arrays import Indices
from evenhand.tables.frame import Frame
from evenhand.tables.groups import GroupColumn, code_column
from evenhand.tables.problems import TableError, names
from evenhand.tables.spelling import check_spellings, merged_spellings

__all__ = ["Label", "Labels", "classes_of", "find_labels"]

Label = str | int | bool

_LARGEST = 2**63


@dataclass(frozen=True)
class Labels:
    """The classes in ascending order, and every row's position among them; −1 for a row without a label."""

    codes: Indices
    classes: tuple[Label, ...]


def find_labels(frame: Frame, name: str, *, missing: tuple[str, ...] = (), merge_spellings: bool = False) -> Labels:
    """The labels of a column; only an empty cell is no label: `NA` may be a class."""
    kind = frame.schema.field(name).type
    coding = code_column(frame.column(name), GroupColumn(name), missing)
    if problem := check_spellings(coding.counts(), f"label {name!r}"):
        if not merge_spellings:
            raise TableError(f"{frame.name}: {problem}")
        coding = coding.merged(merged_spellings(coding.counts()))
    meant = classes_of(coding.values, f"{frame.name}: label {name!r}", truth=pa.types.is_boolean(kind))
    classes = sorted(set(meant.values()), key=str if any(isinstance(c, str) for c in meant.values()) else int)
    place = {label: code for code, label in enumerate(classes)}
    lookup = np.array([*(place[meant[text]] for text in coding.values), -1], dtype=np.int32)
    return Labels(lookup[coding.codes], tuple(classes))


def classes_of(texts: Iterable[str], what: str, *, truth: bool = False) -> Mapping[str, Label]:
    """The class that each text of a label column writes out: whole numbers where all are, else the text without blanks.

    `truth` says that the column held true and false. Decimal numbers are refused: they are no classes.

    >>> classes_of(["1", "2.0"], "y"), classes_of(["1", "01"], "y")
    ({'1': 1, '2.0': 2}, {'1': '1', '01': '01'})
    """
    texts = list(texts)
    if truth:
        return {text: text == "True" for text in texts}
    if texts and all(map(_is_plain_number, texts)):
        fractions = [text for text in texts if not float(text).is_integer()]
        if fractions:
            raise TableError(
                f"{what} holds decimal numbers ({names(fractions, 3)}): classes are text, whole numbers or true and false; "
                "make classes of them."
            )
        numbers = {text: int(text) if text.lstrip("+-").isdecimal() else int(float(text)) for text in texts}
        if max(map(abs, numbers.values())) >= _LARGEST:
            raise TableError(f"{what} holds numbers beyond 64 bits ({names(texts, 3)}): write them as text.")
        return numbers
    return {text: text.strip() for text in texts}


def _is_plain_number(text: str) -> bool:
    """Whether a text is a number that is written as one: 01 is a name."""
    bare = text.strip().lstrip("+-")
    if not bare or not bare.isascii() or not (bare[0].isdigit() or bare[0] == ".") or "_" in bare:
        return False
    if bare[0] == "0" and len(bare) > 1 and bare[1].isdigit():
        return False
    try:
        return abs(float(bare)) < float("inf")
    except ValueError:
        return False
