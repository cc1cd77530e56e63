"""Deliveries on their way into the ledger: checked, given their roles, written down, receipted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from evenhand.engine import rows
from evenhand.engine.engine import Engine
from evenhand.engine.labels import Labels, read_labels
from evenhand.engine.shelf import Delivery, Shelf
from evenhand.learners import Logistic, SklearnLearner
from evenhand.learners.torch import TorchLearner
from evenhand.ledger import Draft, Event, State
from evenhand.live.dense import DenseParcel
from evenhand.live.learners import live_learner
from evenhand.live.parcel import Parcel
from evenhand.live.receipts import LiveReceipt

__all__ = ["Checker", "Told", "plain", "wants_numbers"]

_LABELS = (str, int, float, bool)


def plain(X: Any, y: Any) -> tuple[Any, list[Any]]:
    """Rows and labels in their plain form."""
    X, labels = rows.as_rows(X), read_labels(y)
    if X.shape[0] != len(labels):
        raise ValueError(f"X has {X.shape[0]} rows and y {len(labels)} labels: they must be as many")
    if X.shape[1] == 0:
        raise ValueError("X has no features: give every row at least one")
    return X, labels


def wants_numbers(learner: Any) -> bool:
    """Whether a learner fails on text and missing values, so that they must not get into the ledger."""
    if isinstance(learner, SklearnLearner):
        from sklearn.utils import get_tags

        composed = hasattr(learner.estimator, "steps")
        return not composed and not get_tags(learner.estimator).input_tags.allow_nan
    return isinstance(learner, Logistic | TorchLearner)


class Checker:
    """Refuses rows that the learner could not use or that do not go with the first delivery."""

    def __init__(self, settings: Mapping[str, Any], first: Parcel | None) -> None:
        self.first, self.groups = first, list(settings["groups"])
        self.learner = live_learner(settings["learner"])
        self._numbers = self.learner is not None and wants_numbers(self.learner)
        self._shelf = Shelf(tuple(self.groups), self.learner, Labels(settings["classes"]), 0)
        if first is not None:
            empty = np.zeros(0, dtype=np.int64)
            self._shelf.deliveries = [Delivery(0, first.X, [], empty, empty.astype(bool))]

    def check(self, parcel: Parcel) -> Parcel:
        """The parcel, in the kind of the first one."""
        if self._is_plain(parcel):
            return parcel
        X, labels = self._shelf.check(parcel.X, parcel.y)
        if self._numbers:
            _check_numbers(X)
        for label in labels:
            if not isinstance(label, _LABELS):
                raise ValueError(f"the label {label!r} is neither text nor a number")
        if unknown := sorted(set(parcel.groups or ()).difference(self.groups)):
            raise ValueError(f"unknown group {unknown[0]!r}: the groups are {', '.join(map(repr, self.groups))}")
        if self.first is None or parcel.kind == self.first.kind == "dense":
            return parcel
        if rows.kind_of(X) in ("dense", "sparse") and parcel.kind != self.first.kind:
            return Parcel.of(X, labels, parcel.groups)
        _check_types(parcel, self.first)
        return parcel

    def _is_plain(self, parcel: Parcel) -> bool:
        """Whether the usual delivery is seen at a glance to be in order: numbers like the first, labels known."""
        return (
            isinstance(parcel, DenseParcel)
            and self.first is not None
            and self.first.kind == "dense"
            and parcel.width == self.first.width
            and (not self._shelf.labels.fixed or set(self._shelf.labels.classes).issuperset(parcel.y))
            and parcel.finite
        )


class Told(NamedTuple):
    """A delivery about to be written down; without a request it is data that was there before.

    Once it is sealed, `digest` is the fingerprint of its content and `data` the rows as they are stored.
    """

    request: int | None
    size: int
    parcel: Parcel | None
    collector: str | None
    charge: bool
    digest: str = ""
    data: bytes | None = None

    def checked(self, checker: Checker) -> Told:
        """The same delivery, once its rows can be used."""
        parcel = None if self.parcel is None else checker.check(self.parcel)
        return self if parcel is self.parcel else self._replace(parcel=parcel)

    def sealed(self) -> Told:
        """The same delivery, with done to it what takes long, so that the write lock is held briefly."""
        request, size, parcel, collector, charge, *_ = self
        if parcel is None:
            return Told(request, size, None, collector, charge, f"n={size}")
        return Told(request, size, parcel, collector, charge, parcel.digest, parcel.to_bytes())

    def is_in(self, event: Event) -> bool:
        """Whether the event recorded this very delivery."""
        digest = event.header["digest"]
        return bool(digest == self.digest) if self.parcel is None else self.parcel.matches(digest)

    def draft(self, engine: Engine, state: State) -> Draft:
        """The event that records this delivery in a campaign that stands as `state` says."""
        late = self.request in state.expired
        asked = None if self.request is None else (state.expired if late else state.open)[self.request]
        if late and self.size > state.unspent:
            raise ValueError(
                f"request {self.request} has expired and its labels went back to the budget, which has "
                f"{max(state.unspent, 0)} left: of these {self.size} rows {max(state.unspent, 0)} would fit"
            )
        groups, roles = self._roles(engine, state, asked)
        header = {
            "group": asked["group"] if asked else None,
            "groups": groups,
            "rows": self.size,
            "roles": "".join(["v" if validates else "t" for validates in roles]),
            "digest": self.digest,
            "stored": self.parcel is not None,
            "charged": self.size if self.charge else 0,
            "beyond": self.size - asked["size"] if asked else 0,
            "late": late,
            "by": self.collector,
            "classes": _new_classes(state.classes, self.parcel),
        }
        return Draft("told", header, self.request, rows=self.data)

    def _roles(
        self, engine: Engine, state: State, asked: dict[str, Any] | None
    ) -> tuple[dict[str, list[int]], list[bool]]:
        """Training and validation rows of every group that has any, and which rows validate."""
        if asked is not None:
            z = engine.groups.index(asked["group"])
            roles = engine.roles_of(z, self.size, training=state.counts[z], held=state.held[z])
            return {asked["group"]: [self.size - sum(roles), sum(roles)]}, roles
        named = (self.parcel.groups if self.parcel else None) or ()
        group = np.array([engine.groups.index(name) for name in named], dtype=np.int64)
        engine.counts[0], engine.held[0] = state.counts, state.held
        validation = engine.roles(np.zeros(self.size, dtype=np.int64), group)
        return _tally(engine.groups, group, validation), validation.tolist()

    def receipt(self, event: Event, *, repeated: bool = False) -> LiveReceipt:
        """What the event brought."""
        header = event.header
        held = header["roles"].count("v")
        return LiveReceipt(
            request=self.request or 0,
            rows=header["rows"],
            training=header["rows"] - held,
            validation=held,
            beyond=header["beyond"],
            event=event.seq,
            late=header["late"],
            repeated=repeated,
        )


def _tally(groups: Sequence[str], group: Any, validation: Any) -> dict[str, list[int]]:
    m = len(groups)
    held = np.bincount(group[validation], minlength=m)
    training = np.bincount(group, minlength=m) - held
    return {groups[z]: [int(training[z]), int(held[z])] for z in np.flatnonzero(training + held).tolist()}


def _new_classes(known: list[Any], parcel: Parcel | None) -> list[Any]:
    if parcel is None or set(known).issuperset(parcel.y):
        return []
    labels = Labels(known, fixed=False)
    labels.learn(parcel.y)
    return [label for label in labels.classes if label not in known]


def _check_numbers(X: Any) -> None:
    """Refuse a frame with text, missing or infinite features; arrays were checked already."""
    if rows.kind_of(X) in ("dense", "sparse"):
        return
    for name in X.columns:
        kind = X[name].dtype.kind
        if kind not in "biuf":
            raise ValueError(f"column {name!r} is not a number, which the learner needs: encode it, or leave it out")
        bad = np.flatnonzero(~np.isfinite(X[name].to_numpy(dtype=float)))
        if len(bad):
            raise ValueError(f"column {name!r} is missing or infinite in row {bad[0]}: remove or impute it")


def _check_types(parcel: Parcel, first: Parcel) -> None:
    for name in first.features:
        kinds = [p.table.schema.field(name) for p in (first, parcel)]
        try:
            pa.unify_schemas([pa.schema([kind.remove_metadata()]) for kind in kinds], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise ValueError(
                f"column {name!r} was {kinds[0].type} in earlier rows and is {kinds[1].type} now"
            ) from None
