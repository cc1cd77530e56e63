"""Uploaded files: labels, which are checked before anything is stored, and pools."""

from __future__ import annotations

import base64
import binascii
import hashlib
import tempfile
from pathlib import Path, PurePath
from typing import Annotated, Any

import anyio.to_thread
from fastapi import Form, Request, UploadFile
from fastapi.responses import Response

from evenhand.campaign.requests import Receipt
from evenhand.errors import EvenhandError, InputError, LedgerError, NotFound
from evenhand.server.access import Collecting, Leading, Seat
from evenhand.server.api.shared import Number
from evenhand.server.pages.campaign import show
from evenhand.server.pages.requests import show_request
from evenhand.server.pages.shared import address, new_router, render, see_other
from evenhand.server.parquet import DELIVERY, POOL, Limits, read_table, rehearse
from evenhand.server.problems import status_of
from evenhand.tables.frame import Frame

__all__ = ["pool_from", "router"]

router = new_router()
_LONGEST_NAME = 80
_SHOWN = 200
_DIGEST = 64


@router.post("/campaigns/{name}/requests/{request}/upload")
async def answer_request(request: Number, seat: Collecting, http: Request) -> Response:
    """Labels for a request: first shows what would be stored, and stores it once that is confirmed."""
    return await _answer(http, seat, request)


@router.post("/campaigns/{name}/upload")
async def answer_any(seat: Collecting, http: Request) -> Response:
    """Labels by id, for whichever requests they fill."""
    return await _answer(http, seat, None)


async def _answer(http: Request, seat: Seat, number: int | None) -> Response:
    # the confirmation sends the file back as one long field, so that no server has to remember it
    async with http.form(max_part_size=seat.parts.settings.max_body) as form:
        given, extra = form.get("file"), form.get("extra") == "yes"
        confirmed = form.get("data")
        if isinstance(confirmed, str) and confirmed:
            name, data = str(form.get("filename", "")), _decoded(confirmed)
        elif given is not None and not isinstance(given, str):
            name, data = given.filename or "", await given.read()
        else:
            name, data = "", b""
        shown = str(form.get("shown", "")) if confirmed else None
    return await anyio.to_thread.run_sync(lambda: _look_or_store(http, seat, number, name, data, extra, shown))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InputError("the file did not come back whole: upload it again") from None


def _look_or_store(
    http: Request, seat: Seat, number: int | None, name: str, data: bytes, extra: bool, shown: str | None
) -> Response:
    """Show what a file would store; store it if the outcome is the one that was shown and confirmed."""
    try:
        receipt, read = _tell(seat, number, name, data, extra=extra, dry_run=True)
        same = shown == _outcome(receipt)
        if same and receipt.rows:
            receipt, _ = _tell(seat, number, name, data, extra=extra, dry_run=False)
    except LedgerError:
        raise
    except EvenhandError as error:
        if number is None:
            return show(http, seat, status_of(error), error=str(error), panel="upload")
        return show_request(http, seat, number, status_of(error), error=str(error))
    # the same form was sent twice: all refused rows were shown, and the first one stored all others
    sent_again = shown is not None and receipt.repeated and shown.endswith(_outcome(receipt)[-_DIGEST:])
    if not same and not sent_again:
        about: dict[str, Any] = {
            "receipt": receipt, "read": read, "outcome": _outcome(receipt), "changed": shown is not None,
            "is_first": seat.campaign.store.state.label_kind is None, "number": number, "name": seat.campaign.name, "file": PurePath(name).name, "extra": extra,
            "data": base64.b64encode(data).decode(), "base": seat.parts.settings.root_path + address(seat.campaign),
            "shown": receipt.refused[:_SHOWN],
        }  # fmt: skip
        return render(http, "check.html", **about)
    seat.parts.observer.labels.inc(receipt.rows)
    settings = seat.campaign.store.state.settings
    if receipt.rows and settings["refit"] == "background" and settings["learner"] is not None:
        seat.parts.worker.refit_soon(seat.campaign)
    back = number is not None and receipt.outstanding
    return see_other(seat, f"/requests/{number}" if back else "", "stored" if receipt.rows else "known")


