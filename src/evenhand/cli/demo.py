"""`evenhand demo`: the main job on data that comes along."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="folder for the rows, the report and the pictures")] = Path("evenhand-demo"),
    budget: Annotated[int, typer.Option(help="labels to spend")] = 1000,
    trials: Annotated[int, typer.Option(help="trials to compare with Uniform and Uncurated on")] = 5,
) -> None:
    """Spend 1,000 labels on the Adult census data so that the worst-off of four groups is served best."""
    import warnings

    from evenhand.cli.curated import print_summary
    from evenhand.curation.curate import curate
    from evenhand.datasets import load

    typer.echo(
        "Adult census data, income above 50K: white and non-white, men and women.\n"
        f"You may label {budget:,} people. Whom?\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        curated = curate(load("adult"), budget=budget, compare=trials, progress=True)
    target = out / "train.parquet"
    print_summary(curated.summary, curated.save(target))
    typer.echo(f"\nOpen {target.with_suffix('.report.html')} in a browser: who was asked for, when and why.")
