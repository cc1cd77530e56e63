"""`evenhand campaign tell` and `add`: labelled rows from files into the ledger."""

from __future__ import annotations

from collections.abc import Callable
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
    opened,
    say,
    spooled,
    user_name,
)

if TYPE_CHECKING:
    from evenhand.campaign import Campaign
    from evenhand.campaign.deliveries import Delivery
    from evenhand.campaign.requests import Receipt

__all__ = ["add", "tell"]

File = Annotated[Path | None, typer.Argument(help="CSV, JSON lines or Parquet; - for standard input")]
Partial = Annotated[bool, typer.Option("--partial", help="store the good rows even if some are refused")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="only say what would be stored")]
RejectedFile = Annotated[Path | None, typer.Option("--rejected", help="where refused rows go, with reasons")]


def tell(
    name: Name,
    request: RequestNumber,
    file: File = None,
    n: Annotated[int | None, typer.Option("-n", help="only the number of rows, where you train yourself")] = None,
    partial: Partial = False,
    extra: Annotated[bool, typer.Option("--extra", help="take more rows than are outstanding")] = False,
    dry_run: DryRun = False,
    rejected: RejectedFile = None,
    collector: Collector = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Answer a request with labelled rows, all at once or in parts. The same file told twice changes nothing."""
    with opened(db, name, as_json) as campaign:
        options = {"collector": collector, "extra": extra, "dry_run": dry_run}
        if (file is None) == (n is None):
            raise ValueError("give a file of rows, or their number with -n")
        if file is None:
            _report(campaign.tell(request, n=n, **options), as_json)  # type: ignore[arg-type]
            return

        def store(delivery: Delivery) -> Receipt:
            return campaign.tell_delivery(request, delivery, partial=partial, **options)  # type: ignore[arg-type]

        _report(_told(campaign, file, request, rejected, store), as_json)


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
    from evenhand.errors import InputError

    target = rejected or Path("rejected.csv" if str(file) == "-" else f"{file}.rejected.csv")
    if rejected is not None and target.exists():
        raise InputError(f"--rejected {target} is there already: name a new file")
    with spooled(file) as path:
        table, delivery = campaign.read(path, request)
    try:
        receipt = store(delivery)
    except InputError as error:
        _set_aside(target, table, error.refused)
        raise
    _set_aside(target, table, receipt.refused)
    return receipt


def _set_aside(target: Path, table: Any, refused: Any) -> None:
    from evenhand.campaign.intake import write_refused

    if refused:
        write_refused(target, table, refused)
        first = "; ".join(f"row {row.row + 1}, {row.reason}" for row in refused[:3])
        typer.echo(f"{len(refused)} rows refused, with reasons in {target}; the first: {first}", err=True)


def _report(receipt: Receipt, as_json: bool) -> None:
    stored = "would be stored" if receipt.dry_run else "stored"
    notes = [f"{receipt.rows} rows {stored}, {receipt.training} train and {receipt.validation} validate"]
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
    if receipt.new_classes:
        notes.append(f"new classes: {', '.join(map(str, receipt.new_classes))}")
    say(receipt.as_dict(), as_json, ", ".join(notes))
