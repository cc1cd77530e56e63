"""What a labelling tool must be able to do to be kept in step with a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from evenhand.errors import EvenhandError

__all__ = ["OURS", "Answer", "Shown", "Task", "Tool", "ToolError"]

OURS = "evenhand_"
"""How the names begin of what a connector writes into tasks; such fields are never features."""


class ToolError(EvenhandError, RuntimeError):
    """The tool could not be reached or did not do what was asked; nothing is lost, the next pass goes on."""


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


class Task(NamedTuple):
    """A task of the tool: its id there, its data, and all that was said of it; nothing once everything was deleted."""

    id: str
    data: Mapping[str, Any]
    answers: tuple[Answer, ...] = ()


class Shown(NamedTuple):
    """A task that people should see next: for which request and group, and why."""

    task: str
    request: int
    group: str
    why: str


class Tool(Protocol):
    """A labelling tool. Every call may raise `ToolError`, and is then made again in the next pass."""

    name: str

    def tasks(self, after: str | None) -> tuple[list[Task], str | None]:
        """Tasks that are new or were changed or answered since a cursor, all of them with None; and the next cursor."""
        ...

    def show(self, tasks: Sequence[Shown]) -> None:
        """Make these the tasks that people see next, in this order, and no others."""
        ...
