"""Events: the facts a live campaign consists of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["KINDS", "Draft", "Event"]

KINDS = ("created", "asked", "told", "scored", "losses", "abandoned", "expired", "changed", "certified", "closed")
"""What can happen to a campaign."""


class Draft(NamedTuple):
    """An event about to be appended.

    `header` is what folding needs, `detail` what only a person asks for, `rows` the delivered rows in Arrow's stream
    format.
    """

    kind: str
    header: Mapping[str, Any]
    request: int | None = None
    detail: Mapping[str, Any] | None = None
    rows: bytes | None = None


class Event(NamedTuple):
    """An event of the ledger: its place in the campaign's sequence, its kind, when, and its facts.

    The detail is there in what is read about one request.
    """

    seq: int
    kind: str
    at: float
    header: dict[str, Any]
    request: int | None = None
    detail: dict[str, Any] | None = None
