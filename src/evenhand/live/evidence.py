"""What the facts in a ledger allow to be claimed."""

from __future__ import annotations

from evenhand.certificates import Certificate, Evidence, Running
from evenhand.ledger import State

__all__ = ["certificate", "evidence_since", "running"]


def running(state: State, delta: float = 0.05) -> Running:
    """On the models so far: their average error in every group."""
    return _evidence(state, state.running).running(delta)


def certificate(state: State, delta: float = 0.05) -> Certificate | None:
    """On the frozen model; None if there is none."""
    if state.frozen is None:
        return None
    return evidence_since(state).certificate(state.frozen["version"], delta)


def evidence_since(state: State) -> Evidence:
    """The evidence on the frozen model."""
    return _evidence(state, state.since)


def _evidence(state: State, sums: list[list[int]]) -> Evidence:
    n, errors = zip(*sums, strict=True)
    return Evidence.from_dict(state.groups, {"loss": "zero_one", "n": n, "total": errors})
