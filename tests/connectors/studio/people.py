"""People who use Label Studio: who owns the project, and annotators with accounts of their own.

Everything goes through Label Studio's own HTTP API: accounts by invitation, a project, annotations by the accounts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from tests.connectors.studio.server import PASSWORD

CONFIG = """<View>
  <Text name="text" value="$text"/>
  <Choices name="sentiment" toName="text" choice="single"><Choice value="good"/><Choice value="bad"/></Choices>
</View>"""


class Account:
    """Somebody with an access token, and what they do."""

    def __init__(self, url: str, key: str, email: str) -> None:
        self.email, self.key = email, key
        self._tabs: dict[int, dict[str, Any]] = {}
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Token {key}"}, timeout=120, trust_env=False)

    def close(self) -> None:
        """Let go of the connections."""
        self.http.close()

    def call(self, method: str, path: str, **options: Any) -> Any:
        """A call; the server may be starting again, or its database busy."""
        for attempt in range(60):
            try:
                answer = self.http.request(method, path, **options)
            except httpx.TransportError:
                pass
            else:
                if answer.status_code < 500:
                    answer.raise_for_status()
                    return answer.json() if answer.content else None
            time.sleep(min(0.1 * 2**attempt, 5.0))
        raise SystemExit(f"{method} {path}: no answer")

    def say(self, task: int | str, label: str, control: str = "sentiment", kind: str = "choices") -> int:
        """Annotate a task; gives the annotation's number."""
        return int(self.call("POST", f"/api/tasks/{task}/annotations/", json=as_result(label, control, kind))["id"])

    def skip(self, task: int | str) -> int:
        """Skip a task."""
        body = {"result": [], "was_cancelled": True}
        return int(self.call("POST", f"/api/tasks/{task}/annotations/", json=body)["id"])

    def change(self, annotation: int, label: str, control: str = "sentiment", kind: str = "choices") -> None:
        """Change an annotation."""
        self.call("PATCH", f"/api/annotations/{annotation}/", json=as_result(label, control, kind))

    def unsay(self, annotation: int) -> None:
        """Delete an annotation."""
        self.call("DELETE", f"/api/annotations/{annotation}/")

    def personal_token(self) -> str:
        """A personal access token."""
        return str(self.call("POST", "/api/token/", json={})["token"])

    def tab(self, project: int, title: str = "Evenhand: next") -> dict[str, Any] | None:
        """The tab that people label in."""
        views = self.call("GET", "/api/dm/views/", params={"project": project})
        found: list[dict[str, Any]] = [view for view in views if view["data"].get("title") == title]
        return found[0] if found else None

    def in_tab(self, project: int) -> list[dict[str, Any]]:
        """The tasks in the tab, in its order."""
        view = self.tab(project)
        if view is None:
            return []
        options = {"view": view["id"], "project": project, "page": 1, "page_size": 1000, "fields": "all"}
        tasks: list[dict[str, Any]] = self.call("GET", "/api/tasks", params=options)["tasks"]
        return tasks

    def next_task(self, project: int) -> int | None:
        """The task that 'Label Tasks As Displayed' in the tab shows this person next; None if there is none."""
        view = self._tabs.get(project) or self.tab(project)
        if view is None:
            return None
        self._tabs[project] = view  # they do not reload the page for every task
        wanted = {name: view["data"][name] for name in ("filters", "ordering")}
        options = {"id": "next_task", "project": project, "tabID": view["id"]}
        try:
            return int(self.call("POST", "/api/dm/actions", params=options, json=wanted)["id"])
        except httpx.HTTPStatusError as error:
            if error.response.status_code == 404:
                return None
            raise


class Lead(Account):
    """Who owns the project."""

    def invite(self, email: str) -> Account:
        """An account of somebody's own, made as people make theirs: by the link of an invitation."""
        link = str(self.call("GET", "/api/invite")["invite_url"])
        with httpx.Client(base_url=self.http.base_url, timeout=120, trust_env=False) as browser:
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', browser.get(link).text)
            if token is None:
                raise SystemExit("Label Studio's page for signing up has changed")
            form = {"csrfmiddlewaretoken": token[1], "email": email, "password": PASSWORD, "allow_newsletters": "false"}
            browser.post(link, data=form, headers={"Referer": f"{self.http.base_url}{link}"})
            key = str(browser.get("/api/current-user/token").json()["token"])
        return Account(str(self.http.base_url), key, email)

    def project(self, title: str, rows: Sequence[Mapping[str, Any]], config: str = CONFIG, overlap: int = 1) -> int:
        """A project with one task for each row; gives its number."""
        about = {"title": title, "label_config": config, "maximum_annotations": overlap}
        number = int(self.call("POST", "/api/projects/", json=about)["id"])
        if rows:
            self.add(number, rows)
        return number

    def add(self, project: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Import tasks."""
        self.call("POST", f"/api/projects/{project}/import", json=[{"data": dict(row)} for row in rows])

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """Every task with its annotations, as Label Studio exports them: another way than the connector's."""
        options = {"exportType": "JSON", "download_all_tasks": "true"}
        found: list[dict[str, Any]] = self.call("GET", f"/api/projects/{project}/export", params=options)
        return found

    def delete_task(self, task: int | str) -> None:
        """Delete a task."""
        self.call("DELETE", f"/api/tasks/{task}/")

    def delete_project(self, project: int) -> None:
        """Delete a project with all that is in it."""
        self.call("DELETE", f"/api/projects/{project}/")

    def configure(self, project: int, config: str) -> None:
        """Change the labelling set-up."""
        self.call("PATCH", f"/api/projects/{project}/", json={"label_config": config})


def as_result(label: str, control: str, kind: str) -> dict[str, Any]:
    """An annotation with one answer, as the page sends it."""
    value: Any = [label]
    if kind == "rating":
        value = int(label)
    elif kind == "taxonomy":
        value = [label.split(" / ")]
    place = {"start": 0, "end": 3, "text": "rev"} if kind == "labels" else {}
    name = "text" if kind == "textarea" else kind
    return {"result": [{"from_name": control, "to_name": "text", "type": kind, "value": {name: value, **place}}]}
