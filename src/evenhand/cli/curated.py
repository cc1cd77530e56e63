"""A curated set on the terminal: the report's title, table, comparison and advice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.curation.labelling import Labelling

__all__ = ["print_comparison", "print_labelling", "print_summary"]

WIDE = 100
"""The width of a terminal that has room for every figure."""


def print_summary(summary: JsonObject, written: Sequence[Path]) -> None:
    """The same figures and sentences as the page, in the same order."""
    from rich.console import Console

    from evenhand.curation import words

    # groups have the names that users gave them: [bold] may be one
    console = Console(highlight=False, markup=False)
    rows = sorted(summary["by_group"], key=lambda row: -1.0 if row["risk"] is None else -row["risk"])
    console.print(summary["title"], style="bold")
    console.print(
        f"{summary['train']:,} to train on, {summary['validation']:,} that validated, {summary['test']:,} to test on"
    )
    if enough := [row for row in rows if not row["few"]]:
        console.print("Accuracy on test rows with 95 % intervals that hold for all groups at once:")
        _groups(console, summary, enough)
    few = [row for row in rows if row["few"]]
    if few:
        console.print(f"Groups with fewer than {summary['min_test']:,} test rows, too few to say who is worst off:")
        _groups(console, summary, few)
    if summary["worst_off"]:
        low, high = (words.value(summary["risk"], summary["worst_off"][end]) for end in ("low", "high"))
        console.print(f"{summary['risk_title'].capitalize()} of the worst-off, whoever it is: {low} to {high}")
    _choice(console, summary)
    print_comparison(console, summary)
    for name, at in summary["used_up"].items():
        console.print(f"{name} ran out after round {at:,}; the others went on")
    for head, sentences in (("Next:", summary["next"]), ("Good to know:", summary["notes"])):
        if sentences:
            console.print(head)
        for sentence in sentences:
            console.print(f"- {sentence}")
    console.print(f"written: {', '.join(map(str, written))}", soft_wrap=True)


def print_labelling(labelling: Labelling, out: Path, as_json: bool) -> None:
    """Write what is known so far and the rows to label next, and say what to do with them."""
    from evenhand.curation.labelling import todo_path

    todo = todo_path(out)
    # before anything else is written: it refuses to replace labels that were not given yet
    count = labelling.write_todo(todo)
    written = labelling.save(out) if labelling.begun else []
    used, budget = labelling.campaign.labels_used, labelling.campaign.budget
    if as_json:
        found = {key: value for key, value in labelling.summary.items() if key != "rounds"} if labelling.begun else {}
        typer.echo(json.dumps({**found, "todo": str(todo), "to_label": count, "used": used, "done": labelling.done}))
        return
    if labelling.begun:
        print_summary(labelling.summary, written)
    else:
        for note in labelling.notes:
            typer.echo(note)
    typer.echo(f"{used:,} of {budget:,} labels")
    if count:
        typer.echo(
            f"{todo}: {count:,} rows to label; fill in the first column, then the same command with --labels {todo}"
        )
    else:
        typer.echo("done: every label that the budget buys is there")


def _groups(console: Console, summary: JsonObject, rows: Sequence[JsonObject]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from evenhand.curation import words

    own = () if summary["risk"] == "error" else ("risk",)
    rates = [key for key in ("false_negative_rate", "false_positive_rate") if any(key in row for row in rows)]
    if own and console.width < WIDE:
        rates = []  # in the report; here the names need the room
    heads = {"risk": summary["risk_title"], "false_negative_rate": "FN", "false_positive_rate": "FP"}
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("group", overflow="fold", min_width=12)
    for name in ("right [95 %]", "n", "always\nmajority", *(heads[key] for key in (*own, *rates)), "train"):
        # a long heading is broken into several lines: a number may not be cut, and the name needs the room
        table.add_column(name if "[" in name else name.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in rows:
        ends = "" if row["low"] is None else f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
        cells = [
            f"{words.percent(row['accuracy'])}{ends}",
            f"{row['count']:,}",
            words.percent(row["majority_accuracy"]),
        ]
        cells += [words.value(summary["risk"], row["risk"])] if own else []
        cells += [words.percent(row[key]) for key in rates]
        table.add_row(*map(Text, [row["group"], *cells, f"{row['train']:,}"]))
    console.print(table)


def _choice(console: Console, summary: JsonObject) -> None:
    """Which model was chosen and why, with the plain one and the best candidates beside it."""
    from evenhand.curation import words

    choice, risk = summary["choice"], summary["risk"]
    if choice is None:
        return
    console.print(f"Model: {choice['sentence']}")
    plain, *others = choice["candidates"] or [None]
    if plain is None:
        return
    console.print(
        f"{summary['risk_title'].capitalize()} of the worst-off on rows not fitted on (how much lower than plain):"
    )
    best = words.best_candidates(choice["candidates"])
    for c in (plain, *best):
        gain = "" if c is plain else f" ({words.gain(risk, c['gain'])} ± {words.spread(risk, c['gain_se'])})"
        mark = " (chosen)" if c["chosen"] else ""
        console.print(f"- {c['name']}{mark}: {words.value(risk, c['risk'])} ± {words.spread(risk, c['se'])}{gain}")
    if len(others) > len(best):
        console.print(f"  (and {len(others) - len(best)} more candidates, in the report)")


def print_comparison(console: Console, summary: JsonObject) -> None:
    """How the rule compares with the others on the same trials."""
    from evenhand.curation import words

    found, risk = summary["comparison"], summary["risk"]
    if len(found["rules"]) < 2 or not found["trials"]:
        return
    what = summary["risk_title"].capitalize()
    console.print(
        f"{what} of the worst-off group with the model you would deploy, trained on all labels (mean ± standard deviation over the "
        f"same {found['trials']} trials):"
    )
    for rule in found["rules"]:
        worst = found["worst"][rule]
        console.print(f"- {rule}: {words.value(risk, worst['mean'])} ± {words.spread(risk, worst['sd'])}")
    several = len(found["differences"]) > 1
    console.print(
        f"Compared trial by trial (95 % intervals{', which hold for all of them at once' if several else ''}):"
    )
    for d in found["differences"]:
        console.print(f"- {words.compared(risk, d)}")
