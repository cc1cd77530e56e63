"""Evidence on the frozen model: every label that answered a request since, looked at whenever somebody asks.

The labels are kept as they were first told and as they are now, and the worse of the two counts; what was taken back or
never came counts as an error. Otherwise whoever sees the model's errors could correct or abandon them away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.campaign.fitting import as_examples, matrix
from evenhand.campaign.labels import label_text
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.claims.certificates import Certificate, Counted, certificate_of
from evenhand.errors import EvenhandError
from evenhand.learners import Model
from evenhand.learners.storing import load_model
from evenhand.ledger.base import Example, Reader

__all__ = ["Witness", "equal_rows"]


class Witness:
    """The frozen model of a campaign and what it predicts; a cache, read from the ledger when it is wanted."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._version = 0
        self._model: Model | None = None
        self._predicted: dict[str, str] = {}

    def model(self, reader: Reader, state: State) -> Model | None:
        """The frozen model; None without one."""
        if state.frozen is None:
            return None
        if self._version != state.frozen["version"] or self._model is None:
            stored = reader.model(state.frozen["version"])
            self._model = (
                None if stored is None else load_model(stored.format, stored.data, self._learner(stored.format))
            )
            self._version, self._predicted = state.frozen["version"], {}
        return self._model

    def counted(self, reader: Reader, state: State) -> list[Counted]:
        """Evidence in every group; labels nobody can predict here count as missing."""
        found = [Counted(missing=count) for count in state.missing]
        index = {group: z for z, group in enumerate(state.groups)}
        freeze, asked = (0, 0) if state.frozen is None else (state.frozen["event"], state.frozen["asked"])
        for request in (r for r in state.open.values() if r["event"] > freeze):
            named = request.get("left")
            waits = request["size"] - request["told"] if named is None else len(named.keys() - state.lost.keys())
            counts = found[index[request["group"]]]
            if request["told"] and state.frozen is not None:
                counts.missing += waits  # partly answered: whoever answers may have chosen which part
            else:
                counts.open += waits
        if state.frozen is None:
            return found
        vouched = state.frozen["distinct"]
        rows = [
            row
            for row in reader.changed(freeze)
            if row.origin == "asked"
            and ((row.request or 0) > asked or (row.place is not None and (row.told or 0) > freeze))
        ]
        self._predict(reader, state, [row for row in rows if row.fate is None])
        for row in rows:
            counts = found[index[row.group]]
            guess = self._predicted.get(row.id)
            if (row.request or 0) <= asked and row.fate is None and guess == row.first_label == row.label:
                # handed out before the freeze: an error counts, so that none is hidden there; what is right may have
                # been chosen by somebody who knew the model
                continue
            if row.fate is not None:
                # taken back after somebody may have seen the prediction: an error, whatever it was
                counts.n, counts.gone, counts.corrected = counts.n + 1, counts.gone + 1, counts.corrected + 1
            elif guess is None or (row.made and not vouched):
                # not predicted here, or perhaps a row that was told before under another made id
                counts.missing += 1
            else:
                counts.n += 1
                counts.first += guess != row.first_label
                counts.now += guess != row.label
                counts.corrected += row.label != row.first_label
        return found

    def certificate(self, reader: Reader, state: State, delta: float | None = None) -> Certificate | None:
        """What is certain about the frozen model; None without one."""
        if state.frozen is None:
            return None
        equal = equal_rows(reader)
        level = state.frozen["delta"] if delta is None else delta
        counted = self.counted(reader, state)
        return certificate_of(state.groups, counted, version=state.frozen["version"], delta=level, equal=equal)

    def _predict(self, reader: Reader, state: State, rows: Sequence[Example]) -> None:
        try:
            model = self.model(reader, state)
        except (EvenhandError, ImportError):
            return
        new = [row for row in rows if row.id not in self._predicted]
        if model is None or not new:
            return
        X = as_examples(state, new).X
        if not hasattr(model, "feature_names_in_"):
            X = matrix(self._parts.learner if state.settings["learner"] else None, X)
        for row, guess in zip(new, np.asarray(model.predict(X)).tolist(), strict=True):
            self._predicted[row.id] = label_text(guess)

    def _learner(self, form: str) -> Any:
        return self._parts.learner if form == "torch" else None


def equal_rows(reader: Reader) -> int:
    """Rows that equal an earlier one in all features and label."""
    seen: set[tuple[Any, Any]] = set()
    equal = 0
    for row in reader.changed():
        if row.fate != "erased":
            equal += (row.features, row.first_label) in seen
            seen.add((row.features, row.first_label))
    return equal
