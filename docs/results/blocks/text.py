"""Numbers and tables as text."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1]


def kept(name: str) -> dict[str, Any]:
    """A JSON file of docs/results."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in (header, *rows)]
    return "\n".join([lines[0], "|---" * len(header) + "|", *lines[1:]])


def short(value: float, digits: int = 3, sign: bool = False) -> str:
    """A share without its leading zero, with a true minus."""
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    return text.replace("0.", ".", 1).replace("-", "−")


def duration(seconds: float) -> str:
    """A time with two or three figures and its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            return f"{significant(seconds / size)} {unit}"
    raise AssertionError


def significant(value: float) -> str:
    """Two figures below 100, whole numbers above."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:#.2g}".rstrip(".")


def note(found: dict[str, Any]) -> str:
    """What a file says of the conditions it was made in, as a sentence, where it says something."""
    return f" Note: {found['note']}." if found.get("note") else ""


def seeds(run: dict[str, Any]) -> str:
    """The seeds of a run, with a comma after them, where it has some."""
    own = run.get("seeds") or []
    text = own if isinstance(own, str) else ", ".join(map(str, own))
    return f"seed{'s' * (len(own) > 1)} {text}, " if own else ""


def versions(found: dict[str, str]) -> str:
    """Packages and their versions."""
    return ", ".join(f"{name} {version}" for name, version in found.items())


def shown(name: str) -> str:
    """A commit, with a star where files were changed."""
    return name[:7] + "*" * name.endswith("-dirty")
