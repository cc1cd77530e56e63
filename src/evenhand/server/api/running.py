"""Making, listing, changing and closing campaigns."""

from __future__ import annotations

from typing import Annotated, Any

import anyio.to_thread
from fastapi import Depends, Request
from fastapi.responses import Response
from pydantic import Field

from evenhand.campaign import Campaign
from evenhand.errors import InputError
from evenhand.server import jobs
from evenhand.server.access import Leading, anybody, grant_of, parts_of
from evenhand.server.api.shared import Body, Label, Name, new_router
from evenhand.server.bodies import Json, Key, as_once
from evenhand.server.problems import Problem
from evenhand.server.tokens import Grant, Role

__all__ = ["router"]

router = new_router("campaigns")
_LEARNERS = ("logistic", "table")
_PLAIN = "over HTTP nothing that names code can be chosen"


class NewLimits(Body):
    """What one person may hold of a campaign; what is left out stays."""

    labels: int = Field(default=1000, description="labels that a collector's open requests may wait for")
    lease: str | float | None = Field(default="30d", description="how long a collector may let a request wait; `never`")
    streams: int = Field(default=50, description="event streams with one token or share link")


class NewCampaign(Body):
    """A campaign to make; what each setting means is in the documentation of `Campaign`."""

    name: Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^/~][^/]*$")]
    groups: list[Name] | None = Field(None, description="leave it out to take those of the first pool")
    strategy: str = "optimistic"
    learner: str | None = "logistic"
    budget: int
    batch: int = 1
    warmup: int | None = None
    validation: float = 0.5
    classes: list[Label] | None = None
    population: dict[str, float] | None = None
    risk: str = "error"
    positive: Label | None = None
    test_labels: int = 0
    seed: int | None = Field(None, description="leave it out to have one drawn")
    stop: list[str] | None = None
    refit: str | int = "background"
    lease: str | float | None = "1d"
    distinct: bool = False
    label: Name = "label"
    group: Name = "group"
    id: Name = "id"
    features: dict[Name, str] | list[Name] | None = Field(
        None, description="columns to learn from; with what each holds, the first delivery does not decide it"
    )
    limits: NewLimits | None = None


class Change(Body):
    """Settings to change; what is left out stays."""

    budget: int | None = None
    learner: str | None = Field(None, description="`none` for a trainer of your own")
    lease: str | float | None = None
    stop: list[str] | None = Field(None, description="stopping rules instead of those there are; an empty list is none")
    refit: str | int | None = None
    limits: NewLimits | None = None


class Retire(Body):
    """A group to stop asking for, or with `back` to ask for again."""

    group: Name
    back: bool = False


class Close(Body):
    """Why the campaign ends."""

    reason: Annotated[str, Field(min_length=1, max_length=500)] = "closed"


def check_plain(strategy: str | None = None, learner: str | None = None, risk: str | None = None) -> None:
    """Refuse texts that name a user's code, or a class to import."""
    # terms are named by their import path too
    if strategy is not None and ("factory:" in strategy or "terms" in strategy):
        raise InputError(f"the strategy {strategy!r} names code, and {_PLAIN}: use a strategy by its name")
    if learner is not None and learner.partition(":")[0] not in (*_LEARNERS, "none"):
        raise InputError(f"the learner {learner!r} is none of {', '.join(_LEARNERS)}, none: {_PLAIN}")
    if risk is not None and "factory:" in risk:
        raise InputError(f"the risk {risk!r} names code, and {_PLAIN}")


@router.get("/campaigns")
def campaigns(request: Request) -> Response:
    """The campaigns that you may see."""
    parts, grant = parts_of(request), grant_of(request)
    known = parts.campaigns.ledger.campaigns()
    # a token for one campaign must not even learn the names of the others
    seen = {name: number for name, number in known.items() if grant.campaign in (None, number)}
    rows = [{"number": number, **parts.campaigns.by_number(number).overview()} for number in seen.values()]
    return Json({"campaigns": rows})


@router.post("/campaigns", status_code=201)
def create(body: NewCampaign, request: Request, grant: Annotated[Grant, Depends(anybody(Role.lead))]) -> Response:
    """Make a campaign. Needs the role lead for all campaigns."""
    if grant.campaign is not None:
        raise Problem(403, "this token is for one campaign: it cannot make others", "access")
    check_plain(body.strategy, body.learner, body.risk)
    given: dict[str, Any] = body.model_dump(exclude={"limits"})
    given["limits"] = None if body.limits is None else body.limits.model_dump(exclude_unset=True)
    given["learner"] = None if body.learner == "none" else body.learner
    made = Campaign.create(parts_of(request).campaigns.ledger, **given)
    return Json(made.overview(), 201)


@router.post("/campaigns/{name}/change")
def change(body: Change, seat: Leading) -> Response:
    """Change the budget, learner, lease, stopping rules or refits from now on."""
    # null must not reset a setting: a client that sends all fields would change what it did not mean to
    settings = {key: value for key, value in body.model_dump(exclude_unset=True).items() if value is not None}
    if not settings:
        raise InputError("nothing to change: give budget, learner, lease, stop, refit or limits")
    check_plain(learner=settings.get("learner"))
    if settings.get("learner") == "none":
        settings["learner"] = None
    if settings.get("stop") == []:
        settings["stop"] = None
    seat.campaign.change(by=seat.grant.name, **settings)
    now = seat.campaign.settings
    return Json({key: now[key] for key in ("budget", "learner", "refit", "lease", "stop", "limits")})


@router.post("/campaigns/{name}/retire")
def retire(body: Retire, seat: Leading) -> Response:
    """Stop asking for a group, or start again."""
    seat.campaign.retire(body.group, body.back, by=seat.grant.name)
    return Json({"group": body.group, "retired": not body.back})


@router.post("/campaigns/{name}/close")
async def close(body: Close, seat: Leading, request: Request, key: Key = None) -> Response:
    """End the campaign; the model to deploy is chosen now."""
    once = as_once(key, seat.grant, request, body)
    await seat.parts.worker.on(jobs.close, seat.campaign, body.reason, seat.grant.name, once)
    state = await anyio.to_thread.run_sync(seat.campaign.store.refresh)
    return Json({"closed": state.closed})


@router.post("/campaigns/{name}/refit")
async def refit(seat: Leading) -> Response:
    """Fit and score now, and wait for it."""
    return Json({"refitted": await seat.parts.worker.refit_now(seat.campaign)})
