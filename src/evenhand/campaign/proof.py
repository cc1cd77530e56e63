"""The certify phase: asks for the labels a proof needs most, until the target is certified, refuted, or out of reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.arrays import Floats, Ints, Mask
from evenhand.campaign.events import Concluded, Counts, Weighed
from evenhand.campaign.state import State
from evenhand.claims.certificates import Evidence, spent_by
from evenhand.claims.checks import confidence
from evenhand.claims.findings import Findings
from evenhand.errors import NothingToAsk
from evenhand.strategies.base import CERTIFY, pick
from evenhand.strategies.decision import Decision

CERTIFIED, REFUTED, NOT_REACHED = "certified", "refuted", "not reached"
_BENEFIT = 2.0
"""Standard errors by which a group may be better than it looks before the phase gives up on it."""


def weighed(findings: Findings, state: State, spent: float) -> Weighed:
    """What a `weighed` event says: the evidence so far, and the bound on the worst group."""
    return {
        "first": _counts(findings.first),
        "now": _counts(findings.now),
        "labels": findings.labels.tolist(),
        "doubtful": (findings.gone + findings.missing).tolist(),
        "worst_at_most": findings.worst_at_most(spent),
        "rests_on": state.seq,
    }


def _counts(evidence: Evidence) -> Counts:
    return {"n": evidence.n.tolist(), "total": evidence.total.tolist()}


def read(state: State) -> Findings:
    """The evidence of the newest `weighed` event; none before the first."""
    facts, groups = state.weighed, state.groups
    if facts is None:
        return _informed(Findings(tuple(groups)), state)
    found = Findings(tuple(groups), len(facts["first"]["n"][0]))
    for evidence, counts in ((found.first, facts["first"]), (found.now, facts["now"])):
        evidence.n = np.array(counts["n"], dtype=np.int64)
        evidence.total = np.array(counts["total"], dtype=float)
    found.labels, found.missing = np.array(facts["labels"]), np.array(facts["doubtful"])
    return _informed(found, state)


def _informed(found: Findings, state: State) -> Findings:
    """The findings, with the share of each group's labels that the risk is about, as the scores show it."""
    scored, relevant = np.array(state.scored, dtype=float), np.array(state.relevant, dtype=float)
    if found.strata == 1 and state.settings["risk"] != "log":
        # fnr is about positives only: to get ten of them
        # where one in five is positive takes fifty labels
        found.known_shares = np.where(scored > 0, np.maximum(relevant, 0.5) / np.maximum(scored, 1), 1.0)[:, None]
    return found


def choose(state: State, groups: Sequence[str], available: Mask, uniforms: Floats) -> Decision:
    """The group whose upper bound is furthest above the target; outstanding labels count as they are expected."""
    assert state.proving is not None
    target, found = state.proving["target"], read(state)
    above = found.upper(_spent(state), waiting(state)) - target
    if not (above > 0).any():
        raise NothingToAsk("waiting for open requests")
    if not ((above > 0) & available).any():
        raise NothingToAsk("groups used up")
    # not the largest error but the largest bound: a group
    # with few labels may be the last one the proof lacks
    index = pick(above, available & (above > 0), uniforms[0])
    return Decision(tuple(groups), index, np.array(CERTIFY), {"above the target": above})


def waiting(state: State) -> Ints:
    """Labels of each group that wholly unanswered requests since the freeze wait for: others count as missing."""
    found = np.zeros(len(state.groups), dtype=np.int64)
    since = 0 if state.frozen is None else state.frozen["event"]
    for request in state.open.values():
        if request["event"] > since and not request["told"]:
            found[state.groups.index(request["group"])] += request["size"]
    return found


