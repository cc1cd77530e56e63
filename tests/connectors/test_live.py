"""The connector against a real Label Studio, where it is installed.

`make soak` installs it, or `python -m tests.connectors.studio.server`, into `.venv-label-studio`; one on the path is found too, or
the one that EVENHAND_LABEL_STUDIO names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.connectors.guide import follow_guide
from tests.connectors.studio.people import CONFIG, Lead
from tests.connectors.studio.server import Server, installed
from tests.connectors.studio.story import FIELDS, ROWS, RealPeople, labels, tell_story
from tests.connectors.studio.tape import Recorder

import evenhand as eh
from evenhand.connectors import LabelStudio, Sync
from evenhand.errors import ToolError

PROGRAM = installed()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    assert PROGRAM is not None
    found = Server(PROGRAM, tmp_path / "server")
    try:
        found.start()
        yield found
    finally:
        found.stop()


# one test, because a server takes a minute or two to start
@pytest.mark.skipif(PROGRAM is None, reason="Label Studio is not installed")
def test_a_real_server(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lead = Lead(server.url, server.key, "lead@example.org")
    with closing(RealPeople(lead)) as people:
        with Recorder(server.url, server.key, people) as line:
            tell_story(line, line.people)
        _restarted(server, people, monkeypatch)
        _links_stay(server, lead)
        _numbers_come_again(server, lead)
        follow_guide(server.url, lead.personal_token(), people, tmp_path, monkeypatch)


def _restarted(server: Server, people: RealPeople, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is away is tried again, and said to be; once it is back nothing is lost."""
    monkeypatch.setattr("evenhand.connectors.calls._TRIES", 2)
    campaign = eh.Campaign(None, "uniform", "table", budget=16, batch=1, seed=3)
    with LabelStudio(server.url, people.make(ROWS, CONFIG), key=server.key) as tool:
        sync = Sync(campaign, tool, **FIELDS)
        sync.once()
        for task, *_ in people.in_tab():
            people.say("ann", task, "good")
        server.stop()
        with pytest.raises(ToolError, match="cannot be reached: ConnectError"):
            sync.once()
        server.start()
        assert sync.once().told == 6
    assert set(labels(campaign).values()) == {"good"}


def _links_stay(server: Server, lead: Lead) -> None:
    """A link in a task's data stays as it was imported, though Label Studio shows people another."""
    rows = [{"text": "a", "group": "uv"[k % 2], "age": k, "page": f"https://example.org/{k}"} for k in range(8)]
    project = lead.project("links", rows)
    lead.call("PATCH", f"/api/projects/{project}/", json={"task_data_login": "me", "task_data_password": "secret"})
    campaign = eh.Campaign(None, "uniform", "table", budget=8, seed=3)
    with LabelStudio(server.url, project, key=server.key) as tool:
        assert Sync(campaign, tool, features=["age"]).once().shown == 4
    assert [task["data"]["page"] for task in lead.tasks(project)] == [row["page"] for row in rows]


def _numbers_come_again(server: Server, lead: Lead) -> None:
    """On SQLite a new task gets the number of the last one that was deleted: its labels are not those of the old data."""
    rows = [{"text": "a", "group": "uv"[k % 2], "age": k} for k in range(8)]
    project = lead.project("numbers", rows)
    campaign = eh.Campaign(None, "uniform", "table", budget=8, seed=3)
    with LabelStudio(server.url, project, key=server.key) as tool:
        sync = Sync(campaign, tool, features=["age"], ahead=4)
        assert sync.once().shown == 8
        numbers = sorted(task["id"] for task in lead.tasks(project))
        for task in numbers:
            lead.delete_task(task)
        lead.add(project, [{**row, "age": 50} for row in rows])
        assert sorted(task["id"] for task in lead.tasks(project)) == numbers
        lead.say(numbers[0], "good")
        report = sync.once()
    assert (report.told, report.shown, len(report.problems)) == (0, 0, 8)
    assert labels(campaign) == {}
