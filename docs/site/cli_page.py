"""Write docs/cli.md: every command of the command line with its arguments and options, from the commands themselves.

Run: python docs/site/cli_page.py
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

PAGE = Path(__file__).parents[1] / "cli.md"
HEAD = """# Command line

Every command, as `evenhand COMMAND --help` prints it too. (This page is made from the commands by `python docs/site/cli_page.py`.)

Exit codes: 0 done, 1 internal error or a broken database, 2 bad input, 3 nothing to ask, 4 data that is not on this machine, 130 interrupted with results kept.

**Strategies** are written `name:key=value,key=value`: `optimistic:c0=0.5`, `epsilon-greedy:epsilon=0.1`, `greedy`, `uniform`, `uncurated`, `oracle:mixture=0.2+0.8`, or [your own](extending.md).
`LABEL=name:…` sets the name that results show.
**Sources** are `synthetic1:I`, `synthetic1:II`, `synthetic2`, `adult`, `german`, `fashion-mnist`, `cifar10`, `utkface`, or the path of a CSV or Parquet file.
"""
KINDS = {"str": "text", "int": "whole number", "float": "number"}


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All commands that do something, with the words one types for them."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for key in inner:
        yield from commands(inner[key], f"{name} {key}")


def cell(text: str) -> str:
    """A text within a table; a star or an underscore in it is one."""
    return " ".join(text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").split())


def names_of(option: Any) -> str:
    """An option as one types it, with the kind of its value."""
    forms = ", ".join(f"`{form}`" for form in (*option.opts, *option.secondary_opts))
    return forms if option.is_flag else f"{forms} {KINDS.get(option.type.name, option.type.name)}"


def default_of(option: Any) -> str:
    """The default, where it says something."""
    value = option.default
    if option.is_flag or value is None or value == [] or callable(value) or "UNSET" in str(value):
        return ""
    return f"`{value}`"


def section(name: str, command: Any) -> Iterator[str]:
    """One command: what it does, its arguments, its options."""
    yield f"{'#' * len(name.split())} {name}\n"
    yield inspect.cleandoc(command.help or "") + "\n"
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    words = " ".join(p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments)
    yield f"```text\n{name} {words}{' [OPTIONS]' if options else ''}\n```\n".replace("  ", " ")
    if any(getattr(p, "help", None) for p in arguments):
        yield "| argument | |\n|---|---|"
        yield "\n".join(f"| `{p.name.upper()}` | {cell(p.help or '')} |" for p in arguments) + "\n"
    if options:
        yield "| option | | default |\n|---|---|---|"
        yield "\n".join(f"| {names_of(p)} | {cell(p.help or '')} | {default_of(p)} |" for p in options) + "\n"


def page() -> str:
    """The whole page."""
    from evenhand.cli import app

    parts, part = [HEAD], ""
    for name, command in commands(get_command(app), "evenhand"):
        group = " ".join(name.split()[:-1])
        if group != part and group != "evenhand":
            parts.append(f"## {group}\n")
        part = group
        parts += section(name, command)
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
