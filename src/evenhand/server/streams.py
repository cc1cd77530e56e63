"""How many event streams are open: in all, and with each token or share link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Gauge

from evenhand.server.problems import Problem
from evenhand.server.tokens import Grant

MOST_STREAMS = 500
"""Streams that may be open at once."""
_LATER = {"Retry-After": "60"}


class Streams:
    """The event streams that are open.

    Args:
        gauge: shows their number to operators.
    """

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._open: Counter[str | None] = Counter()

    def check(self, grant: Grant, most: int) -> None:
        """Refuse one more stream if too many are open, in all or with the token or link that the grant comes from."""
        if self._open.total() >= MOST_STREAMS:
            raise Problem(503, f"{MOST_STREAMS} streams are open already: poll with ETags", "busy", _LATER)
        # somebody on this machine without a token has no other to shut out
        if grant.source is not None and self._open[grant.source] >= most:
            said = f"{most} streams are open with this token or link, the most there may be: poll with ETags"
            raise Problem(429, said, "busy", _LATER)

    @contextmanager
    def counted(self, grant: Grant) -> Iterator[None]:
        """Count a stream while it is open."""
        self._open[grant.source] += 1
        self._gauge.inc()
        try:
            yield
        finally:
            self._gauge.dec()
            self._open[grant.source] -= 1
            if not self._open[grant.source]:
                del self._open[grant.source]
