"""Delivered rows read back from the ledger, the model fitted on them, and its scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.engine.labels import Labels
from evenhand.engine.settings import as_seed, learner_seed
from evenhand.engine.shelf import Delivery, Shelf
from evenhand.learners.torch import TorchLearner
from evenhand.ledger import Event, Ledger, State
from evenhand.live.learners import learner_digest, live_learner
from evenhand.live.parcel import Parcel
from evenhand.strategies import parse_strategy

__all__ = ["Fitter", "deliveries"]


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

    def scores(self, state: State) -> dict[str, Any]:
        """What a `scored` event of this state says."""
        if self.incremental:
            for event in self.ledger.events(self.campaign, kind="scored"):
                if event.header["rests_on"] > self.fitted:
                    self.fit(event.header["rests_on"])
        self.fit(state.seq)
        return {"rests_on": state.seq, "examples": state.examples, "fresh": state.fresh, **self.score()}

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

    def load(self, upto: int) -> None:
        """Read the rows of events up to `upto`."""
        found = deliveries(self.ledger, self.campaign, self.upto, upto)
        if found:
            delivery = _together(found, list(self.shelf.groups))
            if isinstance(self.shelf.learner, TorchLearner):
                delivery = replace(delivery, X=np.asarray(delivery.X, dtype=np.float32))
            self.shelf.put(delivery)
        self.upto = max(self.upto, upto)


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
