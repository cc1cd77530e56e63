"""The page of one campaign."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response
from starlette.background import BackgroundTask

from evenhand.campaign.features import schema_of
from evenhand.campaign.requests import as_time
from evenhand.campaign.viewing import view_of
from evenhand.report.pages import campaign_report
from evenhand.report.view import CampaignView
from evenhand.server.access import Seat, Viewing
from evenhand.server.pages.past import Histories
from evenhand.server.pages.shared import DONE, address, new_router, render

__all__ = ["router", "seen", "show"]

router = new_router()
_LONG = 20.0
_ALWAYS = ("correct", "withdraw", "export")


def seen(request: Request, seat: Seat, *, patient: bool = False) -> CampaignView:
    """The view of a campaign; if `patient`, it waits until the history is read."""
    histories: Histories = request.app.state.histories
    history = histories.get(seat.campaign, _LONG) if patient else histories.at_hand(seat.campaign)
    view = view_of(seat.campaign, history)
    if view.status["pool"] is not None:  # the server's paths must not be shown
        view.status["pool"].pop("files")
    return view


def show(request: Request, seat: Seat, status: int = 200, panel: str | None = None, **context: Any) -> Response:
    """A campaign's page; what went wrong in a form is shown in that form's panel, if it is on the page."""
    view = seen(request, seat, patient="wait" in request.query_params)
    is_there = view.status["pool"] if panel == "upload" else panel in _ALWAYS or view.status["closed"] is None
    root = seat.parts.settings.root_path
    verified = request.app.state.verified.get(seat.campaign.store.number)
    about = {
        "v": view, "base": root + address(seat.campaign), "api": f"{root}/api{address(seat.campaign)}",
        "verified": verified, "settings": seat.campaign.settings, "panel": panel if is_there else None,
    }  # fmt: skip
    page = render(request, "campaign.html", status, **about, **_pooled(request, seat, view), **context)
    if view.points is None:
        # read once the page is sent: both at a time would slow each other down
        page.background = BackgroundTask(request.app.state.histories.begin, seat.campaign)
    return page


def _pooled(request: Request, seat: Seat, view: CampaignView) -> dict[str, str]:
    """After a pool came: what was read of it, and what its columns hold."""
    done = request.query_params.get("done", "")
    if done not in ("created", "pooled") or view.status["pool"] is None:
        return {}
    store = seat.campaign.store
    with store.ledger.reading(store.number) as reader:
        facts = reader.events(kinds=("pooled",))[-1].facts
    return {"done": f"{DONE[done]} {facts['read'].capitalize()}: {schema_of(facts['columns']).summary()}."}


@router.get("/campaigns/{name}")
def campaign(request: Request, seat: Viewing, wait: Annotated[int, Query(ge=0, le=1)] = 0) -> Response:
    """The next request, the budget, every group, who collects, what happened."""
    return show(request, seat)


@router.get("/campaigns/{name}/past")
def past(request: Request, seat: Viewing) -> Response:
    """Whether the past is there (204) or is still being read (202): a page asks this instead of being made again and again."""
    histories: Histories = request.app.state.histories
    return Response(status_code=202 if histories.get(seat.campaign) is None else 204)


@router.get("/campaigns/{name}/report")
def report(request: Request, seat: Viewing) -> Response:
    """The page as one self-contained file."""
    view = seen(request, seat, patient=True)
    headers = {"Content-Disposition": 'attachment; filename="campaign.html"'}
    return Response(campaign_report(view, as_time(view.now) or ""), 200, headers, "text/html; charset=utf-8")
