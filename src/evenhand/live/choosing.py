"""What to ask next, straight from the facts in a ledger."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from evenhand.campaign import Campaign
from evenhand.ledger import State
from evenhand.request import NothingToAsk, Request, why_nothing
from evenhand.standing import Standing
from evenhand.stats import RunningTrend

__all__ = ["Chooser"]


class Chooser:
    """Makes the requests that a campaign would make which stands as the state says, without building it.

    This happens while the write lock is held, so it is made to be quick.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._engine, self._batch = campaign._engine, campaign.batch
        self._index = {group: z for z, group in enumerate(campaign.groups)}
        self._all = [True] * len(self._index)
        self._recent: list[list[float]] = []
        self._accuracies = self._trend = np.zeros(0)

    def requests(self, state: State, count: int, gone: Collection[int] = ()) -> list[Request]:
        """Up to `count` requests, as if the open ones that are not `gone` were already answered."""
        if count < 1:
            raise ValueError(f"ask for 1 request or more, not {count}")
        waiting = [header for number, header in state.open.items() if number not in gone]
        unspent = state.settings["budget"] - state.labels_used
        training, held = ([0] * len(self._index) for _ in range(2))  # what is still to come
        for header in waiting:
            unspent -= header["size"]
            z = self._index[header["group"]]
            training[z] += header["size"] - header["validating"]
            held[z] += header["validating"]
        some = len(state.unavailable) < len(self._index)
        found: list[Request] = []
        while len(found) < count:
            size = min(2 * self._batch, unspent)
            if reason := why_nothing(size, available=some, waiting=bool(waiting or found)):
                if found:
                    break
                raise NothingToAsk(reason)
            request, z = self._request(state, state.asked + len(found), size, training, held)
            training[z] += size - request.validating
            held[z] += request.validating
            unspent -= size
            found.append(request)
        return found

    def _request(
        self, state: State, asked: int, size: int, training: list[int], held: list[int]
    ) -> tuple[Request, int]:
        """The next request, and its group's place."""
        engine = self._engine
        decision = engine.strategy(self._standing(state, asked, training, held), engine.coins_of(asked))
        z = int(decision.index)
        told = state.counts[z] + state.held[z] + training[z] + held[z]
        validating = engine.validating(told + size) - engine.validating(told)
        return Request(asked + 1, engine.groups[z], size, validating, decision), z

    def _standing(self, state: State, asked: int, training: list[int], held: list[int]) -> Standing:
        if self._recent != state.recent:
            self._recent = list(state.recent)
            window = np.full((len(self._index), state.settings["window"]), np.nan)
            for z, values in enumerate(state.recent):
                window[z, : len(values)] = values
            self._accuracies, self._trend = window, RunningTrend.of(window).trend
        available = [group not in state.unavailable for group in self._index] if state.unavailable else self._all
        unscored = 0 in state.scored and any(can and not n for can, n in zip(available, state.scored, strict=True))
        return Standing(
            groups=self._engine.groups,
            counts=np.array(state.counts),
            pending=np.array(training),
            validated=np.array(state.scored),
            pending_validation=np.array(held),
            loss_sum=np.array(state.loss_sum),
            accuracies=self._accuracies,
            trend=self._trend,
            available=np.array(available),
            starting=np.array(asked < self._engine.n0 or unscored),
            population=self._engine.population,
        )
