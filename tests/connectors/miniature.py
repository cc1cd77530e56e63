"""The few calls of Label Studio's API that the connector and the guide make, answered from memory.

It passes the same story as the real server and its recording, so what runs against it runs against them.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.connectors.studio.people import as_result
from tests.connectors.studio.tape import Exchange, Tape


class Miniature(Tape):
    """Projects, tasks, annotations and tabs; and what an owner and annotators do."""

    def __init__(self, key: str) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self.config: dict[int, str] = {}
        self.all: dict[int, dict[str, Any]] = {}
        self.views: dict[int, dict[str, Any]] = {}
        self.accounts = ["lead@example.org"]
        self._last = 0
        super().__init__(key)

    # ---------------------------------------------------------------- calls

    def answer(self, call: Exchange, authorization: str) -> Exchange:
        if not call["known"]:
            return {"status": 401, "json": {"detail": "Invalid token."}}
        parts = call["path"].strip("/").split("/")[1:]
        found = self._found(call["method"], parts, call["query"], call["body"])
        status = 404 if found is None and call["method"] != "DELETE" else 200
        # a clock far ahead, so that a pass looks at what came since the last one and no further back
        ahead = self._now + timedelta(seconds=60)
        return {"status": status, "json": found, "date": ahead.strftime("%a, %d %b %Y %H:%M:%S GMT")}

    def _found(self, method: str, parts: list[str], query: dict[str, str], body: Any) -> Any:
        match method, parts:
            case "POST", ["projects"]:
                self._last += 1
                self.config[self._last] = body["label_config"]
                return {"id": self._last}
            case "POST", ["projects", number, "import"]:
                for row in body:
                    self.put(int(number), row["data"])
                return {"task_count": len(body)}
            case "GET", ["projects", number] if int(number) in self.config:
                controls = re.findall(r'<(\w+) name="(\w+)" toName', self.config[int(number)])
                return {"id": int(number), "parsed_label_config": {name: {"type": kind} for kind, name in controls}}
            case "GET", ["tasks"]:
                return {
                    "tasks": self._listed(int(query["project"]), json.loads(query["query"]), int(query["page_size"]))
                }
            case "GET", ["tasks", task] if int(task) in self.all:
                return self.all[int(task)]
            case "PATCH", ["tasks", task] if int(task) in self.all:
                self._touch(self.all[int(task)])["data"] = body["data"]
                return self.all[int(task)]
            case "GET", ["users"]:
                return [{"id": k + 1, "email": email} for k, email in enumerate(self.accounts)]
            case "GET", ["dm", "views"]:
                return [view for view in self.views.values() if view["project"] == int(query["project"])]
            case "POST", ["dm", "views"]:
                self._last += 1
                self.views[self._last] = {"id": self._last, **body}
                return self.views[self._last]
        return None

    def _listed(self, project: int, query: dict[str, Any], most: int) -> list[dict[str, Any]]:
        found = [task for task in self.all.values() if task["project"] == project]
        for item in query["filters"]["items"]:
            name = item["filter"].removeprefix("filter:tasks:")
            found = [task for task in found if task[name] > item["value"]]
        return sorted(found, key=lambda task: int(task["id"]))[:most]

    def put(self, project: int, data: dict[str, Any], overlap: int = 1) -> None:
        self._last += 1
        about = {"id": self._last, "project": project, "data": data, "annotations": [], "overlap": overlap}
        self.all[self._last] = about
        self._touch(self.all[self._last])

    def _touch(self, about: dict[str, Any]) -> dict[str, Any]:
        self._now += timedelta(seconds=1)
        about["updated_at"] = self._now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return about


class SmallPeople:
    """What the story's people do, in the miniature."""

    def __init__(self, server: Miniature) -> None:
        self.server, self.number = server, 0
        server.accounts += ["ann@example.org", "bob@example.org", "cyd@example.org"]

    def make(self, rows: list[dict[str, Any]], config: str, overlap: int = 1) -> int:
        self.number = self.server._found("POST", ["projects"], {}, {"label_config": config})["id"]
        for row in rows:
            self.server.put(self.number, row, overlap)
        return self.number

    def numbers(self) -> list[str]:
        return [str(number) for number, task in self.server.all.items() if task["project"] == self.number]

    def delete_project(self) -> None:
        del self.server.config[self.number]

    def close(self) -> None:
        """Nothing to let go of."""

    def add(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self.server.put(self.number, row)

    def say(self, who: str, task: str, label: str, control: str = "sentiment", kind: str = "choices") -> int:
        return self._annotate(who, task, {**as_result(label, control, kind), "was_cancelled": False})

    def skip(self, who: str, task: str) -> int:
        return self._annotate(who, task, {"result": [], "was_cancelled": True})

    def _annotate(self, who: str, task: str, about: dict[str, Any]) -> int:
        server = self.server
        server._last += 1
        by = server.accounts.index(f"{who}@example.org") + 1
        made = server._touch({"id": server._last, "completed_by": by, **about})
        made["created_at"] = made["updated_at"]
        server._touch(server.all[int(task)])["annotations"].append(made)
        return server._last

    def change(self, who: str, annotation: int, label: str) -> None:
        task, made = self._annotation(annotation)
        made["result"][0]["value"]["choices"] = [label]
        self.server._touch(self.server._touch(made) and task)

    def unsay(self, who: str, annotation: int) -> None:
        task, made = self._annotation(annotation)
        task["annotations"].remove(made)
        self.server._touch(task)

    def _annotation(self, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
        return next((t, a) for t in self.server.all.values() for a in t["annotations"] if a["id"] == number)

    def next_task(self, who: str) -> str:
        return str(self.in_tab()[0][0])

    def in_tab(self) -> list[list[Any]]:
        tasks = [
            t for t in self.server.all.values() if t["project"] == self.number and t["data"].get("evenhand_request")
        ]
        waiting = [t for t in tasks if not any(not a["was_cancelled"] for a in t["annotations"])]
        found = [[str(t["id"]), *(t["data"][f"evenhand_{f}"] for f in ("request", "group"))] for t in waiting]
        return sorted(found, key=lambda row: row[1])

    def delete_task(self, task: str) -> None:
        del self.server.all[int(task)]

    def configure(self, config: str) -> None:
        self.server.config[self.number] = config
