"""Everything a report shows, as plain values that the page, the terminal and the JSON file share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version

import numpy as np
import pandas as pd

from evenhand.arrays import Ints
from evenhand.curation import words
from evenhand.curation.figures import DELTA, Predictions, by_group, overall, picked, plain, worst_off
from evenhand.curation.rounds import Rounds
from evenhand.learners.choosing import Choice
from evenhand.notation import JsonObject

SCHEMA = 2
_FIRST = ("group", "accuracy", "low", "high", "count")
_PACKAGES = ("evenhand", "numpy", "scipy", "scikit-learn", "pyarrow")


@dataclass(frozen=True)
class Facts:
    """What happened, before anything is computed from it.

    Attributes:
        settings: what was asked for, as plain values.
        labels: labels spent.
        counts: by role (train, validation, …) how many rows of each group were taken; `pool` how many there are.
        min_test: groups with fewer relevant test rows are shown separately.
        rounds: the choices and their reasons.
        choice: how the model was chosen, if it was.
        progress: budget, rows to label and whether all is done, while labels are made.
    """

    settings: JsonObject
    group_columns: Sequence[str]
    features: Sequence[str]
    notes: Sequence[str]
    interrupted: bool
    labels: int
    counts: dict[str, Ints]
    used_up: dict[str, int]
    min_test: int
    rounds: Rounds
    choice: Choice | None = None
    progress: JsonObject | None = None


def summarise(
    facts: Facts, tested: Predictions, comparison: Callable[[Sequence[str]], JsonObject] | JsonObject
) -> JsonObject:
    """The summary of a run; the comparison may depend on which groups have enough test rows."""
    rows = [
        # in the order of the columns a reader meets: who and how well, how many rows, everything else
        {**{key: row[key] for key in _FIRST}, **{role: int(n[z]) for role, n in facts.counts.items()}, **row}
        for z, row in enumerate(by_group(tested, facts.min_test))
    ]
    risk, classes = tested.measure.risk, tested.measure.classes
    # a group with a handful of test rows would be the worst-off of many comparisons by chance
    enough = [row["group"] for row in rows if not row["few"]]
    summary: JsonObject = {
        "schema": SCHEMA,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in _PACKAGES},
        "settings": facts.settings,
        "interrupted": facts.interrupted,
        "labels": facts.labels,
        **{role: int(counts.sum()) for role, counts in facts.counts.items()},
        "test": len(tested.y),
        "features": list(facts.features),
        "notes": list(facts.notes),
        "used_up": facts.used_up,
        "group_columns": list(facts.group_columns),
        "groups": list(tested.groups),
        "classes": list(classes),
        "risk": risk.name,
        "risk_title": risk.title,
        "positive": None if tested.positive is None else classes[tested.positive],
        "majority": classes[tested.majority],
        "delta": DELTA,
        "min_test": facts.min_test,
        "by_group": rows,
        "overall": overall(tested),
        "worst": picked(rows),
        "worst_off": worst_off(rows),
        "worst_off_with_few": worst_off(rows, with_few=True),
        "comparison": comparison(enough) if callable(comparison) else comparison,
        "progress": facts.progress,
        "choice": choice_values(facts.choice),
        "rounds": asdict(facts.rounds),
    }
    summary["title"] = words.title(summary)
    summary["next"] = words.advice(summary)
    return summary


def choice_values(choice: Choice | None) -> JsonObject | None:
    """The choice as plain values: a sentence, a table of candidates, and the weights that were used; None without one."""
    if choice is None:
        return None
    chosen = next((c for c in choice.candidates if c.name == choice.chosen), None)
    # what is called plain is the first one: another penalty is another model
    names = [
        c.name if c is choice.candidates[0] else c.name.replace("plain", "equal weights") for c in choice.candidates
    ]
    name = choice.chosen if chosen is None else names[choice.candidates.index(chosen)]
    why = choice.why
    for c, shown in zip(choice.candidates, names, strict=True):
        why = why.replace(f"candidate, {c.name},", f"candidate, {shown},")
    said = f"{name[0].upper()}{name[1:]}: {why}."
    if choice.candidates:
        said += " These figures chose the model, so they are an indication and no claim; ± is one standard error."
    return {
        "chosen": name,
        "sentence": said,
        "strength": 0.0 if chosen is None else chosen.strength,
        "weights": choice.weights,
        "candidates": [
            {
                "name": names[i], "chosen": c is chosen, "strength": c.strength, "C": c.C,
                **{key: plain(getattr(c, key)) for key in ("risk", "se", "gain", "gain_se")},
                "by_group": {group: plain(value) for group, value in c.by_group.items()},
            }
            for i, c in enumerate(choice.candidates)
        ],
    }  # fmt: skip


def frame_of(rows: Sequence[JsonObject]) -> pd.DataFrame:
    """The figures of the groups as a frame with the group's name as index; missing figures are NaN."""
    frame = pd.DataFrame([{k: np.nan if v is None else v for k, v in row.items()} for row in rows])
    return frame.set_index("group")