def conclude(state: State, available: Sequence[bool]) -> Concluded | None:
    """How the phase ends, by the evidence as weighed; None while it goes on."""
    assert state.proving is not None
    target, spent = state.proving["target"], _spent(state)
    found = read(state)
    bound = 1.0 if state.weighed is None else state.weighed["worst_at_most"]
    sure, group = confidence(state.proving["delta"]), None
    low = found.lower(spent)
    # in this order: a proof that is complete counts, whatever else could be said of a group
    if bound <= target:
        outcome, why = CERTIFIED, f"no group's risk is above {target:g}, with {sure}"
    elif (low > target).any():
        group = state.groups[int(np.argmax(low))]
        outcome, why = REFUTED, f"the risk of {group!r} is above {target:g}, with {sure}"
    elif (unreached := _out_of_reach(state, found, available)) is not None:
        outcome, why = NOT_REACHED, f"{unreached}, so {target:g} is not proven with {sure}"
    else:
        return None
    return {
        "outcome": outcome, "why": why, "group": group, "target": target, "delta": state.proving["delta"],
        "worst_at_most": bound, "labels": state.labels_used - state.proving["labels"],
    }  # fmt: skip


def _out_of_reach(state: State, found: Findings, available: Sequence[bool]) -> str | None:
    """Why the target will not be reached with what is left; None while it may be."""
    assert state.proving is not None
    target, spent = state.proving["target"], _spent(state)
    above = found.upper(spent, np.zeros(len(state.groups))) > target
    on_their_way = {request["group"] for request in state.open.values()}
    for z in np.flatnonzero(above & ~np.array(available)).tolist():
        if state.groups[z] not in on_their_way:
            what = "is retired" if state.groups[z] in state.retired else "has no more examples to give"
            return f"the group {state.groups[z]!r} {what}"
    if not state.open and state.unspent < 2:
        return "the budget is spent"
    left = allowed(state)
    needed = found.further(target, spent, indicated(state, found.strata, _BENEFIT), benefit=_BENEFIT)
    # a handful of labels says nothing yet: the phase gives up on no group before it has this many
    few = max(20, 2 * state.settings["batch"])
    sure = np.where(found.labels > 0, found.labels, state.relevant) >= few
    for group, labels, is_sure in zip(state.groups, needed, sure.tolist(), strict=True):
        if labels is None and is_sure:
            return f"the risk of {group!r} looks too near the target, or above it"
    for z, in_pool in enumerate(state.pool or ()):
        if (labels := needed[z] or 0) > state.promised[z] + in_pool and sure[z]:
            group = state.groups[z]
            return (
                f"the group {group!r} is expected to need {labels:,} further labels, and the pool has {in_pool:,} more"
            )
    more = sum(labels or 0 for labels, is_sure in zip(needed, sure.tolist(), strict=True) if is_sure)
    return f"{more:,} further labels are expected, and {max(left, 0):,} may be spent" if more > left else None


def allowed(state: State) -> int:
    """How many labels the phase may still spend, outstanding ones included."""
    assert state.proving is not None
    left = state.unspent + state.outstanding
    most = state.proving["most"]
    return left if most is None else min(left, most - (state.labels_used - state.proving["labels"]))


def expected(state: State) -> dict[str, int | None]:
    """Further labels expected until each group reaches the target; None if it never does at its present rate."""
    assert state.proving is not None
    found = read(state)
    needed = found.further(state.proving["target"], _spent(state), indicated(state, found.strata))
    return dict(zip(state.groups, needed, strict=True))


def indicated(state: State, strata: int, benefit: float = 0.0) -> Floats:
    """Every group's rate on the validation set that steers the sampling: all that is known before new labels come."""
    if state.settings["risk"] == "log":  # certificates are then about the error
        n = np.array(state.scored, dtype=float)
        total = n * (1 - np.array([a or 0.0 for a in state.accuracy]))
    else:
        n, total = np.array(state.relevant, dtype=float), np.array(state.loss_sum)
    # half an error added, or a group without one so far
    # would look as if it never erred (Jeffreys' estimate)
    rate = np.where(n > 0, (total + 0.5) / (n + 1), 0.0)
    rate = np.maximum(rate - benefit * np.sqrt(rate * (1 - rate) / (n + 1)), 0.0)
    return np.repeat(rate[:, None], strata, axis=1)


def _spent(state: State) -> float:
    assert state.proving is not None
    assert state.frozen is not None
    return spent_by(state.frozen["version"], state.proving["delta"])
