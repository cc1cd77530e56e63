"""What goes with figures that are kept: the command that made them, the day, the commit, cores, versions and seeds."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evenhand.files import write_atomically

__all__ = ["about", "commit", "stamp", "today", "write_json"]

_WRITTEN = ("README.md", "docs/*.md", "docs/*.json", "docs/*.png", "docs/*.svg", "docs/results/SHA256SUMS")
"""What a run writes itself: numbers, pictures and pages."""


def today() -> str:
    """The day, as it stands beside figures."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def stamp() -> str:
    """The moment, as it stands beside a single run."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def commit(folder: Path = Path(__file__).parent) -> str:
    """The commit of the checkout that a folder is in, with -dirty where code was changed; `unknown` outside of one."""
    found = _git(folder, "rev-parse", "--short=12", "HEAD")
    if found is None or found.returncode:
        return "unknown"
    # a run that writes its numbers must not make the next one's code look changed
    others = [f":(top,exclude){pattern}" for pattern in _WRITTEN]
    changed = _git(folder, "diff", "--quiet", "HEAD", "--", ":/", *others)
    return found.stdout.strip() + ("-dirty" if changed is None or changed.returncode else "")


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str] | None:
    # others may be committing in the same checkout: take no lock
    command = ["git", "--no-optional-locks", *words]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None


def about(command: str, *packages: str, seeds: Sequence[int] = ()) -> dict[str, Any]:
    """What a reader needs to make the figures again: our version and commit, those of the packages they hang on, and the seeds.

    Args:
        command: the script and its options.
        packages: whose versions matter.
        seeds: of what is drawn at random; of many in a row, a range. Nothing where chance has no part in the figures.
    """
    versions = {"python": platform.python_version()} | {name: version(name) for name in ("evenhand", *packages)}
    made = {"command": f"python benchmarks/{command}", "date": today(), "commit": commit()}
    found = {**made, "cores": os.cpu_count(), "versions": versions}
    in_words = f"{seeds[0]} to {seeds[-1]}" if isinstance(seeds, range) else list(seeds)
    return found | ({"seeds": in_words} if seeds else {})


def write_json(path: Path, found: dict[str, Any]) -> None:
    """Write figures so that two runs can be compared line by line; whoever reads finds the old file or the new one."""
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, partial(Path.write_text, data=text, encoding="utf-8"))
