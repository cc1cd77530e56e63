"""Making a campaign with a form, together with its pool if there is one."""

from __future__ import annotations

import tempfile

import anyio.to_thread
from fastapi import Request
from fastapi.responses import Response
from pydantic import ValidationError

from evenhand.campaign import Campaign
from evenhand.campaign.labels import written_classes
from evenhand.errors import EvenhandError, InputError, LedgerError
from evenhand.ledger.database import DatabaseLedger
from evenhand.notation import JsonObject
from evenhand.server.access import Parts, Seat, grant_of, parts_of
from evenhand.server.api.running import NewCampaign, check_plain
from evenhand.server.pages.shared import new_router, render, see_other
from evenhand.server.pages.uploads import pool_from
from evenhand.server.problems import Problem, status_of
from evenhand.server.tokens import Grant, Role

router = new_router()
_DIGITS = 40
"""The longest number a form may have, more than any setting needs; Python refuses to read very long numbers."""
DEFAULTS = {
    "name": "", "budget": "1000", "batch": "4", "groups": "", "strategy": "optimistic", "learner": "logistic",
    "risk": "error", "positive": "", "lease": "1d", "validation": "0.5", "test_labels": "0", "classes": "",
    "population": "", "stop": "", "seed": "", "label": "label", "id": "id", "group": "group", "ignore": "",
}  # fmt: skip


def _creator(request: Request) -> Grant:
    grant = grant_of(request)
    if not grant.may(Role.lead) or grant.campaign is not None:
        raise Problem(403, "making campaigns needs the role lead for all campaigns", "access")
    return grant


@router.get("/new")
def form(request: Request) -> Response:
    """The form for a new campaign."""
    _creator(request)
    return render(request, "create.html", given=DEFAULTS)


@router.post("/new/pool")
async def create(request: Request) -> Response:
    """Make a campaign, and register its pool if a file was given."""
    grant = _creator(request)
    async with request.form() as form:
        given = {name: str(form.get(name, default)) for name, default in DEFAULTS.items()}
        file = form.get("file")
        pool = (file.filename or "", await file.read()) if file is not None and not isinstance(file, str) else ("", b"")
    return await anyio.to_thread.run_sync(lambda: _make(request, grant, given, pool))


def _make(request: Request, grant: Grant, given: dict[str, str], pool: tuple[str, bytes]) -> Response:
    parts = parts_of(request)
    made: Campaign | None = None
    try:
        settings = settings_in(given, has_pool=bool(pool[1]))
        if pool[1]:
            _rehearse(parts, grant, settings, given, pool)
        made = Campaign.create(parts.campaigns.ledger, **settings)
        seat = Seat(parts.campaigns.by_number(made.number), grant, parts)
        if pool[1]:
            pool_from(seat, *pool, given["id"], given["group"], given["ignore"])
    except LedgerError:
        raise
    except EvenhandError as error:
        said = str(error)
        if made is not None:
            said = (
                f"The campaign is made, but its pool could not be read: {said}. Give the pool on the campaign's page."
            )
        return render(request, "create.html", status_of(error), given=given, error=said)
    return see_other(seat, done="created")


def _rehearse(parts: Parts, grant: Grant, settings: JsonObject, given: dict[str, str], pool: tuple[str, bytes]) -> None:
    """Try campaign and pool in a temporary database first: an unreadable table must not leave a campaign behind."""
    with (
        tempfile.TemporaryDirectory(prefix="evenhand-") as folder,
        DatabaseLedger(f"sqlite:///{folder}/rehearsal.db", create=True) as ledger,
    ):
        trial = Campaign.create(ledger, **settings)
        pool_from(Seat(trial, grant, parts), *pool, given["id"], given["group"], given["ignore"])


def settings_in(given: dict[str, str], *, has_pool: bool) -> JsonObject:
    """The settings that a form describes, checked like those of the API."""
    groups = _lines(given["groups"])
    if not groups and not has_pool:
        raise InputError("name the groups, one a line, or give a pool whose rows tell them")
    plain: JsonObject = {
        "name": given["name"].strip(), "groups": groups or None, "strategy": given["strategy"],
        "learner": given["learner"], "budget": _whole(given, "budget"), "batch": _whole(given, "batch"),
        "risk": given["risk"], "lease": given["lease"].strip() or "never", "validation": _number(given, "validation"),
        "test_labels": _whole(given, "test_labels"),
        "seed": _whole(given, "seed") if given["seed"].strip() else None,
        "classes": written_classes(_lines(given["classes"])) or None,
        "positive": given["positive"].strip() or None, "population": _shares(given["population"]) or None,
        "stop": _lines(given["stop"]) or None, "label": given["label"].strip() or "label",
        "id": given["id"].strip() or "id",
    }  # fmt: skip
    if "+" not in given["group"] and ":" not in given["group"]:
        plain["group"] = given["group"].strip() or "group"
    try:
        checked = NewCampaign.model_validate(plain).model_dump()
    except ValidationError as error:
        found = error.errors()[0]
        where = ".".join(map(str, found["loc"]))
        if where == "name":
            raise InputError(
                "a name neither begins with ~ nor holds /" if plain["name"] else "the name is missing"
            ) from None
        raise InputError(f"{where}: {found['msg']}") from None
    check_plain(checked["strategy"], checked["learner"], checked["risk"])
    checked["learner"] = None if checked["learner"] == "none" else checked["learner"]
    return checked


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _whole(given: dict[str, str], name: str) -> int:
    text = given[name].strip().replace(",", "").replace("_", "")
    if not text.isdecimal() or len(text) > _DIGITS:
        raise InputError(f"{name.replace('_', ' ')} must be a whole number, not {given[name][:40]!r}")
    return int(text)


def _number(given: dict[str, str], name: str) -> float:
    try:
        return float(given[name].replace(",", "."))
    except ValueError:
        raise InputError(f"{name} must be a number, not {given[name]!r}") from None


def _shares(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in _lines(text):
        group, _, share = line.rpartition("=")
        try:
            found[group.strip()] = float(share)
        except ValueError:
            raise InputError(f"cannot read the population's share {line!r}: write GROUP = 0.25") from None
    return found
