"""`evenhand campaign backup` and `restore`: all campaigns of a database as one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli.campaign_shared import DEFAULT, AsJson, Database, handled, say


def backup(
    file: Annotated[Path, typer.Argument(help="a new file, an SQLite ledger")],
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write all campaigns to a file while they run."""
    with handled(as_json):
        from evenhand.campaign.export import backup as write
        from evenhand.ledger import open_ledger

        with open_ledger(db, read_only=True) as ledger:
            names = write(ledger, file)
        say({"campaigns": names, "file": str(file)}, as_json, f"{len(names)} campaigns in {file}")


def restore(
    file: Annotated[Path, typer.Argument(help="a file that backup wrote")],
    names: Annotated[list[str] | None, typer.Option("--campaign", help="only this one; repeat")] = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Put campaigns of a backup into a database that does not have them."""
    with handled(as_json):
        from evenhand.campaign.export import open_backup
        from evenhand.campaign.export import restore as read
        from evenhand.ledger import open_ledger

        with open_backup(file) as kept:
            for name in names or ():
                kept.find(name)  # before a database is made
            with open_ledger(db, create=True) as ledger:
                found = read(kept, ledger, names)
        say({"campaigns": found}, as_json, f"{len(found)} campaigns restored: {', '.join(found)}")
