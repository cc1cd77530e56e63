"""`evenhand demo`: the main job on bundled data, explained step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from rich.console import Console


GROUPS = ("age:25,35,45,55", "sex")
BATCH = 5


def demo(
    out: Annotated[Path, typer.Option(help="folder for the rows, the model and the report")] = Path("evenhand-demo"),
    budget: Annotated[int, typer.Option(help="labels to spend")] = 800,
    trials: Annotated[int, typer.Option(help="trials to compare with Uniform and Uncurated on")] = 30,
) -> None:
    """Spend 800 labels on the Adult census data so that the worst-off of ten groups is served best."""
    import warnings

    from rich.console import Console

    from evenhand.cli.curated import print_comparison
    from evenhand.curation.curate import curate
    from evenhand.datasets import load

    console = Console(highlight=False, markup=False)
    console.print("Adult census data: does a person earn more than 50K a year?")
    console.print(f"Ten groups: five age bands, women and men. You may label {budget:,} people. Whom?\n")
    source = load("adult", groups=list(GROUPS), scale="standard")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        curated = curate(source, budget=budget, batch=BATCH, compare=trials, final="plain", progress=True)
    summary = curated.summary
    console.print("1. What was bought, and what the model is worth to each group", style="bold")
    _groups(console, summary)
    console.print("2. Why", style="bold")
    _reasons(console, summary)
    console.print("\n3. Is that better than equal shares, or than taking people as they come?", style="bold")
    console.print(
        "We spend the budget again by three rules: optimistic is Evenhand's, uniform buys equal numbers from every group, and "
        "uncurated takes people as they come."
    )
    print_comparison(console, summary)
    target = out / "train.parquet"
    curated.save(target)
    console.print("\n4. What next", style="bold")
    _next(console, target, budget)


def _groups(console: Console, summary: JsonObject) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from evenhand.curation import words

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("group, worst off first", overflow="fold")
    for head in ("share of\nthe rows", "labels\nbought", "right [95 %]", f"always\n{summary['majority']}"):
        table.add_column(Text(head), justify="right", no_wrap=True)
    for row in sorted(summary["by_group"], key=lambda row: -row["risk"]):
        table.add_row(
            Text(row["group"]),
            words.percent(row["pool"] / summary["pool"], 0),
            f"{row['train'] + row['validation']:,}",
            Text(f"{words.percent(row['accuracy'])} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"),
            words.percent(row["majority_accuracy"]),
        )
    console.print(table)
    console.print(
        "right: how often the model, trained on all labels, is right on test rows it has never seen. The intervals hold "
        f"for all groups at once. always {summary['majority']}: how often you would be right by always answering "
        f"{summary['majority']}.\n"
    )


def _reasons(console: Console, summary: JsonObject) -> None:
    """How many requests had which reason, and the scores behind the last of them."""
    kinds, terms = summary["rounds"]["kind"], summary["rounds"]["terms"]
    total, names = len(kinds), summary["groups"]
    counts = {kind: kinds.count(kind) for kind in ("warm-up", "forced", "score")}
    console.print(
        f"The budget was spent in {total} requests of {2 * BATCH} labels: {counts['warm-up']} to begin with every group, {counts['forced']} "
        f"for groups with too few labels to judge, and {counts['score']} for the group with the largest score. The score is the "
        "group's error on its validation labels plus an allowance that shrinks as more of its labels come in."
    )
    scored = [i for i, kind in enumerate(kinds) if kind == "score"]
    if not scored:
        return
    last = scored[-1]
    group = summary["rounds"]["group"][last]
    error, allowance = (terms[last][name] for name in ("loss", "confidence"))
    console.print(
        f"The last such request went to {names[group]}: error {error:.3f} + allowance {allowance:.3f} = {error + allowance:.3f}, "
        "the largest score of all."
    )


def _next(console: Console, target: Path, budget: int) -> None:
    report = target.with_suffix(".report.html")
    lines = (
        f"see the report in a browser:    {report}",
        "choose rows of your own table:  evenhand curate people.csv --label hired \\",
        "                                  --group sex --budget 500 --out train.csv",
        "is it worth it for my data?     evenhand plan --pilot people.csv \\",
        "                                  --label hired --group sex --budget 500",
        "ask people for labels:          evenhand campaign --help",
    )
    for line in lines:
        console.print(line, soft_wrap=True)
