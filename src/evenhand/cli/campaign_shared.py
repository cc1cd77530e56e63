"""What the commands of `evenhand campaign` share: options, output, exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli.terminal import echo

if TYPE_CHECKING:
    from evenhand.campaign import Campaign
    from evenhand.campaign.requests import Refused


DEFAULT = "sqlite:///evenhand.db"
"""The database where none is named."""
Database = Annotated[
    str, typer.Option("--db", envvar="EVENHAND_DB", help="sqlite:///file.db or postgresql://…", show_envvar=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="the campaign")]
RequestNumber = Annotated[int, typer.Argument(help="the request's number")]
Collector = Annotated[str | None, typer.Option(help="who collects")]
User = Annotated[str | None, typer.Option("--by", help="who does this; by default your user name")]
Reason = Annotated[str | None, typer.Option(help="why; do not put personal data here")]


def user_name(given: str | None) -> str | None:
    """Who does something: as given, else the user of this machine."""
    from evenhand.campaign.log import user_name as current

    return given or current()


_HINTS = {
    "no pool yet": "register rows with `evenhand campaign pool`",
    "waiting for open requests": "`evenhand campaign status` lists them, `evenhand campaign ask --again` has their rows",
}
"""What to do at the shell, by the reason why there is nothing to ask."""


@contextmanager
def handled(as_json: bool) -> Iterator[None]:
    """Errors as messages and exit codes: 1 internal error or a broken database, 2 bad input, 3 nothing to ask."""
    from evenhand.errors import InputError, LearnerError, LedgerError, NothingToAsk, ToolError

    try:
        yield
    except NothingToAsk as nothing:
        if as_json:
            more = {"note": nothing.note} if nothing.note else {}
            typer.echo(json.dumps({"nothing_to_ask": True, "reason": nothing.reason, **more}))
        else:
            note = (nothing.note or _HINTS.get(nothing.reason, "")).replace(
                "certify(target=...)", "`evenhand campaign certify NAME --target …`"
            )
            note = note.replace("change(stop=None)", "`evenhand campaign change NAME --stop none`")
            echo(f"nothing to ask: {nothing.reason}{f' ({note})' if note else ''}")
        raise typer.Exit(3) from None
    except (LedgerError, LearnerError, ToolError, InputError, OSError) as error:
        message = str(error)
        if getattr(error, "refused", ()):  # rows of a file are counted from 1
            message = re.sub(r"row (\d+)", lambda found: f"row {int(found[1]) + 1}", message)
        # messages are written for Python; at the shell the same thing is an option
        for option in ("partial", "extra", "distinct"):
            message = message.replace(f"certify({option}=True)", f"--{option}").replace(f"{option}=True", f"--{option}")
        if as_json:
            refused = counted_from_one(getattr(error, "refused", ()))
            # the JSON goes to standard output, where a script
            # reads it; the message goes to standard error as well
            typer.echo(json.dumps({"error": message, **({"refused": refused} if refused else {})}))
        typer.echo(f"error: {message}", err=True)
        ours = isinstance(error, LedgerError | LearnerError | ToolError)
        raise typer.Exit(1 if ours else 2) from None


@contextmanager
def opened(database: str, name: str, as_json: bool, *, read_only: bool = False) -> Iterator[Campaign]:
    """The campaign, with errors handled."""
    with handled(as_json):
        from evenhand.campaign import Campaign

        with Campaign.open(database, name, read_only=read_only) as campaign:
            yield campaign


def counted_from_one(refused: Iterable[Refused]) -> list[dict[str, object]]:
    """Refused rows as plain values, numbered as people count the rows of a file."""
    return [{**row._asdict(), "row": row.row + 1} for row in refused]


def say(found: object, as_json: bool, text: str | Callable[[], str]) -> None:
    """Print the result: JSON, or the words for people."""
    if as_json:
        typer.echo(json.dumps(found, indent=1, ensure_ascii=False, default=str))
    else:
        echo(text if isinstance(text, str) else text())


@contextmanager
def spooled(file: Path) -> Iterator[Path]:
    """The file itself; for `-` what comes from standard input, kept in a file while it is read."""
    import sys
    import tempfile

    if str(file) != "-":
        yield file
        return
    data = sys.stdin.buffer.read()
    kind = ".parquet" if data[:4] == b"PAR1" else ".jsonl" if data.lstrip()[:1] in (b"{", b"[") else ".csv"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin{kind}"
        path.write_bytes(data)
        yield path
