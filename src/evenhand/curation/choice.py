"""How the model to deploy was chosen, as a report shows it and as it can be recomputed."""

from __future__ import annotations

from typing import Any

from evenhand.learners.choosing import Choice

__all__ = ["choice_values"]


def choice_values(choice: Choice | None) -> dict[str, Any] | None:
    """The choice as plain values: a sentence, a table of candidates, and the weights that were used; None without one."""
    if choice is None:
        return None
    chosen = next((c for c in choice.candidates if c.name == choice.chosen), None)
    rows = [
        [
            f"{c.name}{' (chosen)' if c is chosen else ''}",
            f"{c.risk:.4f} ± {c.se:.4f}",
            f"{c.gain:+.4f} ± {c.gain_se:.4f}",
        ]
        for c in choice.candidates
    ]
    return {
        "chosen": choice.chosen,
        "sentence": f"{choice.chosen[0].upper()}{choice.chosen[1:]}: {choice.why}. These risks are those of a selection: "
        "an indication, never a claim; ± is one standard error.",
        "strength": 0.0 if chosen is None else chosen.strength,
        "weights": choice.weights,
        "columns": ["candidate", "worst group's risk, rows not fitted on", "lower than plain by"],
        "rows": rows,
    }
