"""Tasks of a tool as examples of a campaign's pool: which is which, and new ones registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.campaign import Campaign
from evenhand.campaign.labels import read_id
from evenhand.connectors.base import OURS, Task
from evenhand.errors import Conflict, InputError
from evenhand.ledger import Example
from evenhand.notation import JsonMapping, free_name

__all__ = ["PoolOfTasks"]


class PoolOfTasks:
    """Which example every task is.

    Args:
        campaign: the campaign.
        group: the fields that tell the group, perhaps with bins.
        id: the field that is the example's id; None takes the task's own.
        features: the fields to learn from; None takes all others.
    """

    def __init__(
        self, campaign: Campaign, *, group: Sequence[str], id: str | None, features: Sequence[str] | None
    ) -> None:
        self._campaign = campaign
        self._group, self._id, self._features = list(group), id, features
        self.forget()

    def forget(self) -> None:
        """Begin anew: all tasks come again."""
        self.names: dict[str, str] = {}
        self.tasks: dict[str, str] = {}
        self.problems: dict[str, str] = {}
        self._pooled: set[str] = set()

    def take(self, tasks: Sequence[Task], by: str, *, closed: bool) -> int:
        """Register tasks that are not in the pool yet, unless it is closed; gives how many."""
        fresh: list[Task] = []
        for task in tasks:
            self.problems.pop(task.id, None)
            if task.id in self._pooled:
                continue
            try:
                name = task.id if self._id is None else read_id(_given(task, self._id, "id"))
                if (other := self.tasks.setdefault(name, task.id)) != task.id:
                    raise InputError(f"it has the id {name!r} of task {other}")
            except InputError as error:
                self.problems[task.id] = str(error)
            else:
                self.names[task.id] = name
                fresh.append(task)
        known = self.find([self.names[task.id] for task in fresh])
        self._pooled |= {task.id for task in fresh if self.names[task.id] in known}
        new = [task for task in fresh if task.id not in self._pooled and self._has_group(task)]
        if new and not closed:
            self._register(new, by)
        return sum(task.id in self._pooled for task in new)

    def find(self, names: Sequence[str]) -> dict[str, Example]:
        """The examples with these ids."""
        store = self._campaign.store
        with store.ledger.reading(store.number) as reader:
            return reader.find(names)

    def _has_group(self, task: Task) -> bool:
        for part in self._group:
            try:
                _given(task, part.partition(":")[0], "group")
            except InputError as error:
                self.problems[task.id] = str(error)
                return False
        return True

    def _register(self, tasks: Sequence[Task], by: str) -> None:
        """Register tasks; if some cannot be, all the others."""
        state = self._campaign.store.refresh()
        first = state.pool is None
        column = self._id or (free_name("task", _fields(tasks)) if first else str(state.settings["id"]))
        try:
            table = self._table(tasks, column, state.columns)
            self._campaign.pool(table, id=column, group=self._group, features=self._features, by=by)
        except Conflict:  # the campaign is closed
            raise
        except InputError as error:
            # the first table says which groups and columns there are, so a part of it would not do
            if first:
                raise
            if len(tasks) == 1:
                self.problems[tasks[0].id] = str(error)
                return
            half = len(tasks) // 2
            self._register(tasks[:half], by)
            self._register(tasks[half:], by)
        else:
            self._pooled |= {task.id for task in tasks}

    def _table(self, tasks: Sequence[Task], column: str, earlier: JsonMapping | None) -> Any:
        """Tasks' data as a table with the columns of earlier ones; what is no plain value is left out."""
        import pyarrow as pa

        if earlier is not None and "names" in earlier:
            types = dict(zip(earlier["names"], earlier["types"], strict=True))
        else:
            # labels are what people answer, not what a field says
            left_out = {column, self._campaign.settings["label"]}
            wanted = {part.partition(":")[0] for part in self._group} | set(self._features or ())
            types = {
                name: _kind([task.data.get(name) for task in tasks])
                for name in _fields(tasks)
                if name not in left_out and (self._features is None or name in wanted)
            }
        columns: dict[str, Any] = {column: pa.array([self.names[task.id] for task in tasks])}
        for name, kind in types.items():
            values = [task.data.get(name) for task in tasks]
            if kind == "text":
                columns[name] = pa.array([None if v is None else str(v) for v in values], pa.string())
            elif kind is not None and (problem := _unlike(values, kind)) is None:
                columns[name] = pa.array(values)
            elif kind is not None:
                raise InputError(f"{name!r} was a {kind} in earlier tasks and is {problem!r} now")
        return pa.table(columns)


def _given(task: Task, field: str, what: str) -> Any:
    value = task.data.get(field)
    if value in (None, ""):
        raise InputError(f"it has no {what}: {field!r} is empty")
    return value


def _fields(tasks: Sequence[Task]) -> list[str]:
    """The fields of tasks but those that a connector wrote there."""
    return [name for name in dict.fromkeys(name for task in tasks for name in task.data) if not name.startswith(OURS)]


def _kind(values: Sequence[Any]) -> str | None:
    """What a field holds: numbers, true and false, or else text; None for lists and the like."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds <= {str, int, float, bool}:
        return None
    return "number" if kinds <= {int, float} and kinds else "bool" if kinds == {bool} else "text"


def _unlike(values: Sequence[Any], kind: str) -> Any:
    """The first value that does not fit a kind."""
    fits: Mapping[str, tuple[type, ...]] = {"number": (int, float), "bool": (bool,)}
    allowed = fits.get(kind, (str,))
    odd = (
        v for v in values if v is not None and (not isinstance(v, allowed) or (isinstance(v, bool) and kind != "bool"))
    )
    return next(odd, None)
