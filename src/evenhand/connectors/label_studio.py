"""Label Studio: its tasks are a campaign's pool, its annotations the labels.

Six calls of its HTTP API are all that is needed, so the client is httpx: the vendor's own kit would bring OpenCV, NLTK and
thirty more packages into the environment.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.connectors.base import OURS, Answer, Shown, Task, ToolError
from evenhand.errors import InputError

if TYPE_CHECKING:
    import httpx

__all__ = ["LabelStudio"]

_PAGE = 500
_TRIES = 6
_SECONDS = 60.0
_RETRIED = (429, 502, 503, 504)
_TAB = "Evenhand: label next"
_FIELDS = ("request", "group", "why")


class LabelStudio:
    """A project of a Label Studio server.

    Args:
        url: where the server is, such as `http://localhost:8080`.
        project: the project's number.
        key: an access token of the account, legacy or personal.
        label: the name of the control whose answers are the labels (`from_name`); by default the only one there is.
        timeout: seconds to wait for an answer.
    """

    name = "label-studio"

    def __init__(
        self, url: str, project: int, *, key: str, label: str | None = None, timeout: float = _SECONDS
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError:
            raise InputError("Label Studio needs httpx: pip install 'evenhand[label-studio]'") from None
        if not url.startswith(("http://", "https://")):
            raise InputError(f"the address {url!r} must begin with http:// or https://")
        self.project, self._key, self._label = int(project), key, label
        self._http = httpx.Client(base_url=url.rstrip("/"), timeout=timeout, trust_env=False)
        self._authorize()
        self._control = self._find_control()
        self._people: dict[int, str] = {}
        self._marked: dict[str, Mapping[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"LabelStudio({str(self._http.base_url)!r}, {self.project})"

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    # ---------------------------------------------------------------- the contract

    def tasks(self, after: str | None) -> tuple[list[Task], str | None]:
        """Tasks changed or answered since a moment of the server's clock, and the newest such moment."""
        self._control = self._find_control()
        found, newest = [], after
        for task in self._pages("-updated_at" if after is not None else "id"):
            changed = str(task.get("updated_at") or "")
            # tasks changed in the same moment as the last one seen are looked at again
            if after is not None and changed < after:
                break
            newest = changed if newest is None else max(newest, changed)
            annotations = sorted(task.get("annotations") or (), key=lambda a: str(a.get("created_at")))
            found.append(Task(str(task["id"]), task["data"], tuple(self._answer(one) for one in annotations)))
        return found, newest

    def show(self, tasks: Sequence[Shown]) -> None:
        """Write request, group and reason into the tasks, and make a tab that shows these and no others."""
        wanted = {shown.task: {f"{OURS}{f}": getattr(shown, f) for f in _FIELDS} for shown in tasks}
        if self._marked is None:
            self._marked = {
                str(task["id"]): {name: value for name, value in task["data"].items() if name.startswith(OURS)}
                for task in self._pages("id")
                if task["data"].get(f"{OURS}request")
            }
        for task in [task for task in self._marked if task not in wanted]:
            self._mark(task, {f"{OURS}{f}": "" for f in _FIELDS})
            del self._marked[task]
        for task, fields in wanted.items():
            if self._marked.get(task) != fields:
                self._mark(task, fields)
                self._marked[task] = fields
        self._set_tab()

    # ---------------------------------------------------------------- answers

    def _answer(self, annotation: Mapping[str, Any]) -> Answer:
        by, at = self._person(annotation.get("completed_by")), str(annotation.get("updated_at"))
        if annotation.get("was_cancelled"):
            return Answer(by, None, at)
        results = [part for part in annotation.get("result") or () if part.get("from_name") == self._control]
        if not results:
            return Answer(by, None, at, f"an annotation has no answer of {self._control!r}")
        try:
            labels = {label for part in results for label in [_value(part)]}
        except InputError as error:
            return Answer(by, None, at, str(error))
        if len(labels) > 1:
            return Answer(
                by, None, at, f"an annotation has several labels: {', '.join(map(repr, sorted(map(str, labels))))}"
            )
        return Answer(by, labels.pop(), at)

    def _person(self, completed_by: Any) -> str:
        """Whose answer it is: their mail address, or the number of their account."""
        if isinstance(completed_by, Mapping):
            return str(completed_by.get("email") or completed_by.get("id"))
        if not isinstance(completed_by, int):
            return self.name
        if completed_by not in self._people:
            users = self._call("GET", "/api/users/")
            self._people |= {user["id"]: user["email"] for user in users}
        return self._people.get(completed_by, f"user {completed_by}")

    def _find_control(self) -> str:
        """The control whose answers are the labels; the labelling set-up may have changed under way."""
        project = self._call("GET", f"/api/projects/{self.project}/")
        controls = project.get("parsed_label_config") or {}
        if self._label is not None:
            if self._label not in controls:
                there = ", ".join(map(repr, controls)) or "none"
                raise ToolError(f"the project has no control {self._label!r} any more or yet: there are {there}")
            return self._label
        if len(controls) != 1:
            there = ", ".join(map(repr, controls)) or "none"
            raise InputError(f"the project has the controls {there}: say which one gives the label, label=… (--label)")
        return str(next(iter(controls)))

    # ---------------------------------------------------------------- tasks and tabs

    def _pages(self, ordering: str) -> Iterator[dict[str, Any]]:
        """Every task with its annotations, a page at a time."""
        query = json.dumps({"ordering": [f"{'-' if ordering[0] == '-' else ''}tasks:{ordering.lstrip('-')}"]})
        seen, page = set[int](), 1
        while True:
            options = {"project": self.project, "page": page, "page_size": _PAGE, "fields": "all", "query": query}
            found = self._call("GET", "/api/tasks", params=options, last_page_is_missing=True)
            tasks = [] if found is None else found["tasks"]
            for task in tasks:
                if task["id"] not in seen:  # a task changed meanwhile moves, and may come on two pages
                    seen.add(task["id"])
                    yield task
            if len(tasks) < _PAGE:
                return
            page += 1

    def _mark(self, task: str, fields: Mapping[str, Any]) -> None:
        data = self._call("GET", f"/api/tasks/{task}/")["data"]
        self._call("PATCH", f"/api/tasks/{task}/", json={"data": {**data, **fields}})

    def _set_tab(self) -> None:
        """One tab with the tasks to label, in the order of their requests."""
        items: list[dict[str, Any]] = [
            {"filter": f"filter:tasks:data.{OURS}request", "operator": "empty", "type": "Unknown", "value": False},
            {"filter": "filter:tasks:total_annotations", "operator": "equal", "type": "Number", "value": 0},
        ]
        data = {
            "title": _TAB,
            "filters": {"conjunction": "and", "items": items},
            "ordering": [f"tasks:data.{OURS}request"],
        }
        views = self._call("GET", "/api/dm/views/", params={"project": self.project})
        ours = [view for view in views if (view.get("data") or {}).get("title") == _TAB]
        if not ours:
            self._call("POST", "/api/dm/views/", json={"project": self.project, "data": data})
        elif {name: ours[0]["data"].get(name) for name in data} != data:
            self._call("PATCH", f"/api/dm/views/{ours[0]['id']}/", json={"project": self.project, "data": data})
        for twice in ours[1:]:  # two syncs may have made one each
            self._call("DELETE", f"/api/dm/views/{twice['id']}/")

    # ---------------------------------------------------------------- calls

    def _authorize(self) -> None:
        """A personal token is exchanged for one that lasts minutes; a legacy one is sent as it is."""
        if self._key.count(".") != 2:
            self._http.headers["Authorization"] = f"Token {self._key}"
            return
        answer = self._tried(lambda: self._http.post("/api/token/refresh/", json={"refresh": self._key}))
        if answer.status_code >= 400:
            raise InputError("Label Studio does not know this access token: make a new one under Account & Settings")
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access']}"

    def _call(self, method: str, path: str, *, last_page_is_missing: bool = False, **options: Any) -> Any:
        """Call the server; once more with a fresh token where the old one has ended."""
        answer = self._tried(lambda: self._http.request(method, path, **options))
        if answer.status_code == 401 and self._key.count(".") == 2:
            self._authorize()
            answer = self._tried(lambda: self._http.request(method, path, **options))
        if answer.status_code == 404 and last_page_is_missing and options["params"]["page"] > 1:
            return None
        if answer.status_code == 401:
            raise InputError("Label Studio does not know this key: check it under Account & Settings, Access Token")
        if answer.status_code in (403, 404) and path.startswith(f"/api/projects/{self.project}/"):
            raise InputError(f"Label Studio has no project {self.project} that this key may see")
        if answer.status_code >= 400:
            raise ToolError(f"Label Studio answered {method} {path} with {answer.status_code}: {answer.text[:200]}")
        return answer.json() if answer.content else None

    def _tried(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """Send until there is an answer; waits a little longer each time."""
        import httpx

        for attempt in range(_TRIES):
            try:
                answer = send()
            except httpx.TransportError as error:
                failure = f"{type(error).__name__}: {error}"
            else:
                if answer.status_code not in _RETRIED:
                    return answer
                failure = f"it answered with {answer.status_code}"
            if attempt < _TRIES - 1:
                time.sleep(min(0.2 * 2**attempt, 5.0) * random.uniform(0.5, 1.0))
        raise ToolError(f"Label Studio at {self._http.base_url} cannot be reached: {failure}")


def _value(result: Mapping[str, Any]) -> str | int:
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
        f"answers of {result.get('from_name')!r} are {kind}, which is no label: use choices, rating or taxonomy"
    )
