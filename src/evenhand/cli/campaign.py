"""`evenhand campaign`: live campaigns from the shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.campaign_shared import (
    DEFAULT,
    AsJson,
    Collector,
    Database,
    Name,
    RequestNumber,
    User,
    handled,
    opened,
    say,
    user_name,
)
from evenhand.cli.lazy import lazy_app
from evenhand.cli.terminal import at, counted
from evenhand.errors import InputError
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.campaign.requests import Request

__all__ = ["app"]

_MOST = 1000

_COMMANDS = {
    "create": "campaign:create",
    "pool": "campaign_pool:pool",
    "ask": "campaign:ask",
    "tell": "campaign_rows:tell",
    "correct": "campaign_corrections:correct",
    "withdraw": "campaign_corrections:withdraw",
    "erase": "campaign_corrections:erase",
    "skip": "campaign_pool:skip",
    "add": "campaign_rows:add",
    "abandon": "campaign:abandon",
    "extend": "campaign:extend",
    "retire": "campaign:retire",
    "losses": "campaign:losses",
    "status": "campaign_look:status",
    "explain": "campaign_look:explain",
    "events": "campaign_look:events",
    "certify": "campaign:certify",
    "certificate": "campaign_look:certificate",
    "model": "campaign_model:model",
    "change": "campaign:change",
    "refit": "campaign:refit",
    "verify": "campaign_look:verify",
    "export": "campaign_look:export",
    "report": "campaign_report:report",
    "backup": "campaign_files:backup",
    "restore": "campaign_files:restore",
    "list": "campaign_look:list_all",
    "close": "campaign:close",
}
_WHY = {
    "warm-up": "warm-up: every group gets its first labels",
    "forced": "forced: the group has too few labels to judge it",
    "score": "score: perhaps the worst-off group",
    "explore": "explore: drawn at random",
    "population": "population: drawn by its share",
    "fewest": "fewest: the group with the fewest labels",
    "certify": "certify: the proof lacks most here",
    "test": "test: never trained on",
}
app = lazy_app(
    "campaign",
    "Run a labelling campaign that lasts: ask which group to label next, tell the labels that came.",
    _COMMANDS,
)

Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit", help="what one person may hold through a server: labels=1000, lease=30d, streams=50; repeat"
    ),
]


def create(
    name: Name,
    budget: Annotated[int, typer.Option(help="labels to spend, training and validation together")],
    groups: Annotated[
        list[str] | None, typer.Option("--group", help="a group; give it once for each, or leave it to the pool")
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(help="how the next group is chosen, e.g. optimistic:c0=0.1, or factory:package.module.function"),
    ] = "optimistic",
    learner: Annotated[
        str,
        typer.Option(
            help="table (columns as they are), logistic:C=1 (numbers only), a scikit-learn class by path, factory:package.module.function, or none"
        ),
    ] = "logistic",
    batch: Annotated[int, typer.Option(help="examples of a request to train on, and the same number to validate")] = 1,
    warmup: Annotated[
        int | None,
        typer.Option(help="requests at the start that go to the groups in turn; by default one for each group"),
    ] = None,
    validation: Annotated[
        float, typer.Option(help="share of the labels that is not trained on, to see how good the model is")
    ] = 0.5,
    classes: Annotated[
        list[str] | None, typer.Option("--class", help="a possible label; repeat; others are then refused")
    ] = None,
    population: Annotated[
        list[str] | None, typer.Option(help="a group's share of the population, GROUP=SHARE; repeat")
    ] = None,
    risk: Annotated[
        str, typer.Option(help='what "worse off" means: error, log, fnr, fpr, balanced, costs:0,1;5,0 or factory:…')
    ] = "error",
    positive: Annotated[str | None, typer.Option(help="the positive class, which fnr and fpr are about")] = None,
    test_labels: Annotated[int, typer.Option(help="labels for testing, asked for first, never trained on")] = 0,
    seed: Annotated[
        int | None, typer.Option(help="the same seed gives the same choices of groups; drawn if not given")
    ] = None,
    refit: Annotated[str, typer.Option(help="always, a number of labels, or background")] = "always",
    lease: Annotated[str, typer.Option(help="how long a request waits: 90m, 24h, 7d, never")] = "1d",
    stop: Annotated[
        list[str] | None,
        typer.Option(help="target=0.1, labels=2000, until=2027-03-01, no-improvement=50; repeat: any of them stops"),
    ] = None,
    label: Annotated[str, typer.Option("--label", help="the label's column in delivered files")] = "label",
    group_column: Annotated[str, typer.Option(help="the group's column in delivered files")] = "group",
    id_column: Annotated[str, typer.Option(help="the id's column in delivered files")] = "id",
    features: Annotated[
        list[str] | None, typer.Option("--feature", help="a column to learn from; repeat; by default all others")
    ] = None,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="you vouch that rows without ids are all different")
    ] = False,
    limits: Limits = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Make a new campaign, and the database if it does not exist."""
    with handled(as_json):
        from evenhand.campaign import Campaign
        from evenhand.campaign.labels import written_classes

        with Campaign.create(
            db, name, groups, strategy, None if learner == "none" else learner,
            budget=budget, batch=batch, warmup=warmup, validation=validation, seed=seed, refit=refit, lease=lease,
            stop=stop, classes=written_classes(classes) if classes else None, limits=_limits(limits), distinct=distinct,
            population=_shares(population), risk=risk, test_labels=test_labels,
            positive=positive, label=label, group=group_column, id=id_column, features=features,
        ) as made:  # fmt: skip
            found = made.status()
    named = f"{len(groups)} groups" if groups else "groups from the pool"
    say(found, as_json, f"campaign {name!r}: {named}, {budget} labels, {found['strategy']}")


