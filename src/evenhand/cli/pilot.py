"""`evenhand plan --pilot TABLE`: which rule to buy labels by, tried on labelled rows that you have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from evenhand.cli import table_options
from evenhand.errors import InputError
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.simulation.pilot import Pilot

__all__ = ["check_options", "run_pilot"]

_BOTH = {"pilot", "budget", "as_json", "trials"}
_PILOT = table_options.NAMES | {
    "strategy", "learner", "risk", "positive", "final", "batch", "warmup", "validation", "seed", "jobs", "minutes",
}  # fmt: skip


def check_options(context: typer.Context, pilot: bool) -> None:
    """Refuse what was given and has no effect: options of the theory with --pilot, those of a pilot without."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _BOTH or (name in _PILOT) == pilot or context.get_parameter_source(name) is None:
            continue
        if getattr(context.get_parameter_source(name), "name", "") != "COMMANDLINE":
            continue
        said = parameter.opts[0]
        raise InputError(
            f"{said} has no effect {'with --pilot: it is for what the theory promises' if pilot else 'without --pilot TABLE'}"
        )


def run_pilot(pilot: str, table: table_options.TableOptions, asked: JsonObject, as_json: bool) -> None:
    """Run the pilot and print what it found; exits with 130 if it was interrupted."""
    from evenhand.learners.parsing import parse_learner
    from evenhand.simulation.pilot import pilot as run

    if "budget" not in asked:
        raise InputError("a pilot needs the number of labels you mean to buy: give --budget")
    if "learner" in asked:
        asked["learner"] = parse_learner(asked["learner"])
    found = run(**table.table(pilot, "a pilot is run on labelled rows you have"), **asked, progress=True)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _show(found)
    if found.result.interrupted:
        typer.echo("interrupted: this is from the trials that were finished", err=True)
        raise typer.Exit(130)


def _show(found: Pilot) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    title = f"{found.result.settings['source']}: {found.simulated:,} labels, {found.trials} trials"
    table = Table(title=title, title_justify="left")
    table.add_column("rule", overflow="fold")
    table.add_column("worst-off group's risk", justify="right", no_wrap=True)
    for rule in found.result.labels:
        mean, sd = found.worst.get(rule, (None, None))
        table.add_row(rule, "—" if mean is None else f"{mean:.3f} ± {sd:.3f}")
    console.print(table)
    for lead in found.leads if found.trials > 1 else ():
        said = f"{lead.a} over {lead.b}: {lead} {found.unit} for the worst-off group"
        console.print(said, highlight=False, markup=False)
    for note in found.notes:
        console.print(f"note: {note}", highlight=False, markup=False)
    console.print(found.sentence, highlight=False, markup=False)
