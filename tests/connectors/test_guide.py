"""The guide to Label Studio, block by block: the commands and the Python of docs/label-studio.md, with people who label."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.miniature import Miniature, SmallPeople
from tests.connectors.story import RealPeople
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli import app
from studio import PROGRAM, Lead, Server

PAGE = Path(__file__).parents[2] / "docs" / "label-studio.md"
BLOCK = re.compile(r"^```(sh|python|xml|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
URL = "http://localhost:8080"
KEY = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(
    params=[
        "miniature",
        pytest.param("real", marks=pytest.mark.skipif(PROGRAM not in os.environ, reason="no Label Studio named")),
    ]
)
def studio(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str, Any]]:
    """Address, access token, and people."""
    if request.param == "miniature":
        with Miniature(KEY) as small:
            yield small.url, KEY, SmallPeople(small)
        return
    server = Server(Path(os.environ[PROGRAM]), tmp_path / "server")
    try:
        server.start()
        lead = Lead(server.url, server.key, "lead@example.org")
        with closing(RealPeople(lead, "")) as people:
            yield server.url, lead.personal_token(), people
    finally:
        server.stop()


def label(people: Any, tasks: dict[str, Any]) -> None:
    """Everybody labels what the tab shows."""
    for number, (task, *_) in enumerate(people.in_tab()):
        people.say("ann" if number % 2 else "bob", task, tasks[task])


def opinion(rows: list[dict[str, Any]], first: int) -> dict[str, str]:
    """What people think of every task: the tasks of a project are numbered in the order of their rows."""
    return {str(first + k): "good" if row["good_words"] >= 3 else "bad" for k, row in enumerate(rows)}


def evenhand(line: str) -> str:
    done = CliRunner().invoke(app, shlex.split(line)[1:])
    assert done.exit_code == 0, done.output
    return done.stdout


def first_task(people: Any) -> int:
    """The number of the first task of the newest project."""
    if isinstance(people, SmallPeople):
        return min(t["id"] for t in people.server.all.values() if t["project"] == people.number)
    return min(int(task["id"]) for task in people.lead.tasks(people.number))


def test_the_guide(studio: tuple[str, str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, key, people = studio
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", key)
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    config = next(block for kind, block in found if kind == "xml")
    names: dict[str, Any] = {}
    project, thoughts = 0, {}

    def make() -> None:
        nonlocal project, thoughts
        rows = json.loads(Path("tasks.json").read_text())
        project = people.make(rows, config)
        thoughts = opinion(rows, first_task(people))

    said = ""
    really_sleep: Callable[[float], None] = time.sleep

    def sleep(seconds: float) -> None:
        label(people, thoughts) if seconds == 30 else really_sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    for kind, block in found:
        if kind == "python":
            make() if "LabelStudio(" in block else None
            exec(compile(block.replace(f'"{URL}", 2', f'"{url}", {project}'), str(PAGE), "exec"), names)
            make() if "tasks.json" in block else None
        for line in block.splitlines() if kind == "sh" else ():
            if line.startswith("evenhand sync"):
                line = line.replace(URL, url).replace("--project 1", f"--project {project}")
                passes = [evenhand(f"{line} --once")]
                while "nothing to ask: budget spent" not in passes[-1] or people.in_tab():
                    label(people, thoughts)
                    passes.append(evenhand(f"{line} --once"))
                said = passes[0]
            else:
                evenhand(line)
        if kind == "text":
            assert said == block
    with Path("predicted.csv").open(newline="") as file:
        assert [row["predicted"] for row in csv.DictReader(file)] == ["good", "bad"]
    assert list(names["model"].predict(names["pd"].DataFrame({"text": ["great and quick", "rude and late"]}))) == [
        "good",
        "bad",
    ]
    for database, name in (("sqlite:///evenhand.db", "reviews"), ("sqlite:///texts.db", "texts")):
        with eh.Campaign.open(database, name, read_only=True) as campaign:
            assert campaign.labels_used == 60
            with campaign.store.moment() as (reader, _):
                labels = {row.id: row.label for row in reader.changed()}
        assert len(labels) == 60
    assert all(thoughts[task] == label for task, label in labels.items())