def ask(
    name: Name,
    count: Annotated[int, typer.Option(help=f"how many requests at once, at most {_MOST:,}")] = 1,
    everything: Annotated[bool, typer.Option("--all", help="as many requests as the budget allows")] = False,
    out: Annotated[
        Path | None, typer.Option(help="with a pool: a new CSV or Parquet file for the rows to label, the label first")
    ] = None,
    show: Annotated[
        list[str] | None, typer.Option("--show", help="with --out: only these columns beside id and label; repeat")
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="ask for nothing new: show the open requests, or those of --collector, once more"),
    ] = False,
    collector: Collector = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Ask which group to label next; the exit code is 3 when there is nothing to ask."""
    with opened(db, name, as_json) as campaign:
        # a slip such as --count 10000 would promise the whole budget away at once
        if count > _MOST and not everything:
            raise InputError(f"--count {count} is more than {_MOST:,}: give --all for as many as the budget allows")
        if show and out is None:
            raise InputError("--show has no effect: it is for the file that --out names")
        if out is not None:
            from evenhand.cli.campaign_pool import check_todo, write_todo

            # before anything is asked: a request whose rows
            # cannot be written would be lost until its lease ends
            check_todo(campaign, out, show)
        if again:
            if everything or count != 1:
                raise InputError("--again asks for nothing new: leave out --count and --all")
            found = [one for one in campaign.open_requests if collector in (None, one.collector)]
            if not found:
                raise InputError(f"no request{f' of {collector}' if collector else ''} is open")
        else:
            found = campaign.ask_many(max(campaign.budget // 2, 1) if everything else count, collector)
        if out is not None:
            write_todo(campaign, found, out, show)
        say({"requests": [r.as_dict() for r in found]}, as_json, lambda: "\n".join(_request_lines(name, found, out)))


def abandon(
    name: Name, request: RequestNumber, by: User = None, db: Database = DEFAULT, as_json: AsJson = False
) -> None:
    """Give up a request: what is outstanding goes back to the budget, what was told stays."""
    with opened(db, name, as_json) as campaign:
        campaign.abandon(request, by=user_name(by))
        unspent = campaign.unspent
        say({"request": request, "unspent": unspent}, as_json, f"request {request} abandoned, {unspent} labels unspent")


def extend(
    name: Name,
    request: RequestNumber,
    lease: Annotated[str, typer.Argument(help="how long from now: 90m, 24h, 7d, never")],
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Let a request wait longer for its labels."""
    with opened(db, name, as_json) as campaign:
        from evenhand.campaign.requests import as_time

        until = as_time(campaign.extend(request, lease, by=user_name(by)))
        say({"request": request, "until": until}, as_json, f"request {request} waits until {until or 'it is answered'}")


