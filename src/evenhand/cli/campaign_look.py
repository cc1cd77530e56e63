"""`evenhand campaign status`, `explain`, `export`, `list`, `verify`: looking, without changing anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli.campaign_shared import DEFAULT, AsJson, Database, Name, handled, opened, say

__all__ = ["certificate_text", "explain", "export", "list_all", "status", "verify"]


def status(name: Name, db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """Budget used, mixture, every group's accuracy, open requests."""
    with opened(db, name, as_json, read_only=True) as live:
        from evenhand.live.status import status as find

        found = find(live)
        say(found, as_json, lambda: _status_text(found))


def explain(
    name: Name,
    request: Annotated[int | None, typer.Argument(help="a request made; default: the one to come")] = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Say in plain words why this group is next."""
    with opened(db, name, as_json, read_only=True) as live:
        from evenhand.decision import Decision
        from evenhand.live.words import explain as in_words

        if request is None:
            decision = live.propose().decision
        else:
            asked = [e for e in live.ledger.about(live.number, request) if e.kind == "asked"]
            if not asked:
                raise ValueError(f"request {request} was never made")
            decision = Decision.from_dict(tuple(live.refresh().groups), asked[0].detail or {})
        words = in_words(decision)
        say({"request": request, "decision": decision.as_dict(), "words": words}, as_json, words)


def export(
    name: Name,
    file: Annotated[Path, typer.Argument(help=".csv, .parquet or .jsonl")],
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write the data set gathered so far, with groups and roles."""
    with opened(db, name, as_json, read_only=True) as live:
        from evenhand.live.export import export as write

        rows = write(live, file)
        say({"rows": rows, "file": str(file)}, as_json, f"{rows} rows in {file}")


def list_all(db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """List the campaigns there are."""
    with handled(as_json):
        from evenhand.ledger import Ledger
        from evenhand.live.status import overview

        with Ledger(db, read_only=True) as ledger:
            found = [overview(name, ledger.state(number)) for name, number in ledger.campaigns().items()]
        lines = [f"{c['name']}: {c['used']} of {c['budget']} labels{', closed' if c['closed'] else ''}" for c in found]
        say({"campaigns": found}, as_json, "\n".join(lines) or "no campaigns")


def verify(name: Name, db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """Replay the ledger, refit every score, choose every request again; exits with 1 if something differs."""
    with opened(db, name, as_json, read_only=True) as live:
        from evenhand.live.verify import verify as check

        found = check(live)
        done = (
            f"{found['events']} events replayed, {found['scores_refitted']} scores refitted, "
            f"{found['requests_chosen_again']} requests chosen again: "
        )
        say(found, as_json, done + ("all the same" if not found["problems"] else "\n".join(["", *found["problems"]])))
    if found["problems"]:
        raise typer.Exit(1)


def certificate_text(found: dict[str, Any]) -> str:
    """What is certain about the frozen model, in words."""
    n = sum(group["n"] for group in found["groups"].values())
    return (
        f"certificate, version {found['version']} (frozen at {found['frozen_at_labels']} labels): no group's error is above "
        f"{found['worst_at_most']:.3f}, the worst is one of {', '.join(found['worst_groups'])} "
        f"(each {found['confidence']:.0%}, {n} validation labels since)"
    )


def _status_text(found: dict[str, Any]) -> str:
    from io import StringIO

    from rich.console import Console
    from rich.table import Table

    table = Table("group", "share", "training", "validation", "pending", "accuracy", "n", box=None)
    table.add_column("running error (n)")
    for group, g in found["groups"].items():
        right = "" if g["accuracy"] is None else f"{g['accuracy']:.3f}"
        past = found["running"]["groups"][group]
        name = group if g["available"] else f"{group} (retired)"
        table.add_row(
            name,
            f"{g['share']:.0%}",
            *(str(g[key]) for key in ("training", "validation", "pending")),
            right,
            str(g["n"]),
            f"{past['low']:.2f}–{past['high']:.2f} ({past['n']})",
        )
    out = StringIO()
    console = Console(file=out, width=110, highlight=False)
    state = f", closed ({found['closed']})" if found["closed"] else ""
    console.print(
        f"{found['name']}: {found['used']} of {found['budget']} labels used, {found['promised']} promised, "
        f"{found['unspent']} unspent{state}"
    )
    console.print(table)
    age, behind = found["scores"]["age_seconds"], found["scores"]["labels_behind"]
    console.print("no scores yet" if age is None else f"scores are {age:.0f} s old and {behind} labels behind")
    console.print("accuracy steers the choice: an indication, no claim")
    console.print(f"running error: average of the models so far, {found['running']['confidence']:.0%}, at every look")
    if found["certificate"]:
        console.print(certificate_text(found["certificate"]))
    for r in found["open"]:
        late = ", overdue" if r["overdue"] else ""
        console.print(
            f"request {r['request']}: {r['size']} labels of {r['group']}, {r['collector'] or 'nobody named'}, until {r['until']}{late}"
        )
    for r in found["expired"]:
        console.print(f"request {r['request']}: {r['size']} labels of {r['group']}, expired at {r['until']}")
    if found["nothing_to_ask"]:
        why = f" ({found['stopped']})" if found["nothing_to_ask"] == "stopping rule" else ""
        console.print(f"nothing to ask: {found['nothing_to_ask']}{why}")
    return out.getvalue().rstrip()
