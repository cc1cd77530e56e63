"""One label out of several answers to one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from evenhand.connectors.base import Answer
from evenhand.errors import InputError

__all__ = ["RULES", "Outcome", "agreed", "check_rule"]

RULES = ("first", "last", "majority", "agree")


class Outcome(NamedTuple):
    """What the answers to a task come to.

    Attributes:
        label: the label; None without one.
        by: whose answer it is.
        skipped: whether everybody who looked at it skipped it.
        disagree: whether answers contradict each other so that there is no label.
        problem: why an answer cannot be used.
    """

    label: str | int | None = None
    by: str | None = None
    skipped: bool = False
    disagree: bool = False
    problem: str | None = None


def check_rule(rule: str) -> str:
    """A rule there is."""
    if rule not in RULES:
        raise InputError(f"unknown rule {rule!r}: use {', '.join(RULES)}")
    return rule


def agreed(answers: Sequence[Answer], rule: str) -> Outcome:
    """What answers come to: the first, the last, the one more than half gave, or the one that all gave.

    >>> answers = [Answer("ann", "yes"), Answer("bob", "no"), Answer("cyd", "yes")]
    >>> [agreed(answers, rule).label for rule in RULES]
    ['yes', 'yes', 'yes', None]
    """
    problem = next((answer.problem for answer in answers if answer.problem is not None), None)
    given = [answer for answer in answers if answer.label is not None and answer.problem is None]
    if not given:
        return Outcome(skipped=bool(answers) and problem is None, problem=problem)
    ordered = sorted(given, key=lambda answer: answer.at)
    if rule in ("first", "last"):
        chosen = ordered[0 if rule == "first" else -1]
        return Outcome(chosen.label, chosen.by, problem=problem)
    # True and 1 are one key of a dictionary, but two labels
    counts = Counter((type(answer.label), answer.label) for answer in ordered)
    (_, label), most = counts.most_common(1)[0]
    needed = len(ordered) if rule == "agree" else len(ordered) // 2 + 1
    if most < needed:
        return Outcome(disagree=True, problem=problem)
    return Outcome(label, next(answer.by for answer in ordered if answer.label == label), problem=problem)
