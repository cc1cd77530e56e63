"""Fits the learner of a campaign and freezes its model, outside any transaction, in one process at a time."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TypeVar

from evenhand.campaign.certifying import Certifier, Moment, Write
from evenhand.campaign.proof import indicated
from evenhand.campaign.scores import Fitter, FixedReader
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.claims.stopping import ErrorBelow, Seen
from evenhand.errors import InputError, LearnerError, LedgerError
from evenhand.learners import Model
from evenhand.learners.choosing import FinalModel
from evenhand.ledger.base import Ledger, Reader, Writer
from evenhand.notation import JsonObject

__all__ = ["LEASE_SECONDS", "Trainer"]

LEASE_SECONDS = 30.0
"""How many seconds after its holder died a refit lease can be taken over."""


T = TypeVar("T")


class Trainer:
    """The fitted and the frozen model of one campaign as caches, and the lease that lets one process refit at a time.

    Args:
        ledger: where the campaign is kept.
        campaign: its number there.
        parts: its objects.
        write: takes a step of the campaign.
        moment: reads the campaign at one moment.
    """

    def __init__(self, ledger: Ledger, campaign: int, parts: Parts, write: Write, moment: Moment) -> None:
        self._ledger, self._campaign, self._parts = ledger, campaign, parts
        self._write, self._read = write, moment
        # one lock each, taken in this order, so that a thread that looks never waits for one that fits
        self._refit_lock, self._fitter_lock = threading.RLock(), threading.RLock()
        self._fitter: Fitter | None = None
        self.certifier = Certifier(parts, write, moment, self._fitted_model, lambda: self.refit(record_failure=True))
        self._tried = False
        self.last_failure: str | None = None
        # the number of a process is used again after it ended,
        # and two campaigns of one process are two holders
        self._holder = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"

    # ---------------------------------------------------------------- refits

    def due(self, state: State) -> bool:
        """Whether the settings require a refit before the next ask."""
        policy = state.settings["refit"]
        # Uniform looks at no scores, so its campaigns are not made to wait for fits
        needed = getattr(self._parts.strategy, "needs_scores", True) or state.settings["stop"] is not None
        # a network that goes on from its weights takes a step
        # for every round: skipping one would give another model
        goes_on = getattr(self._parts.learner, "incremental", False)
        if not (needed or goes_on) or not state.fresh or state.closed is not None or policy == "background":
            return False
        if state.proving is not None:  # a proof asks by its own evidence, not by scores
            return False
        return bool(policy == "always" or state.examples - state.scored_examples >= policy)

    def refit(self, *, record_failure: bool = False) -> bool:
        """Fit and score if examples came since the last scores; False if there was no need or another process refits.

        With `record_failure` a learner that fails leaves a `failed` event instead of raising.
        """
        with self._refit_lease() as mine:
            if not mine:
                return False
            with self._fitter_lock:
                with self._read() as (reader, state):
                    if state.settings["learner"] is None or not state.fresh or state.closed is not None:
                        return False
                    if state.columns is None:
                        return False
                    # the rows are copied out and the reader is
                    # released before the fit, which may take minutes
                    fixed = self._current().fixed_reader(reader, state)
                try:
                    facts = self._with_fitter(lambda fitter: fitter.scores(fixed, state))
                except LearnerError as error:
                    if not record_failure:
                        raise
                    facts, failure = None, self._failure(error, state)

            def step(now: State, writer: Writer) -> None:
                # the fit held no lock: if somebody else's scores came first, these are of an older moment
                if now.closed is not None or now.rests_on != state.rests_on:
                    return
                if facts is not None:
                    writer.append("scored", facts)
                elif now.failure is None or now.failure["rests_on"] < failure["rests_on"]:
                    writer.append("failed", failure)

            done = bool(self._write(step)) and facts is not None
        if done and (rule := self._rule_to_prove()) is not None:
            with suppress(InputError):  # a model that cannot be frozen yet; status says what is missing
                self.certifier.certify(rule.target, model="final", most=None, delta=1 - rule.confidence, by_rule=True)
        return done

    def _failure(self, error: LearnerError, state: State) -> JsonObject:
        """What the ledger says of a failure: its kind; the message may quote rows and stays in this process."""
        self.last_failure = str(error)
        return {"error": type(error.__cause__ or error).__name__, "rests_on": max(state.arrived)}

    def try_out(self) -> None:
        """Fit the learner on the first rows delivered, where no refit is due for long; a failure is recorded."""
        with self._fitter_lock:
            with self._read() as (reader, state):
                rows = [row for row in reader.changed() if row.counts and row.role == "train"]
            if self._tried or not rows:
                return
            self._tried = True
            try:
                self._current().cold(state, rows)
            except LearnerError as error:
                failure = self._failure(error, state)
            else:
                return

        def step(now: State, writer: Writer) -> None:
            if now.closed is None and now.failure is None:
                writer.append("failed", failure)

        self._write(step)

    def model(self) -> Model | None:
        """The model fitted on the training examples there are."""
        with self._fitter_lock:
            with self._read() as (reader, state):
                if state.settings["learner"] is None or not sum(state.train) or state.columns is None:
                    return None
                fixed = self._everything(reader)
            if self._current().incremental:
                return self._with_fitter(lambda fitter: _fitted_now(fitter, fixed, state))
            return self._current().cold(state, [row for row in fixed.changed() if row.counts and row.role == "train"])

    def final_model(self, *, plain: bool = False) -> FinalModel:
        """The model to deploy, fitted on all examples there are."""
        with self._fitter_lock:
            with self._read() as (reader, state):
                if state.settings["learner"] is None or state.columns is None or not state.examples:
                    raise InputError("there is no model: this campaign has no learner or no examples yet")
                fixed = self._everything(reader)
            return self._with_fitter(lambda fitter: fitter.final(fixed, state, plain=plain))

    def _fitted_model(self, which: str) -> Model | None:
        return self.final_model().model if which == "final" else self.model()

    def _everything(self, reader: Reader) -> FixedReader:
        """All rows at this moment, and the past scores of a learner that continues its last model."""
        return FixedReader(reader.changed(), reader.events(kinds=("scored",)) if self._current().incremental else [])

    # ---------------------------------------------------------------- stopping

    def reason_to_stop(self, reader: Reader, state: State) -> str | None:
        """Why the stopping rule ends the asking; None if it does not."""
        rule = self._parts.stop
        return None if rule is None else rule.reason(self._seen(reader, state))

    def _rule_to_prove(self) -> ErrorBelow | None:
        """The rule that wants the newest model proved now; None without one."""
        rule = self._parts.stop
        if rule is None or not rule.needs_certificate:
            return None
        with self._read() as (reader, state):
            if state.proving is not None:
                return None
            seen = self._seen(reader, state)
            return None if rule.reason(seen) is not None else rule.to_prove(seen)

    def _seen(self, reader: Reader, state: State) -> Seen:
        frozen = state.frozen or {"version": 0, "labels": 0}
        return Seen(
            groups=tuple(state.groups),
            labels=state.labels_used,
            now=datetime.fromtimestamp(reader.now, UTC),
            scores=state.history,
            rates=indicated(state, 1)[:, 0].tolist(),
            validated=state.relevant,
            left=state.unspent,
            outcome=state.outcome,
            version=frozen["version"],
            frozen_labels=frozen["labels"],
            risk=self._parts.risk.claimed.title,
        )

    # ---------------------------------------------------------------- within

    def _current(self) -> Fitter:
        with self._fitter_lock:
            if self._fitter is None:
                self._fitter = Fitter(self._parts)
            return self._fitter

    def _with_fitter(self, work: Callable[[Fitter], T]) -> T:
        """Work with the cached fitter; after an error it is made anew."""
        with self._fitter_lock:
            # a fit that was cut off leaves the fitter half
            # updated, so it is put back only after it has worked
            fitter, self._fitter = self._current(), None
            found = work(fitter)
            self._fitter = fitter
            return found

    @contextmanager
    def _refit_lease(self) -> Iterator[bool]:
        """Hold the refit lease while the block runs, renewed while this process lives; False if another has it."""
        with self._refit_lock:
            if not self._ledger.lease(self._campaign, self._holder, LEASE_SECONDS):
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
                # given back at once: the next process need not wait for it to run out
                self._ledger.lease(self._campaign, self._holder, 0)

    def _renew(self, done: threading.Event) -> None:
        # a third of its length, so that one renewal may fail without another process taking over
        while not done.wait(LEASE_SECONDS / 3):
            with suppress(LedgerError):  # the next one may work; if not, another process may take over
                self._ledger.lease(self._campaign, self._holder, LEASE_SECONDS)


def _fitted_now(fitter: Fitter, reader: Reader, state: State) -> Model | None:
    fitter.fit_as_scored(reader, state)
    fitter.fit_now(reader, state)
    return fitter.model
