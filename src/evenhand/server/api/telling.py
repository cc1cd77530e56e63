"""Receiving data: rows for a request, labels by id, data you already have, losses from another trainer, pools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import anyio.to_thread
import orjson
import pyarrow as pa
from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import Field, ValidationError

from evenhand.campaign.deliveries import Delivery
from evenhand.campaign.requests import Receipt
from evenhand.errors import InputError
from evenhand.server.access import Collecting, Leading, Seat
from evenhand.server.api.shared import Body, Label, Number, new_router
from evenhand.server.bodies import Json, Key, as_once, file_kind, table_body, table_file
from evenhand.server.parquet import DELIVERY, POOL, read_table
from evenhand.tables.dialect import Format

__all__ = ["router"]

router = new_router("labels")
T = TypeVar("T")
Flag = Annotated[bool, Query()]
Why = Annotated[str, Field(min_length=1, max_length=2000)]
Collector = Annotated[str | None, Query(min_length=1, max_length=500, description="only a lead may tell for others")]
# Python has more, some of which unpack or import: none of those may be named from outside
Encoding = Literal[
    "ascii", "big5", "cp1250", "cp1251", "cp1252", "cp437", "cp850", "euc-jp", "euc-kr", "gb18030", "gbk", "iso-8859-15",
    "iso-8859-2", "koi8-r", "latin-1", "mac-roman", "shift_jis", "utf-16", "utf-8", "utf-8-sig",
]  # fmt: skip
# reading stops at the first wrong value: a list of all of them could have millions
Several = Annotated[list[T], Field(fail_fast=True)]


class Rows(Body):
    """Labelled rows: features as rows of numbers in `X` or as named `columns`, labels in `y`; or their number `n`."""

    X: Several[Several[float]] | None = None
    columns: dict[str, list[Label | None]] | None = None
    categories: Several[str] = Field([], description="columns whose values are names, whatever they look like")
    y: list[Label | None] | None = None
    ids: Several[str | int | None] | None = None
    groups: Several[str] | None = None
    problems: dict[str, Why] = Field(
        default={}, description="what is wrong with rows, by their number from 0: they are refused with these words"
    )
    n: int | None = None


class Labels(Body):
    """Labels by id."""

    labels: Annotated[dict[str, Label | None], Field(min_length=1)]


class Losses(Body):
    """For every group the mean loss, accuracy and number of validation examples of your own model."""

    # a tuple would be refused: JSON has lists only
    losses: dict[str, Annotated[list[float], Field(min_length=3, max_length=3)]]


_ROWS = table_body("rows with the campaign's columns, or JSON", json=Rows.model_json_schema())
_LABELS = table_body("columns for id and label, or JSON", json=Labels.model_json_schema())


@router.post("/campaigns/{name}/requests/{request}/tell", openapi_extra=_ROWS)
async def tell(
    request: Number,
    seat: Collecting,
    http: Request,
    collector: Collector = None,
    partial: Flag = False,
    extra: Flag = False,
    dry_run: Flag = False,
    event: Annotated[int | None, Query(ge=1, lt=2**31, description="the event that made the request")] = None,
) -> Response:
    """Answer a request with labelled rows, all at once or in parts; telling the same rows again changes nothing.

    With `event`, a request of another campaign that has the same number is refused.
    """
    body = await _body(http)

    def store() -> Receipt:
        # within the thread: it reads the ledger, and the event loop must not wait for a database
        seat.check_own(request)
        _check_event(seat, request, event)
        options: dict[str, Any] = {"collector": seat.collector(collector), "partial": partial, "extra": extra}
        if isinstance(body, Path):
            _, delivery = seat.campaign.read(read_table(body, DELIVERY), request)
            return seat.campaign.tell_delivery(request, delivery, **options, dry_run=dry_run)
        rows = _read(Rows, body)
        if rows.n is not None:
            return seat.campaign.tell(request, n=rows.n, **options, dry_run=dry_run)
        return seat.campaign.tell_delivery(request, _delivery(rows, seat, grouped=False), **options, dry_run=dry_run)

    return await _answer(seat, store)


@router.post("/campaigns/{name}/labels", openapi_extra=_LABELS)
async def tell_labels(
    seat: Collecting,
    http: Request,
    collector: Collector = None,
    partial: Flag = False,
    extra: Flag = False,
    dry_run: Flag = False,
) -> Response:
    """Tell labels of a pool's examples by id, whichever requests they fill; rows of a file without a label wait."""
    body = await _body(http)

    def store() -> Receipt:
        written = isinstance(body, Path)
        labels = _labels_in(seat, body) if isinstance(body, Path) else _read(Labels, body).labels
        seat.check_own_examples(list(labels))
        return seat.campaign.tell_labels(
            labels, seat.collector(collector), partial=partial, extra=extra, dry_run=dry_run, written=written
        )

    return await _answer(seat, store)


