"""`evenhand simulate`: compare strategies on a source."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import table_options as options
from evenhand.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.notation import JsonObject
    from evenhand.simulation.result import Result


_TRIALS = "trials"
"""The folder within --out that finished trials are kept in."""
_NAME, _CELL, _MOST = 24, 15, 30
"""Columns of the terminal for a group's name and for a number, and how many groups are listed."""
_NONE = {"mean": None, "sd": None}


@options.reads_tables
def simulate(
    source: Annotated[
        str,
        typer.Argument(
            help="synthetic1:I, synthetic1:II, adult, german, …, a CSV/Parquet path, or factory:package.module.function"
        ),
    ],
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="name:key=value,… or factory:package.module.function; LABEL=name:… sets the name shown; repeat to compare several"
        ),
    ] = None,
    budget: Annotated[int, typer.Option(help="labels of a trial, training and validation together")] = 1000,
    trials: Annotated[int, typer.Option(help="how many trials")] = 100,
    seed: Annotated[int, typer.Option(help="the same seed gives the same result")] = 0,
    jobs: Annotated[int, typer.Option(help="how many processes share the work")] = 1,
    out: Annotated[Path | None, typer.Option(help="folder for trace, summary and pictures")] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            help="logistic:C=1, a scikit-learn path like sklearn.naive_bayes.GaussianNB, network:update=epoch (images), "
            "or factory:package.module.function"
        ),
    ] = None,
    risk: Annotated[
        str,
        typer.Option(
            help='what "worse off" means: error, log, fnr, fpr, balanced, costs:0,1;5,0 or factory:package.module.function'
        ),
    ] = "error",
    positive: Annotated[str | None, typer.Option(help="the positive class, which fnr and fpr are about")] = None,
    final: Annotated[
        str, typer.Option(help="plain, or chosen: also the model that final_model would choose to deploy")
    ] = "plain",
    batch: Annotated[
        int, typer.Option(help="examples drawn in a round to train on, and the same number to validate")
    ] = 1,
    warmup: Annotated[
        int | None, typer.Option(help="rounds at the start that take the groups in turn; by default one for each group")
    ] = None,
    validation: Annotated[
        float, typer.Option(help="share of the labels that is not trained on, to see how good the model is")
    ] = 0.5,
    *,
    table: options.TableOptions,
    backend: Annotated[str, typer.Option(help="where trials run: processes (here) or dask (a cluster)")] = "processes",
    address: Annotated[str | None, typer.Option(help="the Dask scheduler, e.g. tcp://host:8786")] = None,
    evaluate: Annotated[int, typer.Option(help="at how many rounds the models are tested")] = 100,
    data_dir: Annotated[Path | None, typer.Option(help="folder with the data sets' files")] = None,
    trace: Annotated[
        str, typer.Option(help="what the trace keeps of every round: full, chosen (only the chosen group) or none")
    ] = "full",
    as_json: Annotated[bool, typer.Option("--json", help="print the summary as JSON")] = False,
    resume: Annotated[
        bool, typer.Option(help="continue from the trials finished in --out, also those of a run that was killed")
    ] = False,
    force: Annotated[bool, typer.Option(help="overwrite what is in --out")] = False,
) -> None:
    """Compare strategies on the same trials: synthetic models, bundled data sets, or your own table."""
    if resume and out is None:
        raise InputError("--resume needs the --out folder to go on from")
    if out is not None and out.exists() and any(out.iterdir()) and not (resume or force):
        raise InputError(f"{out} is not empty: --resume goes on from it, --force overwrites it")
    from evenhand.simulation.simulate import simulate as run
    from evenhand.simulation.store import Store
    from evenhand.sources.catalogue import learner_for

    found = table.source(source, data_dir=data_dir)
    if out is not None and force and not resume:
        Store(out / _TRIALS).clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = run(
            found,
            strategy or ["optimistic", "uniform"],
            learner_for(found, learner),
            budget=budget,
            trials=trials,
            seed=seed,
            jobs=jobs,
            backend=backend,
            address=address,
            evaluate=evaluate,
            batch=batch,
            warmup=warmup,
            validation=validation,
            risk=risk,
            positive=positive,
            final=final,
            trace=trace,
            progress=True,
            keep=None if out is None else out / _TRIALS,
        )
    # once each, after the progress bar, which would otherwise be torn apart
    for message in dict.fromkeys(str(w.message) for w in caught):
        typer.echo(f"warning: {message}", err=True)
    if out is not None:
        save(result, out)
    if as_json:
        typer.echo(json.dumps(result.summary(), indent=2))
    else:
        print_result(result, out)
    if result.interrupted:
        typer.echo("interrupted: the finished trials are kept", err=True)
        raise typer.Exit(130)


