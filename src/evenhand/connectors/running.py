"""Runs a sync pass after pass, until somebody stops it."""

from __future__ import annotations

import time
from collections.abc import Callable

from evenhand.connectors.report import Report
from evenhand.connectors.sync import Sync
from evenhand.errors import LearnerError, LedgerError, ToolError


def run(
    sync: Sync, told: Callable[[Report | str], None], *, seconds: float | None = None, dry_run: bool = False
) -> None:
    """Bring a campaign and its tool into step, once or again and again; a pass that fails is repeated.

    Args:
        sync: the campaign and the tool.
        told: called with the report of every pass that did something, and with failures.
        seconds: how long to wait between passes; None makes one pass and raises its failure.
        dry_run: only say what a pass would do.
    """
    failures, last = 0, ""
    while True:
        try:
            report = sync.once(dry_run=dry_run)
        except (ToolError, LedgerError, LearnerError) as error:
            if seconds is None:
                raise
            failures += 1
            told(f"{error}; trying again in {_wait(seconds, failures):.0f} seconds")
        else:
            failures = 0
            if seconds is None or str(report) != last:  # a report that is the same as before is not repeated
                told(report)
            last = str(report)
        if seconds is None:
            return
        time.sleep(_wait(seconds, failures))


def _wait(seconds: float, failures: int) -> float:
    """How long to wait: longer after each failure, five minutes at most."""
    return seconds if not failures else min(seconds * 2.0 ** (failures - 1), max(seconds, 300.0))
