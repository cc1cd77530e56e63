"""The learner fitted on the examples in the ledger, and its scores.

A `Fitter` is a cache: it takes in examples as they come, so that a refit costs only what is new. After a correction, or
with a class never seen before, it reads everything again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np

from evenhand.campaign.features import decode
from evenhand.campaign.labels import as_label
from evenhand.campaign.learners import encodes, learner_digest
from evenhand.campaign.past import Past
from evenhand.campaign.requests import Examples
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.engine.labels import Labels
from evenhand.engine.memories.base import Memory
from evenhand.engine.memories.build import make_memory, runs_in_lockstep
from evenhand.engine.settings import learner_seed
from evenhand.errors import InputError, LearnerError, RiskError
from evenhand.learners import Model
from evenhand.learners.choosing import Choice, FinalModel, fit_chosen
from evenhand.learners.logistic.learner import numeric
from evenhand.learners.weights import fit_learner
from evenhand.ledger.base import Event, Example, Reader
from evenhand.notation import JsonObject

__all__ = ["Fitter", "FixedReader", "as_examples", "learner_errors", "matrix"]


LEARNED_FROM = ("train", "validate", "certify")
"""Roles that train or score models; test labels do neither."""


def as_examples(state: State, rows: Sequence[Example], learner: Any = None) -> Examples:
    """Labelled rows as features, labels, groups and ids; features as the learner takes them, or all."""
    if state.columns is None or not rows:
        raise InputError("there are no such examples yet: tell some first")
    X = decode(state.columns, [row.features for row in rows if row.features is not None], encoded=encodes(learner))
    y = np.array([as_label(row.label or "", state.label_kind) for row in rows])
    return Examples(X, y, np.array([row.group for row in rows]), np.array([row.id for row in rows]))


def matrix(learner: Any, X: Any) -> Any:
    """X as the learner's memory takes it: numbers in lockstep, 32-bit ones for a network, else as it is."""
    if runs_in_lockstep(learner):
        X = numeric(X)
        return X if hasattr(X, "tocsr") else np.asarray(X, dtype=float)
    if hasattr(learner, "module_factory") and not (isinstance(X, np.ndarray) and X.ndim > 2):
        return np.asarray(X, dtype=np.float32)
    return X


class FixedReader(Reader):
    """Rows and events as they were at one moment, kept so that a fit holds no reader open."""

    def __init__(self, rows: Sequence[Example], events: Sequence[Event] = ()) -> None:
        self.now, self._rows, self._events = 0.0, rows, events

    def events(
        self, after: int = 0, *, kinds: Collection[str] = (), request: int | None = None, limit: int | None = None
    ) -> list[Event]:
        """The events of these kinds."""
        return [event for event in self._events if event.seq > after and (not kinds or event.kind in kinds)][:limit]

    def changed(self, after: int = 0) -> list[Example]:
        """The rows changed since."""
        return [row for row in self._rows if row.changed > after]

    def find(self, ids: Collection[str]) -> dict[str, Example]:
        """The rows with these ids."""
        return {row.id: row for row in self._rows if row.id in ids}

    def told_by(self, seq: int) -> list[Example]:
        """The rows an event brought."""
        return [row for row in self._rows if row.told == seq]

    def snapshot(self) -> None:
        """There is none."""

    def class_counts(self) -> dict[str, dict[str, int]]:
        """Not counted."""
        return {}

    def next_in_pool(self, group: str, count: int) -> list[Example]:
        """There is no pool."""
        return []

    def pool_counts(self, first: int = 0, last: int | None = None) -> dict[str, int]:
        """There is no pool."""
        return {}

    def orders(self) -> dict[int, str]:
        """There are none."""
        return {}

    def model(self, version: int) -> None:
        """There is none."""


