"""Makes a tool's tasks the examples of a campaign's pool: matches them, and registers new ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenhand.campaign import Campaign
from evenhand.campaign.features import feature_names, schema_of
from evenhand.campaign.labels import read_id
from evenhand.connectors.base import OURS, Task
from evenhand.errors import Conflict, InputError
from evenhand.ledger import Example
from evenhand.notation import JsonMapping, free_name

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PoolOfTasks"]

_OTHER = "its data are not those that were handed out under its id: answers to it do not count"


class PoolOfTasks:
    """Knows which example each task is.

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
        """Start afresh: all tasks will come again."""
        self.names: dict[str, str] = {}
        self.tasks: dict[str, str] = {}
        self.problems: dict[str, str] = {}
        self.strange: set[str] = set()

    def take(self, tasks: Sequence[Task], by: str, *, read_at: int, closed: bool, ours: bool) -> int:
        """Register tasks that are new or have new data, unless the campaign is closed; returns how many.

        Tools may give a new task the number of a deleted one, and people change the data of tasks. An example that was
        never handed out takes the new data. One that was handed out keeps its old data, and its task becomes one of the
        `strange`: answers to it are about other data. A pool that is not ours may have its data from elsewhere.
        """
        state = self._campaign.store.refresh()
        if state.pool is None and tasks:
            self._check_fields(tasks)
        named = [task for task in tasks if self._name(task)]
        known = self.find([self.names[task.id] for task in named])
        rows = self._rows_of([task for task in named if self.names[task.id] in known], state.columns)
        fresh: list[Task] = []
        for task in named:
            example = known.get(self.names[task.id])
            # what another sync wrote since may rest on a newer reading
            if example is not None and (not ours or example.changed > read_at):
                continue
            self.strange.discard(task.id)
            if example is not None and not _differs(rows.get(task.id), example):
                continue
            if example is not None and (example.role or example.fate or example.label) is not None:
                self.strange.add(task.id)
                self.problems[task.id] = _OTHER
            elif self._has_group(task):
                fresh.append(task)
        return 0 if closed or not fresh else self._register(fresh, by)

    def find(self, names: Sequence[str]) -> dict[str, Example]:
        """The examples with these ids."""
        store = self._campaign.store
        with store.ledger.reading(store.number) as reader:
            return reader.find(names)

    def _name(self, task: Task) -> bool:
        """Whether a task can be told from all others; notes which example it is."""
        self.problems.pop(task.id, None)
        earlier = self.names.pop(task.id, None)
        if earlier is not None and self.tasks.get(earlier) == task.id:
            del self.tasks[earlier]
        try:
            given = task.id if self._id is None else _given(task, self._id, "id")
            # a column of whole numbers in a CSV file comes as floats as soon as one of them is missing
            name = read_id(int(given) if isinstance(given, float) and given.is_integer() else given)
            if (other := self.tasks.setdefault(name, task.id)) != task.id:
                raise InputError(f"it has the id {name!r} of task {other}")
        except InputError as error:
            self.problems[task.id] = str(error)
            return False
        self.names[task.id] = name
        return True

    def _check_fields(self, tasks: Sequence[Task]) -> None:
        """Refuse fields that no task has: a name must be mistyped."""
        there = _fields(tasks)
        wanted = [*(part.partition(":")[0] for part in self._group), *([self._id] if self._id else ())]
        for field in (*wanted, *(self._features or ())):
            if field not in there:
                raise InputError(f"no task has the field {field!r}: the fields are {', '.join(map(repr, there))}")

    def _has_group(self, task: Task) -> bool:
        for part in self._group:
            field, bins, _ = part.partition(":")
            try:
                value = _given(task, field, "group")
                if bins and not isinstance(value, int | float):
                    raise InputError(f"it has no group: {field!r} is {value!r} and not a number, which bins need")
            except InputError as error:
                self.problems[task.id] = str(error)
                return False
        return True

    def _register(self, tasks: Sequence[Task], by: str) -> int:
        """Register tasks; if some cannot be registered, register all the others. Returns how many."""
        state = self._campaign.store.refresh()
        first = state.pool is None
        column = self._id or (free_name("task", _fields(tasks)) if first else str(state.settings["id"]))
        try:
            table = self._table(tasks, column)
            self._campaign.pool(table, id=column, group=self._group, features=self._features, by=by)
        except Conflict:  # the campaign is closed
            raise
        except InputError as error:
            # the first table says which groups and columns there are, so a part of it is not enough
            if first:
                raise
            if len(tasks) == 1:
                self.problems[tasks[0].id] = str(error)
                return 0
            half = len(tasks) // 2
            return self._register(tasks[:half], by) + self._register(tasks[half:], by)
        return len(tasks)

    def _table(self, tasks: Sequence[Task], column: str) -> pa.Table:
        """Tasks' data as a table; values that are not plain are left out."""
        import pyarrow as pa

        # labels are what people answer, not what a field says
        left_out = {column, self._campaign.settings["label"]}
        wanted = {part.partition(":")[0] for part in self._group} | set(self._features or ())
        names = [n for n in _fields(tasks) if n not in left_out and (self._features is None or n in wanted)]
        columns = {column: pa.array([self.names[task.id] for task in tasks])}
        for name in names:
            values = _column([task.data.get(name) for task in tasks])
            if values is not None:
                columns[name] = values
        # a field that these tasks lack is one without a value
        known = feature_names(self._campaign.store.state.columns)
        return pa.table({**{name: pa.nulls(len(tasks)) for name in known}, **columns})

    def _rows_of(self, tasks: Sequence[Task], columns: JsonMapping | None) -> dict[str, list[Any]]:
        """Tasks' data as the campaign stores rows, by task; those that cannot be stored are left out."""
        if not tasks or columns is None or columns["kind"] != "table":
            return {}
        from evenhand.tables.stored import to_text

        schema = schema_of(columns)
        rows = schema.read(self._table(tasks, str(self._campaign.settings["id"])), names=schema.stored)
        stored = to_text(rows.table)
        return {task.id: json.loads(stored[k]) for k, task in enumerate(tasks) if k not in rows.problems}


def _given(task: Task, field: str, what: str) -> Any:
    value = task.data.get(field)
    if value in (None, ""):
        raise InputError(f"it has no {what}: {field!r} is empty")
    return value


def _fields(tasks: Sequence[Task]) -> list[str]:
    """The fields of tasks, except those that a connector wrote."""
    return [name for name in dict.fromkeys(name for task in tasks for name in task.data) if not name.startswith(OURS)]


def _column(values: Sequence[Any]) -> pa.Array | None:
    """A field's values as a column; None for lists and the like, which are left out."""
    import pyarrow as pa

    # Label Studio imports a gap in a CSV file as an empty text, among numbers too
    given = [None if value == "" else value for value in values]
    kinds = {type(value) for value in given if value is not None}
    if not kinds <= {str, int, float, bool}:
        return None
    if kinds == {bool}:
        return pa.array(given)
    if kinds and kinds <= {int, float}:
        whole = all(value is None or (isinstance(value, int) and abs(value) < 2**63) for value in given)
        # read as text, too large a number becomes infinite, and is then refused by name
        return pa.array(given if whole else [None if value is None else float(str(value)) for value in given])
    return pa.array([None if value is None else str(value) for value in given], pa.string())


def _differs(now: list[Any] | None, example: Example) -> bool:
    """Whether a task's data differ from those that its example was registered with."""
    return isinstance(example.features, str) and now != json.loads(example.features)
