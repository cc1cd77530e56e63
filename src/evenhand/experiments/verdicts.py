"""Verdicts by tests that are fixed before the numbers are seen: what makes a claim hold, fail, or stay open.

A claim is a list of comparisons. Each takes one value per trial, computes an interval from them, and says what the
interval has to show. All intervals on the page share an error probability of 5 %, so that with 95 % all of them cover
at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.claims.intervals import clopper_pearson
from evenhand.claims.paired import DOES_NOT_HOLD, HOLDS, OPEN, Interval, paired, together
from evenhand.errors import InputError

NOT_TESTED = "not tested at this scale"

FAMILY = 60
"""The most comparisons that all experiments may make together; a test counts them."""
LEVEL = together(FAMILY)
"""The level of every interval: Bonferroni's, over the family."""
FEWEST = 5
"""With fewer trials nothing is said: an interval by Student's t says little of so few."""


@dataclass(frozen=True)
class _OfMeans:
    """A comparison of a mean over trials.

    Args:
        name: what the values are.
    """

    name: str

    def interval(self, values: Floats) -> Interval:
        """Student's t."""
        return paired(values, level=LEVEL)

    def evidence(self, values: Floats, found: Interval | None) -> str:
        """The mean with its interval, or with the number of trials."""
        trials = "the one trial" if len(values) == 1 else f"{len(values)} trials"
        return f"{self.name}: {found or f'{np.mean(values):+.4f} in {trials}'}"


@dataclass(frozen=True)
class Above(_OfMeans):
    """The mean has to be above a bound; the claim fails where it is below.

    Args:
        bound: holds where the whole interval is above it, fails where the whole interval is below it.
    """

    bound: float = 0.0

    def verdict(self, found: Interval) -> str:
        """By the ends of the interval."""
        return found.above(self.bound)

    def words(self) -> str:
        """What it takes."""
        return f"{self.name}: holds above {self.bound:.4g}, fails below {self.bound:.4g}"


@dataclass(frozen=True)
class Within(_OfMeans):
    """The mean has to be closer to a centre than a margin: equivalence, for which not being significant is no proof."""

    margin: float
    centre: float = 0.0

    def verdict(self, found: Interval) -> str:
        """By the ends of the interval."""
        return found.within(self.margin, self.centre)

    def words(self) -> str:
        """What it takes."""
        what = f"within {self.margin:g} of {self.centre:g}" if self.centre else f"within ±{self.margin:g}"
        return f"{self.name}: holds {what}, fails outside"


@dataclass(frozen=True)
class MoreOften:
    """Something has to happen more often to the one than to the other: +1 where only to the one, −1 where only to the
    other, 0 otherwise. Exact, by the trials in which the two differ.

    Args:
        where: what was run.
        one: to whom it has to happen more often.
        other: than to whom.
        what: what happens, as a word that fits "is …".
    """

    where: str
    one: str
    other: str
    what: str

    @property
    def name(self) -> str:
        """What the values are."""
        return f"{self.where}: {self.one} {self.what} and {self.other} not"

    def interval(self, values: Floats) -> Interval:
        """Clopper and Pearson's, for the share of +1 among the trials that differ."""
        if not np.isin(values, (-1, 0, 1)).all():
            raise InputError(f"the values of {self.name!r} must be −1, 0 or 1")
        more, differ = int(np.sum(values > 0)), int(np.sum(values != 0))
        low, high = clopper_pearson(more, differ, LEVEL)
        return Interval(more / differ if differ else 0.5, float(low), float(high))

    def verdict(self, found: Interval) -> str:
        """By the ends of the interval."""
        return found.above(0.5)

    def words(self) -> str:
        """What it takes."""
        return (
            f"{self.where}: how often it is {self.one}, of the trials in which just one of {self.one} and {self.other} "
            f"is {self.what}: holds above 50 %, fails below 50 %"
        )

    def evidence(self, values: Floats, found: Interval | None) -> str:
        """How many trials differ, and how many of them are of the one."""
        differ = int(np.sum(values != 0))
        if not differ:
            return f"{self.where}: there is no trial in which just one of the two is {self.what}"
        share = f"{100 * np.sum(values > 0) / differ:.1f} %"
        interval = f" [{100 * found.low:.1f}, {100 * found.high:.1f}]" if found else ""
        return (
            f"{self.where}: of the {differ} trials in which just one of the two is {self.what}, "
            f"{self.one} is it in {share}{interval}"
        )


Comparison = Above | Within | MoreOften
"""What one value per trial has to show."""


@dataclass(frozen=True)
class Test:
    """A claim and its test.

    Args:
        claim: the claim, in our words.
        comparisons: all have to hold; one that fails is enough to fail.
        exact: whether the values are computed without sampling, so that a number is its own interval.
        study: the study it is about, in an experiment that can do without some of its studies.
    """

    claim: str
    comparisons: tuple[Comparison, ...]
    exact: bool = False
    study: str = ""

    __test__ = False  # not one of pytest's

    def words(self) -> str:
        """The test as text."""
        return "; ".join(one.words() for one in self.comparisons)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with the verdict the numbers give, and the test that gave it."""

    text: str
    verdict: str
    evidence: str
    test: str = ""


Values = Mapping[str, ArrayLike]
"""By the comparison's name, one value per trial."""


def judge(test: Test, values: Values, *, untested: str = "", note: str = "") -> Claim:
    """The verdict of a test on these values.

    Args:
        test: the claim and what it takes.
        values: by the comparison's name, one value per trial.
        untested: why the runs do not suffice for a verdict, if they do not.
        note: what else a reader of the numbers has to know.
    """
    found = [(one, *_one(test, one, values)) for one in test.comparisons]
    # too few trials must not look like a refutation, nor like a confirmation
    judged = not untested and (test.exact or all(len(given) >= FEWEST for _, given, _ in found))
    evidence = "; ".join(one.evidence(given, interval if judged else None) for one, given, interval in found)
    if note or untested:
        evidence += f" ({', '.join(filter(None, (note, untested)))})"
    verdicts = [one.verdict(interval) for one, _, interval in found]
    if not judged:
        verdict = NOT_TESTED
    elif DOES_NOT_HOLD in verdicts:
        verdict = DOES_NOT_HOLD
    else:
        verdict = OPEN if OPEN in verdicts else HOLDS
    return Claim(test.claim, verdict, evidence, test.words())


def _one(test: Test, comparison: Comparison, values: Values) -> tuple[Floats, Interval]:
    if comparison.name not in values:
        raise InputError(
            f"there are no values of {comparison.name!r} for {test.claim!r}: there are {', '.join(values)}"
        )
    given = np.atleast_1d(np.asarray(values[comparison.name], dtype=float))
    return given, Interval(*[float(given[0])] * 3) if test.exact else comparison.interval(given)


def count(tests: Sequence[Test]) -> int:
    """How many comparisons of these tests rest on samples."""
    return sum(len(test.comparisons) for test in tests if not test.exact)
