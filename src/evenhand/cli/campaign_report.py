"""`evenhand campaign report`: a campaign's page as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.campaign_shared import DEFAULT, AsJson, Database, Name, opened, say


def report(
    name: Name,
    file: Annotated[Path, typer.Argument(help="where to write it")] = Path("campaign.html"),
    force: Annotated[bool, typer.Option("--force", help="replace the file if it is there")] = False,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write the campaign as one self-contained HTML page: the next request, charts, every group, who collects."""
    with opened(db, name, as_json, read_only=True) as campaign:
        from evenhand.errors import InputError
        from evenhand.files import write_atomically

        if file.exists() and not force:
            raise InputError(f"{file} is there already: name another file, or replace it with --force")
        text = campaign.report()
        write_atomically(file, lambda path: path.write_text(text, encoding="utf-8"))
        say({"file": str(file), "bytes": len(text.encode())}, as_json, f"the campaign's page is in {file}")
