"""Events: the facts a live campaign consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["KINDS", "Draft", "Event"]

KINDS = ("created", "asked", "told", "scored", "losses", "abandoned", "expired", "changed", "closed")
"""What can happen to a campaign."""


@dataclass(frozen=True)
class Draft:
    """An event about to be appended; `rows` are the delivered rows in Arrow's stream format."""

    kind: str
    header: Mapping[str, Any]
    request: int | None = None
    rows: bytes | None = None


@dataclass(frozen=True)
class Event:
    """An event of the ledger: its place in the campaign's sequence, its kind, when, and its facts."""

    seq: int
    kind: str
    at: float
    header: dict[str, Any]
    request: int | None = None
