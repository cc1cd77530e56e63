"""JSON as the ledger keeps it: quick where it can be, exact where it must be."""

from __future__ import annotations

import json
from typing import Any

import orjson

__all__ = ["as_text", "from_text"]


def as_text(value: Any) -> str:
    """A value as JSON; whole numbers of any size and text of any kind are kept.

    >>> as_text({"seed": 2**70})
    '{"seed":1180591620717411303424}'
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)


def from_text(text: str, *, exact: bool = False) -> Any:
    """What `as_text` wrote; `exact` where there may be whole numbers beyond 64 bits, as in settings.

    >>> from_text(as_text({"seed": 2**70}), exact=True)["seed"] == 2**70
    True
    """
    if not exact:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:  # it knows no half characters
            pass
    return json.loads(text)
