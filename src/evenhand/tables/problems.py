"""What can be wrong with a table, said so that its owner can put it right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from evenhand.errors import InputError

__all__ = ["TableError", "missing_column", "names", "raise_all", "refuse_rows", "rows_text"]


class TableError(InputError):
    """A table that cannot be used as it is; the message says what to change."""


def names(values: Iterable[object], limit: int = 5) -> str:
    """A short list for a message.

    >>> names(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    texts = [repr(value) for value in values]
    rest = len(texts) - limit
    return ", ".join(texts[:limit]) + (f" and {rest:,} more" if rest > 0 else "")


def missing_column(name: str, columns: Sequence[str], what: str) -> str:
    """The message for a column that does not exist, with similar names."""
    # reversed, so that the first of several that differ by case alone is suggested
    folded = {column.casefold().strip(): column for column in reversed(columns)}
    close = [folded[key] for key in difflib.get_close_matches(name.casefold().strip(), folded, n=3, cutoff=0.6)]
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"the columns are {names(columns, 12)}."
    separator = next((s for s in (";", "\t", "|") if len(columns) == 1 and s in columns[0]), None)
    if separator is not None:
        hint = f"the file looks separated by {separator!r}: say separator={separator!r} (--separator)."
    return f"there is no column {name!r} ({what}); {hint}"


def raise_all(found: Iterable[str | None], name: str) -> None:
    """One error for everything found, so that a table needs putting right only once."""
    problems = [text for text in found if text]
    if len(problems) == 1:
        raise TableError(f"{name}: {problems[0]}")
    if problems:
        raise TableError(
            f"{name}: {len(problems)} things to put right:\n" + "\n".join(f"- {text}" for text in problems)
        )


def rows_text(rows: Sequence[int], limit: int = 5) -> str:
    """Rows of a table for a message, counted from 1.

    >>> rows_text([0, 4])
    'rows 1, 5'
    """
    shown = ", ".join(str(row + 1) for row in rows[:limit])
    rest = f" and {len(rows) - limit:,} more" if len(rows) > limit else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{rest}"


def refuse_rows(name: str, problems: Mapping[int, str], limit: int = 5) -> None:
    """Refuse a table in which rows cannot be used; the message names a few of them by number."""
    if not problems:
        return
    shown = [f"row {row + 1}: {why}" for row, why in sorted(problems.items())[:limit]]
    if len(problems) == 1:
        raise TableError(f"{name}, {shown[0]}")
    rest = [f"and {len(problems) - limit:,} more"] if len(problems) > limit else []
    lines = "\n".join(f"- {each}" for each in [*shown, *rest])
    raise TableError(f"{name}: {len(problems):,} rows cannot be used:\n{lines}")
