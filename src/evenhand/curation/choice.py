"""How the model to deploy was chosen, as a report shows it."""

from __future__ import annotations

import numpy as np

from evenhand.learners.choosing import Choice
from evenhand.notation import JsonObject

__all__ = ["choice_values"]


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
                **{key: _plain(getattr(c, key)) for key in ("risk", "se", "gain", "gain_se")},
                "by_group": {group: _plain(value) for group, value in c.by_group.items()},
            }
            for i, c in enumerate(choice.candidates)
        ],
    }  # fmt: skip


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