@router.post("/campaigns/{name}/add", openapi_extra=_ROWS)
async def add(
    seat: Leading, http: Request, charge: Flag = False, partial: Flag = False, dry_run: Flag = False
) -> Response:
    """Add labelled data you already have, with the group of every row."""
    body = await _body(http)

    def store() -> Receipt:
        if isinstance(body, Path):
            _, delivery = seat.campaign.read(read_table(body, DELIVERY))
        else:
            delivery = _delivery(_read(Rows, body), seat, grouped=True)
        return seat.campaign.add_delivery(delivery, charge=charge, by=seat.grant.name, partial=partial, dry_run=dry_run)

    return await _answer(seat, store)


@router.post("/campaigns/{name}/losses")
def losses(body: Losses, seat: Leading, request: Request, key: Key = None) -> Response:
    """Report the losses of your own trainer."""
    seat.campaign.tell_losses(body.losses, by=seat.grant.name, once=as_once(key, seat.grant, request, body))
    return Json({"reported": sorted(body.losses)})


@router.post("/campaigns/{name}/pool", openapi_extra=table_body("the examples"), status_code=201)
async def pool(
    seat: Leading,
    http: Request,
    id: Annotated[str | None, Query(description="the column of the ids; empty: the numbers of the rows")] = "id",
    group: Annotated[list[str] | None, Query(description="columns that tell the group; `age:30,60` has bins")] = None,
    feature: Annotated[list[str] | None, Query(description="columns to learn from; all others by default")] = None,
    ignore: Annotated[list[str] | None, Query(description="columns to leave out altogether")] = None,
    exclude: Annotated[list[str] | None, Query(description="groups to leave out")] = None,
    merge_below: Annotated[int, Query(ge=0, lt=2**31, description="smaller groups become one, called other")] = 0,
    merge_spellings: Annotated[
        bool, Query(description="texts that differ only by case, blanks or Unicode form are one")
    ] = False,
    number: Annotated[list[str] | None, Query(description="columns such as `$1,000` to read as numbers")] = None,
    text: Annotated[list[str] | None, Query(description="columns of texts")] = None,
    image: Annotated[list[str] | None, Query(description="columns of images")] = None,
    vector: Annotated[list[str] | None, Query(description="columns of vectors")] = None,
    missing: Annotated[list[str] | None, Query(description="words for a missing value, beside the empty cell")] = None,
    max_categories: Annotated[
        int | None, Query(ge=1, lt=2**31, description="columns with more values are left out")
    ] = None,
    use_group_as_feature: Flag = False,
    separator: Annotated[str | None, Query(max_length=1, description="of a CSV file; recognised by default")] = None,
    decimal: Annotated[str | None, Query(max_length=1)] = None,
    encoding: Encoding | None = None,
) -> Response:
    """Register examples that are not labelled yet; those with a label are taken in as `add` does."""
    kind = file_kind(http)
    if kind is None:
        raise InputError("send the pool as CSV, JSON lines or Parquet, with its content type")
    path = await table_file(http, kind, POOL)

    def register() -> dict[str, Any]:
        # a frame, not a path: this file is temporary, so the rows of a Parquet file are copied, too
        frame = read_table(path, POOL, Format(separator, decimal, encoding))
        found = seat.campaign.pool(
            frame, id=id or None, group=group or seat.campaign.settings["group"], features=feature,
            ignore=ignore or (), exclude=exclude or (), merge_below=merge_below, merge_spellings=merge_spellings,
            numbers=number or (), text=text or (), image=image or (), vector=vector or (), missing=missing or (),
            max_categories=max_categories, use_group_as_feature=use_group_as_feature, separator=separator, decimal=decimal,
            encoding=encoding, by=seat.grant.name,
        )  # fmt: skip
        return found._asdict()

    return Json(await anyio.to_thread.run_sync(register), 201)


