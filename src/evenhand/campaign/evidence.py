"""Evidence about the frozen model: every label that answered a request since it was frozen.

The labels are kept as they were first told and as they are now, and the worse of the two counts; what was taken back or
never came counts as an error. Otherwise whoever sees the model's errors could correct or abandon them away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from evenhand.arrays import Floats, Ints, Mask
from evenhand.campaign.events import NAMED, REQUESTS, ids_in, request_in
from evenhand.campaign.labels import as_label, label_text
from evenhand.campaign.scores import as_examples, matrix
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.claims.certificates import Certificate
from evenhand.claims.findings import Answered, Findings
from evenhand.errors import EvenhandError
from evenhand.learners import Model
from evenhand.learners.storing import load_model
from evenhand.ledger.base import Example, Reader
from evenhand.risks import Measure, Outcomes


class Loss(NamedTuple):
    """What the frozen model's answer to one example costs under one label."""

    value: float
    relevant: bool
    stratum: int


class FrozenModel:
    """The frozen model of a campaign and what it predicts; a cache, read from the ledger when it is wanted."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._version = 0
        self._model: Model | None = None
        # a frozen model answers the same row the same way for ever, and rows come a few at a time
        self._predicted: dict[str, str] = {}
        self._own: dict[tuple[str, str], tuple[float, bool]] = {}

    def model(self, reader: Reader, state: State) -> Model | None:
        """The frozen model; None without one."""
        if state.frozen is None:
            return None
        if self._version != state.frozen["version"] or self._model is None:
            stored = reader.model(state.frozen["version"])
            self._model = (
                None if stored is None else load_model(stored.format, stored.data, self._learner(stored.format))
            )
            self._version, self._predicted, self._own = state.frozen["version"], {}, {}
        return self._model

    def certificate(self, reader: Reader, state: State, delta: float | None = None) -> Certificate | None:
        """What is certain about the frozen model; None without one."""
        if state.frozen is None:
            return None
        level = state.frozen["delta"] if delta is None else delta
        found = self.findings(reader, state)
        risk = self.parts.risk.claimed.title
        return found.certificate(state.frozen["version"], level, risk, equal_rows(reader))

    def findings(self, reader: Reader, state: State) -> Findings:
        """Evidence in every group; labels that this process cannot predict count as missing."""
        if state.frozen is None:
            return Findings(tuple(state.groups))
        rows, known = _rows_since(reader, state), _out_before(reader, state)
        self._predict(reader, state, [row for row in rows if row.fate is None])
        measure = self._measure(state, rows)
        found = Findings(tuple(state.groups), measure.strata)
        # what will never come counts as an error: else the way
        # to a certificate is to give up on the hard examples
        found.missing += np.array(state.missing)
        self._count_open(state, found)
        counted = self._count(state, rows, known, measure, found)
        _in_order_of_asking(reader, state, rows, known, counted, found)
        return found

    # ---------------------------------------------------------------- counting

    def _count_open(self, state: State, found: Findings) -> None:
        """Labels that open requests wait for."""
        assert state.frozen is not None
        for request in (r for r in state.open.values() if r["event"] > state.frozen["event"]):
            named = request["left"]
            waits = request["size"] - request["told"] if named is None else len(named.keys() - state.lost.keys())
            # partly answered: whoever answers may have chosen which part
            counts = found.missing if request["told"] else found.open
            counts[state.groups.index(request["group"])] += waits

    def _count(
        self, state: State, rows: Sequence[Example], known_before: set[str], measure: Measure, found: Findings
    ) -> dict[str, Loss]:
        """Count every row; returns the loss under the first label for each row that counts as evidence."""
        assert state.frozen is not None
        asked, vouched = state.frozen["asked"], state.frozen["distinct"]
        known = [row for row in rows if row.fate is None and row.id in self._predicted and (vouched or not row.made)]
        first = self._losses(state, known, [row.first_label or "" for row in known], measure)
        now = self._losses(state, known, [row.label or "" for row in known], measure)
        losses = {row.id: pair for row, *pair in zip(known, first, now, strict=True)}
        counted: dict[str, Loss] = {}
        firsts: list[tuple[int, Loss]] = []
        nows: list[tuple[int, Loss]] = []
        for row in rows:
            z, before = state.groups.index(row.group), (row.request or 0) <= asked or row.id in known_before
            if row.fate is not None:
                # taken back after somebody may have seen the prediction: an error, whatever it was
                found.gone[z] += 1
                found.corrected[z] += 1
                found.elsewhere[z] += before
                continue
            if row.id not in losses:
                # not predicted here, or perhaps a row that was told before under another id that we made
                found.missing[z] += 1
                found.elsewhere[z] += before
                continue
            by_first, by_now = losses[row.id]
            if before and not (by_first.relevant and by_first.value) and not (by_now.relevant and by_now.value):
                # handed out before the freeze, perhaps again since: an error counts, so that none is hidden there;
                # a right answer may come from somebody who knew the model, or from a model that saw the example
                continue
            found.labels[z] += 1
            found.corrected[z] += row.label != row.first_label
            firsts.append((z, by_first))
            nows.append((z, by_now))
            if before:
                found.elsewhere[z] += 1
            else:
                counted[row.id] = by_first
        for evidence, losses_by in ((found.first, firsts), (found.now, nows)):
            relevant = [(z, loss.value, loss.stratum) for z, loss in losses_by if loss.relevant]
            if relevant:
                evidence.add(*zip(*relevant, strict=True))
        return counted

    def _losses(self, state: State, rows: Sequence[Example], labels: Sequence[str], measure: Measure) -> list[Loss]:
        if not rows:
            return []
        y = measure.codes([as_label(label, state.label_kind) for label in labels])
        predicted = measure.codes([as_label(self._predicted[row.id], state.label_kind) for row in rows])
        # the user's own function has no table of costs to look the pair of labels up in
        if measure.table is None:
            values, relevant = self._own_losses(state, rows, labels, measure)
            outcomes = Outcomes(values, relevant, y != predicted, np.zeros_like(y))
        else:
            outcomes = measure.of_codes(y, predicted)
        columns = (outcomes.values.tolist(), outcomes.relevant.tolist(), outcomes.stratum.tolist())
        return [Loss(*row) for row in zip(*columns, strict=True)]

    def _own_losses(
        self, state: State, rows: Sequence[Example], labels: Sequence[str], measure: Measure
    ) -> tuple[Floats, Mask]:
        """Losses by the user's own function, which needs the features; results it gave before are looked up."""
        keys = [(row.id, label) for row, label in zip(rows, labels, strict=True)]
        new = [k for k, key in enumerate(keys) if key not in self._own]
        if new:
            examples = as_examples(state, [rows[k]._replace(label=labels[k]) for k in new])
            outcomes = measure.of_model(self._model, self._input(state, examples.X), examples.y)
            for k, value, relevant in zip(new, outcomes.values.tolist(), outcomes.relevant.tolist(), strict=True):
                self._own[keys[k]] = (value, relevant)
        values, relevant = zip(*(self._own[key] for key in keys), strict=True)
        return np.array(values, dtype=float), np.array(relevant, dtype=bool)

    def _measure(self, state: State, rows: Sequence[Example]) -> Measure:
        """The certified risk for all classes there are: given, told or predicted."""
        if state.settings["classes"] is not None:
            return self.parts.risk.claimed.for_classes(sorted(state.settings["classes"]))
        texts = {label for row in rows for label in (row.first_label, row.label) if label is not None}
        texts |= set(self._predicted.values())
        if self._model is not None:
            texts |= {label_text(label) for label in np.asarray(self._model.classes).tolist()}
        classes = sorted(as_label(text, state.label_kind) for text in texts)
        # more classes may come: what depends on their number is not claimed yet
        return self.parts.risk.claimed.for_classes(classes, final=False)

    # ---------------------------------------------------------------- predicting

    def _predict(self, reader: Reader, state: State, rows: Sequence[Example]) -> None:
        try:
            model = self.model(reader, state)
        except (EvenhandError, ImportError):
            return  # a model this process cannot load: its labels count as missing until another process looks
        new = [row for row in rows if row.id not in self._predicted]
        if model is None or not new:
            return
        X = self._input(state, as_examples(state, new).X)
        for row, guess in zip(new, np.asarray(model.predict(X)).tolist(), strict=True):
            self._predicted[row.id] = label_text(guess)

    def _input(self, state: State, X: object) -> Any:
        """Features as the frozen model takes them."""
        if hasattr(self._model, "feature_names_in_"):  # fitted on a frame: it checks the columns itself
            return X
        return matrix(self.parts.learner if state.settings["learner"] else None, X)

    def _learner(self, form: str) -> Any:
        return self.parts.learner if form == "torch" else None


