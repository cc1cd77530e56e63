"""What a live campaign hands out and gives back, beyond what any campaign does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evenhand.request import Receipt, Request

__all__ = ["LiveReceipt", "LiveRequest", "as_time"]


@dataclass(frozen=True)
class LiveRequest(Request):
    """A request with its lease, and how old the scores behind it are.

    `until` is when the lease ends (None: never), `collector` whom it was given to, `event` its place in the ledger;
    `rests_on` is the last event its scores rest on, `scores_age` their age in seconds (None without scores), `behind` how
    many labels came since.
    """

    until: float | None
    collector: str | None
    event: int
    rests_on: int
    scores_age: float | None
    behind: int

    def as_dict(self) -> dict[str, Any]:
        """The request as plain JSON values."""
        return {
            "request": self.id,
            "group": self.group,
            "size": self.size,
            "until": as_time(self.until),
            "collector": self.collector,
            "event": self.event,
            "decision": self.decision.as_dict(),
            "scores": {"rest_on": self.rests_on, "age_seconds": self.scores_age, "labels_behind": self.behind},
        }


@dataclass(frozen=True)
class LiveReceipt(Receipt):
    """What a delivery brought; `late` after its lease, `repeated` when it had been told before."""

    event: int
    late: bool
    repeated: bool


def as_time(at: float | None) -> str | None:
    """A moment as text, in UTC.

    >>> as_time(0.0)
    '1970-01-01T00:00:00Z'
    """
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
