"""docs/claims.md: every JSON file of docs/results with what made it and when, and the last run of every step of the evidence."""

import json
from collections.abc import Iterator
from typing import Any

from blocks.text import RESULTS, shown, table

# files that do not say it themselves
MADE_BY = {
    **dict.fromkeys(
        (
            "images-fashion-trials.json",
            "images-fashion-long.json",
            "images-cifar-trials.json",
            "images-utkface-trials.json",
        ),
        "python benchmarks/image_trials.py",
    ),
}
STEPS = RESULTS / "evidence.json"
BESIDE = {"verdicts.json": "results.json"}
"""A file that is written with another one, which says how both were made."""


def texts(found: Any, *keys: str) -> Iterator[str]:
    """The texts that stand under one of these keys, wherever in the file."""
    if isinstance(found, dict):
        yield from (value for key in keys if isinstance(value := found.get(key), str))
    for inner in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from texts(inner, *keys)


def shortened(commands: set[str]) -> str:
    """The programs, each once: their options are in the file."""
    programs = sorted({" ".join(command.split()[:2]) for command in commands})
    return ", ".join(f"`{program}`" for program in programs)


def files() -> str:
    """A row for each file."""
    rows = []
    for path in sorted(set(RESULTS.glob("*.json")) - {STEPS}):
        says = path.with_name(BESIDE.get(path.name, path.name))
        found = json.loads(says.read_text(encoding="utf-8"))
        commands = {MADE_BY[path.name]} if path.name in MADE_BY else set(texts(found, "command"))
        dates = sorted({date[:10] for date in texts(found, "date", "finished")})
        when = " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""
        rows.append([f"`{path.name}`", shortened(commands), when])
    return table(["file", "made by", "date"], rows)


def steps() -> str:
    """A row for each step that is finished, in the order of time."""
    found = json.loads(STEPS.read_text(encoding="utf-8"))
    in_time = sorted(found.items(), key=lambda one: one[1]["date"])
    return table(["step", "finished", "commit"], [[name, one["date"], shown(one["commit"])] for name, one in in_time])


def blocks() -> dict[str, str]:
    """The tables of files and steps."""
    return {"claims-files": files()} | ({"claims-steps": steps()} if STEPS.exists() else {})
