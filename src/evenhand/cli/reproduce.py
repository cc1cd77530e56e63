"""`evenhand reproduce`: the paper's figures and table, run again and compared."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.errors import InputError
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.experiments.base import Experiment
    from evenhand.experiments.run import Options, Outcome

__all__ = ["reproduce"]

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
    judge: Annotated[
        bool,
        typer.Option(
            "--judge", help="run nothing: give the verdicts again from the values of every trial kept in --out"
        ),
    ] = False,
    repeat: Annotated[
        str | None, typer.Option(help="run one trial again, STUDY/STRATEGY/TRIAL, and keep nothing of it")
    ] = None,
) -> None:
    """Make the paper's figures and table, each beside what the paper says, with a verdict for every claim.

    Finished trials are kept in the folder: the same command continues where it was stopped, and more --trials are
    added to those that are there. Exit code 4: done, but some data sets were absent; 1: some trials failed.
    """
    from evenhand.experiments.catalogue import choose
    from evenhand.experiments.run import Options

    chosen = choose(experiment or [])
    if show:
        for one in chosen:
            typer.echo(f"{one.id:22}{one.title}")
        return
    if judge:
        _judge(out, chosen, everything=not experiment)
        return
    if data_dir is not None:
        # set in the environment, which worker processes inherit; absolute, because they may start elsewhere
        os.environ["EVENHAND_DATA"] = str(data_dir.absolute())
    options = Options(scale, trials, seed, jobs, backend, address, image_rounds)
    if repeat is not None:
        _repeat(chosen, repeat, options)
        return
    outcomes = _with_bars(chosen, out, options)
    _tell(outcomes, out)
    if any(outcome.status == "failed" for outcome in outcomes):
        raise typer.Exit(1)
    if any(outcome.absent for outcome in outcomes):
        raise typer.Exit(SKIPPED)


def _judge(out: Path, chosen: Sequence[Experiment], everything: bool) -> None:
    """Print every verdict with its test; exit 1 where verdict, numbers or test are not those that were published."""
    from evenhand.experiments.judging import judge_again

    differ = 0
    judged = judge_again(out, [] if everything else [one.id for one in chosen])
    for name, claims in judged.items():
        typer.echo(name)
        for claim, published in claims:
            typer.echo(f"  {claim.verdict}: {claim.text}\n      {claim.evidence}\n      test: {claim.test}")
            if claim != published:
                differ += 1
                said = f"{published.verdict}: {published.evidence}; test: {published.test}" if published else "nothing"
                typer.echo(f"      results.json says: {said}", err=True)
    if absent := [one.id for one in chosen if one.id not in judged]:
        typer.echo(f"not judged, because {out} has no values of them: {', '.join(absent)}", err=True)
    if differ:
        raise typer.Exit(1)


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
            where = f"{failure['strategy']}, trial {failure['trial']}, seed {failure['seed']}"
            typer.echo(f"  failed: {where}: {last}\n      again: {failure['command']}", err=True)
    typer.echo(f"written to {out / 'index.html'}")


def _status(outcome: Outcome) -> str:
    if outcome.status == "kept":
        return "already there, nothing to do"
    return outcome.status if outcome.status == "skipped" else f"{outcome.status}, {outcome.ran} trials run"


def _repeat(chosen: Sequence[Experiment], text: str, options: Options) -> None:
    """Run one trial in this process and say how it went."""
    from evenhand.experiments.measures import worst
    from evenhand.simulation.blocks import run_apart

    parts = text.rsplit("/", 2)
    if len(chosen) != 1 or len(parts) != 3 or not parts[2].isdecimal():
        raise InputError(
            "--repeat needs one experiment and STUDY/STRATEGY/TRIAL, e.g. fig-adult --repeat adult/A_opt/3"
        )
    name, label, trial = parts
    studies = chosen[0].at(options.scale, options.trials, options.seed, options.image_rounds)
    if name not in studies or label not in studies[name].strategies:
        known = ", ".join(f"{study}/{rule}" for study, found in studies.items() for rule in found.strategies)
        raise InputError(f"{chosen[0].id} has no {name}/{label}: it has {known}")
    (block,) = studies[name].blocks({label: (int(trial),)})
    records, failed = run_apart(block)
    for error in failed.values():
        typer.echo(error, err=True)
        raise typer.Exit(1)
    (lowest,) = worst(records[0])
    typer.echo(f"trial {trial} of {label} on {name}: worst group {lowest:.4f}, {records[0].seconds:.1f} s")
