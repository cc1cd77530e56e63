"""What goes with figures that are kept: the command that made them, the day, the machine's cores, versions and seeds."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["about", "today", "write_json"]


def today() -> str:
    """The day, as it stands beside figures."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def about(command: str, *packages: str, seeds: Sequence[int] = ()) -> dict[str, Any]:
    """What a reader needs to make the figures again: our version, those of the packages they hang on, and the seeds.

    Args:
        command: the script and its options.
        packages: whose versions matter.
        seeds: of what is drawn at random; of many in a row, a range. Nothing where chance has no part in the figures.
    """
    versions = {"python": platform.python_version()} | {name: version(name) for name in ("evenhand", *packages)}
    found = {"command": f"python benchmarks/{command}", "date": today(), "cores": os.cpu_count(), "versions": versions}
    in_words = f"{seeds[0]} to {seeds[-1]}" if isinstance(seeds, range) else list(seeds)
    return found | ({"seeds": in_words} if seeds else {})


def write_json(path: Path, found: dict[str, Any]) -> None:
    """Write figures so that two runs can be compared line by line."""
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
