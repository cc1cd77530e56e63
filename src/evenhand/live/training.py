"""Fits the learner of a live campaign, outside any transaction, in one process at a time."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from evenhand.learners import Model
from evenhand.ledger import Ledger, LedgerError, State
from evenhand.live.fitting import Fitter
from evenhand.request import LearnerError

__all__ = ["LEASE_SECONDS", "Trainer"]

LEASE_SECONDS = 30.0
"""How long after its holder died a refit lease can be taken over."""

T = TypeVar("T")


class Trainer:
    """The fitted model of one campaign as a cache, and the lease that lets one process refit at a time."""

    def __init__(self, ledger: Ledger, campaign: int) -> None:
        self.ledger, self.campaign = ledger, campaign
        self._lock = threading.RLock()
        self._fitter: Fitter | None = None
        self._holder = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def scores(self, state: State) -> dict[str, Any]:
        """What a `scored` event of this state says."""
        return self._fit(state, lambda fitter: fitter.scores(state))

    def model(self, state: State) -> Model | None:
        """The model of this state's training examples."""

        def work(fitter: Fitter) -> Model | None:
            fitter.fit(state.seq)
            return None if fitter.shelf.memory is None else fitter.shelf.memory.models()[0]

        return self._fit(state, work)

    def final_model(self, state: State) -> Model:
        """The model of all of this state's examples."""

        def work(fitter: Fitter) -> Model | None:
            fitter.load(state.seq)
            return None if fitter.shelf.memory is None else fitter.shelf.memory.final_models()[0]

        if (found := self._fit(state, work)) is None:
            raise ValueError("there is no model: this campaign has no learner or no examples yet")
        return found

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Hold the refit lease while the block runs, renewed as long as this process lives; False: another has it."""
        with self._lock:
            if not self.ledger.lease(self.campaign, self._holder, LEASE_SECONDS):
                yield False
                return
            done = threading.Event()
            thread = threading.Thread(target=self._renew, args=(done,), daemon=True)
            thread.start()
            try:
                yield True
            finally:
                done.set()
                thread.join()
                self.ledger.lease(self.campaign, self._holder, 0)

    def _renew(self, done: threading.Event) -> None:
        while not done.wait(LEASE_SECONDS / 3):
            with suppress(LedgerError):  # the next one may work; if not, another process may take over
                self.ledger.lease(self.campaign, self._holder, LEASE_SECONDS)

    def _fit(self, state: State, work: Callable[[Fitter], T]) -> T:
        with self._lock:
            if self._fitter is None:
                self._fitter = Fitter(self.ledger, self.campaign, state)
            try:
                return work(self._fitter)
            except Exception as error:
                self._fitter = None
                raise LearnerError(f"the learner failed in fit after round {state.answered}: {error}") from error