def retire(
    name: Name,
    group: Annotated[str, typer.Argument(help="the group")],
    back: Annotated[bool, typer.Option("--back", help="ask for the group again")] = False,
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Stop asking for a group that has nothing left to give."""
    with opened(db, name, as_json) as campaign:
        campaign.retire(group, back, by=user_name(by))
        say({"group": group, "retired": not back}, as_json, f"{group} is {'asked for again' if back else 'retired'}")


def losses(
    name: Name,
    reports: Annotated[list[str] | None, typer.Argument(help="GROUP=LOSS,ACCURACY,EXAMPLES")] = None,
    file: Annotated[Path | None, typer.Option(help="JSON: {group: [loss, accuracy, examples]}")] = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Report the validation losses of your own trainer, group by group."""
    with opened(db, name, as_json) as campaign:
        found = _losses(reports or [], file)
        campaign.tell_losses(found, by=user_name(None))
        say({"reported": sorted(found)}, as_json, f"losses of {len(found)} groups reported")


def refit(name: Name, db: Database = DEFAULT, as_json: AsJson = False) -> None:
    """Fit and score now, where the campaign refits in the background."""
    with opened(db, name, as_json) as campaign:
        done = campaign.refit()
        say(
            {"refitted": done},
            as_json,
            "refitted" if done else "nothing to do, or another process is already refitting",
        )


def change(
    name: Name,
    budget: Annotated[int | None, typer.Option(help="labels to spend in all, including those spent so far")] = None,
    learner: Annotated[
        str | None, typer.Option(help="another learner, from the next refit on; none: you train yourself")
    ] = None,
    refit: Annotated[str | None, typer.Option(help="always, a number of labels, or background")] = None,
    lease: Annotated[str | None, typer.Option(help="how long requests from now on wait: 90m, 24h, 7d, never")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="other stopping rules instead; none removes them")] = None,
    limits: Limits = None,
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Change the budget, learner, refits, leases, stopping rules or limits."""
    with opened(db, name, as_json) as campaign:
        settings: dict[str, Any] = {"budget": budget, "refit": refit, "lease": lease, "learner": learner}
        settings["limits"] = _limits(limits)
        settings = {key: value for key, value in settings.items() if value is not None}
        if learner == "none":
            settings["learner"] = None
        if stop:
            settings["stop"] = None if stop == ["none"] else stop
        if not settings:
            raise InputError("nothing to change: give --budget, --learner, --refit, --lease, --stop or --limit")
        campaign.change(by=user_name(by), **settings)
        found = {key: campaign.settings[key] for key in ("budget", "learner", "refit", "lease", "stop", "limits")}
        limited = ", ".join(f"{key}={'never' if value is None else value}" for key, value in found["limits"].items())
        words = [f"limits are now {limited}" if key == "limits" else f"{key} is now {found[key]}" for key in settings]
        say(found, as_json, ", ".join(words))


def certify(
    name: Name,
    target: Annotated[
        float | None,
        typer.Option(help="prove that no group's risk is above this; requests go where the proof needs labels most"),
    ] = None,
    most: Annotated[
        int | None, typer.Option(help="how many labels the proof may take; by default all that are left")
    ] = None,
    model: Annotated[
        str, typer.Option(help="final: fitted on every label; current: on the training examples")
    ] = "final",
    delta: Annotated[
        float | None,
        typer.Option(help="the probability with which the certificate may be wrong; that of the frozen model, or 0.05"),
    ] = None,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="you vouch that every row told without an id is a different example")
    ] = False,
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Freeze a model: labels that answer requests from now on are evidence about it; see `certificate`."""
    with opened(db, name, as_json) as campaign:
        campaign.certify(target, model=model, most=most, delta=delta, distinct=distinct or None, by=user_name(by))
        from evenhand.cli.campaign_look import certificate_text, proof_text

        status = campaign.status()
        found = status["certificate"]
        lines = [certificate_text(found)]
        lines += [] if status["proof"] is None else [proof_text(status["proof"])]
        say(found | {"proof": status["proof"]}, as_json, "\n".join(lines))


def close(
    name: Name,
    reason: Annotated[str, typer.Option(help="why")] = "closed",
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """End a campaign: nothing is asked or accepted any more; it can still be looked at and exported."""
    with opened(db, name, as_json) as campaign:
        campaign.close(reason, by=user_name(by))
        say({"name": name, "closed": reason}, as_json, f"campaign {name!r} is closed")


def _request_line(request: Request) -> str:
    late = f"; {counted(request.behind, 'label')} came after the last fit" if request.behind else ""
    until = "" if request.until is None else f", until {at(request.as_dict()['until'])}"
    wanted = counted(request.outstanding, "label")
    return f"request {request.id}: {wanted} of {request.group}{until} ({_WHY[request.decision.kind]}{late})"


def _request_lines(name: str, requests: Sequence[Request], out: Path | None) -> Iterator[str]:
    """Each request, and where its rows are: in the file, or named here."""
    for request in requests:
        yield _request_line(request)
        if out is None and request.examples:
            yield f"  label {', '.join(request.examples)}"
    if out is None and any(request.examples for request in requests):
        yield f"the rows as a file to fill in: evenhand campaign ask {shlex.quote(name)} --again --out todo.csv"


def _shares(given: list[str] | None) -> dict[str, float] | None:
    if not given:
        return None
    found = {}
    for text in given:
        group, mark, share = text.rpartition("=")
        try:
            found[group] = float(share)
        except ValueError:
            mark = ""
        if not mark:
            raise InputError(f"cannot read the share {text!r}: write GROUP=SHARE")
    return found


def _limits(given: list[str] | None) -> JsonObject | None:
    found: JsonObject = {}
    for text in given or ():
        name, mark, value = (part.strip() for part in text.partition("="))
        if not mark:
            raise InputError(f"cannot read the limit {text!r}: write e.g. labels=500, lease=7d or streams=20")
        found[name] = int(value) if value.isdecimal() else value
    return found or None


def _losses(reports: list[str], file: Path | None) -> JsonObject:
    import json

    try:
        found: JsonObject = {} if file is None else json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{file} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{file} must hold an object {{group: [loss, accuracy, examples]}}")
    for text in reports:
        group, mark, values = text.rpartition("=")
        if not mark:
            raise InputError(f"cannot read {text!r}: write GROUP=LOSS,ACCURACY,EXAMPLES")
        found[group] = values.split(",")
    if not isinstance(found, dict) or not found:
        raise InputError("no losses given: write GROUP=LOSS,ACCURACY,EXAMPLES, or --file with JSON")
    return found
