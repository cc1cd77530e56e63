"""Assumption 1 in data: does a larger share of a group always lower its risk, whatever the rest of the mixture?"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evenhand.arrays import Floats
from evenhand.claims.guarantees.measured import Measured
from evenhand.claims.intervals import paired_difference


@dataclass(frozen=True)
class Step:
    """A group's risk at two mixtures, on the same examples.

    Attributes:
        pi, nu: the mixtures; π has at least as large a share of the group as ν.
        risk_pi, risk_nu: the group's risk at each.
        low, high: interval for risk_nu − risk_pi, which Assumption 1 wants above 0, or equal to 0 at an equal share.
    """

    group: str
    pi: tuple[float, ...]
    nu: tuple[float, ...]
    risk_pi: float
    risk_nu: float
    low: float
    high: float
    sideways: bool

    @property
    def fails(self) -> bool:
        """Whether the data contradict Assumption 1."""
        return self.high < 0 or (self.sideways and self.low > 0)

    @property
    def holds(self) -> bool:
        """Whether the data show what it says; never at an equal share, which could only be contradicted."""
        return self.low > 0 and not self.sideways


@dataclass(frozen=True)
class Monotone:
    """What the data say about Assumption 1; the intervals of all steps hold at once, with confidence 95 %."""

    groups: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def fails(self) -> tuple[Step, ...]:
        """Steps that contradict it."""
        return tuple(step for step in self.steps if step.fails)

    @property
    def unclear(self) -> tuple[Step, ...]:
        """Steps to a larger share that the data cannot decide."""
        return tuple(step for step in self.steps if not (step.sideways or step.fails or step.holds))

    def __str__(self) -> str:
        parts = []
        if self.fails:
            worst = max(self.fails, key=lambda step: abs(step.risk_nu - step.risk_pi))
            parts.append(
                f"Assumption 1 fails in {len(self.fails)} of {len(self.steps)} comparisons: {_words(self, worst)}."
            )
        elif self.unclear:
            parts.append(
                f"Assumption 1 is undecided: {len(self.unclear)} steps to a larger share change too little to tell."
            )
        else:
            parts.append("Assumption 1 holds in these data.")
        if len(self.groups) > 2:
            parts.append("With three or more groups no problem has it exactly.")
        return " ".join(parts)


def monotone(measured: Measured) -> Monotone:
    """Compare risks along growing shares of each group and, with three or more groups, at one share with another rest."""
    pairs = [*_ladders(measured.m), *_sideways(measured.m)]
    # Bonferroni: with many comparisons one would fail by chance alone
    level = 1 - 0.05 / len(pairs)
    steps = []
    for z, pi, nu in pairs:
        more, less = measured.losses(pi)[z], measured.losses(nu)[z]
        difference = paired_difference(less, more, level)
        same = bool(np.isclose(pi[z], nu[z]))
        steps.append(
            Step(
                measured.groups[z], _plain(pi), _plain(nu), float(more.mean()), float(less.mean()),
                difference.low, difference.high, same,
            )
        )  # fmt: skip
    return Monotone(measured.groups, tuple(steps))


def _ladders(m: int) -> Iterator[tuple[int, Floats, Floats]]:
    """For each group, pairs of mixtures in which its share grows and the others share the rest equally."""
    rungs = [0.5 / m, 1 / m, (1 / m + 0.9) / 2, 0.9]
    for z in range(m):
        mixtures = [_mixture(m, z, share) for share in rungs]
        for nu, pi in pairwise(mixtures):
            yield z, pi, nu


def _sideways(m: int) -> Iterator[tuple[int, Floats, Floats]]:
    """For each group at the share 1/m, pairs of mixtures: the rest in equal parts, or nine tenths from one group."""
    for z in range(m):
        for other in range(m):
            if m > 2 and other != z:
                yield z, _mixture(m, z, 1 / m), _mixture(m, z, 1 / m, other)


def _mixture(m: int, z: int, share: float, other: int | None = None) -> Floats:
    rest = np.full(m, 1.0 if other is None else 0.1 / max(m - 2, 1))
    if other is not None:
        rest[other] = 0.9
    rest[z] = 0.0
    pi = (1 - share) * rest / rest.sum()
    pi[z] = share
    return np.asarray(pi)


def _plain(pi: Floats) -> tuple[float, ...]:
    return tuple(round(float(share), 6) for share in pi)


def _words(found: Monotone, step: Step) -> str:
    def mixture(pi: tuple[float, ...]) -> str:
        return ", ".join(f"{group} {share:.2f}" for group, share in zip(found.groups, pi, strict=True))

    return f"{step.group}'s risk is {step.risk_pi:.4f} at ({mixture(step.pi)}) and {step.risk_nu:.4f} at ({mixture(step.nu)})"
