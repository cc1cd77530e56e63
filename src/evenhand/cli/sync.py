"""`evenhand sync`: keeps a campaign and a labelling tool in step."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli.campaign_shared import DEFAULT, AsJson, Database, handled, opened
from evenhand.cli.lazy import lazy_app

if TYPE_CHECKING:
    from evenhand.connectors.report import Report


_KEY = "LABEL_STUDIO_API_KEY"
app = lazy_app(
    "sync",
    "Keep a campaign and a labelling tool in step.",
    {"label-studio": "sync:label_studio"},
)


def label_studio(
    url: Annotated[str, typer.Option(help="where Label Studio is, e.g. http://localhost:8080")],
    project: Annotated[int, typer.Option(help="the project's number")],
    campaign: Annotated[str, typer.Option(help="the campaign")],
    key_file: Annotated[
        Path | None, typer.Option(help=f"a file with the access token; by default the variable {_KEY}")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="the control whose answers are the labels; by default the only one")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="a field of the tasks' data that tells the group; repeat; age:30,60 has bins"),
    ] = None,
    id: Annotated[str | None, typer.Option(help="the field that is the example's id; by default the task's")] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="a field to learn from; repeat; all others by default")
    ] = None,
    rule: Annotated[
        str, typer.Option(help="which label counts if a task has several annotations: first, last, majority, agree")
    ] = "last",
    ahead: Annotated[int, typer.Option(help="requests open at once", min=1)] = 2,
    extra: Annotated[bool, typer.Option("--extra", help="also take answers that nobody asked for")] = False,
    once: Annotated[bool, typer.Option("--once", help="one pass, then stop")] = False,
    every: Annotated[str | None, typer.Option(help="how long to wait between passes, e.g. 5m; 30s by default")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what one pass would do")] = False,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Keep a campaign and a Label Studio project in step: its tasks are the pool, its annotations the labels."""
    with handled(as_json):
        from evenhand.connectors.label_studio import LabelStudio
        from evenhand.connectors.running import run
        from evenhand.connectors.sync import Sync

        seconds = _seconds(every, once or dry_run)
        tool = LabelStudio(url, project, key=_read_key(key_file), label=label)
    with closing(tool), opened(db, campaign, as_json) as found:
        sync = Sync(
            found,
            tool,
            group=group or [found.settings["group"]],
            id=id,
            features=feature,
            rule=rule,
            ahead=ahead,
            extra=extra,
        )

        def told(report: Report | str) -> None:
            if isinstance(report, str):
                typer.echo(report, err=True)
            else:
                # one line a pass, so that a script can read them as they come
                typer.echo(json.dumps(report.as_dict(), ensure_ascii=False) if as_json else str(report))

        run(sync, told, seconds=seconds, dry_run=dry_run)


def _seconds(every: str | None, once: bool) -> float | None:
    """How long to wait between passes; None for one pass."""
    from evenhand.campaign.settings import as_seconds
    from evenhand.errors import InputError

    if once:
        if every is not None:
            raise InputError("--every has no effect with --once and --dry-run, which make one pass")
        return None
    try:
        seconds = as_seconds(every or "30s")
    except InputError:
        seconds = None
    if seconds is None:
        raise InputError(f"cannot use --every {every}: write e.g. 30s, 5m, 1h")
    return seconds


def _read_key(path: Path | None) -> str:
    """The access token, never an argument: arguments are seen by everybody on the machine."""
    from evenhand.errors import InputError

    key = os.environ.get(_KEY, "") if path is None else path.read_text(encoding="utf-8-sig", errors="replace")
    if not key.strip():
        raise InputError(f"give Label Studio's access token in the variable {_KEY}, or in a file with --key-file")
    return key.strip()
