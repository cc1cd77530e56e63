"""Says in plain words why a group is next."""

from __future__ import annotations

import numpy as np

from evenhand.strategies.decision import Decision

__all__ = ["explain"]

_TERMS = {
    "loss": "its {risk} on validation examples",
    "confidence": "for how few examples it has",
    "deviation": "for how far its error may be from the truth",
    "coupling": "for how little the common model has seen of it",
    "trend": "for how fast it has been getting better",
}
_KINDS = {
    "warm-up": "Warm-up is still running: every group gets its first examples in turn, and {group} has the fewest, {count}.",
    "forced": "{group} lags behind: no group may fall below the floor the rule keeps for all, so it comes first.",
    "explore": "This was a draw to explore: every group had its chance, {group} with {chance:.0%}, and it came up.",
    "population": "Drawn by the population's shares, {group} with {chance:.0%}.",
    "behind": "{group} is furthest behind its share of the population, by {behind:.1f} examples.",
    "fewest": "{group} has the fewest examples, {count} with those on their way.",
    "certify": "{group} is where the proof lacks most: the upper bound of its {risk} stands {above:.3f} above the target.",
    "test": "Test labels come first, at random within {group}; they are never trained on.",
    "score": "{group} may be the group worst off: its score, {score:.3f}, is the largest.",
}


def explain(decision: Decision, risk: str = "error", unscored: int = 0) -> str:
    """The decision in sentences; `risk` is what "worse off" means, in words, `unscored` the labels that came since the last fit."""
    z = int(decision.index)
    score = decision.score
    chance = decision.probability[z] if decision.probability is not None else np.nan
    # rules that want the fewest have the negative count as their score, since the largest score wins
    count = int(-decision.terms["count"][z]) if "count" in decision.terms else "a few"
    behind = decision.terms.get("behind")
    words = _KINDS["behind" if behind is not None else decision.kind].format(
        group=decision.group,
        count=count,
        chance=chance,
        score=np.nan if score is None else score[z],
        behind=np.nan if behind is None else behind[z],
        above=decision.terms["above the target"][z] if "above the target" in decision.terms else np.nan,
        risk=risk,
    )
    later = ""
    if unscored:
        came = "1 label has" if unscored == 1 else f"{unscored:,} labels have"
        later = (
            f" {came} come since the model was last fitted: an ask fits it first, and may then choose another group."
        )
    if decision.kind != "score" or score is None:
        return words + later
    parts = [f"{values[z]:.3f} {_TERMS.get(name, name)}".format(risk=risk) for name, values in decision.terms.items()]
    return f"{words} It is {' plus '.join(parts)}. {_rivals(decision, score)}".strip() + later


def _rivals(decision: Decision, score: np.ndarray) -> str:
    order = [z for z in np.argsort(-score, kind="stable") if z != int(decision.index) and np.isfinite(score[z])]
    if not order:
        return ""
    z = int(order[0])
    if score[z] == score[int(decision.index)]:
        return f"{decision.groups[z]} has the same score; the tie was broken at random."
    return f"Next comes {decision.groups[z]} with {score[z]:.3f}."
