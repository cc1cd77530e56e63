"""How a live campaign stands, as plain values for the command line, the server and scripts."""

from __future__ import annotations

from typing import Any

from evenhand.ledger import State
from evenhand.live import evidence
from evenhand.live.campaign import LiveCampaign
from evenhand.live.receipts import as_time
from evenhand.live.stopping import reason_to_stop
from evenhand.request import NothingToAsk

__all__ = ["overview", "status"]


def status(live: LiveCampaign) -> dict[str, Any]:
    """Budget, every group, requests, the age of the scores, and whether there is anything left to ask."""
    state, now = live.refresh(), live.clock()
    reason = None
    try:
        live.propose()
    except NothingToAsk as nothing:
        reason = nothing.reason
    overdue = set(state.overdue(now))
    requests = [
        {**_request(number, header), "overdue": number in overdue} for number, header in sorted(state.open.items())
    ]
    return {
        **overview(live.name, state),
        "strategy": state.settings["strategy"],
        "learner": state.settings["learner"],
        "refit": state.settings["refit"],
        "lease_seconds": state.settings["lease"],
        "batch": state.settings["batch"],
        "promised": sum(int(r["size"]) for r in state.open.values()),
        "unspent": state.unspent,
        "nothing_to_ask": reason,
        "stop": state.settings.get("stop", []),
        "stopped": reason_to_stop(state, now),
        "groups": {group: _group(state, z) for z, group in enumerate(state.groups)},
        "running": evidence.running(state).as_dict(),
        "certificate": _certificate(state),
        "open": requests,
        "expired": [_request(number, header) for number, header in sorted(state.expired.items())],
        "answered": state.answered,
        "abandoned": state.abandoned,
        "scores": {
            "at": as_time(state.scored_at),
            "age_seconds": None if state.scored_at is None else max(0.0, now - state.scored_at),
            "labels_behind": state.examples - state.scored_labels,
            "rest_on": max(state.rests_on),
        },
    }


def overview(name: str, state: State) -> dict[str, Any]:
    """A campaign in one line."""
    return {
        "name": name,
        "created": as_time(state.created_at),
        "closed": state.closed,
        "budget": state.settings["budget"],
        "used": state.labels_used,
        "examples": state.examples,
        "events": state.seq,
    }


def _certificate(state: State) -> dict[str, Any] | None:
    found = evidence.certificate(state)
    if found is None or state.frozen is None:
        return None
    return {**found.as_dict(), "rests_on": state.frozen["rests_on"], "frozen_at_labels": state.frozen["labels"]}


def _group(state: State, z: int) -> dict[str, Any]:
    n, right = state.scored[z], state.accuracy[z]
    waiting = [r for r in state.open.values() if r["group"] == state.groups[z]]
    return {
        "training": state.counts[z],
        "validation": state.held[z],
        "pending": sum(int(r["size"]) for r in waiting),
        "share": state.counts[z] / max(sum(state.counts), 1),
        "accuracy": right if n else None,
        "n": n,
        "mean_loss": state.loss_sum[z] / n if n else None,
        "available": state.groups[z] not in state.unavailable,
    }


def _request(number: int, header: dict[str, Any]) -> dict[str, Any]:
    return {
        "request": number,
        "group": header["group"],
        "size": header["size"],
        "collector": header["by"],
        "until": as_time(header["until"]),
    }
