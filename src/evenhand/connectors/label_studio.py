"""Label Studio: its tasks are a campaign's pool, its annotations the labels.

Six calls of its HTTP API are all that is needed, so the client is httpx: the vendor's own kit would bring OpenCV, NLTK and
thirty more packages into the environment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Self

from evenhand.connectors.base import OURS, Answer, Shown, Task
from evenhand.connectors.calls import Calls, Gone
from evenhand.errors import InputError, ToolError
from evenhand.notation import JsonMapping, JsonObject

_PAGE = 500
_SECONDS = 60.0
_TAB = "Evenhand: next"
# those columns of a new tab that do not help with labelling
_HIDDEN = tuple(
    f"tasks:{name}"
    for name in (
        "inner_id", "completed_at", "cancelled_annotations", "total_predictions", "annotators", "annotations_results",
        "annotations_ids", "predictions_score", "predictions_model_versions", "predictions_results", "file_upload",
        "storage_filename", "created_at", "updated_at", "updated_by", "avg_lead_time", "draft_exists",
    )
)  # fmt: skip
_FIELDS = ("request", "group", "why")
# data as it was imported: by default a link to cloud storage comes as one that
# works for an hour, and would be written back so with the marks
_AS_STORED = {"resolve_uri": "false"}
_OVERLAP = timedelta(seconds=60)
"""How far a pass looks back before the last one began: a change is dated before others can read it."""


class LabelStudio:
    """A project of a Label Studio server.

    Args:
        url: where the server is, such as `http://localhost:8080`.
        project: the project's number.
        key: an access token of the account, legacy or personal.
        label: the name of the control whose answers are the labels (`from_name`); by default the only one there is.
        timeout: seconds to wait for an answer.

    Attributes:
        name: `label-studio:` and the project's number.
        origin: the name and the time the project was made, because other servers use the same numbers; set once its
            tasks were read.
    """

    def __init__(
        self, url: str, project: int, *, key: str, label: str | None = None, timeout: float = _SECONDS
    ) -> None:
        self.project, self.name = int(project), f"label-studio:{int(project)}"
        self._label, self._call = label, Calls(url, key, timeout)
        self.origin = self.name
        self._control: str | None = None
        self._people: dict[int, str] = {}
        self._marked: dict[str, JsonMapping] = {}

    def __repr__(self) -> str:
        return f"LabelStudio({self._call.url!r}, {self.project})"

    def close(self) -> None:
        """Close the connections."""
        self._call.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---------------------------------------------------------------- the contract

    def tasks(self, after: str | None) -> tuple[list[Task], str | None]:
        """Tasks changed or answered since a moment of the server's clock, and the moment this pass began."""
        try:
            self._control = self._find_control()
        except InputError as error:
            if self._control is None:
                raise
            raise ToolError(str(error)) from None  # it was found before, and may be again
        began = self._call.clock
        cursor = None if began is None else (began - _OVERLAP).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        changed = [] if after is None else [_filter("updated_at", "greater", "Datetime", after)]
        if after is None:
            self._marked.clear()
        found: list[Task] = []
        for task in self._pages(changed):
            self._remember_marks(task)
            annotations = sorted(task.get("annotations") or (), key=lambda one: str(one.get("created_at")))
            said = tuple(map(self._answer, annotations))
            found.append(Task(str(task["id"]), task["data"], said, max(1, int(task.get("overlap") or 1))))
        return found, cursor

    def show(self, tasks: Sequence[Shown]) -> None:
        """Write request, group and reason into the tasks, and make a tab that shows these and no others."""
        wanted = {shown.task: {f"{OURS}{f}": getattr(shown, f) for f in _FIELDS} for shown in tasks}
        for task in [task for task in self._marked if task not in wanted]:
            self._mark(task, {})
            del self._marked[task]
        for task, fields in wanted.items():
            if self._marked.get(task) != fields:
                self._mark(task, fields)
                self._marked[task] = fields
        self._set_tab()

    # ---------------------------------------------------------------- answers

    def _answer(self, annotation: JsonMapping) -> Answer:
        """The answer in an annotation."""
        by, at = self._person(annotation), str(annotation.get("updated_at"))
        if annotation.get("was_cancelled"):
            return Answer(by, None, at)
        results = [part for part in annotation.get("result") or () if part.get("from_name") == self._control]
        if not results:
            return Answer(by, None, at, f"an annotation has no answer of {self._control!r}")
        try:
            labels = {_value(part) for part in results}
        except InputError as error:
            return Answer(by, None, at, str(error))
        if len(labels) > 1:
            several = ", ".join(map(repr, sorted(map(str, labels))))
            return Answer(by, None, at, f"an annotation has several labels: {several}")
        return Answer(by, labels.pop(), at)

    def _person(self, annotation: JsonMapping) -> str:
        """Whose answer it is: their mail address, or the number of their account."""
        account = annotation.get("completed_by")
        if isinstance(account, Mapping):
            return str(account.get("email") or account.get("id"))
        if account is None:  # one name for each annotation: two people who left are not one person
            return f"deleted account, annotation {annotation.get('id')}"
        if account not in self._people:
            self._people |= {user["id"]: str(user["email"] or user["id"]) for user in self._call("GET", "/api/users/")}
        return self._people.setdefault(account, f"account {account}")

    def _find_control(self) -> str:
        """The control whose answers are the labels; the labelling set-up may have changed since."""
        try:
            project = self._call("GET", f"/api/projects/{self.project}/")
        except Gone:
            raise InputError(
                f"Label Studio at {self._call.url} has no project {self.project} that this access token may see"
            ) from None
        if "created_at" in project:
            self.origin = f"{self.name}, made {project['created_at']}"
        controls = {name: str(about.get("type")) for name, about in (project.get("parsed_label_config") or {}).items()}
        usable = [name for name, kind in controls.items() if _gives_labels(kind)]
        there = ", ".join(f"{name!r} ({kind})" for name, kind in controls.items()) or "none"
        if self._label is None and len(usable) != 1:
            raise InputError(f"say which control gives the label, label=… (--label): the project has {there}")
        if self._label is not None and self._label not in controls:
            raise InputError(f"the project has no control {self._label!r}: it has {there}")
        if self._label is not None and self._label not in usable:
            raise InputError(
                f"{self._label!r} is a {controls[self._label]}, which gives no label: the project has {there}"
            )
        return self._label or usable[0]

    # ---------------------------------------------------------------- tasks and tabs

    def _pages(self, filters: Sequence[Mapping[str, object]]) -> Iterator[JsonObject]:
        """Tasks with their annotations, a page at a time."""
        last = 0
        while True:
            # after the last id seen, not page 2, 3, …: a task that
            # is deleted meanwhile would move another out of sight
            items = [*filters, _filter("id", "greater", "Number", last)]
            query = {"filters": {"conjunction": "and", "items": items}, "ordering": ["tasks:id"]}
            options = {"project": self.project, "page": 1, "page_size": _PAGE, "fields": "all", **_AS_STORED}
            tasks = self._call("GET", "/api/tasks", params={**options, "query": json.dumps(query)})["tasks"]
            yield from tasks
            if len(tasks) < _PAGE:
                return
            last = max(task["id"] for task in tasks)

    def _remember_marks(self, task: JsonMapping) -> None:
        """Remember what is written in a task, by this sync or another."""
        marks = {name: value for name, value in task["data"].items() if name.startswith(OURS)}
        if marks:
            self._marked[str(task["id"])] = marks
        else:
            self._marked.pop(str(task["id"]), None)

    def _mark(self, task: str, fields: Mapping[str, object]) -> None:
        with suppress(Gone):  # deleted; the next pass over all tasks sees it
            data = self._call("GET", f"/api/tasks/{task}/", params=_AS_STORED)["data"]
            # removed, not emptied: the tab's filter takes an empty text for a value if the first task has a number
            rest = {name: value for name, value in data.items() if not name.startswith(OURS)}
            self._call("PATCH", f"/api/tasks/{task}/", json={"data": {**rest, **fields}})

    def _set_tab(self) -> None:
        """One tab with the tasks to label, in the order of their requests."""
        items = [
            {"filter": f"filter:tasks:data.{OURS}request", "operator": "empty", "type": "Unknown", "value": False},
            _filter("completed_at", "empty", "Datetime", True),
        ]
        data = {
            "title": _TAB,
            "filters": {"conjunction": "and", "items": items},
            "ordering": [f"tasks:data.{OURS}request"],
        }
        views = self._call("GET", "/api/dm/views/", params={"project": self.project})
        ours = sorted(
            (v for v in views if (v.get("data") or {}).get("title") == _TAB), key=lambda view: int(view["id"])
        )
        if not ours:
            columns = {"explore": list(_HIDDEN), "labeling": list(_HIDDEN)}
            whole = {**data, "hiddenColumns": columns}
            self._call("POST", "/api/dm/views/", json={"project": self.project, "data": whole})
        elif {name: ours[0]["data"].get(name) for name in data} != data:
            changed = {**ours[0]["data"], **data}  # columns that people chose stay
            self._call("PATCH", f"/api/dm/views/{ours[0]['id']}/", json={"project": self.project, "data": changed})
        for twice in ours[1:]:  # two syncs may have made one each
            with suppress(Gone):
                self._call("DELETE", f"/api/dm/views/{twice['id']}/")


def _filter(field: str, operator: str, kind: str, value: object) -> JsonObject:
    return {"filter": f"filter:tasks:{field}", "operator": operator, "type": kind, "value": value}


def _gives_labels(kind: str) -> bool:
    """Whether a control can give one label per task."""
    return kind in ("Choices", "Rating", "Taxonomy") or kind.endswith("Labels")


def _value(result: JsonMapping) -> str | int:
    """The one label in a part of an annotation."""
    kind, value = str(result.get("type")), result.get("value") or {}
    given = value.get(kind)
    if kind == "rating" and isinstance(given, int):
        return given
    if kind == "taxonomy" and isinstance(given, list) and len(given) == 1:
        return " / ".join(map(str, given[0]))
    if (kind == "choices" or kind.endswith("labels")) and isinstance(given, list) and len(given) == 1:
        return str(given[0])
    if isinstance(given, list):
        raise InputError(f"{result.get('from_name')!r} has {len(given)} answers where one label is wanted")
    raise InputError(
        f"answers of {result.get('from_name')!r} are {kind}, which cannot be a label: use choices, rating or taxonomy"
    )
