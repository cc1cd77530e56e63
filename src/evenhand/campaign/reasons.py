"""Says in plain words why a group is next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.strategies.decision import Decision

_TERMS = {
    "loss": "its {risk} on validation examples",
    "confidence": "for how few examples it has",
    "deviation": "for how far its error may be from the truth",
    "coupling": "for how little the common model has seen of it",
    "trend": "for how fast it has been getting better",
}
_KINDS = {
    "warm-up": "Warm-up is still running: every group gets its first examples in turn, and {group} has the fewest{of}, {count}.",
    "forced": "{group} lags behind: no group may fall below the floor the rule keeps for all, so it comes first.",
    "explore": "This was a draw to explore: every group had its chance, {group} with {chance:.0%}, and it came up.",
    "population": "Drawn by fixed shares, {group} with {chance:.0%}.",
    "behind": "{group} is furthest behind its share of the population{of}, by {behind:.1f} examples.",
    "fewest": "{group} has the fewest examples{of}, {count} with those on their way.",
    "certify": "{group} is where the proof lacks most: the upper bound of its {risk} stands {above:.3f} above the target.",
    "test": "Test labels come first, at random within {group}; they are never trained on.",
    "score": "{group} may be the group worst off: its score, {score:.3f}, is the largest{of}.",
}

_NAMES = {
    "loss": "{risk}, open requests counted as right",
    "confidence": "allowance for few examples",
    "deviation": "how far that may be from the truth",
    "coupling": "little seen by the common model",
    "trend": "getting better of late",
    "above the target": "upper bound above the target",
    "behind": "examples behind its share",
    "count": "examples",
}
_REASONS = {
    "warm-up": "Warm-up is still running: every group gets its first examples in turn, and this one has the fewest so far.",
    "forced": "It has fallen behind the least number of examples that every group is to have, so it comes first.",
    "explore": "It came up in a draw that gives every group a chance, this one {chance:.0%}.",
    "population": "It was drawn by fixed shares, this group's being {chance:.0%}.",
    "behind": "It is furthest behind its share of the population{of}.",
    "fewest": "It has the fewest examples{of}, with those on their way.",
    "certify": "Here the proof lacks most: the upper bound of its {risk} is furthest above the target.",
    "test": "Test labels come first, drawn at random; nothing is trained on them.",
    "score": "It may have been the worst-off group: its score was the largest{of}.",
}

_UNSTATED = ("explore", "population")
"""Kinds that are drawn; the user's own strategy may not say with which probability."""
_BARE = {
    "explore": "{group} came up in a random draw.",
    "population": "{group} came up in a draw by fixed shares.",
    "score": "{group} has the largest score{of}.",
}


def reason(decision: Decision, risk: str, shown: str | None) -> str:
    """Why a group is next in one sentence that stands below its name; `shown` is its newest risk as a page writes it."""
    terms = decision.terms
    if decision.kind == "score" and shown is not None and "loss" in terms:
        found = f"{_article(risk)} {risk} of {shown} on validation examples"
        if set(terms) == {"loss"}:
            return f"It is the worst-off group so far: {found} is the largest{_of_those(decision)}."
        return f"It may be the worst-off group: {found}, and so few of them that the truth may be worse than any other group's."
    kind = "behind" if "behind" in terms else decision.kind
    if decision.probability is None and kind in _UNSTATED:
        return "It was drawn at random."
    chance = np.nan if decision.probability is None else decision.probability[int(decision.index)]
    return _REASONS[kind].format(chance=chance, risk=risk, of=_of_those(decision))


def _of_those(decision: Decision) -> str:
    """What to add to "the largest" where another group's score is larger: that group had nothing left to give."""
    score = decision.score
    larger = score is not None and bool((np.nan_to_num(score, nan=-np.inf) > score[int(decision.index)]).any())
    return " of the groups that can be asked" if larger else ""


def term_names(risk: str) -> dict[str, str]:
    """What the parts of a score are called on a page."""
    return {name: words.format(risk=risk) for name, words in _NAMES.items()}


def _article(word: str) -> str:
    return "an" if word[:1] in "aeiou" else "a"


def explain(decision: Decision, risk: str = "error", unscored: int = 0, available: Sequence[bool] | None = None) -> str:
    """The decision in sentences.

    `risk` is what "worse off" means, in words, `unscored` the labels that came since the last fit, and `available` says
    which groups can be asked.
    """
    z = int(decision.index)
    score = decision.score
    chance = decision.probability[z] if decision.probability is not None else None
    # rules that want the fewest have the negative count as their score, since the largest score wins
    count = int(-decision.terms["count"][z]) if "count" in decision.terms else "a few"
    behind = decision.terms.get("behind")
    # the user's own strategy need not say with which probability it drew, or what the scores are
    kind = "behind" if behind is not None else decision.kind
    bare = (chance is None and kind in _UNSTATED) or (score is None and kind == "score")
    words = (_BARE if bare else _KINDS)[kind].format(
        group=decision.group,
        count=count,
        chance=chance,
        score=np.nan if score is None else score[z],
        behind=np.nan if behind is None else behind[z],
        above=decision.terms["above the target"][z] if "above the target" in decision.terms else np.nan,
        risk=risk,
        of=_of_those(decision),
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
    return f"{words} It is {' plus '.join(parts)}. {_rivals(decision, score, available)}".strip() + later


def _rivals(decision: Decision, score: np.ndarray, available: Sequence[bool] | None) -> str:
    """The group that would have been next; never one that cannot be asked, as one with a larger score could not."""
    chosen = int(decision.index)
    order = [
        z
        for z in np.argsort(-score, kind="stable").tolist()
        if z != chosen and np.isfinite(score[z]) and score[z] <= score[chosen] and (available is None or available[z])
    ]
    if not order:
        return ""
    z = order[0]
    if score[z] == score[chosen]:
        return f"{decision.groups[z]} has the same score; the tie was broken at random."
    return f"Next comes {decision.groups[z]} with {score[z]:.3f}."
