"""A labelling tool in memory, with people who answer, change their minds, skip and delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import evenhand as eh
from evenhand.connectors.base import Answer, Shown, Task
from evenhand.errors import ToolError


class Paper:
    """Tasks and answers in dictionaries; a moment passes with everything that happens."""

    def __init__(self, rows: Sequence[dict[str, Any]] = (), wanted: int = 1, name: str = "paper:1") -> None:
        self.name, self.wanted, self.now = name, wanted, 0
        self.data: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, dict[str, Answer]] = {}
        self.changed: dict[str, int] = {}
        self.shown: list[Shown] = []
        self.broken, self.calls = 0, 0
        self.between: Any = None
        for row in rows:
            self.add(row)

    def add(self, data: dict[str, Any]) -> str:
        task = str(len(self.changed) + 1)
        self.data[task], self.answers[task] = data, {}
        self._touch(task)
        return task

    def delete(self, task: str) -> None:
        del self.data[task]

    def say(self, task: str, label: str | int | None, by: str = "ann") -> None:
        self.now += 1
        self.answers[task][by] = Answer(by, label, f"{self.now:06d}")
        self._touch(task)

    def unsay(self, task: str, by: str = "ann") -> None:
        del self.answers[task][by]
        self._touch(task)

    def _touch(self, task: str) -> None:
        self.now += 1
        self.changed[task] = self.now

    def tasks(self, after: str | None) -> tuple[list[Task], str | None]:
        self._called()
        began = self.now
        since = -1 if after is None else int(after)
        found = [
            Task(task, data, tuple(self.answers[task].values()), self.wanted)
            for task, data in self.data.items()
            if self.changed[task] > since
        ]
        if self.between is not None:
            between, self.between = self.between, None
            between()
        return found, str(began)

    def show(self, tasks: Sequence[Shown]) -> None:
        self._called()
        self.shown = list(tasks)

    def _called(self) -> None:
        self.calls += 1
        if self.broken:
            self.broken -= 1
            raise ToolError("the line is dead")


def rows(n=40):
    return [{"group": "uv"[k % 2], "age": 20 + k % 40, "note": "x" * (k % 3)} for k in range(n)]


def campaign(**settings):
    settings = {"budget": 24, "batch": 2, "learner": "table", **settings}
    return eh.Campaign(None, **settings)


def labels(c):
    with c.moment() as (reader, _):
        return {row.id: row.label for row in reader.changed() if row.counts}


def answered(tool):
    """What the only person says now, by task."""
    return {t: a["ann"].label for t, a in tool.answers.items() if t in tool.data and a and a["ann"].label is not None}


def fill(tool, label="yes", by="ann"):
    for shown in list(tool.shown):
        tool.say(shown.task, label if isinstance(label, str) else label(shown), by)
