"""The models of a campaign: fits and scores, the model to deploy, and the frozen model with the phase that proves it."""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from evenhand.campaign.events import CONCLUDED, FAILED, FROZEN, PROVING, SCORED, WEIGHED, Failed, Frozen, Proving
from evenhand.campaign.log import Log
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.errors import Conflict, InputError, LearnerError, LedgerError
from evenhand.ledger.base import Reader, StoredModel, Writer

# what fits imports scikit-learn, and most commands fit nothing: it is imported where it is first needed
if TYPE_CHECKING:
    from evenhand.campaign.evidence import FrozenModel
    from evenhand.campaign.scores import Fitter, FixedReader
    from evenhand.claims.certificates import Certificate
    from evenhand.claims.stopping import ErrorBelow, Seen
    from evenhand.learners import Model
    from evenhand.learners.choosing import FinalModel

LEASE_SECONDS = 30.0
"""How many seconds after its holder died a refit lease can be taken over."""


T = TypeVar("T")


class Models:
    """What is fitted in a campaign: the model of its scores, the one to deploy, the frozen one and its proof.

    They are caches of what the ledger says, except the frozen model, which is stored. Fitting happens outside any
    transaction, in one process at a time.

    Attributes:
        last_failure: the learner's last message, where this process saw it.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        # one lock each, taken in this order, so that a thread that looks never waits for one that fits
        self._refit_lock, self._fitter_lock = threading.RLock(), threading.RLock()
        self._fitter: Fitter | None = None
        self._frozen_lock = threading.RLock()
        self._frozen: FrozenModel | None = None
        self._tried: Parts | None = None
        self.last_failure: str | None = None
        # the number of a process is used again after it ended,
        # and two campaigns of one process are two holders
        self._holder = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def forget(self) -> None:
        """Drop all that was fitted: rows that it holds were erased."""
        with self._fitter_lock, self._frozen_lock:
            self._fitter = self._frozen = None

    # ---------------------------------------------------------------- refits

    def due(self, state: State) -> bool:
        """Whether the settings require a refit before the next ask."""
        policy = state.settings["refit"]
        # Uniform looks at no scores, so its campaigns are not made to wait for fits
        needed = self._log.parts.needs.scores or state.settings["stop"] is not None
        # a network that goes on from its weights takes a step
        # for every round: skipping one would give another model
        goes_on = state.settings["learner"] is not None and self._log.parts.traits.incremental
        if not (needed or goes_on) or not state.fresh or state.closed is not None or policy == "background":
            return False
        if state.proving is not None:  # a proof asks by its own evidence, not by scores
            return False
        return isinstance(policy, str) or state.examples - state.scored_examples >= policy

    def refit(self, *, record_failure: bool = False) -> bool:
        """Fit and score if examples came since the last scores; False if there was no need or another process refits.

        With `record_failure` a learner that fails leaves a `failed` event instead of raising.
        """
        with self._refit_lease() as mine:
            if not mine:
                return False
            with self._fitter_lock:
                with self._log.moment() as (reader, state):
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
                    SCORED.append(writer, facts)
                elif now.failure is None or now.failure["rests_on"] < failure["rests_on"]:
                    FAILED.append(writer, failure)

            done = bool(self._log.write(step)) and facts is not None
        if done and (rule := self._rule_to_prove()) is not None:
            with suppress(InputError):  # a model that cannot be frozen yet; status says what is missing
                self.certify(rule.target, model="final", most=None, delta=1 - rule.confidence, by_rule=True)
        return done

    def _failure(self, error: LearnerError, state: State) -> Failed:
        """What the ledger says of a failure: its kind; the message may quote rows and stays in this process."""
        self.last_failure = str(error)
        return {"error": type(error.__cause__ or error).__name__, "rests_on": max(state.arrived)}

    def try_out(self) -> None:
        """Fit the learner on the first rows delivered, where no refit is due for long; a failure is recorded."""
        with self._fitter_lock:
            with self._log.moment() as (reader, state):
                rows = [row for row in reader.changed() if row.counts and row.role == "train"]
            if self._tried is self._log.parts or not rows:
                return
            self._tried = self._log.parts
            try:
                self._current().cold(state, rows)
            except LearnerError as error:
                failure = self._failure(error, state)
            else:
                return

        def step(now: State, writer: Writer) -> None:
            if now.closed is None and now.failure is None:
                FAILED.append(writer, failure)

        self._log.write(step)

    def model(self) -> Model | None:
        """The model fitted on the training examples there are."""
        with self._fitter_lock:
            with self._log.moment() as (reader, state):
                if state.settings["learner"] is None or not sum(state.train) or state.columns is None:
                    return None
                fixed = self._everything(reader)
            if self._current().incremental:
                return self._with_fitter(lambda fitter: _fitted_now(fitter, fixed, state))
            return self._current().cold(state, [row for row in fixed.changed() if row.counts and row.role == "train"])

    def final_model(self, *, plain: bool = False) -> FinalModel:
        """The model to deploy, fitted on all examples there are."""
        with self._fitter_lock:
            with self._log.moment() as (reader, state):
                if state.settings["learner"] is None or state.columns is None or not state.examples:
                    raise InputError("there is no model: this campaign has no learner or no examples yet")
                fixed = self._everything(reader)
            return self._with_fitter(lambda fitter: fitter.final(fixed, state, plain=plain))

    def _fitted_model(self, which: str) -> Model | None:
        return self.final_model().model if which == "final" else self.model()

    def _everything(self, reader: Reader) -> FixedReader:
        """All rows at this moment, and the past scores of a learner that continues its last model."""
        from evenhand.campaign.scores import FixedReader

        return FixedReader(reader.changed(), reader.events(kinds=(SCORED.name,)) if self._current().incremental else [])

    # ---------------------------------------------------------------- stopping

    def reason_to_stop(self, reader: Reader, state: State) -> str | None:
        """Why the stopping rule ends the asking; None if it does not."""
        rule = self._log.parts.stop
        return None if rule is None else rule.reason(self._seen(reader, state))

    def _rule_to_prove(self) -> ErrorBelow | None:
        """The rule that wants the newest model proved now; None without one."""
        rule = self._log.parts.stop
        if rule is None or not rule.needs_certificate:
            return None
        with self._log.moment() as (reader, state):
            if state.proving is not None:
                return None
            seen = self._seen(reader, state)
            return None if rule.reason(seen) is not None else rule.to_prove(seen)

    def _seen(self, reader: Reader, state: State) -> Seen:
        from evenhand.campaign.proof import indicated
        from evenhand.claims.stopping import Seen

        frozen = state.frozen
        return Seen(
            groups=tuple(state.groups),
            labels=state.labels_used,
            now=datetime.fromtimestamp(reader.now, UTC),
            scores=state.history,
            rates=indicated(state, 1)[:, 0].tolist(),
            validated=state.relevant,
            left=state.unspent,
            outcome=state.outcome,
            version=0 if frozen is None else frozen["version"],
            frozen_labels=0 if frozen is None else frozen["labels"],
            risk=self._log.parts.risk.claimed.title,
        )

    # ---------------------------------------------------------------- within

    def _current(self) -> Fitter:
        """The fitter for the learner as it is now."""
        from evenhand.campaign.scores import Fitter

        with self._fitter_lock:
            if self._fitter is None or self._fitter.parts is not self._log.parts:
                self._fitter = Fitter(self._log.parts)
            return self._fitter

    def _now_frozen(self) -> FrozenModel:
        from evenhand.campaign.evidence import FrozenModel

        if self._frozen is None or self._frozen.parts is not self._log.parts:
            self._frozen = FrozenModel(self._log.parts)
        return self._frozen

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
            if not self._log.ledger.lease(self._log.number, self._holder, LEASE_SECONDS):
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
                self._log.ledger.lease(self._log.number, self._holder, 0)

    def _renew(self, done: threading.Event) -> None:
        # a third of its length, so that one renewal may fail without another process taking over
        while not done.wait(LEASE_SECONDS / 3):
            with suppress(LedgerError):  # the next one may work; if not, another process may take over
                self._log.ledger.lease(self._log.number, self._holder, LEASE_SECONDS)

    # ---------------------------------------------------------------- the frozen model

    def certify(
        self,
        target: float | None = None,
        *,
        model: Any = "final",
        most: int | None = None,
        delta: float | None = None,
        distinct: bool | None = None,
        by: str | None = None,
        by_rule: bool = False,
    ) -> Certificate:
        """Freeze a model and store it, and with a target begin the phase that proves it; gives the certificate so far."""
        from evenhand.claims import checks

        delta = None if delta is None else checks.level(_number("delta", delta))
        if target is not None:
            target = checks.probability("target", _number("target", target))
        if most is not None and (_number("most", most) < 1 or most != int(most)):
            raise InputError(f"most must be a whole number of labels from 1 up, not {most!r}")
        most = None if most is None else int(most)
        if self._log.parts.risk.name == "balanced" and self._log.parts.settings["classes"] is None:
            raise InputError(
                "a certificate of the balanced error is about every class there may be: make the campaign with classes=[...]"
            )
        if most is not None and target is None:
            raise InputError("most limits the labels of a proof, which needs a target: give target=...")
        with self._log.moment() as (reader, state):
            if state.unproven is not None:
                raise InputError(f"nothing can be certified: {state.unproven}")
            vouched = bool(state.settings["distinct"] if distinct is None else distinct)
            # the same row told twice would be two pieces of
            # evidence, and the bound assumes independent ones
            if not vouched and any(row.made for row in reader.changed()):
                raise InputError(
                    "rows were told without ids, so nobody can know whether one came twice: certify(distinct=True) is your "
                    "word that every row is a different example; or give every row its id"
                )
            was = DELTA if state.frozen is None else float(state.frozen["delta"])
            # a rule says how sure it wants to be at least, and being surer costs it nothing but labels
            delta = was if delta is None else min(delta, was) if by_rule and state.frozen is not None else delta
        if target is not None and not by_rule:
            self.refit(
                record_failure=True
            )  # the labels to expect are estimated from scores, even if the rule needs none
        stored, facts = self._stored(model, delta, vouched)

        def step(now: State, writer: Writer) -> None:
            if now.closed is not None:
                raise Conflict(f"the campaign is closed ({now.closed}): no model can be frozen any more")
            anew, expected = True, Expected(None, None)
            if target is not None and now.frozen is not None:
                # under the lock: labels that came meanwhile may
                # have made the old model the cheaper one to prove
                anew, expected = self._anew(writer, now, target, delta, stored.digest, model)
            if not anew and now.frozen is not None and delta > now.frozen["delta"]:
                kept = now.frozen["delta"]
                raise InputError(
                    f"the model was frozen with {checks.confidence(kept)}, and nothing can be proven of it with less: give "
                    f"delta={kept:g} or a smaller one, or leave it out"
                )
            if anew:
                version = 1 + (now.frozen["version"] if now.frozen else 0)
                writer.put_model(stored._replace(version=version))
                FROZEN.append(writer, {**facts, "version": version, "labels": now.labels_used}, actor=by)
            if target is not None:
                phase: Proving = {
                    "target": target, "delta": delta, "most": most, "by_rule": by_rule,
                    "expected_kept": expected.kept, "expected_anew": expected.anew,
                }  # fmt: skip
                PROVING.append(writer, phase, actor=by)

        self._log.write(step)
        if target is not None:
            self.weigh()
        found = self.certificate(None)
        if found is None:
            raise AssertionError("a model was frozen just now")
        return found

    def _stored(self, model: str | Model, delta: float, vouched: bool) -> tuple[StoredModel, Frozen]:
        """The model as it is stored, and what its event says of it; one that cannot be stored is refused."""
        from evenhand.learners.storing import dump_model, load_model

        form, data = dump_model(self._chosen(model))
        digest = hashlib.sha256(data).hexdigest()
        # a frozen model is a fact that has to be read for
        # years: one that cannot be read back is refused now
        load_model(form, data, self._log.parts.learner if form == "torch" else None)
        facts: Frozen = {
            "version": 0, "labels": 0, "digest": digest, "format": form, "delta": delta, "distinct": vouched,
            "versions": _versions(), "model": model if isinstance(model, str) else "own",
        }  # fmt: skip
        return StoredModel(0, digest, form, data), facts

    def _anew(
        self, reader: Reader, now: State, target: float, delta: float, digest: str, model: object
    ) -> tuple[bool, Expected]:
        """Whether to freeze a model anew for a target, and the labels expected with either one.

        The frozen model has evidence already; a new one is fitted on more labels but gets a smaller δ.
        """
        from evenhand.campaign.proof import indicated
        from evenhand.claims.certificates import spent_by
        from evenhand.claims.findings import Findings

        assert now.frozen is not None
        version = now.frozen["version"]
        if now.frozen["digest"] == digest:
            return False, Expected(None, None)
        if not isinstance(model, str):
            return True, Expected(None, None)  # the user's own model is the one to certify
        with self._frozen_lock:
            found = self._now_frozen().findings(reader, now)
        rates = indicated(now, found.strata)
        kept = _total(found.further(target, spent_by(version, delta), rates))
        new = _total(Findings(found.groups, found.strata).further(target, spent_by(version + 1, delta), rates))
        return _fewer(new, kept), Expected(kept, new)

    def weigh(self) -> None:
        """Count the evidence on the frozen model and write down what a certify phase decides on, and how it ended."""
        from evenhand.campaign.proof import conclude, weighed
        from evenhand.campaign.requests import offered
        from evenhand.claims.certificates import spent_by

        with self._log.moment() as (reader, state):
            if state.proving is None or state.frozen is None or state.closed is not None:
                return
            known = state.weighed is not None and state.weighed["rests_on"] >= state.evidenced
            if not known:
                with self._frozen_lock:
                    found = self._now_frozen().findings(reader, state)
                spent = spent_by(state.frozen["version"], state.proving["delta"])
                facts = weighed(found, state, spent)

        def step(now: State, writer: Writer) -> None:
            # between the look and this lock another process may have ended the phase, or begun another
            if now.proving is None or now.closed is not None or now.proving["event"] != phase:
                return
            if not known and (now.weighed is None or now.weighed["rests_on"] < facts["rests_on"]):
                now = now.copy().fold([WEIGHED.append(writer, facts)])
            # what came since is weighed the next time; the phase must not end on less than is known
            if now.weighed is not None and now.weighed["rests_on"] >= now.evidenced:
                outcome = conclude(now, offered(now))
                if outcome is not None:
                    CONCLUDED.append(writer, outcome)

        phase = state.proving["event"]
        self._log.write(step)

    def _chosen(self, model: str | Model | None) -> Model:
        if model is None or not isinstance(model, str):
            if model is None or not hasattr(model, "predict"):
                raise InputError(f"{model!r} is no model: it has no predict(X)")
            return _as_model(getattr(model, "model", model) if hasattr(model, "choice") else model)
        if model not in ("final", "current"):
            raise InputError(f"model must be 'final', 'current' or a model of your own, not {model!r}")
        found = self._fitted_model(model)
        if found is None:
            raise InputError("there is no model to certify yet: tell training examples first")
        return found

    def certificate(self, delta: float | None) -> Certificate | None:
        """What is certain about the frozen model; None without one."""
        with self._log.moment() as (reader, state):
            return self.certificate_at(reader, state, delta)

    def certificate_at(self, reader: Reader, state: State, delta: float | None = None) -> Certificate | None:
        """The certificate at a reader's moment."""
        with self._frozen_lock:
            return self._now_frozen().certificate(reader, state, delta)

    def certified_model(self) -> Model | None:
        """The frozen model."""
        with self._log.moment() as (reader, state), self._frozen_lock:
            return self._now_frozen().model(reader, state)