class Fitter:
    """The examples of a campaign as far as they were read, and the model fitted on them."""

    def __init__(self, parts: Parts) -> None:
        settings = parts.settings
        self.parts, self.learner = parts, parts.learner
        self.groups = tuple(settings["groups"])
        self.seed = learner_seed(int(settings["seed"]), settings["trial"])
        self.digest = learner_digest(settings["learner"], self.seed)
        self.incremental = bool(getattr(self.learner, "incremental", False))
        # not 0, which is the event that a campaign without scores rests on
        self.fitted = -1
        self._start_again()

    def _start_again(self) -> None:
        self.upto = 0
        self._labels = Labels(self.parts.settings["classes"])
        self._memory: Memory | None = None
        self._rows: list[Example] = []

    @property
    def model(self) -> Model | None:
        """The model of the last fit; None before the first."""
        return None if self._memory is None else self._memory.models()[0]

    def fixed_reader(self, reader: Reader, state: State) -> FixedReader:
        """What a refit will need of this moment: the rows since the last one, or all of them."""
        last = state.scores_rest_on
        # the model here is the one of the newest scores and
        # no row it saw has changed: new rows are enough
        follows = self.fitted == last and state.altered <= self.upto
        if state.altered > last and not follows:
            steps = reader.events()
        else:
            steps = reader.events(kinds=("scored",)) if self.incremental else []
        return FixedReader(reader.changed(min(self.upto, last) if follows else 0), steps)

    def scores(self, reader: Reader, state: State) -> JsonObject:
        """Bring the model up to date and score it: what a `scored` event says."""
        with learner_errors(state):
            # before the fit: these examples must be judged by the model that had not seen them
            running = self._running(reader, state)
            self.fit_now(reader, state)
            facts = self.score()
        return {
            "rests_on": state.seq,
            "examples": state.examples,
            "fresh": state.fresh,
            "trained": sum(row.role == "train" for row in self._rows),
            "running": running,
            **facts,
        }

    def fit_now(self, reader: Reader, state: State) -> None:
        """Fit on the training examples there are now; a learner that continues its last model takes its usual steps."""
        self._read(reader, state)
        if self._memory is not None:
            self._memory.fit()
        self.fitted = state.seq

    def score(self) -> JsonObject:
        """The current model's losses, errors and accuracy on every group's validation examples."""
        if self._memory is None:
            raise InputError("there are no examples to score yet")
        found = self._memory.score()
        groups = {}
        for z, group in enumerate(self.groups):
            n, right = int(found.n[0, z]), int(found.correct[0, z])
            total, relevant = float(found.loss_sum[0, z]), int(found.relevant[0, z])
            groups[group] = {"n": n, "errors": n - right, "loss_sum": total, "accuracy": right / max(n, 1)}
            # where the risk is about every example the number is not written twice
            if relevant != n:
                groups[group]["relevant"] = relevant
        return {"risk": self.parts.settings["risk"], "learner": self.digest, "groups": groups}

    def cold(self, state: State, rows: Sequence[Example]) -> Model:
        """The learner fitted anew on these examples: the same wherever and whenever it is done."""
        X, y, groups, _ = as_examples(state, rows, self.learner)
        # a frame keeps its names, so that the model refuses rows whose columns come in another order
        X = X if runs_in_lockstep(self.learner) else matrix(self.learner, X)
        with learner_errors(state):
            fitted: Model = fit_learner(deepcopy(self.learner), X, y, groups, seed=self.seed)
        return fitted

    def final(self, reader: Reader, state: State, *, plain: bool = False) -> FinalModel:
        """The model of all examples, of both roles: the one to deploy, chosen for the worst-off group, or plain."""
        if not self.incremental:
            rows = [row for row in reader.changed() if row.counts and row.role in LEARNED_FROM]
            X, y, groups, _ = as_examples(state, rows, self.learner)
            X = X if runs_in_lockstep(self.learner) else matrix(self.learner, X)
            with learner_errors(state):
                return fit_chosen(
                    deepcopy(self.learner),
                    X,
                    y,
                    groups,
                    risk=self.parts.risk,
                    # a class that was promised and never came has
                    # its place in a table of costs all the same
                    classes=sorted({*(self.parts.settings["classes"] or ()), *y.tolist()}),
                    seed=self.seed,
                    plain=plain,
                )
        self.fit_as_scored(reader, state)
        with learner_errors(state):
            self.fit_now(reader, state)
        if self._memory is None:
            raise InputError("there is no model: no examples have come yet")
        with learner_errors(state):
            return FinalModel(self._memory.final_models()[0], Choice("plain", "a learner that goes on is not refitted"))

    # ---------------------------------------------------------------- within

    def _running(self, reader: Reader, state: State) -> dict[str, list[float]]:
        """Relevant validation examples told since the last scores, and the losses of the model of those scores on them.

        Only rows that answered a request count: of others nobody knows how they were picked. First labels count.
        """
        last = state.scores_rest_on
        self.fit_as_scored(reader, state)
        model = self.model if last else None
        new = [
            row._replace(label=row.first_label) for row in reader.changed(last)
            if (row.told or 0) > last and row.role == "validate" and row.origin == "asked" and row.fate != "erased"
        ]  # fmt: skip
        if model is None or not new:
            return {}
        X, y, groups, _ = as_examples(state, new, self.learner)
        classes = self.parts.settings["classes"] or {*y.tolist(), *np.asarray(model.classes).tolist()}
        measure = self.parts.risk.running.for_classes(sorted(classes), final=False)
        outcomes = measure.of_model(model, matrix(self.learner, X), y)
        tally = measure.tally(outcomes, np.array([self.groups.index(g) for g in groups.tolist()]), len(self.groups))
        sums = zip(self.groups, tally.behind.tolist(), tally.loss_sum.tolist(), strict=True)
        return {group: [n, total] for group, n, total in sums if n}

    def fit_as_scored(self, reader: Reader, state: State) -> None:
        """Bring the model to the one that the newest scores stand for.

        Rows altered since are as they were then. A learner that continues its last model takes all its steps again.
        """
        last = state.scores_rest_on
        if self.fitted == last or not last or state.columns is None:
            return
        self._start_again()
        then = [row for row in self._then(reader, state, last) if row.counts and row.features is not None]
        with learner_errors(state):
            self._feed(state, then)
            if self._memory is not None:
                self._refit_all(reader, then, last)
        self.upto, self.fitted = last, last

    def _then(self, reader: Reader, state: State, last: int) -> list[Example]:
        """The rows that had been told by event `last`, as they were then."""
        rows = [row for row in reader.changed() if (row.told or 0) <= last]
        if state.altered <= last:
            return rows
        events = reader.events()
        past = Past(events, rows, self.parts.settings["classes"])
        past.fold(event for event in events if event.seq <= last)
        # a label that one correction set and another replaced may be stored nowhere: the first label stands in for it
        return [row._replace(label=row.label or row.first_label) for row in past.rows.values()]

    def _refit_all(self, reader: Reader, rows: Sequence[Example], last: int) -> None:
        memory: Any = self._memory
        if not self.incremental:
            memory.fit()
            return
        steps = [event.facts["rests_on"] for event in reader.events(kinds=("scored",))]
        sizes = [sum(row.role == "train" and (row.told or 0) <= step for row in rows) for step in steps if step <= last]
        # refits that brought no new training example were no step for the learner, so they are left out
        memory.replay([n for i, n in enumerate(sizes) if n and (not i or n != sizes[i - 1])])

    def _read(self, reader: Reader, state: State) -> None:
        """Take in what changed since the last read; if a row was changed or taken back, read everything again."""
        rows = reader.changed(self.upto)
        # a memory only grows: it cannot take a row back, nor give one another label
        if any((row.told or 0) <= self.upto for row in rows):
            self._start_again()
            rows = reader.changed()
            kept = [row for row in rows if row.counts]
            self._feed(state, kept)
            if self.incremental and self._memory is not None and state.scores_rest_on:
                self._refit_all(reader, kept, state.scores_rest_on)
        else:
            self._feed(state, [row for row in rows if row.counts])
        self.upto = state.seq

    def _feed(self, state: State, rows: list[Example]) -> None:
        rows = [row for row in rows if row.role in LEARNED_FROM]
        if not rows:
            return
        labels = [as_label(row.label or "", state.label_kind) for row in rows]
        self._rows += rows
        # a new class changes the shape of every model, so the memory is filled again from the first row
        if self._labels.learn(labels) or self._memory is None:
            self._memory = make_memory(
                self.learner, self._labels, len(self.groups), risk=self.parts.risk, seed=self.seed, names=self.groups
            )
            rows = self._rows
            labels = [as_label(row.label or "", state.label_kind) for row in rows]
        stored = [row.features for row in rows if row.features is not None]
        X = decode(state.columns or {}, stored, encoded=encodes(self.learner))
        group = np.array([self.groups.index(row.group) for row in rows], dtype=np.int64)
        validation = np.array([row.role != "train" for row in rows])
        codes, trial = self._labels.codes(labels), np.zeros(len(rows), dtype=np.int64)
        self._memory.add(trial, matrix(self.learner, X), codes, group, validation)


@contextmanager
def learner_errors(state: State) -> Iterator[None]:
    """Turn whatever a fit, or the user's own risk, raises into a `LearnerError`."""
    try:
        yield
    except LearnerError:
        raise
    except RiskError as error:
        raise LearnerError(f"{error} (after {state.examples} examples)") from error
    except Exception as error:
        raise LearnerError(f"the learner failed in fit after {state.examples} examples: {error}") from error
