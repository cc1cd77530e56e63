"""Texts that a person would take for the same: they differ by case, blanks, invisible characters or Unicode form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Literal

from evenhand.tables.problems import names

__all__ = ["Spellings", "alike", "check_spellings", "merged_spellings"]

Spellings = Literal["refuse", "merge"]
"""What becomes of texts that differ only by their spelling: refused, or each the most frequent of its spellings."""
_LONGEST_LOOKED_AT = 200


def alike(text: str) -> str:
    """What is left of a text without case, blanks, invisible characters and differences of Unicode form.

    >>> alike("Yes ") == alike("yes"), alike("caf\\u00e9") == alike("cafe\\u0301"), alike("1") == alike("01")
    (True, True, False)
    """
    if text.isascii() and text.isprintable():
        return re.sub(r"\s+", "", text).casefold()
    kept = (c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFC", re.sub(r"\s+", "", "".join(kept)).casefold())


def _variants(counts: Mapping[str, int]) -> list[list[str]]:
    """Spellings of one text, the most frequent first; only where there are several."""
    found: dict[str, list[str]] = {}
    for text in counts:
        found.setdefault(alike(text), []).append(text)
    return [sorted(each, key=lambda text: (-counts[text], text)) for each in found.values() if len(each) > 1]


def check_spellings(counts: Mapping[str, int], what: str) -> str | None:
    """Why these texts cannot be told apart by a person, or None; `counts` says how many rows have each."""
    variants = _variants(counts)
    if not variants:
        return None
    shown = "; ".join(names([text[:_LONGEST_LOOKED_AT] for text in each]) for each in variants[:3])
    more = f" and {len(variants) - 3} more" if len(variants) > 3 else ""
    return (
        f"{what} has spellings that differ only by case, blanks, invisible characters or Unicode form: {shown}{more}. "
        "Write them alike, or make each the most frequent of its spellings (spellings='merge', --merge-spellings)."
    )


def merged_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """For every spelling but the most frequent one of a text, that one."""
    return {text: each[0] for each in _variants(counts) for text in each[1:]}
