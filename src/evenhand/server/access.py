"""Who may do what: the campaign of a request, and the grant it is made with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import anyio.to_thread
from fastapi import Depends, Path, Request

from evenhand.campaign import Campaign
from evenhand.campaign.events import REQUESTS
from evenhand.campaign.settings import Limits, as_seconds
from evenhand.errors import InputError, NotFound
from evenhand.server.campaigns import Campaigns
from evenhand.server.observing import Observer
from evenhand.server.problems import Problem
from evenhand.server.settings import Settings
from evenhand.server.streams import Streams
from evenhand.server.tokens import Grant, Role, Tokens
from evenhand.server.worker import Worker


@dataclass(frozen=True)
class Parts:
    """The parts of a server that the handlers of requests use."""

    settings: Settings
    campaigns: Campaigns
    tokens: Tokens
    worker: Worker
    observer: Observer
    streams: Streams


@dataclass(frozen=True)
class Seat:
    """A campaign together with the grant of the person who uses it."""

    campaign: Campaign
    grant: Grant
    parts: Parts

    def collector(self, given: str | None) -> str:
        """The name to act under: a collector acts under the token's name, a lead may act for others."""
        return given if given is not None and self.grant.may(Role.lead) else self.grant.name

    @property
    def limited(self) -> bool:
        """Whether the campaign's limits for collectors hold."""
        return not self.grant.may(Role.lead)

    def check_lease(self, lease: str | float | None) -> None:
        """Refuse a lease longer than collectors may take."""
        settings = self.campaign.state.settings
        longest, seconds = Limits.of(settings).longest(settings["lease"]), as_seconds(lease)
        if self.limited and longest is not None and (seconds is None or seconds > longest):
            raise InputError(
                f"a collector may let a request wait for {longest / 86400:.4g} days at most, not {lease!r}: ask whoever "
                "leads the campaign"
            )

    def check_own(self, number: int) -> None:
        """Refuse a request that was given to somebody else, unless the grant is a lead's."""
        if not self.limited:
            return
        with self.campaign.reading() as reader:
            # a request that was never made passes here: the campaign refuses it in its own words
            asked = reader.events(kinds=REQUESTS, request=number)
        if asked and asked[0].actor != self.grant.name:
            raise Problem(403, f"request {number} was given to somebody else", "access")

    def check_own_examples(self, ids: Sequence[str]) -> None:
        """Refuse examples that were handed out to somebody else, unless the grant is a lead's."""
        if not self.limited:
            return
        with self.campaign.reading() as reader:
            # by the ledger, not by what the collector claims: ids of others' requests could be guessed
            found = reader.find(ids)
        for number in {example.request for example in found.values() if example.request is not None}:
            self.check_own(number)
        free = next((name for name, example in found.items() if example.request is None), None)
        if free is not None:
            raise Problem(403, f"the example {free!r} was not handed out to you", "access")


def parts_of(request: Request) -> Parts:
    """The parts of the server that answers."""
    found: Parts = request.app.state.parts
    return found


def grant_of(request: Request) -> Grant:
    """The grant of a request; refused without a token if one is needed."""
    found: Grant | None = request.state.grant
    if found is None:
        raise Problem(401, "give a token: Authorization: Bearer evh_…", "access", {"WWW-Authenticate": "Bearer"})
    return found


def anybody(role: Role) -> Callable[[Request], Awaitable[Grant]]:
    """A FastAPI dependency that requires this role on some campaign."""

    async def found(request: Request) -> Grant:
        grant = grant_of(request)
        if not grant.may(role):
            raise Problem(403, f"this needs the role {role.name}, and the token has {grant.role.name}", "access")
        return grant

    found.__doc__ = role.name  # the API reference shows it for every operation
    return found


def _seat(role: Role) -> Callable[[str, Request], Awaitable[Seat]]:
    async def found(
        name: Annotated[str, Path(description="the campaign's name, or `~` and its number")], request: Request
    ) -> Seat:
        grant, parts = grant_of(request), parts_of(request)
        # a thread is needed only to ask the database, which is rarely necessary
        number = parts.campaigns.known(name)
        if number is None:
            number = await anyio.to_thread.run_sync(parts.campaigns.number, name)
        if grant.campaign not in (None, number):  # a token must not reveal which other campaigns exist
            raise NotFound(f"there is no campaign {name!r}")
        if not grant.may(role):
            raise Problem(403, f"this needs the role {role.name}, and the token has {grant.role.name}", "access")
        campaign = parts.campaigns.opened(number)
        if campaign is None:
            campaign = await anyio.to_thread.run_sync(parts.campaigns.by_number, number)
        return Seat(campaign, grant, parts)

    found.__doc__ = role.name
    return found


def _everywhere(request: Request) -> Grant:
    grant = grant_of(request)
    if grant.campaign is not None:
        raise Problem(403, "this is about all campaigns, and the token or share link is for one", "access")
    return grant


Viewing = Annotated[Seat, Depends(_seat(Role.viewer))]
Collecting = Annotated[Seat, Depends(_seat(Role.collector))]
Leading = Annotated[Seat, Depends(_seat(Role.lead))]
Admin = Annotated[Grant, Depends(anybody(Role.admin))]
Everywhere = Annotated[Grant, Depends(_everywhere)]
