"""Puts a folded state into a campaign."""

from __future__ import annotations

import numpy as np

from evenhand.campaign import Campaign
from evenhand.decision import KINDS, Decision
from evenhand.ledger import Event, State
from evenhand.live.receipts import LiveRequest
from evenhand.request import Request
from evenhand.stats import RunningTrend

__all__ = ["as_asked", "restore"]


def restore(campaign: Campaign, state: State) -> Campaign:
    """Make the campaign what the state says; gives it back.

    Open requests know the group and kind of their decision; its terms stay in the ledger.
    """
    engine = campaign._engine
    for name in ("counts", "held", "scored", "loss_sum"):
        getattr(engine, name)[0] = getattr(state, name)
    engine.available[0] = [group not in state.unavailable for group in campaign.groups]
    engine.fresh[0] = np.greater(state.arrived, state.rests_on)
    engine.asked[0] = state.asked
    window = np.full(engine.recent.window.shape, np.nan)
    for z, values in enumerate(state.recent):
        window[0, z, : len(values)] = values
    engine.recent = RunningTrend.of(window)
    engine.pending[:], engine.pending_validation[:] = 0, 0
    campaign._docket.open = {}
    index = {group: np.array(z) for z, group in enumerate(campaign.groups)}
    code = {kind: np.array(k) for k, kind in enumerate(KINDS)}
    for number, header in state.open.items():
        decision = Decision(campaign.groups, index[header["group"]], code[header["kind"]])
        request = Request(number, header["group"], header["size"], header["validating"], decision)
        campaign._docket.open[number] = request
        campaign._expect(request, +1)
    campaign.labels_used, campaign.budget = state.labels_used, state.settings["budget"]
    return campaign


def as_asked(request: Request, event: Event) -> LiveRequest:
    """The request, as an `asked` event records it."""
    header, scored_at = event.header, event.header["scored_at"]
    return LiveRequest(
        **vars(request),
        until=header["until"],
        collector=header["by"],
        event=event.seq,
        rests_on=header["rests_on"],
        scores_age=None if scored_at is None else max(0.0, event.at - scored_at),
        behind=header["behind"],
    )
