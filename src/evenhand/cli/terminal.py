"""Text that fits the terminal: long lines are folded between words, and no name or number is cut."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from unicodedata import combining, east_asian_width

import typer


def columns() -> int | None:
    """How wide the terminal is; None where the output goes to a file or another program, which fold nothing."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or os.environ.get("COLUMNS") else None


def echo(text: str) -> None:
    """Print a text, folded."""
    typer.echo(folded(text, columns()))


def folded(text: str, wide: int | None) -> str:
    """A text folded into lines of at most `wide` columns; continued lines are indented a little.

    >>> print(folded("note: one two three\\nfour", 12))
    note: one
      two three
    four
    """
    return text if wide is None else "\n".join(part for line in text.split("\n") for part in _parts(line, wide))


def _parts(line: str, wide: int) -> list[str]:
    if _width(line) <= wide:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    found = [""]
    for gap, word in re.findall(r"(\s*)(\S+)", line):
        # a word wider than the terminal is left whole, on a line of its own
        if found[-1].strip() and _width(found[-1] + gap + word) > wide:
            found.append(f"{indent}  {word}")
        else:
            found[-1] += gap + word
    return found


def aligned(rows: Sequence[Sequence[str]], wide: int | None = None) -> list[str]:
    """Rows as lines whose columns stand one below the other; where they are too wide, the first cell gets its own line.

    Rich would do it in one call, and takes longer to import than `status` takes to read the campaign.

    >>> aligned([("group", "n"), ("a long name", "12")], 10)
    ['group', '  n', 'a long', '  name', '  12']
    """
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    if wide is None or sum(widths) + 2 * (len(widths) - 1) <= wide:
        return [_row(row, widths) for row in rows]
    return [line for row in rows for line in (*_parts(row[0], wide), "  " + _row(row[1:], widths[1:]))]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell + " " * (wide - _width(cell)) for cell, wide in zip(cells, widths, strict=True)).rstrip()


def _width(text: str) -> int:
    """How many columns of a terminal a text takes: Chinese, Japanese and Korean letters take two, accents none."""
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def counted(number: int, what: str) -> str:
    """A number of things in words.

    >>> counted(1, "label"), counted(1200, "label")
    ('1 label', '1,200 labels')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def at(moment: str, to: str = "minutes") -> str:
    """A moment of the ledger as people write it.

    >>> at("2026-11-19T06:59:14Z"), at("2026-11-19T06:59:14.123Z", "seconds")
    ('2026-11-19 06:59 UTC', '2026-11-19 06:59:14 UTC')
    """
    return datetime.fromisoformat(moment).isoformat(" ", to)[:-6] + " UTC"


def ago(seconds: float) -> str:
    """How long ago, in the largest unit that fits.

    >>> ago(31), ago(7300), ago(200000)
    ('31 seconds ago', '2 hours ago', '2 days ago')
    """
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return f"{counted(round(seconds), 'second')} ago"
