"""One label out of several answers to one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from evenhand.connectors.base import Answer
from evenhand.errors import InputError

RULES = ("first", "last", "majority", "agree")


class Outcome(NamedTuple):
    """What follows from the answers to a task.

    Attributes:
        label: the label; None without one.
        by: whose answer it is.
        skipped: whether everybody who was to look at it skipped it.
        gone: whether all answers were deleted, so that a label told before is taken back.
        disagree: whether answers contradict each other so that there is no label.
        problem: why an answer cannot be used.
    """

    label: str | int | None = None
    by: str | None = None
    skipped: bool = False
    gone: bool = False
    disagree: bool = False
    problem: str | None = None


GONE = Outcome(skipped=True, gone=True)
"""The outcome of a task that was deleted."""


def check_rule(rule: str) -> str:
    """The rule, if there is such a rule."""
    if rule not in RULES:
        raise InputError(f"unknown rule {rule!r}: use {', '.join(RULES)}")
    return rule


def agreed(answers: Sequence[Answer], rule: str, wanted: int = 1) -> Outcome:
    """The label that answers agree on: the first, the one changed last, the one of more than half, or the one of all.

    `majority` and `agree` wait until as many people as wanted have answered or skipped, and count everybody once. A task
    is skipped when as many as wanted skipped it.

    >>> answers = [Answer("ann", "yes", "1"), Answer("bob", "no", "2"), Answer("cyd", "yes", "3")]
    >>> [agreed(answers, rule).label for rule in RULES]
    ['yes', 'yes', 'yes', None]
    >>> agreed(answers[:1], "majority", wanted=3)
    Outcome(label=None, by=None, skipped=False, gone=False, disagree=False, problem=None)
    """
    problem = next((answer.problem for answer in answers if answer.problem is not None), None)
    usable = [answer for answer in answers if answer.problem is None]
    given = [answer for answer in usable if answer.label is not None]
    together = rule in ("majority", "agree")
    people = len({answer.by for answer in usable})
    if together and 0 < people < wanted:
        return Outcome(problem=problem)
    if not given:
        nobody = problem is None
        # a skip is for good: while others have yet to look at it, one of them may know
        return Outcome(skipped=nobody and people >= wanted, gone=nobody, problem=problem)
    if not together:
        chosen = given[0] if rule == "first" else max(given, key=lambda answer: answer.at)
        return Outcome(chosen.label, chosen.by, problem=problem)
    # somebody who answered twice has changed their mind, and is still one person
    voices = {answer.by: answer for answer in sorted(given, key=lambda answer: answer.at)}
    counts = Counter(answer.label for answer in voices.values())
    label, most = counts.most_common(1)[0]
    needed = len(voices) if rule == "agree" else len(voices) // 2 + 1
    if most < needed:
        return Outcome(disagree=True, problem=problem)
    return Outcome(label, next(a.by for a in given if voices[a.by].label == label), problem=problem)
