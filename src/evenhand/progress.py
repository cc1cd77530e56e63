"""Progress on standard error: a bar in a terminal, elsewhere a line every few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["bar", "lasting", "say"]

EVERY = 5.0
"""Seconds between two lines where there is no terminal."""


def bar(what: str, total: int) -> Callable[[int], None]:
    """Start a progress bar: call it with the number of items just finished, and with 0 to end it."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return _lines(console, what, total)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task = progress.add_task(what, total=total)
    progress.start()

    def step(finished: int) -> None:
        progress.advance(task, finished) if finished else progress.stop()

    return step


def say(lines: Iterable[str]) -> None:
    """Tell what was done so far."""
    console = Console(stderr=True, highlight=False, markup=False)
    for line in lines:
        console.print(line, soft_wrap=True)


def _lines(console: Console, what: str, total: int) -> Callable[[int], None]:
    """A line every few seconds, also while a single item takes minutes: in a log nothing else shows that it goes on."""
    began, ended = time.monotonic(), threading.Event()
    done, at = 0, 0.0

    def tell() -> None:
        while not ended.wait(EVERY):
            passed = time.monotonic() - began
            # by what the finished ones took: while several run together nothing is finished for a while
            more = max(at / done * (total - done) - (passed - at), 0.0) if done else 0.0
            left = f", about {lasting(more)} more" if done else ""
            console.print(
                f"{what}: {done:,} of {total:,}, {lasting(passed)} so far{left}", highlight=False, soft_wrap=True
            )

    def step(finished: int) -> None:
        nonlocal done, at
        done, at = done + finished, time.monotonic() - began
        if not finished:
            ended.set()

    threading.Thread(target=tell, name="progress", daemon=True).start()
    return step


def lasting(seconds: float) -> str:
    """A time as people say it.

    >>> lasting(4.2), lasting(100), lasting(8000)
    ('4 s', '2 min', '2.2 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