class Expected(NamedTuple):
    """Labels that a proof is expected to need with the frozen model, and with one frozen anew; None if there is no end."""

    kept: int | None
    anew: int | None


def _fitted_now(fitter: Fitter, reader: Reader, state: State) -> Model | None:
    fitter.fit_as_scored(reader, state)
    fitter.fit_now(reader, state)
    return fitter.model


DELTA = 0.05
"""The probability that a certificate is wrong, if nobody says another."""


def _number(name: str, value: Any) -> float:
    """The value as a float; numbers of NumPy are taken too, and anything else is refused."""
    try:
        if isinstance(value, bool | str):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, not {value!r}") from None


def _total(needed: list[int | None]) -> int | None:
    """The labels that all groups need together; None if one of them will never get there."""
    return None if any(labels is None for labels in needed) else sum(labels or 0 for labels in needed)


def _fewer(new: int | None, kept: int | None) -> bool:
    return new is not None and (kept is None or new < kept)


def _as_model(given: Any) -> Model:
    """The user's own model; a bare fitted scikit-learn classifier is wrapped."""
    from evenhand.learners import Logistic, Minimax, SklearnModel
    from evenhand.learners.choosing import FinalModel

    given = given.model if isinstance(given, FinalModel) else given
    bare = hasattr(given, "get_params") and not isinstance(given, Logistic | Minimax)
    return SklearnModel(given) if bare else given


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("evenhand", "numpy", "scikit-learn")}
