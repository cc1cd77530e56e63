"""Freezing a model, proving a target with it, and looking at what is certain."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from evenhand.campaign.deciding import offered
from evenhand.campaign.evidence import FrozenModel
from evenhand.campaign.proof import conclude, indicated, weighed
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.claims import checks
from evenhand.claims.certificates import Certificate, spent_by
from evenhand.claims.findings import Findings
from evenhand.errors import Conflict, InputError
from evenhand.learners import Model
from evenhand.learners.storing import dump_model, load_model
from evenhand.ledger.base import Event, Reader, StoredModel, Writer
from evenhand.notation import JsonMapping, JsonObject

__all__ = ["Certifier", "Moment", "Write"]

Write = Callable[[Callable[[State, Writer], Any]], list[Event]]
"""Takes a step of the campaign under its write lock."""
Moment = Callable[[], AbstractContextManager[tuple[Reader, State]]]
"""Opens a reader of the campaign at one moment, with a copy of its state."""


DELTA = 0.05
"""The probability that a certificate is wrong, if nobody says another."""


class Certifier:
    """The frozen model of one campaign as a cache, and the steps that freeze it and prove a target.

    Args:
        parts: the campaign's objects.
        write: takes a step of the campaign.
        moment: reads the campaign at one moment.
        fitted: gives the `final` or the `current` model.
        refit: brings the scores up to date.
    """

    def __init__(
        self,
        parts: Parts,
        write: Write,
        moment: Moment,
        fitted: Callable[[str], Model | None],
        refit: Callable[[], object],
    ) -> None:
        self._parts, self._write, self._read = parts, write, moment
        self._fitted, self._refit = fitted, refit
        self._lock = threading.RLock()
        self._frozen = FrozenModel(parts)

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
        delta = None if delta is None else checks.level(_number("delta", delta))
        if target is not None:
            target = checks.probability("target", _number("target", target))
        if most is not None and (_number("most", most) < 1 or most != int(most)):
            raise InputError(f"most must be a whole number of labels from 1 up, not {most!r}")
        most = None if most is None else int(most)
        if self._parts.risk.name == "balanced" and self._parts.settings["classes"] is None:
            raise InputError(
                "a certificate of the balanced error is about every class there may be: make the campaign with classes=[...]"
            )
        if most is not None and target is None:
            raise InputError("most limits the labels of a proof, which needs a target: give target=...")
        with self._read() as (reader, state):
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
            self._refit()  # the labels to expect are estimated from scores, even if the rule needs none
        stored, facts = self._stored(model, delta, vouched)
        phase = None if target is None else {"target": target, "delta": delta, "most": most, "by_rule": by_rule}

        def step(now: State, writer: Writer) -> None:
            if now.closed is not None:
                raise Conflict(f"the campaign is closed ({now.closed}): no model can be frozen any more")
            anew, compared = True, JsonObject()
            if phase is not None and now.frozen is not None:
                # under the lock: labels that came meanwhile may
                # have made the old model the cheaper one to prove
                anew, compared = self._anew(writer, now, phase, stored.digest, model)
            if not anew and now.frozen is not None and delta > now.frozen["delta"]:
                kept = now.frozen["delta"]
                raise InputError(
                    f"the model was frozen with {checks.confidence(kept)}, and nothing can be proven of it with less: give "
                    f"delta={kept:g} or a smaller one, or leave it out"
                )
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

    def _stored(self, model: str | Model, delta: float, vouched: bool) -> tuple[StoredModel, JsonObject]:
        """The model as it is stored, and what its event says of it; one that cannot be stored is refused."""
        form, data = dump_model(self._chosen(model))
        digest = hashlib.sha256(data).hexdigest()
        # a frozen model is a fact that has to be read for
        # years: one that cannot be read back is refused now
        load_model(form, data, self._parts.learner if form == "torch" else None)
        facts = {"digest": digest, "format": form, "delta": delta, "distinct": vouched, "versions": _versions()}
        facts["model"] = model if isinstance(model, str) else "own"
        return StoredModel(0, digest, form, data), facts

    def _anew(self, reader: Reader, now: State, phase: JsonMapping, digest: str, model: Any) -> tuple[bool, JsonObject]:
        """Whether to freeze a model anew for a target, and the labels expected with either one.

        The frozen model has evidence already; a new one is fitted on more labels but gets a smaller δ.
        """
        assert now.frozen is not None
        version, delta, target = now.frozen["version"], phase["delta"], phase["target"]
        if now.frozen["digest"] == digest:
            return False, {}
        if not isinstance(model, str):
            return True, {}  # the user's own model is the one to certify
        with self._lock:
            found = self._frozen.findings(reader, now)
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
                with self._lock:
                    found = self._frozen.findings(reader, state)
                spent = spent_by(state.frozen["version"], state.proving["delta"])
                facts = weighed(found, state, spent)

        def step(now: State, writer: Writer) -> None:
            # between the look and this lock another process may have ended the phase, or begun another
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

    def _chosen(self, model: str | Model | None) -> Any:
        if model is None or not isinstance(model, str):
            if model is None or not hasattr(model, "predict"):
                raise InputError(f"{model!r} is no model: it has no predict(X)")
            return _as_model(getattr(model, "model", model) if hasattr(model, "choice") else model)
        if model not in ("final", "current"):
            raise InputError(f"model must be 'final', 'current' or a model of your own, not {model!r}")
        found = self._fitted(model)
        if found is None:
            raise InputError("there is no model to certify yet: tell training examples first")
        return found

    def certificate(self, delta: float | None) -> Certificate | None:
        """What is certain about the frozen model; None without one."""
        with self._read() as (reader, state):
            return self.certificate_at(reader, state, delta)

    def certificate_at(self, reader: Reader, state: State, delta: float | None = None) -> Certificate | None:
        """The certificate at a reader's moment."""
        with self._lock:
            return self._frozen.certificate(reader, state, delta)

    def certified_model(self) -> Model | None:
        """The frozen model."""
        with self._read() as (reader, state), self._lock:
            return self._frozen.model(reader, state)


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


def _as_model(given: object) -> Any:
    """The user's own model; a bare fitted scikit-learn classifier is wrapped."""
    from evenhand.learners import Logistic, Minimax, SklearnModel
    from evenhand.learners.choosing import FinalModel

    given = given.model if isinstance(given, FinalModel) else given
    bare = hasattr(given, "get_params") and not isinstance(given, Logistic | Minimax)
    return SklearnModel(given) if bare else given


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("evenhand", "numpy", "scikit-learn")}
