"""`evenhand curate`: choose the rows of a pool that serve the worst-off group best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import table_options as options
from evenhand.cli.curated import print_labelling, print_summary
from evenhand.errors import InputError

__all__ = ["curate"]


def curate(
    pool: Annotated[str, typer.Argument(help="a CSV or Parquet file, a folder of Parquet files, adult or german")],
    budget: Annotated[int, typer.Option(help="rows to choose, to train on and to validate together")],
    out: Annotated[Path, typer.Option(help="where the rows go, .parquet or .csv; the report goes beside")],
    label: options.Label = None,
    group: options.Group = None,
    test: options.Test = None,
    feature: options.Feature = None,
    ignore: options.Ignore = None,
    exclude: options.Exclude = None,
    use_group_as_feature: options.UseGroup = False,
    missing: options.Missing = None,
    scale: options.Scale = None,
    max_categories: options.MaxCategories = None,
    unseen: options.Unseen = None,
    id: options.Id = None,
    split_by: options.SplitBy = None,
    merge_below: options.MergeBelow = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    strategy: Annotated[
        str, typer.Option(help="which group next, name:key=value,… or factory:package.module.function")
    ] = "optimistic",
    learner: Annotated[
        str | None,
        typer.Option(help="logistic:C=1, a scikit-learn classifier's path, or factory:package.module.function"),
    ] = None,
    risk: Annotated[
        str, typer.Option(help="what worse off means: error, log, fnr, fpr, balanced, or costs:0,1;5,0")
    ] = "error",
    positive: Annotated[str | None, typer.Option(help="the positive class, for false negatives and positives")] = None,
    final: Annotated[
        str, typer.Option(help="the model to deploy: chosen (groups re-weighted where that helps), or plain")
    ] = "chosen",
    batch: Annotated[int, typer.Option(help="rows of each role a round takes")] = 1,
    warmup: Annotated[int | None, typer.Option(help="warm-up rounds, groups in turn")] = None,
    validation: Annotated[float, typer.Option(help="share of the rows that validates")] = 0.5,
    seed: Annotated[int, typer.Option(help="the same seed, the same rows")] = 0,
    labels: Annotated[
        Path | None, typer.Option(help="todo.csv, filled in: labels for a table that had none; empty cells wait on")
    ] = None,
    test_labels: Annotated[int, typer.Option(help="labels of the budget that only test, where labels are made")] = 0,
    per_round: Annotated[int | None, typer.Option(help="rows of todo.csv; default a tenth of the budget")] = None,
    compare: Annotated[int, typer.Option(help="trials to compare with Uniform and Uncurated on; 0 for none")] = 5,
    min_test: Annotated[int, typer.Option(help="groups with fewer test rows are shown apart")] = 30,
    jobs: Annotated[int, typer.Option(help="processes for the comparison")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="go on from what is in --out")] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite --out")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the report as JSON")] = False,
) -> None:
    """Choose rows of a pool for the worst-off group: the rows, a report to open, and the report as JSON."""
    if out.suffix not in {".parquet", ".csv"}:
        raise InputError(f"--out must end in .parquet or .csv, not {out.name!r}")
    if resume and force:
        raise InputError("--resume goes on from what is there, --force overwrites it: give one of the two")
    from evenhand.curation.curate import Labelling
    from evenhand.curation.curate import curate as run
    from evenhand.curation.files import outputs
    from evenhand.curation.starting import ledger_path

    going = ledger_path(out).exists()
    if going and force:
        raise InputError(f"{ledger_path(out)} holds labels that people made: move it away to begin anew")
    there = [path for path in outputs(out) if path.exists()]
    if there and not (resume or force or going):
        raise InputError(f"{there[0]} exists: --resume goes on from it, --force overwrites it")
    from evenhand.learners.parsing import parse_learner

    settings = options.given(
        features=feature, ignore=ignore, exclude=exclude, use_group_as_feature=use_group_as_feature,
        missing=missing, scale=scale, max_categories=max_categories, unseen=unseen, id=id, split_by=split_by,
        merge_below=merge_below, separator=separator, decimal=decimal, encoding=encoding, validation=validation,
    )  # fmt: skip
    curated = run(
        _pool(pool, label, group, test, settings),
        label if Path(pool).exists() else None,
        group if Path(pool).exists() else None,
        budget,
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
        labels=labels,
        test_labels=test_labels,
        per_round=per_round,
        **(settings if Path(pool).exists() else {}),
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


def _pool(pool: str, label: str | None, group: list[str] | None, test: str | None, settings: dict[str, Any]) -> Any:
    """The path of a table, or a data set by its name, which has its settings already."""
    from evenhand.sources.catalogue import open_source, parse_test
    from evenhand.sources.table.table import Table

    if Path(pool).exists():
        settings |= {} if test is None else {"test": parse_test(test)}
        return Path(pool)
    table = open_source(pool, label=label, groups=group or (), test=test, **settings)
    if not isinstance(table, Table):
        raise InputError(f"{pool!r} is no table: curate chooses rows of one")
    return table
