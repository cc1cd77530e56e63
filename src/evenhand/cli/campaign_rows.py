"""`evenhand campaign tell` and `add`: labelled rows from files into the ledger."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.campaign_shared import DEFAULT, AsJson, Collector, Database, Name, RequestNumber, opened, say, spooled

if TYPE_CHECKING:
    from evenhand.live import LiveCampaign
    from evenhand.live.intake import Rejected
    from evenhand.live.parcel import Parcel

__all__ = ["add", "tell"]

File = Annotated[Path | None, typer.Argument(help="CSV, JSON lines or Parquet; - for standard input")]
Partial = Annotated[bool, typer.Option("--partial", help="store the good rows even if some are refused")]
RejectedFile = Annotated[Path | None, typer.Option("--rejected", help="where refused rows go, with reasons")]


def tell(
    name: Name,
    request: RequestNumber,
    file: File = None,
    n: Annotated[int | None, typer.Option("-n", help="only the number of rows, where you train yourself")] = None,
    partial: Partial = False,
    rejected: RejectedFile = None,
    collector: Collector = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Answer a request with labelled rows. The same file told twice changes nothing."""
    with opened(db, name, as_json) as live:
        if (file is None) == (n is None):
            raise ValueError("give a file of rows, or their number with -n")
        if file is None:
            refused: list[Rejected] = []
            receipt = live.tell(request, n=n, collector=collector)
        else:
            parcel, refused = _sorted_out(live, file, _group(live, request), partial, rejected)
            receipt = live.tell_parcel(request, parcel, collector=collector)
        _report(receipt, refused, as_json)


def add(
    name: Name,
    file: Annotated[Path, typer.Argument(help="CSV, JSON lines or Parquet; - for standard input")],
    charge: Annotated[bool, typer.Option("--charge", help="count the rows against the budget")] = False,
    partial: Partial = False,
    rejected: RejectedFile = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Bring in labelled data you already have; every row names its group."""
    with opened(db, name, as_json) as live:
        parcel, refused = _sorted_out(live, file, None, partial, rejected)
        _report(live.add_parcel(parcel, charge=charge), refused, as_json)


def _group(live: LiveCampaign, request: int) -> str:
    asked = next((e for e in live.ledger.about(live.number, request) if e.kind == "asked"), None)
    if asked is None:
        raise ValueError(
            f"request {request} was never made; open are {', '.join(map(str, live.refresh().open)) or 'none'}"
        )
    group: str = asked.header["group"]
    return group


def _sorted_out(
    live: LiveCampaign, file: Path, group: str | None, partial: bool, rejected: Path | None
) -> tuple[Parcel, list[Rejected]]:
    from evenhand.live.intake import read_rows, sort_out, write_rejected

    with spooled(file) as path:
        table, refused = read_rows(path)
    state = live.refresh()
    parcel, more = sort_out(table, state.settings, state.classes, live.first_delivery(), group)
    refused = [*refused, *more]
    if refused:
        target = rejected or Path("rejected.csv" if str(file) == "-" else f"{file}.rejected.csv")
        write_rejected(target, refused)
        typer.echo(f"{len(refused)} rows refused, with reasons in {target}; the first: {_first(refused)}", err=True)
        if not partial or parcel is None:
            raise ValueError("nothing was stored: put the refused rows right, or store the others with --partial")
    if parcel is None:
        raise ValueError("there are no rows")
    return parcel, refused


def _first(refused: list[Any]) -> str:
    return "; ".join(f"row {row.row}, {row.reason}" for row in refused[:3])


def _report(receipt: Any, refused: list[Any], as_json: bool) -> None:
    notes = [f"{receipt.rows} rows stored, {receipt.training} train and {receipt.validation} validate"]
    if receipt.repeated:
        notes = ["already told, nothing changed"]
    if receipt.beyond and not receipt.repeated:
        notes.append(f"{abs(receipt.beyond)} {'more' if receipt.beyond > 0 else 'fewer'} than asked for")
    if receipt.late:
        notes.append("after the lease")
    found = {**asdict(receipt), "refused": [{"row": row.row, "reason": row.reason} for row in refused]}
    say(found, as_json, ", ".join(notes))
