"""Checks a ledger: is it whole, and would fitting and choosing again come to the same?"""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

from evenhand.learners import Model
from evenhand.ledger import Event, State
from evenhand.live.campaign import LiveCampaign
from evenhand.live.fitting import Fitter, Frozen, deliveries
from evenhand.live.replay import restore
from evenhand.live.settings import make_campaign
from evenhand.request import NothingToAsk

__all__ = ["verify"]

_TOLERANCE = 1e-6


def verify(live: LiveCampaign) -> dict[str, Any]:
    """Replay every event, refit every score, choose every request again; `problems` lists what differs."""
    events = live.ledger.events(live.number)
    state = State().fold(events)
    problems = [] if state == live.ledger.state(live.number) else ["the snapshot differs from the events: delete it"]
    problems += _rows(live)
    choices, chosen = _choices(events)
    scores, scored = _scores(live, events)
    return {
        "events": len(events),
        "deliveries": state.answered,
        "requests_chosen_again": chosen,
        "scores_refitted": scored,
        "problems": [*problems, *choices, *scores],
    }


def _rows(live: LiveCampaign) -> list[str]:
    """Rows that are missing or not what was told."""
    told = {e.seq: e for e in live.ledger.events(live.number, kind="told") if e.header["stored"]}
    problems = []
    for event, parcel in deliveries(live.ledger, live.number):
        told.pop(event.seq)
        if len(parcel) != event.header["rows"] or not parcel.matches(event.header["digest"]):
            problems.append(f"event {event.seq}: the stored rows are not the ones that were told")
    return problems + [f"event {seq}: its rows are missing" for seq in told]


def _choices(events: list[Event]) -> tuple[list[str], int]:
    """Requests that the strategy would choose otherwise from the recorded scores."""
    state, problems, count = State(), [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        campaign = make_campaign(events[0].header)
    for event in events:
        if event.kind == "asked":
            count += 1
            try:
                again = restore(campaign, state).ask()
            except NothingToAsk as nothing:
                problems.append(f"event {event.seq}: request {event.request} was made, now {nothing.reason}")
            else:
                if again.group != event.header["group"]:
                    problems.append(
                        f"event {event.seq}: request {event.request} was for {event.header['group']!r}, "
                        f"now it would be for {again.group!r}"
                    )
        state.fold([event])
    return problems, count


def _scores(live: LiveCampaign, events: list[Event]) -> tuple[list[str], int]:
    """Scores that come out otherwise when the learner is fitted again."""
    scored = [event for event in events if event.kind == "scored"]
    if not scored:
        return [], 0
    problems = []
    fitter = Fitter(live.ledger, live.number, State().fold(events))
    certified = {event.header["version"]: event for event in events if event.kind == "certified"}
    kept = {event.header["rests_on"] for event in certified.values()}
    models: dict[int, Model | None] = {}
    for event in scored:
        was_evidence = event.header.get("evidence", {"version": None})
        evidence = fitter.evidence(event.header["rests_on"], _frozen(certified.get(was_evidence["version"]), models))
        fitter.fit(event.header["rests_on"])
        if event.header["rests_on"] in kept:
            models[event.header["rests_on"]] = copy.deepcopy(fitter.model)
        found = fitter.score()
        other = " (another version fitted it)" if found["learner"] != event.header["learner"] else ""
        for group, was in event.header["groups"].items():
            now = found["groups"][group]
            if (was["n"], was["errors"]) != (now["n"], now["errors"]) or not math.isclose(
                was["loss_sum"], now["loss_sum"], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE
            ):
                problems.append(
                    f"event {event.seq}: {group!r} had {was['errors']} errors of {was['n']}, loss {was['loss_sum']:.6g}; "
                    f"now {now['errors']} of {now['n']}, {now['loss_sum']:.6g}{other}"
                )
        if "evidence" in event.header and evidence != was_evidence:
            problems.append(f"event {event.seq}: the evidence was {was_evidence}, now it is {evidence}{other}")
    return problems, len(scored)


def _frozen(event: Event | None, models: dict[int, Model | None]) -> Frozen | None:
    model = None if event is None else models[event.header["rests_on"]]
    return None if event is None or model is None else Frozen(event.header["version"], event.seq, model)
