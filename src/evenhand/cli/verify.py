"""`evenhand verify`: recompute a curated result from its files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["verify"]


def verify(
    out: Annotated[Path, typer.Argument(help="the rows that curate wrote, or their folder")],
    as_json: Annotated[bool, typer.Option("--json", help="print the checks as JSON")] = False,
) -> None:
    """Recompute every figure of a curated result with scikit-learn alone; exit code 2 where one differs."""
    from evenhand.cli.terminal import echo
    from evenhand.curation.verify import verify as run

    checks = run(out)
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=1))
    else:
        words = {True: "agrees", False: "DIFFERS", None: "not checked"}
        for check in checks:
            echo(f"{words[check.ok]:12} {check.name}: {check.found}")
    if any(check.ok is False for check in checks):
        typer.echo("error: the report does not agree with its files", err=True)
        raise typer.Exit(2)
