"""What goes with figures that are kept: the command that made them, the day, the machine's cores and the versions."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["about", "today", "write_json"]


def today() -> str:
    """The day, as it stands beside figures."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def about(command: str, *packages: str) -> dict[str, Any]:
    """What a reader needs to make the figures again: our version and those of the packages they hang on."""
    versions = {"python": platform.python_version()} | {name: version(name) for name in ("evenhand", *packages)}
    return {"command": f"python benchmarks/{command}", "date": today(), "cores": os.cpu_count(), "versions": versions}


def write_json(path: Path, found: dict[str, Any]) -> None:
    """Write figures so that two runs can be compared line by line."""
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
