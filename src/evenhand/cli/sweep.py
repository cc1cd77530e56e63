"""`evenhand sweep`: which settings of a strategy suit a source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import table_options as options
from evenhand.cli.terminal import aligned, columns, echo
from evenhand.errors import InputError

__all__ = ["sweep"]


@options.reads_tables
def sweep(
    source: Annotated[
        str,
        typer.Argument(
            help="synthetic1:I, synthetic1:II, adult, german, …, a CSV/Parquet path, or factory:package.module.function"
        ),
    ],
    grid: Annotated[list[str], typer.Option(help="settings to try, NAME=VALUE,VALUE,…; repeat for several")],
    strategy: Annotated[
        str, typer.Option(help="the strategy, or your own factory, with the settings that stay fixed")
    ] = "optimistic",
    learner: Annotated[str | None, typer.Option(help="what is trained, as for simulate")] = None,
    budget: Annotated[int, typer.Option(help="labels of a trial")] = 1000,
    trials: Annotated[int, typer.Option(help="how many trials; half choose, half confirm")] = 100,
    seed: Annotated[int, typer.Option(help="the same seed gives the same result")] = 0,
    jobs: Annotated[int, typer.Option(help="how many processes share the work")] = 1,
    out: Annotated[Path | None, typer.Option(help="folder for sweep.csv, sweep.json and the picture")] = None,
    risk: Annotated[str, typer.Option(help='what "worse off" means, as for simulate')] = "error",
    positive: Annotated[str | None, typer.Option(help="the positive class, which fnr and fpr are about")] = None,
    *,
    table: options.TableOptions,
    data_dir: Annotated[Path | None, typer.Option(help="folder with the data sets' files")] = None,
    backend: Annotated[str, typer.Option(help="where trials run: processes (here) or dask (a cluster)")] = "processes",
    address: Annotated[str | None, typer.Option(help="the Dask scheduler, e.g. tcp://10.0.0.5:8786")] = None,
    force: Annotated[bool, typer.Option(help="overwrite what is in --out")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Try every combination of settings on the same trials; the best is chosen on one half and confirmed on the other."""
    if out is not None and out.exists() and any(out.iterdir()) and not force:
        raise InputError(f"{out} is not empty: --force overwrites it")
    from evenhand.simulation.sweep import parse_grid
    from evenhand.simulation.sweep import sweep as run
    from evenhand.sources.catalogue import learner_for

    values = parse_grid(grid)
    opened = table.source(source, data_dir=data_dir)
    found = run(
        opened,
        strategy,
        values,
        learner=learner_for(opened, learner),
        budget=budget,
        trials=trials,
        seed=seed,
        jobs=jobs,
        progress=True,
        backend=backend,
        address=address,
        risk=risk,
        positive=positive,
    )
    text = json.dumps(found.to_dict(), indent=2)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        found.table.to_csv(out / "sweep.csv", index=False)
        (out / "sweep.json").write_text(text + "\n", encoding="utf-8")
        found.plot().savefig(out / "sweep.png", dpi=150)
    if as_json:
        typer.echo(text)
        return
    rows = [("setting", "chooses", "confirms", "")]
    for row in found.table.to_dict(orient="records"):
        own = ", ".join(f"{name} = {row[name]}" for name in found.names)
        mark = "← chosen" if row["strategy"] == found.best else ""
        rows.append((own, f"{row['choosing_mean']:.4f}", f"{row['confirming_mean']:.4f}", mark))
    typer.echo("\n".join(aligned(rows, columns())))
    echo(f"({found.measured} of the worst group in the half of the trials that chooses, and in the half that confirms)")
    echo(f"best: {found.best}; against {found.base} in the half that had no say: {found.advantage}")
    if not found.advantage.above:
        echo("the interval contains 0: the better setting may be chance")
    if out is not None:
        typer.echo(f"written to {out}")
