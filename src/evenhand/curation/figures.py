"""How well a model serves every group, from its predictions on test rows: figures with intervals, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.arrays import Floats, Ints
from evenhand.claims.intervals import bounded_mean, clopper_pearson
from evenhand.claims.paired import together
from evenhand.notation import JsonObject
from evenhand.risks import Measure, Outcomes, Risk, Tally

DELTA = 0.05
"""The chance that any of the simultaneous intervals misses its true value."""

BINS = 10
"""Bins of predicted probabilities behind the calibration error."""

Row = JsonObject


@dataclass(frozen=True)
class Predictions:
    """Test rows and a model's predictions; labels are positions in the classes, groups in the list of groups.

    Attributes:
        group, y, predicted: of every test row; `predicted` is −1 for a label that is not a class.
        chances: the probability of every class, (rows, classes); None if the model gives none.
        measure, outcomes: the risk and its value for every row.
        majority: the most frequent class among the labels the model was fitted on.
        positive: the class whose misses are false negatives; None if there is no such class.
    """

    groups: tuple[str, ...]
    group: Ints
    y: Ints
    predicted: Ints
    chances: Floats | None
    measure: Measure
    outcomes: Outcomes
    majority: int
    positive: int | None

    def tally(self) -> Tally:
        """Sums by group."""
        return self.measure.tally(self.outcomes, self.group, len(self.groups))


def positive_place(given: Any, risk: Risk, labels: list[object]) -> int | None:
    """The position of the positive class: as given, that of the risk, or the second of two, as in scikit-learn."""
    wanted = risk.positive if given is None else given
    if wanted is None:
        return 1 if len(labels) == 2 else None
    # the risk knows how a label that was typed is found among the classes, and what to say where it is not
    return int(np.flatnonzero(Risk("fnr", positive=wanted).for_classes(labels).relevant)[0])


def by_group(tested: Predictions, least: int) -> list[Row]:
    """A row of figures for each group.

    `low` to `high` is around the accuracy and holds for all groups at once, with probability 1 − DELTA: the exact interval
    at DELTA divided by the number of groups. `risk_low` to `risk_high` is the same for the risk. A group with fewer than
    `least` relevant test rows is marked `few`.
    """
    tally = tested.tally()
    # all groups are looked at and the worst is named: an interval that is meant to hold for it must hold for all (Bonferroni)
    low, high = clopper_pearson(tally.n - tally.wrong, tally.n, together(len(tested.groups), DELTA))
    risk_low, risk_high = risk_intervals(tested.measure, tally, len(tested.groups))
    rows = []
    for z, name in enumerate(tested.groups):
        n, behind = int(tally.n[z]), int(tally.behind[z])
        row: Row = {"group": name, "accuracy": None, "low": None, "high": None, "count": n}
        if n:
            row |= {"accuracy": 1 - tally.wrong[z] / n, "low": low[z], "high": high[z]}
        row |= {"risk": tally.mean[z], "risk_low": risk_low[z], "risk_high": risk_high[z], "relevant": behind}
        row |= {"few": behind < least, **measures(tested, tested.group == z)}
        rows.append({key: plain(value) for key, value in row.items()})
    return rows


def overall(tested: Predictions) -> Row:
    """The same figures for all test rows together; the groups count as often as they occur in the test rows."""
    n = len(tested.y)
    if not n:
        return {"count": 0}
    tally = tested.measure.tally(tested.outcomes, np.zeros(n, dtype=np.int64), 1)
    found = {"accuracy": 1 - tally.wrong[0] / n, "count": n, "risk": tally.mean[0]}
    return {key: plain(value) for key, value in (found | measures(tested, np.ones(n, dtype=bool))).items()}


def picked(rows: list[Row]) -> Row | None:
    """The worst-off group: the largest risk among the groups with enough test rows."""
    known = [row for row in rows if not row["few"] and row["risk"] is not None]
    return max(known, key=lambda row: float(row["risk"]), default=None)


def worst_off(rows: list[Row], *, with_few: bool = False) -> JsonObject | None:
    """An interval for the largest true risk, whichever group has it: from the largest low to the largest high.

    It holds whenever the groups' own intervals do. Groups with few test rows count only with `with_few`: the risk of a
    group without test rows may be anything.
    """
    known = [row for row in rows if with_few or not row["few"]]
    ends = [(row["risk_low"], row["risk_high"]) for row in known]
    # one group of which nothing is known may be the worst-off
    if not ends or any(low is None or high is None for low, high in ends):
        return None
    return {"low": max(low for low, _ in ends), "high": max(high for _, high in ends), "groups": len(known)}


def risk_intervals(measure: Measure, tally: Tally, groups: int) -> tuple[Floats, Floats]:
    """Intervals of the groups' risks, simultaneous over groups; NaN for the log loss, which has no upper limit.

    Means of class means (`balanced`) have an interval for each class, at DELTA over groups and classes; a class without
    test rows counts as anything between 0 and 1.
    """
    if measure.risk.name == "log":
        nothing = np.full(groups, np.nan)
        return nothing, nothing
    level = together(groups * measure.strata, DELTA)
    # by the values that losses may have, not by those seen; for a user's function they are not known
    if measure.table is not None and np.isin(measure.table[measure.relevant], (0.0, 1.0)).all():
        low, high = clopper_pearson(np.rint(tally.total), tally.relevant, level)
    else:
        mean = np.clip(tally.total / np.maximum(tally.relevant, 1), 0.0, 1.0)
        low, high = bounded_mean(mean, tally.relevant, level)
    return low.mean(axis=-1), high.mean(axis=-1)


def measures(tested: Predictions, part: Any) -> Row:
    """Further figures of some rows, named as fairlearn names them; NaN if there is nothing to compute one from."""
    y, predicted = tested.y[part], tested.predicted[part]
    n, right = len(y), y == predicted
    found: Row = {"error": _ratio(n - right.sum(), n)}
    if tested.positive is not None:
        is_positive, taken = y == tested.positive, predicted == tested.positive
        found |= {
            "false_negative_rate": _ratio((is_positive & ~taken).sum(), is_positive.sum()),
            "false_positive_rate": _ratio((~is_positive & taken).sum(), (~is_positive).sum()),
            "selection_rate": _ratio(taken.sum(), n),
            "base_rate": _ratio(is_positive.sum(), n),
        }
    # the classes that these rows have, as in `balanced`: a mean over absent ones would be NaN
    recalls = [right[y == k].mean() for k in np.unique(y)]
    found["balanced_accuracy"] = float(np.mean(recalls)) if recalls else np.nan
    found["majority_accuracy"] = _ratio((y == tested.majority).sum(), n)
    if tested.chances is not None:
        found |= _calibration(tested, tested.chances[part], y, right)
    return found


def _calibration(tested: Predictions, chances: Floats, y: Ints, right: object) -> Row:
    """The calibration error of the probabilities of the positive class, or else of the predicted class."""
    if tested.positive is not None:
        chance, happened = chances[:, tested.positive], y == tested.positive
    else:
        chance, happened = chances.max(axis=1, initial=0.0), right
    found: Row = {"mean_prediction": float(chance.mean()) if len(y) else np.nan}
    # a probability of exactly 1 belongs to the last bin
    place = np.minimum((chance * BINS).astype(np.int64), BINS - 1)
    # over- and under-confidence within a bin cancel, between bins they add up: the expected calibration error
    gaps = np.bincount(place, chance - happened, BINS)
    found["calibration_error"] = _ratio(np.abs(gaps).sum(), len(y))
    return found


def _ratio(part: Any, whole: Any) -> float:
    return float(part) / float(whole) if whole else np.nan


def plain(value: object) -> Any:
    """A value as JSON can hold it; NaN becomes None."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return None if np.isnan(value) else float(value)
    return int(value) if isinstance(value, np.integer) else value
