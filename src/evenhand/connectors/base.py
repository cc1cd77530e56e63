"""What a labelling tool must be able to do to be kept in step with a campaign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from evenhand.errors import EvenhandError

__all__ = ["OURS", "Answer", "Answers", "Shown", "Task", "Tool", "ToolError"]

OURS = "evenhand_"
"""How the names begin of what a connector writes into tasks; such fields are never features."""


class ToolError(EvenhandError, RuntimeError):
    """The tool could not be reached or did not do what was asked; nothing is lost, the next pass goes on."""


class Task(NamedTuple):
    """A task of the tool: its id there, and its data."""

    id: str
    data: Mapping[str, Any]


class Answer(NamedTuple):
    """What one person said of a task.

    Attributes:
        by: who.
        label: the label; None if the task was skipped.
        at: when it was last changed, as text that sorts by time.
        problem: why it cannot be used, such as two labels where one is wanted.
    """

    by: str
    label: str | int | None
    at: str = ""
    problem: str | None = None


class Answers(NamedTuple):
    """All that was said of a task, oldest first; none after everything was deleted."""

    task: str
    answers: tuple[Answer, ...]


class Shown(NamedTuple):
    """A task that people should see next: for which request and group, and why."""

    task: str
    request: int
    group: str
    why: str


class Tool(Protocol):
    """A labelling tool. Every call may raise `ToolError`, and is then made again in the next pass."""

    name: str

    def tasks(self) -> Iterator[Task]:
        """Every task of the project."""
        ...

    def answers(self, after: str | None) -> tuple[list[Answers], str | None]:
        """What was said of tasks changed since a cursor, or of all with None; and the cursor to go on from."""
        ...

    def show(self, tasks: Sequence[Shown]) -> None:
        """Make these the tasks that people see next, in this order, and no others."""
        ...