def _outcome(receipt: Receipt) -> str:
    """The outcome that a page shows before storing: how much is stored, and a digest of what is refused and why."""
    refused = hashlib.sha256(repr([(row.row, row.reason) for row in receipt.refused]).encode()).hexdigest()
    return f"{receipt.rows} {receipt.surplus} {receipt.late} {refused}"


def _uploaded(seat: Seat, name: str, data: bytes, limits: Limits) -> Frame:
    """The table in an uploaded file, by the name that its owner knows."""
    if not data:
        raise InputError("choose a file first")
    most = seat.parts.settings.max_body * 2 // 3
    if len(data) > most:
        raise InputError(f"the file has {len(data):,} bytes, and {most:,} are the most here: use the command line")
    shown = PurePath(name).name[-_LONGEST_NAME:]
    if PurePath(shown).suffix.lower() == ".parquet":
        with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
            path = Path(folder) / "body.parquet"
            path.write_bytes(data)
            rehearse(path, limits)
    return read_table(data, limits, name=shown)


def _tell(seat: Seat, number: int | None, name: str, data: bytes, *, extra: bool, dry_run: bool) -> tuple[Receipt, str]:
    """Deliver a file; rows that cannot be stored are left out, as the page has shown before. Also says what was read."""
    campaign, options = seat.campaign, {"partial": True, "extra": extra, "dry_run": dry_run}
    frame = _uploaded(seat, name, data, DELIVERY)
    if number is not None and campaign.store.refresh().pool is None:
        seat.check_own(number)
        _, delivery = campaign.read(frame, number)
        return campaign.tell_delivery(number, delivery, collector=_for_whom(seat, number), **options), str(frame)
    names, values, _ = campaign.labels_in(frame)
    frame.refuse_skipped()
    labels = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    if not labels:
        raise InputError(f"no row of the file has a label: fill the column {campaign.settings['label']!r}")
    seat.check_own_examples([name for name in labels if name])
    if number is not None:
        _check_request(seat, number, list(labels))
    return campaign.tell_labels(labels, _for_whom(seat, number), written=True, **options), str(frame)


def _check_request(seat: Seat, number: int, ids: list[str]) -> None:
    """Refuse a file of another request: its page would say that this one was answered."""
    store = seat.campaign.store
    with store.ledger.reading(store.number) as reader:
        if not reader.events(kinds=("asked",), request=number):
            raise NotFound(f"request {number} was never made")
        others = {example.request for example in reader.find(ids).values()} - {number, None}
    if others:
        named = ", ".join(str(one) for one in sorted(one for one in others if one is not None))
        raise InputError(f"the file has rows of request {named}: upload them on the page of that request")


def _for_whom(seat: Seat, number: int | None) -> str | None:
    """The collector that labels are stored for: the user; for a lead, whoever has the request."""
    if number is not None and number in seat.campaign.store.state.open:
        return seat.collector(seat.campaign.store.state.open[number]["by"])
    return seat.collector(None)


def pool_from(seat: Seat, name: str, data: bytes, id: str, group: str, ignore: str) -> Any:
    """Register the examples in a file."""
    frame = _uploaded(seat, name, data, POOL)
    columns = [part.strip() for part in group.split("+") if part.strip()] or [seat.campaign.settings["group"]]
    left_out = [part.strip() for part in ignore.split(",") if part.strip()]
    return seat.campaign.pool(frame, id=id.strip() or None, group=columns, ignore=left_out, by=seat.grant.name)


@router.post("/campaigns/{name}/pool")
def pool(
    http: Request,
    seat: Leading,
    file: UploadFile,
    id: Annotated[str, Form(max_length=500)] = "id",
    group: Annotated[str, Form(max_length=2000)] = "",
    ignore: Annotated[str, Form(max_length=5000)] = "",
) -> Response:
    """Register more examples that are not labelled yet."""
    try:
        pool_from(seat, file.filename or "", file.file.read(), id, group, ignore)
    except LedgerError:
        raise
    except EvenhandError as error:
        typed = {"id": id, "group": group, "ignore": ignore}
        return show(http, seat, status_of(error), error=str(error), panel="pool", typed=typed)
    return see_other(seat, done="pooled")
