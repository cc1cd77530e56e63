"""`evenhand curate`: choose the rows of a pool that serve the worst-off group best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import table_options as options
from evenhand.cli.curated import print_labelling, print_summary
from evenhand.errors import InputError

__all__ = ["curate"]


@options.reads_tables
def curate(
    pool: Annotated[
        str, typer.Argument(help="a CSV, JSON lines or Parquet file, a folder of Parquet files, adult or german")
    ],
    budget: Annotated[int, typer.Option(help="rows to choose, to train on and to validate together")],
    out: Annotated[Path, typer.Option(help="where the rows go, .parquet or .csv; the report is written beside it")],
    table: options.TableOptions,
    strategy: Annotated[
        str, typer.Option(help="how the next group is chosen, name:key=value,… or factory:package.module.function")
    ] = "optimistic",
    learner: Annotated[
        str | None,
        typer.Option(help="logistic:C=1, a scikit-learn classifier's path, or factory:package.module.function"),
    ] = None,
    risk: Annotated[
        str, typer.Option(help='what "worse off" means: error, log, fnr, fpr, balanced, or costs:0,1;5,0')
    ] = "error",
    positive: Annotated[str | None, typer.Option(help="the positive class, for false negatives and positives")] = None,
    final: Annotated[
        str, typer.Option(help="the model to deploy: chosen (groups re-weighted where that helps), or plain")
    ] = "chosen",
    batch: Annotated[int, typer.Option(help="rows taken in a round to train on, and the same number to validate")] = 1,
    warmup: Annotated[
        int | None, typer.Option(help="rounds at the start that take the groups in turn; by default one for each group")
    ] = None,
    validation: Annotated[
        float, typer.Option(help="share of the rows that is not trained on, to see how good the model is")
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="the same seed gives the same rows")] = 0,
    new_label: Annotated[
        str | None,
        typer.Option(help="in place of --label: a column that the table does not have yet, which people are to fill"),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="the list of rows to label (train.todo.csv) with labels filled in; rows left empty stay open"
        ),
    ] = None,
    test_labels: Annotated[
        int, typer.Option(help="labels of the budget that are set aside for testing, where the table has no labels yet")
    ] = 0,
    per_round: Annotated[
        int | None, typer.Option(help="how many rows the list asks for; by default a tenth of the budget")
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option(help="a column that the list of rows to label shows beside the id; repeat; by default all"),
    ] = None,
    compare: Annotated[int, typer.Option(help="trials to compare with Uniform and Uncurated on; 0 for none")] = 5,
    min_test: Annotated[int, typer.Option(help="groups with fewer test rows than this are shown separately")] = 30,
    jobs: Annotated[int, typer.Option(help="how many processes share the comparison")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="continue from what is in --out")] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite --out")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the report as JSON")] = False,
) -> None:
    """Choose the rows of a table that serve the worst-off group best; writes the rows, the model and a report."""
    if out.suffix not in {".parquet", ".csv"}:
        raise InputError(f"--out must end in .parquet or .csv, not {out.name!r}")
    if resume and force:
        raise InputError("--resume goes on from what is there, --force overwrites it: give one of the two")
    from evenhand.curation.curate import Labelling
    from evenhand.curation.curate import curate as run
    from evenhand.curation.files import outputs
    from evenhand.curation.labelling import todo_path
    from evenhand.curation.starting import ledger_path

    going = ledger_path(out).exists()
    if going and force:
        raise InputError(f"{ledger_path(out)} holds labels that people made: move it away to begin anew")
    if todo_path(out).exists() and not going:
        raise InputError(f"{todo_path(out)} holds rows to label of an earlier run: move it away to begin anew")
    there = [path for path in outputs(out) if path.exists()]
    if there and not (resume or force or going):
        raise InputError(f"{there[0]} exists: --resume goes on from it, --force overwrites it")
    from evenhand.learners.parsing import parse_learner

    curated = run(
        **table.table(pool, "curate chooses rows of one", validation=validation),
        budget=budget,
        strategy=strategy,
        learner=None if learner is None else parse_learner(learner),
        risk=risk,
        positive=positive,
        final=final,
        batch=batch,
        warmup=warmup,
        seed=seed,
        compare=compare,
        min_test=min_test,
        jobs=jobs,
        progress=not as_json,
        resume=out if resume else None,
        out=out,
        new_label=new_label,
        labels=labels,
        test_labels=test_labels,
        per_round=per_round,
        show=show or None,
    )
    if isinstance(curated, Labelling):
        print_labelling(curated, out, as_json)
        return
    written = curated.save(out)
    if as_json:
        typer.echo(json.dumps({key: value for key, value in curated.summary.items() if key != "rounds"}))
    else:
        print_summary(curated.summary, written)
    if curated.interrupted:
        typer.echo("interrupted: what was chosen is kept, --resume goes on", err=True)
        raise typer.Exit(130)
