"""What to ask next, from the state alone: the standing, the strategy's choice, the requests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evenhand.arrays import Mask
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.errors import NothingToAsk
from evenhand.strategies.base import TEST, UNIFORMS, pick
from evenhand.strategies.decision import Decision
from evenhand.strategies.standing import Standing, request_size
from evenhand.strategies.standing import offered as can_give
from evenhand.strategies.trend import RunningTrend
from evenhand.uniforms import CHOICES, Roles, Uniforms

__all__ = ["Chooser", "Proposal", "offered", "why_nothing"]


class Proposal(NamedTuple):
    """A request about to be made: which group and why, and how many labels."""

    decision: Decision
    size: int


def why_nothing(state: State, size: int) -> str | None:
    """Why no request of `size` labels can be made; None if one can."""
    if state.closed is not None:
        return "closed"
    if not any(offered(state)):
        return "groups used up" if state.groups else "no pool yet"
    if not size:
        return "waiting for open requests" if state.open else "budget spent"
    return None


def offered(state: State) -> list[bool]:
    """Which groups can be asked for: those that are not retired and have enough left."""
    there = can_give(None if state.pool is None else np.array(state.pool), (len(state.groups),)).tolist()
    retired = set(state.retired)
    return [group not in retired and enough for group, enough in zip(state.groups, there, strict=True)]


class Chooser:
    """Makes the requests of one campaign; it keeps nothing but its random numbers."""

    def __init__(self, parts: Parts) -> None:
        settings = parts.settings
        self._parts = parts
        self._groups = tuple(settings["groups"])
        seed, trial = int(settings["seed"]), settings["trial"]
        # the random numbers are those of the engine, so that a campaign
        # equals a trial of a simulation choice by choice
        self._uniforms = Uniforms(seed, CHOICES, np.array([trial]), UNIFORMS)
        self._roles = Roles(seed, [trial], np.arange(len(self._groups)), settings["validation"])
        share = settings["population"]
        self._population = None if share is None else np.array(share, dtype=float)

    def roles(self, z: int, dealt: int, count: int) -> Mask:
        """Which of a group's next `count` examples are for validation, after the first `dealt`."""
        return self._roles.of(0, z, dealt + np.arange(count))

    def standing(self, state: State, *, trend: bool = True) -> Standing:
        """What is known per group; labels that open requests wait for count as told."""
        # outstanding labels count as if they had come, so that ten collectors are not all sent to the same group;
        # which of them will validate is known already, because roles depend on an example's place alone
        waiting, m = np.array(state.promised), len(self._groups)
        validating = np.zeros(m, dtype=np.int64)
        for z in np.flatnonzero(waiting).tolist():
            validating[z] = self.roles(z, state.dealt[z], int(waiting[z])).sum()
        training, held, _ = np.array(state.held)
        accuracies = np.full((m, state.settings["window"]), np.nan)
        for z, values in enumerate(state.recent):
            accuracies[z, : len(values)] = values
        available = np.array(offered(state))
        scored = np.array(state.scored)
        # one array for both where the risk is about every
        # example: `Standing` then knows that nothing is left out
        relevant = scored if state.relevant == state.scored else np.array(state.relevant)
        # test and certify requests are no rounds of the rule, so they do not use up its warm-up
        warming_up = state.asked - state.asked_outside < (state.settings["warmup"] or 0)
        return Standing.of(
            self._groups,
            counts=np.array(state.train),
            told=np.array(state.train) + np.array(state.validate),
            pending=waiting - validating + training,
            pending_validation=validating + held,
            scored=scored,
            relevant=relevant,
            loss_sum=np.array(state.loss_sum),
            accuracies=accuracies,
            trend=RunningTrend.of(accuracies).trend if trend else np.zeros(m),
            available=available,
            warming_up=np.array(warming_up),
            population=self._population,
            batch=state.settings["batch"],
        )

    def propose(self, state: State) -> Proposal:
        """The next request, as if the open ones were already answered: test labels, then a certify phase, then the rule."""
        size = int(request_size(state.settings["batch"], state.unspent))
        if (reason := why_nothing(state, size)) is not None:
            raise NothingToAsk(reason)
        # drawn by the number of requests, so that the choice does
        # not depend on how labels were cut into deliveries
        uniforms = self._uniforms.at(np.array([state.asked]))[0]
        if (test := self._test(state, float(uniforms[0]))) is not None:
            return test
        # the user asked for the proof and has the answer; one
        # that a stopping rule began lets the campaign go on
        if state.outcome is not None and not state.outcome["by_rule"]:
            further = "certify(target=...) begins another proof, change(stop=None) goes on collecting"
            raise NothingToAsk(state.outcome["outcome"], f"{state.outcome['why']}; {further}")
        if state.proving is not None:
            # imported here: it needs SciPy, which an ask without a proof does not wait for
            from evenhand.campaign.proof import choose

            return self._sized(state, choose(state, self._groups, np.array(offered(state)), uniforms), size)
        standing = self.standing(state, trend=getattr(self._parts.strategy, "needs_trend", True))
        return self._sized(state, Decision.checked(self._parts.strategy(standing, uniforms)), size)

    def _test(self, state: State, uniform: float) -> Proposal | None:
        """A request for planned test labels, which come first, equally many of each group; None when all are out."""
        wanted, m = state.settings["test_labels"], len(self._groups)
        if not wanted:
            return None
        # equally many of each group whatever the mixture: the worst
        # group's interval is as wide as its test set is small
        quota = wanted // m + (np.arange(m) < wanted % m)
        lacking = np.where(offered(state), quota - np.array(state.test) - np.array(state.held[2]), 0)
        if not (lacking > 0).any():
            return None
        index = pick(lacking, lacking > 0, np.asarray(uniform))
        decision = Decision(self._groups, index, np.array(TEST), {"lacking": lacking.astype(float)})
        return self._sized(
            state, decision, min(int(request_size(state.settings["batch"], state.unspent)), int(lacking[index]))
        )

    def _sized(self, state: State, decision: Decision, size: int) -> Proposal:
        """A request for what the group's pool can give."""
        return Proposal(decision, size if state.pool is None else min(size, state.pool[int(decision.index)]))
