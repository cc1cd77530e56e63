"""What to ask next, from the state alone: the standing, the strategy's choice, the requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.decision import Decision
from evenhand.errors import InputError, NothingToAsk
from evenhand.standing import Standing
from evenhand.stats.trend import RunningTrend
from evenhand.strategies.base import COINS
from evenhand.uniforms import Uniforms, role_states, roles

__all__ = ["Chooser", "Proposal", "offered", "why_nothing"]

_CHOICES = 0
"""The purpose of the numbers behind ties and exploration, as in the engine."""


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
    if size < 2:
        return "waiting for open requests" if state.open else "budget spent"
    return None


def offered(state: State) -> list[bool]:
    """Which groups can be asked of: not retired and, with a pool, with a pair of examples left."""
    left = state.pool or [2] * len(state.groups)
    return [group not in state.retired and n >= 2 for group, n in zip(state.groups, left, strict=True)]


class Chooser:
    """Makes the requests of one campaign; it keeps nothing but its random numbers."""

    def __init__(self, parts: Parts) -> None:
        settings = parts.settings
        self._parts = parts
        self._groups = tuple(settings["groups"])
        self._index = {group: z for z, group in enumerate(self._groups)}
        seed, trial = int(settings["seed"]), settings["trial"]
        self._uniforms = Uniforms(seed, _CHOICES, np.array([trial]), COINS)
        self._role_states = role_states(seed, trial, np.arange(len(self._groups)))
        share = settings["population"]
        self._population = None if share is None else np.array(share, dtype=float)

    def roles(self, z: int, dealt: int, count: int) -> NDArray[np.bool_]:
        """Which of a group's next examples validate, when so many were dealt before."""
        return roles(self._role_states[z : z + 1], dealt + np.arange(count), self._parts.settings["validation"])

    def waiting(self, state: State) -> NDArray[np.int64]:
        """Labels of every group that open requests wait for, those of pools left out."""
        found = np.zeros(len(self._groups), dtype=np.int64)
        for request in state.open.values():
            if "left" not in request:
                found[self._index[request["group"]]] += request["size"] - request["told"]
        return found

    def handed_out(self, state: State) -> NDArray[np.int64]:
        """Examples of pools that open requests hold, training and validation, in two rows."""
        found = np.zeros((2, len(self._groups)), dtype=np.int64)
        for request in state.open.values():
            for role in request.get("left", {}).values():
                found[int(role == "v"), self._index[request["group"]]] += 1
        return found

    def standing(
        self,
        state: State,
        waiting: NDArray[np.int64] | None = None,
        asked: int | None = None,
        offers: Sequence[bool] | None = None,
        *,
        trend: bool = True,
    ) -> Standing:
        """What is known per group; labels that open requests are `waiting` for count as told."""
        waiting = self.waiting(state) if waiting is None else waiting
        m = len(self._groups)
        validating = np.zeros(m, dtype=np.int64)
        for z in np.flatnonzero(waiting).tolist():
            validating[z] = self.roles(z, state.dealt[z], int(waiting[z])).sum()
        training, held = self.handed_out(state)
        accuracies = np.full((m, state.settings["window"]), np.nan)
        for z, values in enumerate(state.recent):
            accuracies[z, : len(values)] = values
        available = np.array(offered(state) if offers is None else offers)
        scored = np.array(state.scored)
        warming_up = (state.asked if asked is None else asked) < (state.settings["warmup"] or 0)
        return Standing(
            groups=self._groups,
            counts=np.array(state.train),
            pending=waiting - validating + training,
            validated=scored,
            pending_validation=validating + held,
            loss_sum=np.array(state.loss_sum),
            accuracies=accuracies,
            trend=RunningTrend.of(accuracies).trend if trend else np.zeros(m),
            available=available,
            starting=np.array(warming_up or bool(((scored == 0) & available).any())),
            population=self._population,
            batch=state.settings["batch"],
        )

    def propose(self, state: State, count: int) -> list[Proposal]:
        """Up to `count` requests, as if the open ones were already answered."""
        if count < 1:
            raise InputError(f"ask for 1 request or more, not {count}")
        unspent, waiting = state.unspent, self.waiting(state)
        offers, left = offered(state), None if state.pool is None else list(state.pool)
        found: list[Proposal] = []
        while len(found) < count:
            size = min(2 * state.settings["batch"], unspent)
            reason = why_nothing(state, size)
            if reason is None and not any(offers):
                reason = "groups used up"
            if reason is not None:
                if found:
                    break
                raise NothingToAsk(reason)
            asked = state.asked + len(found)
            trend = getattr(self._parts.strategy, "needs_trend", True)
            standing = self.standing(state, waiting, asked, offers, trend=trend)
            decision = self._parts.strategy(standing, self._uniforms.at(np.array([asked]))[0])
            if not isinstance(decision, Decision):
                raise InputError(f"the strategy gave {decision!r}: a strategy returns a Decision (see Decision.of)")
            z = int(decision.index)
            if left is not None:
                size = min(size, left[z])
                left[z] -= size
                offers[z] = left[z] >= 2
            found.append(Proposal(decision, size))
            unspent -= size
            waiting[z] += size
        return found