def save(result: Result, out: Path) -> None:
    """The result's files, its report and, where there is a full trace, its pictures."""
    from evenhand.files import write_atomically

    result.save(out)
    text = result.report()
    write_atomically(out / "report.html", lambda path: path.write_text(text, encoding="utf-8"))
    if result.settings["trace"] == "full" and len(result.trace):
        result.plot_mixture().savefig(out / "mixture.png", dpi=150)
        result.plot_worst_group().savefig(out / "worst_group.png", dpi=150)
        result.plot_groups().savefig(out / "groups.png", dpi=150)


def print_result(result: Result, out: Path | None = None) -> None:
    """How well each strategy serves the worst group, what differs between them, who was asked, and where the files are."""
    from rich.console import Console

    from evenhand.claims.paired import OPEN, Interval
    from evenhand.risks import title_of

    console = Console(highlight=False, markup=False)
    summary = result.summary()
    measures = ("accuracy",) if summary["risk"] == "error" else ("risk", "accuracy")
    about = "" if summary["risk"] == "error" else f", {title_of(summary['risk'])}"
    console.print(
        f"{summary['source']}: {summary['budget']:,} labels, {summary['trials']} trials, seed {summary['seed']}{about}"
    )
    for measure in measures:
        chosen = result.settings["final"] == "chosen" and measure == measures[0]
        _worst_groups(console, summary, measure if len(measures) > 1 else None, chosen)
    for d in summary["differences"]:
        if d["metric"] == f"worst_group_{measures[0]}":
            interval = Interval(d["mean"], d["low"], d["high"])
            sure = "" if interval.above() == OPEN else "  ← beyond chance"
            what = "" if measures[0] == "accuracy" else "'s risk"
            console.print(f"worst group{what}, {d['a']} − {d['b']}: {interval}{sure}")
    _shares(console, summary, result.groups)
    if result.fair_mixture is not None:
        fair = ", ".join(f"{group} {share:.2f}" for group, share in result.fair_mixture.items())
        console.print(f"fair mixture π*: {fair}")
    if out is not None:
        console.print(f"written to {out}", soft_wrap=True)


def _worst_groups(console: Console, summary: JsonObject, named: str | None, chosen: bool) -> None:
    """One row per strategy; what is measured is named if it is not the accuracy alone."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("strategy", overflow="fold", min_width=12)
    whose = "worst group" if named is None else f"worst group's\n{named}"
    kinds = {"": "(trained on half)", "final_": "(all labels)"} | ({"chosen_": "(chosen)"} if chosen else {})
    for how in kinds.values():
        table.add_column(f"{whose}\n{how}", justify="right", no_wrap=True)
    for label, found in summary["strategies"].items():
        table.add_row(Text(label), *(_spread(found[f"{kind}worst_group_{named or 'accuracy'}"]) for kind in kinds))
    console.print(table)


def _shares(console: Console, summary: JsonObject, groups: Sequence[str]) -> None:
    """The share of the labels each group got, as many strategies beside each other as there is room for."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    names = list(summary["strategies"])
    room = max(1, (console.width - _NAME) // _CELL)
    for start in range(0, len(names), room):
        shown = names[start : start + room]
        table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("share of the labels", overflow="fold", min_width=_NAME - 4)
        for name in shown:
            table.add_column(Text(name, justify="right"), justify="right", overflow="fold", min_width=_CELL - 2)
        for group in groups[:_MOST]:
            found = (summary["strategies"][name]["mixture"].get(group, _NONE) for name in shown)
            table.add_row(Text(group), *map(_spread, found))
        console.print(table)
    if len(groups) > _MOST:
        console.print(f"(and {len(groups) - _MOST} more groups, in summary.json and --json)")


def _spread(value: dict[str, float | None]) -> str:
    return "—" if value["mean"] is None else f"{value['mean']:.3f} ± {value['sd']:.3f}"
