"""What a labelling tool must be able to do to be kept in step with a campaign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

OURS = "evenhand_"
"""The prefix of the fields that a connector writes into tasks; they are never features."""


class Answer(NamedTuple):
    """One person's answer to a task.

    Attributes:
        by: who gave it.
        label: the label; None if the task was skipped.
        at: when it was last changed, as text that sorts by time.
        problem: why it cannot be used, such as two labels where one is wanted.
    """

    by: str
    label: str | int | None
    at: str = ""
    problem: str | None = None


class Task(NamedTuple):
    """A task of the tool.

    Attributes:
        id: its id there.
        data: its fields.
        answers: all answers to it, oldest first; empty once all were deleted.
        wanted: how many people are to answer it.
    """

    id: str
    data: Mapping[str, Any]
    answers: tuple[Answer, ...] = ()
    wanted: int = 1


class Shown(NamedTuple):
    """A task that people should see next: for which request and group, and why."""

    task: str
    request: int
    group: str
    why: str


class Tool(Protocol):
    """A labelling tool. Every call may raise `ToolError`; the next pass then makes it again.

    A tool may also have an `origin`, known once `tasks` was called: a text that no other project on any server has.
    Without one, the name has to tell projects apart.

    Attributes:
        name: the tool and the project, such as `label-studio:7`; requests are made in this name.
    """

    name: str

    def tasks(self, after: str | None) -> tuple[list[Task], str | None]:
        """Tasks that are new or were changed or answered since a cursor, and the next cursor.

        Without a cursor these are all tasks there are: one that is not among them counts as deleted. A tool without
        cursors gives all of them every time, and None.
        """
        ...

    def show(self, tasks: Sequence[Shown]) -> None:
        """Make these the tasks that people see next, in this order, and no others."""
        ...
