"""What a lead can do: correct labels, take them back, change settings, prove, verify, close."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import anyio.to_thread
from fastapi import Form, Request
from fastapi.responses import Response

from evenhand.campaign.corrections import unchanged
from evenhand.campaign.requests import as_time
from evenhand.errors import EvenhandError, InputError, LedgerError
from evenhand.server import jobs
from evenhand.server.access import Leading, Seat
from evenhand.server.api.granting import new_share
from evenhand.server.guarding import is_tls
from evenhand.server.pages.campaign import show
from evenhand.server.pages.shared import address, new_router, render, see_other
from evenhand.server.problems import status_of

router = new_router()
Text = Annotated[str, Form(max_length=500)]
Many = Annotated[str, Form(max_length=200_000)]


def _step(
    http: Request, seat: Seat, done: str, step: Callable[[], object], panel: str, typed: dict[str, str]
) -> Response:
    """Take a step; an error is shown in its panel on the campaign's page, together with what was typed."""
    try:
        step()
    except LedgerError:
        raise
    except EvenhandError as error:
        return show(http, seat, status_of(error), error=str(error), panel=panel, typed=typed)
    return see_other(seat, done=done)


@router.post("/campaigns/{name}/correct")
def correct(http: Request, seat: Leading, id: Text = "", label: Text = "", reason: Text = "") -> Response:
    """Give an example another label."""

    changed = 0

    def step() -> None:
        nonlocal changed
        if not id.strip() or not label.strip():
            raise InputError("give the example's id and its right label")
        changed = seat.campaign.correct_written(id.strip(), label, reason=reason or None, by=seat.grant.name)

    answer = _step(http, seat, "corrected", step, "correct", {"id": id, "label": label, "reason": reason})
    if answer.status_code == 303 and not changed:
        return show(http, seat, done=unchanged(id.strip(), label))
    return answer


@router.post("/campaigns/{name}/withdraw")
def withdraw(http: Request, seat: Leading, ids: Many = "", reason: Text = "", refund: Text = "") -> Response:
    """Take examples back."""

    def step() -> None:
        names = [line.strip() for line in ids.splitlines() if line.strip()]
        if not names:
            raise InputError("give the ids to withdraw, one a line")
        seat.campaign.withdraw(names, reason or None, refund == "yes", by=seat.grant.name)

    return _step(http, seat, "withdrawn", step, "withdraw", {"ids": ids, "reason": reason, "refund": refund})


@router.post("/campaigns/{name}/change")
def change(
    http: Request,
    seat: Leading,
    budget: Text = "",
    lease: Text = "",
    most_labels: Text = "",
    longest_lease: Text = "",
    most_streams: Text = "",
) -> Response:
    """Change the budget, the lease, or what one person may hold."""

    def step() -> None:
        given: dict[str, object] = {}
        limits: dict[str, object] = {}
        if budget.strip():
            given["budget"] = _whole(budget, "the budget")
        if lease.strip():
            given["lease"] = lease.strip()
        if most_labels.strip():
            limits["labels"] = _whole(most_labels, "the labels that a collector may hold")
        if longest_lease.strip():
            limits["lease"] = longest_lease.strip()
        if most_streams.strip():
            limits["streams"] = _whole(most_streams, "the streams of one link")
        if limits:
            given["limits"] = limits
        if not given:
            raise InputError("nothing to change: fill in what is to change")
        seat.campaign.change(by=seat.grant.name, **given)

    typed = {"budget": budget, "lease": lease, "most_labels": most_labels, "longest_lease": longest_lease}
    return _step(http, seat, "changed", step, "change", {**typed, "most_streams": most_streams})


@router.post("/campaigns/{name}/retire")
def retire(http: Request, seat: Leading, group: Text = "", back: Text = "") -> Response:
    """Stop asking for a group, or start again."""
    again = back == "yes"
    done = "back" if again else "retired"
    return _step(
        http, seat, done, lambda: seat.campaign.retire(group, again, by=seat.grant.name), "retire", {"back": back}
    )


async def _job(
    http: Request, seat: Seat, panel: str, typed: dict[str, str], done: str, job: Callable[..., object], *args: object
) -> Response:
    """Run a job that fits models in a worker process; an error is shown in its panel."""
    try:
        await seat.parts.worker.on(job, seat.campaign, *args)
    except LedgerError:
        raise
    except EvenhandError as error:
        return await _wrong(http, seat, panel, typed, str(error), status_of(error))
    return see_other(seat, done=done)


async def _wrong(
    http: Request, seat: Seat, panel: str, typed: dict[str, str], said: str, status: int = 422
) -> Response:
    return await anyio.to_thread.run_sync(lambda: show(http, seat, status, error=said, panel=panel, typed=typed))


@router.post("/campaigns/{name}/certify")
async def certify(
    http: Request, seat: Leading, target: Text = "", most: Text = "", delta: Text = "", distinct: Text = ""
) -> Response:
    """Freeze a model, and with a target begin to prove it."""
    typed = {"target": target, "most": most, "delta": delta, "distinct": distinct}
    try:
        settings = {
            "model": "final", "most": _whole(most, "the most labels") if most.strip() else None,
            "delta": _number(delta, "delta") if delta.strip() else None, "distinct": True if distinct == "yes" else None, "by": seat.grant.name,
        }  # fmt: skip
        aim = _number(target, "the target") if target.strip() else None
    except InputError as error:
        return await _wrong(http, seat, "certify", typed, str(error))
    return await _job(http, seat, "certify", typed, "certified", jobs.certify, aim, settings)


@router.post("/campaigns/{name}/verify")
async def verify(http: Request, seat: Leading) -> Response:
    """Verify the ledger, and remember when that was."""
    found = await seat.parts.worker.on(jobs.verify, seat.campaign)
    http.app.state.verified[seat.campaign.number] = {"at": as_time(time.time()), **found}
    if not found["ok"]:
        # a page of its own: the campaign's page may not survive what is damaged
        base = seat.parts.settings.root_path + address(seat.campaign)
        return render(http, "findings.html", 409, name=seat.campaign.name, base=base, findings=found["problems"])
    return see_other(seat, done="verified")


@router.post("/campaigns/{name}/close")
async def close(http: Request, seat: Leading, reason: Text = "closed", sure: Text = "") -> Response:
    """End the campaign."""
    if sure != "yes":
        said = "tick “Close it for good”: a closed campaign cannot be opened again"
        return await _wrong(http, seat, "close", {"reason": reason}, said)
    return await _job(
        http, seat, "close", {"reason": reason}, "closed", jobs.close, reason.strip() or "closed", seat.grant.name, None
    )


@router.post("/campaigns/{name}/share")
def share(http: Request, seat: Leading) -> Response:
    """Make a link with which this campaign can be viewed; it is shown only once."""
    try:
        _, path = new_share(seat, "share link", "30d")
    except InputError as error:
        return show(http, seat, status_of(error), error=str(error), panel="export")
    return show(http, seat, link=f"{'https' if is_tls(http) else 'http'}://{http.url.netloc}{path}")


def _whole(text: str, what: str) -> int:
    if not text.strip().isdecimal():
        raise InputError(f"{what} must be a whole number, not {text.strip()!r}")
    return int(text)


def _number(text: str, what: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InputError(f"{what} must be a number, not {text.strip()!r}") from None
