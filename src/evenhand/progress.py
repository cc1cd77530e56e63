"""Progress on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["bar", "say"]


def bar(what: str, total: int) -> Callable[[int], None]:
    """Start a progress bar: call it with the number of items just finished, and with 0 to end it."""
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # in a file a bar would leave an empty line
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
