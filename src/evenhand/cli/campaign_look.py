"""`evenhand campaign status`, `explain`, `events`, `export`, `list`, `verify`: looking, without changing anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.campaign.events import ANSWERS, REQUESTS
from evenhand.cli.campaign_shared import DEFAULT, AsJson, Database, Name, handled, opened, say
from evenhand.cli.terminal import ago, aligned, at, columns, counted
from evenhand.notation import JsonObject


def status(name: Name, db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """Show the budget used, the mixture, every group's accuracy, open requests and collectors."""
    with opened(db, name, as_json, read_only=True) as campaign:
        found = campaign.status()
        say(found, as_json, lambda: _status_text(found))


def explain(
    name: Name,
    request: Annotated[
        int | None, typer.Argument(help="the number of an earlier request; by default the next one")
    ] = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Say in plain words why this group is next."""
    with opened(db, name, as_json, read_only=True) as campaign:
        found = campaign.explain(request)
        say(found, as_json, found["words"])


def events(
    name: Name,
    after: Annotated[int, typer.Option(help="only events after this number")] = 0,
    limit: Annotated[int | None, typer.Option(help="how many events at most")] = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """List what happened: when, what, about which request, by whom."""
    with opened(db, name, as_json, read_only=True) as campaign:
        found = campaign.events(after, limit)
        say({"events": found}, as_json, lambda: "\n".join(map(_event_line, found)) or "nothing happened since")


def export(
    name: Name,
    file: Annotated[Path, typer.Argument(help=".csv, .parquet or .jsonl")],
    force: Annotated[bool, typer.Option("--force", help="replace the file if it is there")] = False,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write the data set gathered so far, with ids, groups, roles and labels."""
    with opened(db, name, as_json, read_only=True) as campaign:
        rows = campaign.export(file, force=force)
        say({"rows": rows, "file": str(file)}, as_json, f"{rows} rows in {file}")


def certificate(name: Name, db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """Say what is certain about the frozen model by now."""
    with opened(db, name, as_json, read_only=True) as campaign:
        status = campaign.status()
        found, proof = status["certificate"], status["proof"]
        if found is None:
            say(found, as_json, "no model is frozen: evenhand campaign certify NAME freezes one")
            return
        lines = [certificate_text(found)] + ([] if proof is None else [proof_text(proof)])
        say(found, as_json, "\n".join(lines))


def list_all(db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """List all campaigns in the database."""
    with handled(as_json):
        from evenhand.campaign import Campaign
        from evenhand.ledger import open_ledger

        with open_ledger(db, read_only=True) as ledger:
            found = [Campaign.open(ledger, name).overview() for name in ledger.campaigns()]
        lines = [f"{c['name']}: {c['used']} of {c['budget']} labels{', closed' if c['closed'] else ''}" for c in found]
        say({"campaigns": found}, as_json, "\n".join(lines) or "no campaigns")


def verify(name: Name, db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """Replay the ledger, check every row, choose every request again; exits with 1 if one differs."""
    with opened(db, name, as_json, read_only=True) as campaign:
        found = campaign.verify()
        done = (
            f"{counted(found.events, 'event')} replayed, {counted(found.examples, 'row')} checked, "
            f"{counted(found.requests_chosen_again, 'request')} chosen again: "
        )
        done += f"({len(found.erased)} rows were erased on purpose) " if found.erased else ""
        say(found.as_dict(), as_json, done + ("all the same" if found.ok else "\n".join(["", *found.problems])))
    if not found.ok:
        raise typer.Exit(1)


def certificate_text(found: JsonObject) -> str:
    """What is certain about the frozen model, in words."""
    from evenhand.claims import checks

    groups = found["groups"].values()
    n, corrected, missing = (sum(group[key] for group in groups) for key in ("n", "corrected", "missing"))
    head = f"certificate, version {found['version']} (frozen at {found['frozen_at_labels']} labels): "
    if not n:
        return f"{head}nothing is certain yet. Ask and tell as before: every label that answers a request from now on is evidence."
    notes = [f"{counted(n, 'label')} since"]
    notes += [f"{corrected} corrected or taken back"] if corrected else []
    notes += [f"{missing} missing, counted as errors"] if missing else []
    waiting = sum(group["open"] for group in groups)
    notes += [f"{waiting} still open"] if waiting else []
    notes += ["on your word that all rows told without an id differ"] if found["distinct"] else []
    notes += [f"{found['equal']} rows equal an earlier one"] if found["equal"] else []
    said = (
        f"no group's {found['risk']} is above {found['worst_at_most']:.3f}, with {checks.confidence(1 - found['confidence'])}"
        if found["worst_at_most"] < 1
        else f"nothing is certain yet about {', '.join(g for g, f in found['groups'].items() if f['high'] >= 1)}"
    )
    rows = [("group", f"{found['risk']} between", "labels")]
    rows += [(group, f"{g['low']:.3f} and {g['high']:.3f}", f"{g['n']:,}") for group, g in found["groups"].items()]
    wide = columns()
    table = [f"  {line}" for line in aligned(rows, None if wide is None else wide - 2)]
    both = f"  (for all groups at once, with {checks.confidence(1 - found['confidence'])}; the worst is one of {', '.join(found['worst_groups'])})"
    return "\n".join([f"{head}{said} ({', '.join(notes)})", *table, both])


def proof_text(found: JsonObject) -> str:
    """How a proof stands, or how it ended, in words."""
    if not found["running"]:
        return f"the proof of {found['target']:g} ended after {found['labels']:,} labels: {found['outcome']}, {found['why']}"
    needs = ", ".join(
        f"{group} {'too near the target or above it' if labels is None else f'{labels:,}'}"
        for group, labels in found["expected"].items()
        if labels != 0
    )
    known = [labels for labels in found["expected"].values() if labels is not None]
    total = f"about {sum(known):,} in all" if len(known) == len(found["expected"]) else "more than may be spent"
    return (
        f"proving {found['target']:g}: {found['labels']:,} labels so far, the bound stands at {found['worst_at_most']:.3f}; "
        f"further labels expected: {f'{needs}, {total}' if needs else 'none'}, a rough guess from the errors so far "
        f"(at most {found['allowed']:,} may be spent). Ask and tell as before"
    )


def _event_line(event: JsonObject) -> str:
    about = [f"request {event['request']}"] if event["request"] is not None else []
    about += [f"by {event['actor']}"] if event["actor"] else []
    facts = event["facts"]
    if event["kind"] in REQUESTS:
        about.append(f"{facts['size']} labels of {facts['decision']['group']} ({facts['decision']['kind']})")
    elif event["kind"] in (*ANSWERS, "added"):
        about.append(f"{facts['rows']} rows")
    elif facts.get("reason"):
        about.append(str(facts["reason"]))
    return f"{event['seq']:>6}  {at(event['at'], 'seconds')}  {event['kind']:<10} {', '.join(about)}".rstrip()


def _group_rows(found: JsonObject) -> list[tuple[str, ...]]:
    """The table of groups; the risk has a column of its own where it is not the error."""
    from evenhand.risks import title_of

    counts = {"training": "train", "validation": "validate", "pending": "open"}
    # short headings: the lines below the table explain them
    title = title_of(found["risk"])
    risk = () if found["risk"] == "error" else (f"{title if len(title) < 12 else found['risk']} (n)",)
    rows = [("group", "share", *counts.values(), "accuracy", "n", *risk, "error so far (n)")]
    for group, g in found["groups"].items():
        right = "" if g["accuracy"] is None else f"{g['accuracy']:.3f}"
        loss = "" if g["mean_loss"] is None else f"{g['mean_loss']:.3f} ({g['relevant']})"
        past = found["running"]["groups"][group]
        name = f"{group} (retired)" if g["retired"] else group if g["available"] else f"{group} (used up)"
        average = f"{past['low']:.2f}–{past['high']:.2f} ({past['n']})" if past["n"] else ""
        shown = (str(g[key]) for key in counts)
        rows.append((name, f"{g['share']:.0%}", *shown, right, str(g["n"]), *((loss,) if risk else ()), average))
    return rows


def _status_text(found: JsonObject) -> str:
    from evenhand.risks import title_of

    rows = _group_rows(found)
    lines: list[str] = []
    line = lines.append
    state = f", closed ({found['closed']})" if found["closed"] else ""
    line(
        f"{found['name']}: {found['used']} of {found['budget']} labels used, {found['promised']} promised, "
        f"{found['unspent']} unspent{state}"
    )
    lines += aligned(rows, columns())
    for group, g in found["groups"].items():
        if g["classes"]:
            line(f"{group}: " + ", ".join(f"{count} × {label}" for label, count in g["classes"].items()))
    if found["pool"]:
        for group, g in found["groups"].items():
            lasts = g["lasts_labels"]
            # of interest only where the pool ends before the budget does
            short = lasts is not None and 0 < lasts < found["unspent"]
            lasts = f", used up after about {lasts:,} more labels of all groups at this mixture" if short else ""
            line(
                f"pool of {group}: {g['left']:,} left{lasts}{' — used up' if group in found['pool']['used_up'] else ''}"
            )
    age, behind = found["scores"]["age_seconds"], found["scores"]["labels_behind"]
    behind = f", and {counted(behind, 'label')} came since: the next ask fits them" if behind else ""
    line("no model has been fitted yet" if age is None else f"the model was fitted {ago(age)}{behind}")
    if found["learner_failed"]:
        line(f"since {at(found['learner_failed']['at'])}: {found['learner_failed']['message']}")
        line("asks continue with the existing scores; change the learner, or correct the rows it fails on")
    steers = "accuracy" if found["risk"] == "error" else f"the {title_of(found['risk'])} on validation examples"
    line(f"{steers} steers the choice: an indication, no claim")
    running = found["running"]
    line(
        f"error so far: the {title_of(running['risk'])} on new labels, averaged over the models of the time; it lies between these "
        f"numbers with {round(100 * running['confidence'], 6):g} % confidence, however often you look"
    )
    if found["certificate"]:
        line(certificate_text(found["certificate"]))
    if found["proof"]:
        line(proof_text(found["proof"]))
    for warning in found["warnings"]:
        line(f"note: {warning}")
    for tool, d in found["disagreements"].items():
        rest = ", …" if len(d["ids"]) < d["count"] else ""
        line(f"{tool}: {d['count']} without a label because people disagree: {', '.join(d['ids'])}{rest}")
    for who, totals in found["collectors"].items():
        line(
            f"{who}: {counted(totals['requests'], 'request')}, {counted(totals['labels'], 'label')}, last at {at(totals['last'])}"
        )
    for r in found["open"]:
        until = f"until {at(r['until'])}" if r["until"] else "without a deadline"
        line(
            f"request {r['request']}: {r['outstanding']} of {r['size']} labels of {r['group']} outstanding, "
            f"{r['collector'] or 'nobody named'}, {until}"
        )
    for r in found["expired"]:
        line(
            f"request {r['request']}: {r['outstanding']} of {r['size']} labels of {r['group']}, expired at {at(r['until'])}"
        )
    if found["nothing_to_ask"]:
        why = f" ({found['stopped']})" if found["nothing_to_ask"] == "stopping rule" else ""
        line(f"nothing to ask: {found['nothing_to_ask']}{why}")
    return "\n".join(lines)
