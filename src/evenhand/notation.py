"""How values are written as text: settings as `name:key=value,key=value`, missing cells, unused names."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Any

from evenhand.errors import InputError

__all__ = [
    "MISSING",
    "SEPARATORS",
    "JsonMapping",
    "JsonObject",
    "free_name",
    "lasting_text",
    "parse_settings",
    "parse_value",
    "real",
    "whole",
]

MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null")
"""What a cell of a file may hold to say that its value is missing."""
JsonObject = dict[str, Any]
"""Plain values by name, as JSON has them: facts of events, settings, summaries, reports."""
JsonMapping = Mapping[str, Any]
"""The same, to be read only."""
SEPARATORS = (",", ";", "\t", "|")
"""What may separate the cells of a CSV file."""


def parse_settings(text: str, *, where: str) -> dict[str, Any]:
    """`key=value,key=value` as a dict; numbers, true, false and none are read as such.

    >>> parse_settings("c0=0.1,explore=uniform", where="here")
    {'c0': 0.1, 'explore': 'uniform'}
    """
    settings: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, mark, value = (part.strip() for part in item.partition("="))
        if not mark or not key or not value:
            raise InputError(f"{where}: cannot read {item!r}; settings are written key=value, separated by commas")
        if key in settings:
            raise InputError(f"{where}: {key!r} is set twice")
        settings[key] = parse_value(value)
    return settings


def lasting_text(value: object) -> str:
    """An object as text without its address in memory, so that the text is the same in every process.

    >>> lasting_text(lasting_text)
    '<function lasting_text>'
    """
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))


def parse_value(text: str) -> Any:
    """A whole number, a number, true, false, none, or the text itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    # int first: float would read "3" as well, and a setting such as window=20 is counted with
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A setting that is a whole number, NumPy's included; the error names it and says what it may be.

    >>> whole("trials", 3, 1)
    3
    """
    number = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else least - 1
    if number < least or (most is not None and number > most):
        upper = "up" if most is None else f"to {most:,}"
        raise InputError(f"{name} must be a whole number from {least} {upper}, not {value!r}")
    return number


def real(name: str, value: Any) -> float:
    """A setting that is a finite number, NumPy's included; the error names it."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InputError(f"{name} must be a number, not {value!r}")
    return float(value)


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that is not taken: the given one, with underscores appended until it is free.

    >>> free_name("row", ["id", "row"])
    'row_'
    """
    while name in taken:
        name = f"{name}_"
    return name
