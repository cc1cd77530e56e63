"""Settings written as text: `name:key=value,key=value`."""

from __future__ import annotations

from typing import Any

from evenhand.errors import InputError

__all__ = ["parse_settings", "parse_value"]


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


def parse_value(text: str) -> Any:
    """A whole number, a number, true, false, none, or the text itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
