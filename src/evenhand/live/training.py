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
from evenhand.live.fitting import Fitter, Frozen
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
        self._frozen: Frozen | None = None
        self._holder = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def scores(self, state: State) -> dict[str, Any]:
        """What a `scored` event of this state says."""
        with self._lock:
            frozen = self.frozen(state)
            if self._fitter is not None and self._fitter.upto > max(state.rests_on):
                self._fitter = None  # it has seen rows that the model of the last scores had not
            return self._fit(state, lambda fitter: fitter.scores(state, frozen))

    def frozen(self, state: State) -> Frozen | None:
        """The certified model, rebuilt where this process has not got it.

        None without one, or where fitting again gives another model.
        """
        if (made := state.frozen) is None:
            return None
        with self._lock:
            if self._frozen is None or self._frozen.version != made["version"]:
                fitter = self.certifying(state)
                if fitter.digest != made["learner"]:
                    return None
                model = self.model_at(fitter, state, made["rests_on"])
                if fitter.errors() != made["errors"]:
                    return None
                self._frozen = Frozen(made["version"], made["event"], model)
            return self._frozen

    def certifying(self, state: State) -> Fitter:
        """A fitter that gives the same model again in every process; an error where none does."""
        if state.settings["learner"] is None:
            raise ValueError("this campaign has no learner: keep Evidence on your own model (evenhand.certificates)")
        fitter = Fitter(self.ledger, self.campaign, state)
        if fitter.incremental:
            raise ValueError(
                "this learner goes on from its previous model, so a frozen one cannot be rebuilt exactly: "
                "certify in a Campaign in memory, or use a learner that fits anew"
            )
        return fitter

    def model_at(self, fitter: Fitter, state: State, rests_on: int) -> Model:
        """The model that scores resting on this event stand for."""
        with _learner_errors(state):
            fitter.fit(rests_on)
        if fitter.model is None:
            raise ValueError("there is no model to certify yet: tell training examples first")
        return fitter.model

    def model(self, state: State) -> Model | None:
        """The model of this state's training examples."""

        def work(fitter: Fitter) -> Model | None:
            fitter.catch_up(state)
            fitter.fit(state.seq)
            return fitter.model

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
            fitter, self._fitter = self._fitter, None
            with _learner_errors(state):
                found = work(fitter)
            self._fitter = fitter
            return found


@contextmanager
def _learner_errors(state: State) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise LearnerError(f"the learner failed in fit after round {state.answered}: {error}") from error
