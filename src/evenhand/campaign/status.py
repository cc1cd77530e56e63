"""How a campaign stands, as plain values for Python, the command line, the server and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenhand.campaign.events import ONCE
from evenhand.campaign.requests import as_time, offered
from evenhand.campaign.settings import shown_strategy
from evenhand.campaign.state import Failure, OpenRequest, State
from evenhand.claims.certificates import Evidence, Running
from evenhand.errors import RiskError
from evenhand.ledger.base import Event, Reader
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.campaign.models import Models


_SETTINGS = ("learner", "risk", "positive", "refit", "batch", "stop", "distinct", "test_labels")


def status(name: str, state: State, reader: Reader, *, nothing: str | None, models: Models) -> JsonObject:
    """Budget, every group, requests, collectors, the age of the scores, and whether there is anything left to ask."""
    # counted by the database: the state has no labels, and a ledger may have millions of rows
    classes = reader.class_counts()
    certificate, unknown = _certificate(state, reader, models)
    return {
        **overview(name, state),
        "strategy": shown_strategy(state.settings["strategy"]),
        **{key: value for key, value in state.settings.items() if key in _SETTINGS},
        "lease_seconds": state.settings["lease"],
        # requests that are out count against the budget in `ask`, not in what is used
        "promised": state.outstanding,
        "unspent": state.unspent,
        "nothing_to_ask": nothing,
        "stopped": None if state.settings["stop"] is None else models.reason_to_stop(reader, state),
        "groups": {group: _group(state, z, classes.get(group, {})) for z, group in enumerate(state.groups)},
        "running": running(state).as_dict(),
        "certificate": certificate,
        "proof": _proof(state),
        "warnings": [*_warnings(state), *unknown],
        "choice": state.choice,
        "open": [_request(number, facts) for number, facts in sorted(state.open.items())],
        "expired": [_request(number, facts) for number, facts in sorted(state.expired.items())],
        **state.taken,
        "skipped": state.skipped,
        "disagreements": {tool: found for tool, found in sorted(state.disagreements.items()) if found["count"]},
        "pool": None if state.pool is None else _pool(state),
        "answered": state.answered,
        "abandoned": state.abandoned,
        "collectors": {
            who: {**totals, "last": as_time(totals["last"])} for who, totals in sorted(state.collectors.items())
        },
        "scores": {
            "at": as_time(state.scored_at),
            "age_seconds": None if state.scored_at is None else max(0.0, reader.now - state.scored_at),
            # asks go on while a refit runs: a reader must see how old the scores are that steer them
            "labels_behind": state.examples - state.scored_examples,
            "rest_on": state.scores_rest_on,
        },
        "learner_failed": state.failure
        and {
            **state.failure,
            "at": as_time(state.failure["at"]),
            "message": models.last_failure or _failed(state.failure),
        },
    }


def running(state: State, delta: float = 0.05) -> Running:
    """The average risk in every group of all models so far."""
    found = Evidence(tuple(state.groups))
    found.n = np.array([[int(n)] for n, _ in state.running], dtype=np.int64).reshape(-1, 1)
    found.total = np.array([[total] for _, total in state.running], dtype=float).reshape(-1, 1)
    risk = state.settings["risk"]
    # a running bound needs one loss in [0, 1] for each example, which these two are not
    return found.running(delta, "error" if risk in ("log", "balanced") else risk)


def _proof(state: State) -> JsonObject | None:
    """The certify phase: its target, what it still needs, or how it ended."""
    if state.proving is None:
        return None if state.outcome is None else {**state.outcome, "running": False}
    from evenhand.campaign.proof import allowed, expected

    return {
        "target": state.proving["target"],
        "delta": state.proving["delta"],
        "most": state.proving["most"],
        "by_rule": state.proving["by_rule"],
        "running": True,
        "outcome": None,
        "labels": state.labels_used - state.proving["labels"],
        "worst_at_most": 1.0 if state.weighed is None else state.weighed["worst_at_most"],
        "expected": expected(state),
        "allowed": allowed(state),
    }


def _warnings(state: State) -> list[str]:
    """What a reader of the numbers should know."""
    found = []
    if state.unproven is not None and "target=" in (state.settings["stop"] or ""):
        found.append(f"the target can never be proven: {state.unproven}")
    for group, n, relevant in zip(state.groups, state.scored, state.relevant, strict=True):
        if n and not relevant:
            found.append(
                f"none of the {n} scored examples of {group!r} is one that the risk {state.settings['risk']!r} is about: "
                "its loss is taken to be the largest of the other groups'"
            )
    return found


def overview(name: str, state: State) -> JsonObject:
    """A short summary of a campaign."""
    return {
        "name": name,
        "created": as_time(state.created_at),
        "closed": state.closed,
        "budget": state.settings["budget"],
        "used": state.labels_used,
        "examples": state.examples,
        "events": state.seq,
    }


def as_event(event: Event) -> JsonObject:
    """An event as plain values; the digests of rows stay in the ledger."""
    facts = {name: value for name, value in event.facts.items() if name not in ("digests", ONCE)}
    return {**event._asdict(), "at": as_time(event.at), "facts": facts}


def _group(state: State, z: int, classes: dict[str, int]) -> JsonObject:
    n, right, group = state.scored[z], state.accuracy[z], state.groups[z]
    waiting = [r["size"] - r["told"] for r in state.open.values() if r["group"] == group]
    return {
        "training": state.train[z],
        "validation": state.validate[z],
        "certify": state.certify[z],
        "test": state.test[z],
        "pending": sum(waiting),
        "share": state.train[z] / max(sum(state.train), 1),
        "accuracy": right if n else None,
        "n": n,
        "relevant": state.relevant[z],
        "mean_loss": state.loss_sum[z] / state.relevant[z] if state.relevant[z] else None,
        "available": offered(state)[z],
        "retired": group in state.retired,
        **_left(state, z),
        "classes": dict(sorted(classes.items())),
    }


def _failed(failure: Failure) -> str:
    """What is known of a failure in another process: its message may quote rows, so it is not in the ledger."""
    return f"the learner failed in fit with {failure['error']}: refit shows its message"


def _pool(state: State) -> JsonObject:
    # a request needs at least one example to train on and one to validate
    used_up = [group for group, n in zip(state.groups, state.pool or (), strict=True) if n < 2]
    return {"left": sum(state.pool or ()), "used_up": used_up, "files": [file["path"] for file in state.files]}


def _left(state: State, z: int) -> JsonObject:
    """How many examples of a group the pool has left, and after how many labels of all groups they are used up."""
    if state.pool is None:
        return {}
    share = state.train[z] / max(sum(state.train), 1)
    return {"left": state.pool[z], "lasts_labels": round(state.pool[z] / share) if share else None}


def _certificate(state: State, reader: Reader, models: Models) -> tuple[JsonObject | None, list[str]]:
    """The certificate, or a warning if it cannot be computed: the rest of the status does not need it."""
    if state.frozen is None:
        return None, []
    try:
        found = models.certificate_at(reader, state)
    except RiskError as error:
        return None, [f"the certificate cannot be computed: {error}"]
    if found is None:
        return None, []
    frozen = state.frozen
    kept = {"digest": frozen["digest"], "model": frozen["model"], "distinct": frozen["distinct"]}
    return {
        **found.as_dict(),
        **kept,
        "frozen_at_labels": state.frozen["labels"],
        "frozen_event": state.frozen["event"],
    }, []


def _request(number: int, facts: OpenRequest) -> JsonObject:
    return {
        "request": number,
        "group": facts["group"],
        "size": facts["size"],
        "outstanding": facts["size"] - facts["told"],
        "collector": facts["by"],
        "until": as_time(facts["until"]),
    }
