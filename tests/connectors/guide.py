"""The guide to Label Studio, block by block: the commands and the Python of docs/label-studio.md, with people who label."""

from __future__ import annotations

import csv
import json
import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "label-studio.md"
BLOCK = re.compile(r"^```(sh|python|xml|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
URL = "http://localhost:8080"


def follow_guide(url: str, key: str, people: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what the page says in a folder; only the server's address and the projects' numbers are put in."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", key)
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    config = next(block for kind, block in found if kind == "xml")
    names: dict[str, Any] = {}
    project, thoughts = 0, {}

    def make() -> None:
        nonlocal project, thoughts
        rows = json.loads(Path("tasks.json").read_text())
        project = people.make(rows, config)
        thoughts = {
            task: "good" if row["good_words"] >= 3 else "bad" for task, row in zip(people.numbers(), rows, strict=True)
        }

    said = ""
    really_sleep: Callable[[float], None] = time.sleep

    def sleep(seconds: float) -> None:
        _label(people, thoughts) if seconds == 30 else really_sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    for kind, block in found:
        if kind == "python":
            make() if "LabelStudio(" in block else None
            exec(compile(block.replace(f'"{URL}", 2', f'"{url}", {project}'), str(PAGE), "exec"), names)
            make() if "tasks.json" in block else None
        for line in block.splitlines() if kind == "sh" else ():
            if line.startswith("evenhand sync"):
                line = line.replace(URL, url).replace("--project 1", f"--project {project}")
                passes = [_evenhand(f"{line} --once")]
                while "nothing to ask: budget spent" not in passes[-1] or people.in_tab():
                    _label(people, thoughts)
                    passes.append(_evenhand(f"{line} --once"))
                said = passes[0]
            else:
                _evenhand(line)
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
            with campaign.moment() as (reader, _):
                labels = {row.id: row.label for row in reader.changed()}
        assert len(labels) == 60
    assert all(thoughts[task] == label for task, label in labels.items())


def _label(people: Any, thoughts: dict[str, str]) -> None:
    """Everybody labels what the tab shows."""
    for number, (task, *_) in enumerate(people.in_tab()):
        people.say("ann" if number % 2 else "bob", task, thoughts[task])


def _evenhand(line: str) -> str:
    done = CliRunner().invoke(app, shlex.split(line)[1:])
    assert done.exit_code == 0, done.output
    return done.stdout
