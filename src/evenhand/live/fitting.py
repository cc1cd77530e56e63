"""Delivered rows read back from the ledger, the model fitted on them, and its scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from evenhand.engine import rows
from evenhand.engine.labels import Labels
from evenhand.engine.settings import as_seed, learner_seed
from evenhand.engine.shelf import Delivery, Shelf
from evenhand.learners import Model
from evenhand.learners.torch import TorchLearner
from evenhand.ledger import Event, Ledger, State
from evenhand.live.learners import learner_digest, live_learner
from evenhand.live.parcel import Parcel
from evenhand.strategies import parse_strategy

__all__ = ["Fitter", "Frozen", "deliveries"]


class Frozen(NamedTuple):
    """A certified model; validation examples told after `event` are evidence on it."""

    version: int
    event: int
    model: Model


class Fitter:
    """The examples of a campaign as far as they were read, and the model fitted on them.

    A learner that goes on from its previous model is taken through the fits the ledger records, so that every process
    has the same model.
    """

    def __init__(self, ledger: Ledger, campaign: int, state: State) -> None:
        self.ledger, self.campaign = ledger, campaign
        settings = state.settings
        self.loss = getattr(parse_strategy(settings["strategy"])[1], "loss", "zero_one")
        self.seed = learner_seed(*as_seed(settings["seed"]))
        learner = live_learner(settings["learner"], self.loss)
        self.digest = learner_digest(settings["learner"], self.seed)
        labels = Labels(settings["classes"])
        self.shelf = Shelf(tuple(settings["groups"]), learner, labels, self.seed)
        self.incremental = bool(getattr(learner, "incremental", False))
        self.upto = self.fitted = 0

    def scores(self, state: State, frozen: Frozen | None) -> dict[str, Any]:
        """What a `scored` event of this state says."""
        self.catch_up(state)
        evidence = self.evidence(state.seq, frozen)
        self.fit(state.seq)
        facts = {"rests_on": state.seq, "examples": state.examples, "fresh": state.fresh}
        return {**facts, **self.score(), "evidence": evidence}

    def catch_up(self, state: State) -> None:
        """Bring the model to the one that the newest `scored` event stands for."""
        last = max(state.rests_on)
        if self.incremental:
            for event in self.ledger.events(self.campaign, kind="scored"):
                if self.fitted < event.header["rests_on"] <= last:
                    self.fit(event.header["rests_on"])
        elif self.fitted < last:
            self.fit(last)

    def evidence(self, upto: int, frozen: Frozen | None) -> dict[str, Any]:
        """Read on up to event `upto`: n and errors of the current and the frozen model on new validation rows.

        Rows that answered no request are none: nobody knows how they were picked.
        """
        model = self.model  # before new rows: a class never seen has the memory built anew
        found = [(event, parcel) for event, parcel in self.load(upto) if event.request is not None]
        later = [] if frozen is None else [each for each in found if each[0].seq > frozen.event]
        return {
            "running": self._errors(model, found),
            "version": None if frozen is None else frozen.version,
            "frozen": self._errors(None if frozen is None else frozen.model, later),
        }

    @property
    def model(self) -> Model | None:
        """The model of the last fit; None before the first."""
        return None if self.shelf.memory is None else self.shelf.memory.models()[0]

    def fit(self, upto: int) -> None:
        """Bring the model up to the rows of events up to `upto`."""
        self.load(upto)
        if self.shelf.memory is not None:
            self.shelf.memory.fit()
        self.fitted = upto

    def score(self) -> dict[str, Any]:
        """The current model's losses, errors and accuracy on every group's validation examples."""
        memory = self.shelf.memory
        if memory is None:
            raise ValueError("there are no examples to score yet")
        found = memory.score(self.loss)
        groups = {}
        for z, group in enumerate(self.shelf.groups):
            n, right = int(found.n[0, z]), int(found.correct[0, z])
            groups[group] = {
                "n": n,
                "errors": n - right,
                "loss_sum": float(found.loss_sum[0, z]),
                "accuracy": right / max(n, 1),
            }
        return {"loss": self.loss, "learner": self.digest, "groups": groups}

    def errors(self) -> dict[str, list[int]]:
        """n and errors of the current model in every group; they tell whether it is the model that was scored."""
        return {group: [score["n"], score["errors"]] for group, score in self.score()["groups"].items()}

    def load(self, upto: int) -> list[tuple[Event, Parcel]]:
        """Read the rows of events up to `upto`; gives the deliveries that were new."""
        found = deliveries(self.ledger, self.campaign, self.upto, upto)
        if found:
            self.shelf.put(self._delivery(found))
            self.upto = found[-1][0].seq
        return found

    def _delivery(self, found: list[tuple[Event, Parcel]]) -> Delivery:
        delivery = _together(found, list(self.shelf.groups))
        if isinstance(self.shelf.learner, TorchLearner):
            return replace(delivery, X=np.asarray(delivery.X, dtype=np.float32))
        return delivery

    def _errors(self, model: Model | None, found: list[tuple[Event, Parcel]]) -> dict[str, list[int]]:
        """n and errors of a model on the validation rows of deliveries, for groups that have any."""
        if model is None or not any("v" in event.header["roles"] for event, _ in found):
            return {}
        delivery = self._delivery(found)
        held, group = delivery.validation, delivery.group[delivery.validation]
        wrong = model.losses(self.shelf.matrix(rows.take(delivery.X, held)), np.asarray(delivery.y)[held])
        m = len(self.shelf.groups)
        n, errors = np.bincount(group, minlength=m), np.bincount(group, weights=wrong, minlength=m).round()
        return {self.shelf.groups[z]: [int(n[z]), int(errors[z])] for z in np.flatnonzero(n).tolist()}


def deliveries(ledger: Ledger, campaign: int, after: int = 0, upto: int | None = None) -> list[tuple[Event, Parcel]]:
    """The deliveries that brought rows, in order: the event and the rows."""
    data = ledger.rows(campaign, after, upto)
    if not data:
        return []
    told = {event.seq: event for event in ledger.events(campaign, after, kind="told")}
    return [(told[seq], Parcel.from_bytes(found)) for seq, found in data.items()]


def _together(found: list[tuple[Event, Parcel]], groups: list[str]) -> Delivery:
    first = found[0][1]
    features = pa.concat_tables([p.table.select(first.features) for _, p in found], promote_options="permissive")
    merged = Parcel(features, first.kind, first.features, first.width, first.label)
    roles = "".join(event.header["roles"] for event, _ in found)
    named = [p.groups or [event.header["group"]] * len(p) for event, p in found]
    index = {group: z for z, group in enumerate(groups)}
    group = np.array([index[name] for names in named for name in names], dtype=np.int64)
    y = [label for _, p in found for label in p.y]
    return Delivery(0, merged.X, y, group, np.frombuffer(roles.encode(), dtype="S1") == b"v")
