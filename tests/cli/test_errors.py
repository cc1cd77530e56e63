"""Only bad input is shown as bad input: a bug of ours exits with 1 and leaves its traceback in a file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import evenhand
from evenhand.cli import app, main

SCRIPT = """
import sys
import numpy as np
import evenhand.campaign.campaign as module
def broken(*given, **settings):
    np.zeros(2) + np.zeros(3)
module.make_settings = broken
sys.argv = ["evenhand", "campaign", "create", "s", "--group", "u", "--budget", "20"]
from evenhand.cli import main
main()
"""


def test_a_bug_is_no_bad_input(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "internal error: ValueError" in done.stderr
    log = Path(done.stderr.rsplit("The details are in ", 1)[1].strip())
    assert "could not be broadcast" in log.read_text()
    assert "Traceback" in log.read_text()
    assert "Traceback" not in done.stderr
    log.unlink()


def commands(command: Any, path: str = "evenhand") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name in getattr(command, "commands", ()):
        yield from commands(command.commands[name], f"{path} {name}")


def test_messages_name_only_options_and_commands_that_there_are() -> None:
    known = dict(commands(typer.main.get_command(app)))
    options = {text for command in known.values() for p in command.params for text in (*p.opts, *p.secondary_opts)}
    texts = [
        (path.name, node.value)
        for path in Path(evenhand.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    named = [(file, word) for file, text in texts for word in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text)]
    assert len(named) > 50
    assert [(file, word) for file, word in named if word not in options | {"--help"}] == []
    told = [
        (file, word) for file, text in texts for word in re.findall(r"evenhand campaign [a-z]+|`evenhand [a-z]+", text)
    ]
    assert [(file, word) for file, word in told if word.strip("`") not in known] == []


def test_an_interrupted_command_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evenhand.sources.catalogue.open_source", interrupt)
    monkeypatch.setattr("sys.argv", ["evenhand", "simulate", "adult", "--budget", "10"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