def _rows_since(reader: Reader, state: State) -> list[Example]:
    """The rows that answered a request since the freeze, and pool examples that were out then and told since."""
    assert state.frozen is not None
    freeze, asked = state.frozen["event"], state.frozen["asked"]
    return [
        row
        for row in reader.changed(freeze)
        if row.origin == "asked"
        and ((row.request or 0) > asked or (row.place is not None and (row.told or 0) > freeze))
    ]


def _out_before(reader: Reader, state: State) -> set[str]:
    """Examples of pools that were named in a request before the freeze: whoever froze the model may know their labels."""
    assert state.frozen is not None
    if state.pool is None:
        return set()
    asked = reader.events(kinds=REQUESTS)
    return {name for e in asked if e.seq <= state.frozen["event"] for name in ids_in(e)}


def _in_order_of_asking(
    reader: Reader,
    state: State,
    rows: Sequence[Example],
    known_before: set[str],
    counted: dict[str, Loss],
    found: Findings,
) -> None:
    """Put every loss in its request's place; labels that a request lacks count as errors, whether it is open or not."""
    assert state.frozen is not None
    came: dict[int, list[str]] = {}
    for row in rows:
        came.setdefault(row.request or 0, []).append(row.id)
    seen: set[str] = set()
    attributed = np.zeros(len(state.groups), dtype=np.int64)
    for event in reader.events(state.frozen["event"], kinds=REQUESTS):
        number, z = event.request or 0, state.groups.index(request_in(event)["decision"]["group"])
        if event.kind == NAMED.name:
            # an example that came back and was handed out again stands where it was asked for first
            names = [name for name in ids_in(event) if name not in seen and name not in known_before]
            seen.update(names)
            size = len(names)
            attributed[z] += sum(name in state.lost for name in names)
        else:
            names, size = came.get(number, []), request_in(event)["size"]
            attributed[z] += 0 if number in state.open else max(size - len(names), 0)
        found.answered.append(_answered(z, [counted[name] for name in names if name in counted], size, found.strata))
    found.elsewhere += np.maximum(np.array(state.missing) - attributed, 0)


def _answered(z: int, losses: Sequence[Loss], size: int, strata: int) -> Answered:
    lacking = max(size - len(losses), 0)
    n: Ints = np.full(strata, lacking, dtype=np.int64)
    total = np.full(strata, float(lacking))
    for loss in losses:
        n[loss.stratum] += loss.relevant
        total[loss.stratum] += loss.value if loss.relevant else 0.0
    return Answered(z, n, total)


def equal_rows(reader: Reader) -> int:
    """Rows that equal an earlier one in all features and label."""
    seen: set[tuple[str | bytes | None, str | None]] = set()
    equal = 0
    for row in reader.changed():
        if row.fate != "erased":
            equal += (row.features, row.first_label) in seen
            seen.add((row.features, row.first_label))
    return equal
