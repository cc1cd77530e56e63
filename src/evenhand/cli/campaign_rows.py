"""`evenhand campaign tell` and `add`: labelled rows from files into the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli.campaign_shared import (
    DEFAULT,
    AsJson,
    Collector,
    Database,
    Name,
    User,
    counted_from_one,
    opened,
    say,
    spooled,
    user_name,
)
from evenhand.cli.terminal import counted
from evenhand.errors import InputError
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.campaign import Campaign
    from evenhand.campaign.deliveries import Delivery
    from evenhand.campaign.requests import Receipt, Refused
    from evenhand.tables.frame import Frame

__all__ = ["add", "tell"]

File = Annotated[Path | None, typer.Argument(help="CSV, JSON lines or Parquet; - for standard input")]
Partial = Annotated[bool, typer.Option("--partial", help="store the good rows even if some are refused")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="only say what would be stored")]
RejectedFile = Annotated[Path | None, typer.Option("--rejected", help="where refused rows go, with reasons")]


def tell(
    name: Name,
    request: Annotated[str, typer.Argument(help="the request's number; with a pool leave it out: labels go by id")],
    file: File = None,
    n: Annotated[
        int | None, typer.Option("-n", help="only the number of rows that came, where you train a model yourself")
    ] = None,
    partial: Partial = False,
    extra: Annotated[bool, typer.Option("--extra", help="take more rows than are outstanding")] = False,
    dry_run: DryRun = False,
    rejected: RejectedFile = None,
    collector: Collector = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Answer a request with labelled rows; with a pool, give labels by id. The same file twice changes nothing.

    `tell NAME REQUEST rows.csv`, or with a pool `tell NAME done.csv`: rows with an empty label are not labelled yet.
    """
    with opened(db, name, as_json) as campaign:
        options: JsonObject = {"collector": collector, "extra": extra, "dry_run": dry_run}
        number = int(request) if request.isdecimal() else None
        if number is None:
            if file is not None or n is not None:
                raise InputError(
                    f"{request!r} is not a request number: write tell NAME REQUEST FILE, or tell NAME FILE"
                )
            _report(_told_by_id(campaign, Path(request), rejected, partial, options), as_json)
            return
        if (file is None) == (n is None):
            raise InputError("give a file of rows, or their number with -n")
        if file is None:
            _report(campaign.tell(number, n=n, **options), as_json)
            return

        def store(delivery: Delivery) -> Receipt:
            return campaign.tell_delivery(number, delivery, partial=partial, **options)

        _report(_told(campaign, file, number, rejected, store), as_json)


def _told_by_id(campaign: Campaign, file: Path, rejected: Path | None, partial: bool, options: JsonObject) -> Receipt:
    """Tell the labels of a file by id; empty ones are left out."""
    from evenhand.campaign.deliveries import refusal
    from evenhand.campaign.requests import Refused

    # before anything is stored: afterwards there would be no place for the refused rows
    target = _rejected_file(file, rejected)
    with spooled(file) as path:
        names, labels, table = campaign.labels_in(path)
    unread = tuple(Refused(row, None, why) for row, why in table.skipped.items())
    if unread and not partial:
        _set_aside(target, table, unread)
        raise refusal(unread, len(table))
    told = [row for row, label in enumerate(labels) if label is not None and row not in table.skipped]
    if not told:
        raise InputError(f"no row of {file} has a label yet")
    given = {names[row]: labels[row] for row in told}

    try:
        receipt: Receipt = campaign.tell_labels(given, partial=partial, written=True, **options)
    except InputError as error:
        if not error.refused:
            raise
        refused = tuple(row._replace(row=told[row.row]) for row in error.refused)  # rows of the file, not of the labels
        _set_aside(target, table, refused)
        raise refusal(refused, len(table)) from None
    refused = (*(row._replace(row=told[row.row]) for row in receipt.refused), *unread)
    _set_aside(target, table, refused)
    return replace(receipt, refused=refused)


def add(
    name: Name,
    file: Annotated[Path, typer.Argument(help="CSV, JSON lines or Parquet; - for standard input")],
    charge: Annotated[bool, typer.Option("--charge", help="count the rows against the budget")] = False,
    partial: Partial = False,
    dry_run: DryRun = False,
    rejected: RejectedFile = None,
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Bring in labelled data you already have; every row names its group."""
    with opened(db, name, as_json) as campaign:

        def store(delivery: Delivery) -> Receipt:
            return campaign.add_delivery(delivery, charge=charge, partial=partial, dry_run=dry_run, by=user_name(by))

        _report(_told(campaign, file, None, rejected, store), as_json)


def _told(
    campaign: Campaign, file: Path, request: int | None, rejected: Path | None, store: Callable[[Delivery], Receipt]
) -> Receipt:
    """Read and store a file; refused rows go to a file of their own."""
    target = _rejected_file(file, rejected)
    with spooled(file) as path:
        table, delivery = campaign.read(path, request)
    try:
        receipt = store(delivery)
    except InputError as error:
        _set_aside(target, table, error.refused)
        raise
    _set_aside(target, table, receipt.refused)
    return receipt


def _rejected_file(file: Path, rejected: Path | None) -> Path:
    """Where refused rows go; no file but an earlier one of refused rows is replaced."""
    target = rejected or Path("rejected.csv" if str(file) == "-" else f"{file}.rejected.csv")
    if target.exists() and target.read_bytes()[:11] != b"row,reason,":
        raise InputError(f"{target} is there already, for refused rows: name a new file with --rejected")
    return target


def _set_aside(target: Path, table: Frame, refused: Sequence[Refused]) -> None:
    from evenhand.campaign.files import write_refused

    if refused:
        write_refused(target, table, refused)
        typer.echo(f"{counted(len(refused), 'row')} refused, with reasons in {target}", err=True)


def _report(receipt: Receipt, as_json: bool) -> None:
    stored = "would be stored" if receipt.dry_run else "stored"
    notes = [f"{counted(receipt.rows, 'row')} {stored}, {receipt.training} train and {receipt.validation} validate"]
    if receipt.repeated:
        notes = ["already told, nothing changed"]
    elif receipt.known:
        notes.append(f"{receipt.known} known already")
    if receipt.surplus:
        notes.append(f"{receipt.surplus} more than asked for")
    if receipt.outstanding:
        notes.append(f"{receipt.outstanding} outstanding")
    if receipt.late:
        notes.append("after the lease")
    lines = [", ".join(notes)]
    if receipt.new_classes:
        named = ", ".join(sorted(map(repr, receipt.new_classes)))
        lines.append(
            f"labels seen for the first time: {named}. If one is a mistake, correct it with `evenhand campaign correct`"
        )
    if receipt.refused:
        lines += [f"row {row.row + 1}: {row.reason}" for row in receipt.refused[:3]]
    found = receipt.as_dict()
    found["refused"] = counted_from_one(receipt.refused)
    say(found, as_json, "\n".join(lines))