async def _body(request: Request) -> Path | bytes:
    """The body of a request: a table as a file, or JSON as bytes."""
    kind = file_kind(request)
    return await request.body() if kind is None else await table_file(request, kind, DELIVERY)


def _check_event(seat: Seat, number: int, event: int | None) -> None:
    # numbers begin at 1 in every campaign: a client with the wrong name would answer somebody else's request
    known = seat.campaign.store.refresh().open.get(number)
    if event is not None and known is not None and known["event"] != event:
        raise InputError(
            f"request {number} of event {event} is another campaign's: here it was made by {known['event']}"
        )


async def _answer(seat: Seat, store: Any) -> Response:
    receipt: Receipt = await anyio.to_thread.run_sync(store)
    if not receipt.dry_run:
        seat.parts.observer.labels.inc(receipt.rows)
        settings = seat.campaign.store.state.settings
        if receipt.rows and settings["refit"] == "background" and settings["learner"] is not None:
            # begun now, so that the next ask finds new scores rather than waits for them
            seat.parts.worker.refit_soon(seat.campaign)
    return Json(receipt.as_dict())


def _read(kind: type[Any], data: bytes) -> Any:
    """A JSON body, read as this kind and checked."""
    try:
        return kind.model_validate(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        raise InputError(f"the body is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except ValidationError as error:
        found = error.errors()[0]
        where = ".".join(map(str, found["loc"])) or "the body"
        raise InputError(f"{where}: {found['msg']}") from None


def _delivery(rows: Rows, seat: Seat, *, grouped: bool) -> Delivery:
    """The delivery that a JSON body describes."""
    if rows.y is None or (rows.X is None) == (rows.columns is None):
        raise InputError("give labels in y, and features in X or in columns")
    if grouped and rows.groups is None:
        raise InputError("give the group of every row in groups")
    groups = rows.groups if grouped else None
    # keys of JSON objects are text
    problems = {int(row): why for row, why in rows.problems.items() if row.isdecimal()}
    if rows.X is not None:
        return replace(Delivery.of(rows.X, rows.y, rows.ids, groups), problems=problems)
    columns = rows.columns or {}
    if len({len(values) for values in (*columns.values(), rows.y)}) > 1:
        raise InputError("columns and y must have as many values each")
    arrays = {name: _column(name, values) for name, values in columns.items()}
    arrays |= {name: arrays[name].cast(pa.string()).dictionary_encode() for name in rows.categories if name in arrays}
    return replace(Delivery.of(pa.table(arrays), rows.y, rows.ids, groups), problems=problems)


def _column(name: str, values: list[Any]) -> Any:
    """One column of a JSON body."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        kinds = sorted({type(value).__name__ for value in values if value is not None})
        raise InputError(f"columns.{name} mixes types ({', '.join(kinds)}): make it one type") from None


def _labels_in(seat: Seat, path: Path) -> dict[str, Any]:
    names, values, frame = seat.campaign.labels_in(read_table(path, DELIVERY))
    frame.refuse_skipped()
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}
