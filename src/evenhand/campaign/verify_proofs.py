"""Checks of frozen models and of the evidence that a proof rests on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from evenhand.campaign.evidence import FrozenModel
from evenhand.campaign.proof import weighed
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.claims.certificates import spent_by
from evenhand.ledger.base import Event, Reader

__all__ = ["frozen_models", "weighed_evidence"]


def frozen_models(reader: Reader, events: Sequence[Event]) -> Iterator[str]:
    """Frozen models that are missing or differ from what was recorded."""
    for event in events:
        if event.kind == "frozen":
            facts, stored = event.facts, reader.model(event.facts["version"])
            named = (facts["digest"], facts["digest"], facts["format"])
            if stored is None or (stored.digest, hashlib.sha256(stored.data).hexdigest(), stored.format) != named:
                yield f"event {event.seq}: the frozen model {facts['version']} is missing or altered"


def weighed_evidence(reader: Reader, state: State, parts: Parts) -> Iterator[str]:
    """Evidence of a certify phase that differs from what the frozen model and the rows give, if no label came since."""
    facts = state.weighed
    # labels that came since have not been weighed yet: there is nothing to compare with
    if facts is None or state.frozen is None or facts["rests_on"] < state.evidenced:
        return
    phase = state.proving or state.outcome
    if phase is None:
        return
    spent = spent_by(state.frozen["version"], phase["delta"])
    again = weighed(FrozenModel(parts).findings(reader, state), state, spent)
    # counts and sums, not bounds: bounds follow from them, and would differ by rounding
    for name in ("first", "now", "labels", "doubtful"):
        if facts[name] != again[name]:
            yield f"the evidence as weighed has {name} {facts[name]}, now {again[name]}"
