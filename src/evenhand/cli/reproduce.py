"""`evenhand reproduce`: the paper's figures and table, run again and compared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.experiments.base import Experiment
    from evenhand.experiments.run import Options, Outcome


SKIPPED = 4
"""Exit code: all went well, but some experiments had no data."""


def reproduce(
    experiment: Annotated[
        list[str] | None, typer.Argument(help="which experiments, e.g. fig-convergence; by default all")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="list the experiments and stop")] = False,
    scale: Annotated[str, typer.Option(help="quick (minutes) or paper (the paper's trials and budgets)")] = "quick",
    trials: Annotated[int | None, typer.Option(help="another number of trials")] = None,
    image_rounds: Annotated[
        int | None,
        typer.Option(
            help="run image experiments with one trial of this many rounds, not ten of 500; 0: leave them out"
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="how many processes share the work")] = 2,
    seed: Annotated[int | None, typer.Option(help="a seed other than 0")] = None,
    out: Annotated[Path, typer.Option(help="folder for figures, numbers, verdicts and the finished trials")] = Path(
        "evenhand-reproduction"
    ),
    data_dir: Annotated[Path | None, typer.Option(help="folder with the data sets' files")] = None,
    backend: Annotated[str, typer.Option(help="where trials run: processes (here) or dask (a cluster)")] = "processes",
    address: Annotated[str | None, typer.Option(help="the Dask scheduler, e.g. tcp://10.0.0.5:8786")] = None,
) -> None:
    """Make the paper's figures and table, each beside what the paper says, with a verdict for every claim.

    Finished trials are kept in the folder: the same command continues where it was stopped, and more --trials are
    added to those that are there; trials that failed are tried again. Exit code 4: done, but some data sets were absent;
    1: some trials failed.
    """
    from evenhand.experiments.catalogue import choose
    from evenhand.experiments.run import Options

    chosen = choose(experiment or [])
    if show:
        for one in chosen:
            typer.echo(f"{one.id:22}{one.title}")
        return
    if data_dir is not None:
        # set in the environment, which worker processes inherit; absolute, because they may start elsewhere
        os.environ["EVENHAND_DATA"] = str(data_dir.absolute())
    options = Options(scale, trials, seed, jobs, backend, address, image_rounds)
    outcomes = _with_bars(chosen, out, options)
    _tell(outcomes, out)
    if any(outcome.status == "failed" for outcome in outcomes):
        raise typer.Exit(1)
    if any(outcome.absent for outcome in outcomes):
        raise typer.Exit(SKIPPED)


def _with_bars(chosen: Sequence[Experiment], out: Path, options: Options) -> list[Outcome]:
    """Run with one bar for each experiment on standard error."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from evenhand.experiments.run import reproduce as run

    columns = (TextColumn("{task.description:22}"), BarColumn(), MofNCompleteColumn(), TextColumn("trials"))
    times = (TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[failed]}"))
    bars: JsonObject = {}
    with Progress(*columns, *times, console=Console(stderr=True)) as progress:

        def watch(name: str, done: int, failed: int, total: int) -> None:
            if name not in bars:
                bars[name] = progress.add_task(name, total=total, failed="")
            progress.update(bars[name], completed=done + failed, failed=f"{failed} failed" if failed else "")

        try:
            return run(chosen, out, options, watch)
        except KeyboardInterrupt:
            progress.console.print(f"interrupted: finished trials are kept in {out}, the same command goes on")
            raise typer.Exit(130) from None


def _tell(outcomes: list[Outcome], out: Path) -> None:
    import json

    entries = json.loads((out / "results.json").read_text(encoding="utf-8"))["experiments"]
    for outcome in outcomes:
        typer.echo(f"{outcome.experiment}: {_status(outcome)}")
        for claim in entries[outcome.experiment].get("claims", []):
            typer.echo(f"  {claim['verdict']}: {claim['text']}\n      {claim['evidence']}")
        for name, why in outcome.absent.items():
            typer.echo(f"  without {name}: {why}", err=True)
        for failure in outcome.failures:
            last = failure["error"].splitlines()[-1]
            where = f"{failure['study']}, {failure['strategy']}, trial {failure['trial']}, seed {failure['seed']}"
            typer.echo(f"  failed: {where}: {last}", err=True)
    typer.echo(f"written to {out / 'index.html'}")


def _status(outcome: Outcome) -> str:
    if outcome.status == "kept":
        return "already there, nothing to do"
    return outcome.status if outcome.status == "skipped" else f"{outcome.status}, {outcome.ran} trials run"
