"""Fits the learner of a campaign and freezes its model, outside any transaction, in one process at a time."""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from evenhand.campaign.deciding import offered
from evenhand.campaign.evidence import Witness
from evenhand.campaign.fitting import Fitter, Still
from evenhand.campaign.proving import conclude, indicated, weighed
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.claims import checks
from evenhand.claims.certificates import Certificate, spent_by
from evenhand.claims.findings import Findings
from evenhand.claims.stopping import ErrorBelow, Seen
from evenhand.errors import InputError, LearnerError, LedgerError
from evenhand.learners import Model
from evenhand.learners.storing import dump_model, load_model
from evenhand.ledger.base import Event, Ledger, Reader, StoredModel, Writer

__all__ = ["LEASE_SECONDS", "Trainer"]

LEASE_SECONDS = 30.0
"""How long after its holder died a refit lease can be taken over."""


T = TypeVar("T")
Write = Callable[[Callable[[State, Writer], Any]], list[Event]]
"""Takes a step of the campaign under its write lock."""
Moment = Callable[[], AbstractContextManager[tuple[Reader, State]]]
"""A moment of the campaign, and its state then in lists of its own."""


class Trainer:
    """The fitted and the frozen model of one campaign as caches, and the lease that lets one process refit at a time.

    Args:
        ledger: where the campaign is kept.
        campaign: its number there.
        parts: its objects.
        write: takes a step of the campaign.
        moment: reads it.
    """

    def __init__(self, ledger: Ledger, campaign: int, parts: Parts, write: Write, moment: Moment) -> None:
        self._ledger, self._campaign, self._parts = ledger, campaign, parts
        self._write, self._read = write, moment
        # one lock each, taken in this order, so that a thread that looks never waits for one that fits
        self._refit_lock, self._fitter_lock, self._witness_lock = (threading.RLock() for _ in range(3))
        self._fitter: Fitter | None = None
        self._witness = Witness(parts)
        self._tried = False
        self.last_failure: str | None = None
        self._holder = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"

    # ---------------------------------------------------------------- refits

    def due(self, state: State) -> bool:
        """Whether the settings want a refit before the next ask."""
        policy = state.settings["refit"]
        needed = getattr(self._parts.strategy, "needs_scores", True) or state.settings["stop"] is not None
        goes_on = getattr(self._parts.learner, "incremental", False)
        if not (needed or goes_on) or not state.fresh or state.closed is not None or policy == "background":
            return False
        if state.proving is not None:  # a proof asks by its own evidence, not by scores
            return False
        return bool(policy == "always" or state.examples - state.scored_examples >= policy)

    def refit(self, *, record_failure: bool = False) -> bool:
        """Fit and score if examples came since the last scores; False if there was nothing to do or another does it.

        With `record_failure` a learner that fails leaves a `failed` event instead of raising.
        """
        with self._alone() as mine:
            if not mine:
                return False
            with self._fitter_lock:
                with self._read() as (reader, state):
                    if state.settings["learner"] is None or not state.fresh or state.closed is not None:
                        return False
                    if state.columns is None:
                        return False
                    still = self._current().still(reader, state)
                try:
                    facts = self._with_fitter(lambda fitter: fitter.scores(still, state))
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
        if done and (wish := self._wish()) is not None:
            with suppress(InputError):  # a model that cannot be frozen yet; status says what is missing
                self.certify(wish.target, model="final", most=None, delta=1 - wish.confidence, by_rule=True)
        return done

    def _failure(self, error: LearnerError, state: State) -> dict[str, Any]:
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
        """The model of the training examples there are."""
        with self._fitter_lock:
            with self._read() as (reader, state):
                if state.settings["learner"] is None or not sum(state.train) or state.columns is None:
                    return None
                still = self._everything(reader)
            if self._current().incremental:
                return self._with_fitter(lambda fitter: _brought_up(fitter, still, state))
            return self._current().cold(state, [row for row in still.changed() if row.counts and row.role == "train"])

    def final_model(self) -> Model:
        """The model of all examples there are."""
        with self._fitter_lock:
            with self._read() as (reader, state):
                if state.settings["learner"] is None or state.columns is None or not state.examples:
                    raise InputError("there is no model: this campaign has no learner or no examples yet")
                still = self._everything(reader)
            return self._with_fitter(lambda fitter: fitter.final(still, state))

    def _everything(self, reader: Reader) -> Still:
        """All rows of this moment, and the scores a learner that goes on went through."""
        return Still(reader.changed(), reader.events(kinds=("scored",)) if self._current().incremental else [])

    # ---------------------------------------------------------------- certificates

    def certify(
        self,
        target: float | None = None,
        *,
        model: Any = "final",
        most: int | None = None,
        delta: float = 0.05,
        distinct: bool | None = None,
        by: str | None = None,
        by_rule: bool = False,
    ) -> Certificate:
        """Freeze a model and store it, and with a target begin the phase that proves it; gives the certificate so far."""
        checks.probability("delta", delta)
        if target is not None:
            checks.probability("target", target)
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise InputError(f"most must be a number of labels from 1 up, not {most!r}")
        if most is not None and target is None:
            raise InputError("most limits the labels of a proof, which needs a target: give target=...")
        with self._read() as (reader, state):
            vouched = bool(state.settings["distinct"] if distinct is None else distinct)
            if not vouched and any(row.made for row in reader.changed()):
                raise InputError(
                    "rows were told without ids, so nobody can know whether one came twice: certify(distinct=True) is your "
                    "word that every row is another example; or give every row its id"
                )
        if target is not None and not by_rule:
            self.refit(record_failure=True)  # scores say how many labels to expect, also where the rule needs none
        stored, facts = self._stored(model, delta, vouched)
        phase = None if target is None else {"target": target, "delta": float(delta), "most": most, "by_rule": by_rule}

        def step(now: State, writer: Writer) -> None:
            if now.closed is not None:
                raise InputError(f"the campaign is closed ({now.closed}): no model can be frozen any more")
            anew, compared = True, dict[str, Any]()
            if phase is not None and now.frozen is not None:
                anew, compared = self._anew(writer, now, phase, stored.digest, model)
            if anew:
                version = 1 + (now.frozen["version"] if now.frozen else 0)
                writer.put_model(stored._replace(version=version))
                writer.append("frozen", {"version": version, "labels": now.labels_used, **facts}, actor=by)
            if phase is not None:
                writer.append("proving", {**phase, **compared}, actor=by)

        self._write(step)
        if phase is not None:
            self.weigh()
        found = self.certificate(None)
        if found is None:
            raise AssertionError("a model was frozen just now")
        return found

    def _stored(self, model: Any, delta: float, vouched: bool) -> tuple[StoredModel, dict[str, Any]]:
        """The model as it is stored, and what its event says of it; one that cannot be stored is refused."""
        form, data = dump_model(self._chosen(model))
        digest = hashlib.sha256(data).hexdigest()
        load_model(form, data, self._parts.learner if form == "torch" else None)
        facts = {"digest": digest, "format": form, "delta": float(delta), "distinct": vouched, "versions": _versions()}
        facts["model"] = model if isinstance(model, str) else "own"
        return StoredModel(0, digest, form, data), facts

    def _anew(
        self, reader: Reader, now: State, phase: Mapping[str, Any], digest: str, model: Any
    ) -> tuple[bool, dict[str, Any]]:
        """Whether to freeze a model anew for a target, and the labels expected with either one.

        The frozen model has evidence, a new one is fitted on more labels and has a smaller δ.
        """
        assert now.frozen is not None
        version, delta, target = now.frozen["version"], phase["delta"], phase["target"]
        if now.frozen["digest"] == digest:
            return False, {}
        if not isinstance(model, str):
            return True, {}  # a model of the user's own is the one to be certified
        with self._witness_lock:
            found = self._witness.findings(reader, now)
        rates = indicated(now, found.strata)
        kept = _total(found.further(target, spent_by(version, delta), rates))
        new = _total(Findings(found.groups, found.strata).further(target, spent_by(version + 1, delta), rates))
        return _fewer(new, kept), {"expected_kept": kept, "expected_anew": new}

    def weigh(self) -> None:
        """Count the evidence on the frozen model and write down what a certify phase decides on, and how it ended."""
        with self._read() as (reader, state):
            if state.proving is None or state.frozen is None or state.closed is not None:
                return
            known = state.weighed is not None and state.weighed["rests_on"] >= state.evidenced
            if not known:
                with self._witness_lock:
                    found = self._witness.findings(reader, state)
                spent = spent_by(state.frozen["version"], state.proving["delta"])
                facts = weighed(found, state, spent)

        def step(now: State, writer: Writer) -> None:
            if now.proving is None or now.closed is not None or now.proving["event"] != phase:
                return
            if not known and (now.weighed is None or now.weighed["rests_on"] < facts["rests_on"]):
                now = now.copy().fold([writer.append("weighed", facts)])
            # what came since is weighed the next time; the phase must not end on less than is known
            if now.weighed is not None and now.weighed["rests_on"] >= now.evidenced:
                outcome = conclude(now, offered(now))
                if outcome is not None:
                    writer.append("concluded", outcome)

        phase = state.proving["event"]
        self._write(step)

    def _chosen(self, model: Any) -> Any:
        if model is None or not isinstance(model, str):
            if model is None or not hasattr(model, "predict"):
                raise InputError(f"{model!r} is no model: it has no predict(X)")
            return _as_model(model)
        if model not in ("final", "current"):
            raise InputError(f"model must be 'final', 'current' or a model of your own, not {model!r}")
        found = self.final_model() if model == "final" else self.model()
        if found is None:
            raise InputError("there is no model to certify yet: tell training examples first")
        return found

    def certificate(self, delta: float | None) -> Certificate | None:
        """What is certain about the frozen model; None without one."""
        with self._read() as (reader, state):
            return self.certificate_at(reader, state, delta)

    def certificate_at(self, reader: Reader, state: State, delta: float | None = None) -> Certificate | None:
        """The certificate at a reader's moment."""
        with self._witness_lock:
            return self._witness.certificate(reader, state, delta)

    def certified_model(self) -> Model | None:
        """The frozen model."""
        with self._read() as (reader, state), self._witness_lock:
            return self._witness.model(reader, state)

    # ---------------------------------------------------------------- stopping

    def reason_to_stop(self, reader: Reader, state: State) -> str | None:
        """Why to ask no more by the stopping rule; None to go on."""
        rule = self._parts.stop
        return None if rule is None else rule.reason(self._seen(reader, state))

    def _wish(self) -> ErrorBelow | None:
        """The rule that wants the newest model proved now; None without one."""
        rule = self._parts.stop
        if rule is None or not rule.needs_certificate:
            return None
        with self._read() as (reader, state):
            if state.proving is not None:
                return None
            seen = self._seen(reader, state)
            return None if rule.reason(seen) is not None else rule.wish(seen)

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
            fitter, self._fitter = self._current(), None
            found = work(fitter)
            self._fitter = fitter
            return found

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Hold the refit lease while the block runs, renewed as long as this process lives; False: another has it."""
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
                self._ledger.lease(self._campaign, self._holder, 0)

    def _renew(self, done: threading.Event) -> None:
        # a third of its length, so that one renewal may fail without another process taking over
        while not done.wait(LEASE_SECONDS / 3):
            with suppress(LedgerError):  # the next one may work; if not, another process may take over
                self._ledger.lease(self._campaign, self._holder, LEASE_SECONDS)


def _brought_up(fitter: Fitter, reader: Reader, state: State) -> Model | None:
    fitter.catch_up(reader, state)
    fitter.bring_up(reader, state)
    return fitter.model


def _total(needed: list[int | None]) -> int | None:
    """The labels of all groups; None where one will not get there."""
    return None if any(labels is None for labels in needed) else sum(labels or 0 for labels in needed)


def _fewer(new: int | None, kept: int | None) -> bool:
    return new is not None and (kept is None or new < kept)


def _as_model(given: Any) -> Any:
    """A model of the user's own, a bare fitted scikit-learn classifier wrapped."""
    from evenhand.learners import Logistic, SklearnModel

    bare = hasattr(given, "get_params") and not isinstance(given, Logistic)
    return SklearnModel(given) if bare else given


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("evenhand", "numpy", "scikit-learn")}
