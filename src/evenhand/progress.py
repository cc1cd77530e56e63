"""Progress bars on standard error."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["bar"]


def bar(what: str, total: int) -> Callable[[int], None]:
    """A running bar; call it with the number just finished, and with 0 to end it."""
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = progress.add_task(what, total=total)
    progress.start()

    def step(finished: int) -> None:
        progress.advance(task, finished) if finished else progress.stop()

    return step
