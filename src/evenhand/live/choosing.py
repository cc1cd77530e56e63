"""What to ask next, straight from the facts in a ledger."""

from __future__ import annotations

from collections.abc import Collection
from operator import add

import numpy as np

from evenhand.campaign import Campaign
from evenhand.decision import Decision
from evenhand.ledger import State
from evenhand.live.quick import as_quick, choose
from evenhand.request import NothingToAsk, Request, why_nothing
from evenhand.standing import Standing
from evenhand.stats import RunningTrend

__all__ = ["Chooser"]


class Chooser:
    """Makes the requests that a campaign would make which stands as the state says, without building it.

    This may happen while the write lock is held, so it is made to be quick.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._engine, self._batch = campaign._engine, campaign.batch
        self._index = {group: z for z, group in enumerate(campaign.groups)}
        self._quick = as_quick(campaign.strategy)
        self._all = [True] * len(self._index)
        self._look_at([[] for _ in self._index], 1)

    def requests(self, state: State, count: int, gone: Collection[int] = ()) -> list[Request]:
        """Up to `count` requests, as if the open ones that are not `gone` were already answered."""
        if count < 1:
            raise ValueError(f"ask for 1 request or more, not {count}")
        waiting = [header for number, header in state.open.items() if number not in gone]
        unspent = state.settings["budget"] - state.labels_used
        training, held = [0] * len(self._index), [0] * len(self._index)  # what is still to come
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
        engine, coins = self._engine, self._engine.coins_of(asked)
        if state.recent != self._recent:
            self._look_at(state.recent, state.settings["window"])
        available = [group not in state.unavailable for group in self._index] if state.unavailable else self._all
        unscored = 0 in state.scored and any(can and not n for can, n in zip(available, state.scored, strict=True))
        starting = asked < engine.warmup or unscored
        decision: Decision
        if self._quick is not None:
            z, decision = choose(
                self._quick,
                engine.groups,
                examples=list(map(add, state.counts, training)),
                validated=list(map(add, state.scored, held)),
                loss_sum=state.loss_sum,
                trend=self._trends,
                available=available,
                starting=starting,
                coin=coins[0],
            )
        else:
            decision = engine.strategy(self._standing(state, training, held, available, starting), np.array(coins))
            z = int(decision.index)
        told = state.counts[z] + state.held[z] + training[z] + held[z]
        validating = engine.validating(told + size) - engine.validating(told)
        return Request(asked + 1, engine.groups[z], size, validating, decision), z

    def _look_at(self, recent: list[list[float]], window: int) -> None:
        self._recent = list(recent)
        self._accuracies = np.full((len(recent), window), np.nan)
        for z, values in enumerate(recent):
            self._accuracies[z, : len(values)] = values
        self._trend = RunningTrend.of(self._accuracies).trend
        self._trends = self._trend.tolist()

    def _standing(
        self, state: State, training: list[int], held: list[int], available: list[bool], starting: bool
    ) -> Standing:
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
            starting=np.array(starting),
            population=self._engine.population,
        )
