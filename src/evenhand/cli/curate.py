"""`evenhand curate`: choose the rows of a pool that serve the worst-off group best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.curated import print_summary
from evenhand.errors import InputError

__all__ = ["curate"]


def curate(
    pool: Annotated[str, typer.Argument(help="a CSV or Parquet file, a folder of Parquet files, adult or german")],
    budget: Annotated[int, typer.Option(help="rows to choose, to train on and to validate together")],
    out: Annotated[Path, typer.Option(help="where the rows go, .parquet or .csv; the report goes beside")],
    label: Annotated[str | None, typer.Option(help="the column to predict")] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="a column that tells the group, or age:25,45,65; may be given many times")
    ] = None,
    test: Annotated[str | None, typer.Option(help="a test file, a share to hold out (0.3), or none")] = None,
    feature: Annotated[list[str] | None, typer.Option(help="predict from these columns only")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="a column to leave out; may be given many times")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="a group to leave out; may be given many times")] = None,
    use_group_as_feature: Annotated[
        bool, typer.Option("--use-group-as-feature", help="predict from the group columns too")
    ] = False,
    missing: Annotated[str, typer.Option(help="missing numbers: category or median")] = "category",
    scale: Annotated[
        str | None, typer.Option(help="numbers: standard (the default; adult and german: minmax), minmax or none")
    ] = None,
    max_categories: Annotated[int, typer.Option(help="refuse text columns with more values")] = 1000,
    unseen: Annotated[str, typer.Option(help="test categories the pool has not: error or ignore")] = "error",
    separator: Annotated[str | None, typer.Option(help="what separates the cells of a CSV file")] = None,
    decimal: Annotated[str | None, typer.Option(help="the decimal mark of a CSV file")] = None,
    encoding: Annotated[str, typer.Option(help="the encoding of a CSV file")] = "utf-8",
    strategy: Annotated[
        str, typer.Option(help="which group next, name:key=value,… or factory:package.module.function")
    ] = "optimistic",
    learner: Annotated[
        str | None,
        typer.Option(help="logistic:C=1, a scikit-learn classifier's path, or factory:package.module.function"),
    ] = None,
    batch: Annotated[int, typer.Option(help="rows of each role a round takes")] = 1,
    warmup: Annotated[int | None, typer.Option(help="warm-up rounds, groups in turn")] = None,
    validation: Annotated[float, typer.Option(help="share of the rows that validates")] = 0.5,
    seed: Annotated[int, typer.Option(help="the same seed, the same rows")] = 0,
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
    if out.exists() and not (resume or force):
        raise InputError(f"{out} exists: --resume goes on from it, --force overwrites it")
    from evenhand.curation.curate import curate as run
    from evenhand.datasets import load
    from evenhand.learners.parsing import parse_learner

    settings: dict[str, Any] = {"validation": validation, "use_group_as_feature": use_group_as_feature}
    settings |= {} if scale is None else {"scale": scale}
    if pool in {"adult", "german"} and not Path(pool).exists():
        data: Any = load(pool, **settings)
        settings = {}
    else:
        data = Path(pool)
        settings |= {"features": feature, "ignore": ignore or (), "exclude": exclude or ()}
        settings |= {"missing": missing, "max_categories": max_categories, "unseen": unseen}
        settings |= {"separator": separator, "decimal": decimal, "encoding": encoding}
        settings |= {} if test is None else {"test": _test(test)}
    curated = run(
        data,
        label,
        group,
        budget,
        strategy=strategy,
        learner=None if learner is None else parse_learner(learner),
        batch=batch,
        warmup=warmup,
        seed=seed,
        compare=compare,
        min_test=min_test,
        jobs=jobs,
        progress=not as_json,
        resume=out if resume else None,
        **settings,
    )
    written = curated.save(out)
    if as_json:
        typer.echo(json.dumps({key: value for key, value in curated.summary.items() if key != "rounds"}))
    else:
        print_summary(curated.summary, written)
    if curated.interrupted:
        typer.echo("interrupted: what was chosen is kept, --resume goes on", err=True)
        raise typer.Exit(130)


def _test(text: str) -> float | str | None:
    """A share to hold out, the path of a test file, or nothing at all."""
    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        return text
