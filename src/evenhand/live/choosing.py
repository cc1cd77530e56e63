"""What to ask next, straight from the facts in a ledger."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from evenhand.campaign import Campaign
from evenhand.ledger import State
from evenhand.request import NothingToAsk, Request, why_nothing
from evenhand.standing import Standing
from evenhand.stats import RunningTrend

__all__ = ["Chooser"]

Counts = NDArray[np.int64]


class Chooser:
    """Makes the requests that a campaign would make which stands as the state says, without building it.

    This happens while the write lock is held, so it is made to be quick.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._engine, self._batch = campaign._engine, campaign.batch
        self._index = {group: z for z, group in enumerate(campaign.groups)}
        self._recent: list[list[float]] = []
        self._accuracies = self._trend = np.zeros(0)

    def requests(self, state: State, count: int, gone: Collection[int] = ()) -> list[Request]:
        """Up to `count` requests, as if the open ones that are not `gone` were already answered."""
        if count < 1:
            raise ValueError(f"ask for 1 request or more, not {count}")
        waiting = [header for number, header in state.open.items() if number not in gone]
        unspent = state.settings["budget"] - state.labels_used - sum(header["size"] for header in waiting)
        pending = np.zeros((2, len(self._index)), dtype=np.int64)  # those for training, those for validation
        for header in waiting:
            self._expect(pending, header["group"], header["size"], header["validating"])
        found: list[Request] = []
        while len(found) < count:
            size = min(2 * self._batch, unspent)
            some = len(state.unavailable) < len(self._index)
            if reason := why_nothing(size, available=some, waiting=bool(waiting or found)):
                if found:
                    break
                raise NothingToAsk(reason)
            request = self._request(state, state.asked + len(found), size, pending)
            self._expect(pending, request.group, size, request.validating)
            unspent -= size
            found.append(request)
        return found

    def _expect(self, pending: Counts, group: str, size: int, validating: int) -> None:
        z = self._index[group]
        pending[0, z] += size - validating
        pending[1, z] += validating

    def _request(self, state: State, asked: int, size: int, pending: Counts) -> Request:
        engine = self._engine
        engine.asked[0] = asked
        decision = engine.strategy(self._standing(state, asked, pending), engine.coins()[0])
        z = int(decision.index)
        told = state.counts[z] + state.held[z] + pending[:, z].sum()
        before, after = engine.validation_examples(told + np.array([0, size]))
        return Request(asked + 1, engine.groups[z], size, int(after - before), decision)

    def _standing(self, state: State, asked: int, pending: Counts) -> Standing:
        if self._recent != state.recent:
            self._recent = list(state.recent)
            window = np.full((len(self._index), state.settings["window"]), np.nan)
            for z, values in enumerate(state.recent):
                window[z, : len(values)] = values
            self._accuracies, self._trend = window, RunningTrend.of(window).trend
        available = [group not in state.unavailable for group in self._index]
        unscored = any(offered and not n for offered, n in zip(available, state.scored, strict=True))
        return Standing(
            groups=self._engine.groups,
            counts=np.array(state.counts),
            pending=pending[0],
            validated=np.array(state.scored),
            pending_validation=pending[1],
            loss_sum=np.array(state.loss_sum),
            accuracies=self._accuracies,
            trend=self._trend,
            available=np.array(available),
            starting=np.array(asked < self._engine.n0 or unscored),
            population=self._engine.population,
        )
