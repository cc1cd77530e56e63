"""JSON as the ledger keeps it: numbers read back exactly."""

from __future__ import annotations

from typing import Any

import orjson

from evenhand.errors import InputError


def as_text(value: object) -> str:
    """A value as JSON.

    >>> as_text({"share": 0.1})
    '{"share":0.1}'
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise InputError(f"this cannot be stored: {error}; use text, finite numbers and 64-bit integers") from None


def from_text(text: str | bytes) -> Any:
    """What `as_text` wrote."""
    return orjson.loads(text)
