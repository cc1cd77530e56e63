"""`evenhand campaign correct`, `withdraw`, `erase`: labels changed or taken back after they were told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli.campaign_shared import DEFAULT, AsJson, Database, Name, Reason, User, opened, say, user_name
from evenhand.cli.terminal import counted
from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.campaign import Campaign


Ids = Annotated[list[str] | None, typer.Argument(help="ids of examples")]
FileOfIds = Annotated[Path | None, typer.Option("--file", help="CSV, JSON lines or Parquet with an id column")]


def correct(
    name: Name,
    id: Annotated[str | None, typer.Argument(help="the example's id")] = None,
    label: Annotated[str | None, typer.Argument(help="its right label")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="ids and labels, one row each")] = None,
    reason: Reason = None,
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Correct a label, or all labels in a file; the first label is kept beside the new one."""
    with opened(db, name, as_json) as campaign:
        if (file is None) == (id is None) or (id is None) != (label is None):
            raise InputError("give an id and its label, or a --file with both")
        if file is not None:
            changed, words = (
                campaign.correct_file(file, reason=reason, by=user_name(by)),
                "every example is already labelled so; nothing changed.",
            )
        else:
            from evenhand.campaign.corrections import unchanged

            changed = campaign.correct_written(str(id), str(label), reason=reason, by=user_name(by))
            words = unchanged(str(id), str(label))
        say({"corrected": changed}, as_json, f"{counted(changed, 'label')} corrected" if changed else words)


def withdraw(
    name: Name,
    ids: Ids = None,
    file: FileOfIds = None,
    refund: Annotated[bool, typer.Option("--refund", help="give their labels back to the budget")] = False,
    reason: Reason = None,
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Take examples back for good: they no longer count and cannot be told again."""
    with opened(db, name, as_json) as campaign:
        names = _names(campaign, ids, file)
        changed = campaign.withdraw(names, reason=reason, refund=refund, by=user_name(by))
        say({"withdrawn": changed}, as_json, f"{counted(changed, 'example')} withdrawn")


def erase(
    name: Name,
    ids: Ids = None,
    file: FileOfIds = None,
    reason: Reason = None,
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Delete the features and labels of examples from storage, for good."""
    with opened(db, name, as_json) as campaign:
        names = _names(campaign, ids, file)
        left = campaign.erase(names, reason=reason, by=user_name(by))
        note = f"; values learned from them may be in {', '.join(left)}" if left else ""
        words = f"{counted(len(names), 'example')} erased{note}; earlier backups and exported files are yours to clean"
        say({"erased": len(names), "may_hold_learned_values": left}, as_json, words)


def _names(campaign: Campaign, ids: list[str] | None, file: Path | None) -> list[str]:
    if (not ids) == (file is None):
        raise InputError("name the ids, or a --file with an id column")
    return list(dict.fromkeys(ids or ())) if file is None else campaign.ids_in(file)
