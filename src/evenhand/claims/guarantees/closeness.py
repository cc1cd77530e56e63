"""Assumption 3 in data: how far group risks move while the mixture's risk stays close to its minimum."""

from dataclasses import dataclass

import numpy as np

from evenhand.arrays import Floats, Mask
from evenhand.claims.guarantees.measured import Measured

SHIFTS = (0.3, 0.1, 0.03, 0.01)


@dataclass(frozen=True)
class Closeness:
    """The constants that ever closer mixtures need, with the examples taken as the whole population.

    Attributes:
        shifts: how far the mixture was moved away from equal shares, towards one group after the other.
        excess: for each shift, the largest excess risk under equal shares of a classifier trained for a moved mixture.
        C, kappa: max_z π_z·|ΔL(z)| over the excess, and over its square root; NaN where some excess was not above 0.
        risk: the risk it is about, the one the learner minimises.
    """

    shifts: tuple[float, ...]
    excess: Floats
    C: Floats
    kappa: Floats
    risk: str

    @property
    def seen(self) -> Mask:
        """Shifts at which every classifier trained for another mixture was worse than the mixture's own."""
        return np.asarray(np.isfinite(self.C))

    @property
    def resolution(self) -> float:
        """The smallest excess risk at which C was seen: C holds from there up; infinite if it was never seen."""
        return float(self.excess[self.seen].min(initial=np.inf))

    @property
    def judged(self) -> bool:
        """Whether at least two shifts can be compared."""
        return int(self.seen.sum()) >= 2

    @property
    def grows(self) -> bool:
        """Whether the constant more than doubles as mixtures come closer."""
        seen = self.C[self.seen]
        # a constant that exists would settle as mixtures come closer; sampling noise alone seldom doubles it
        return self.judged and bool(seen[-1] > 2 * seen[0])

    def __str__(self) -> str:
        if not self.judged:
            return (
                f"Assumption 3 cannot be judged: classifiers trained for other mixtures have a {self.risk} below the "
                "mixture's own, so the learner does not minimise it (a penalty on its weights is enough for that)."
            )
        C, excess = self.C[self.seen], self.excess[self.seen]
        told = (
            f"its C goes from {C[0]:.3g} at an excess {self.risk} of {excess[0]:.2g} to {C[-1]:.3g} at {excess[-1]:.2g}"
        )
        if not self.grows:
            return f"Assumption 3 is not contradicted: {told}."
        kappa = float(np.max(self.kappa[self.seen]))
        return f"Assumption 3 fails for small excess: {told}. The square-root form needs κ = {kappa:.3g}."


def closeness(measured: Measured) -> Closeness:
    """Move the mixture from equal shares towards each group, by smaller and smaller steps."""
    m = measured.m
    here = np.full(m, 1 / m)
    at_home = measured.risks(here)
    rows = []
    for shift in SHIFTS:
        # towards each group in turn: the constant must hold in the worst direction
        moved = np.array([measured.risks(here + shift * (np.eye(m)[z] - here)) for z in range(m)]) - at_home
        excess = moved @ here
        seen = np.where(excess > 0, excess, np.nan)
        size = np.max(here * np.abs(moved), axis=1)
        # a classifier trained for another mixture cannot be better
        # on this one, unless the learner minimises something else
        some = bool((excess > 0).all())
        rows.append(
            (excess.max(), np.max(size / seen), np.max(size / np.sqrt(seen)))
            if some
            else (excess.max(), np.nan, np.nan)
        )
    excesses, C, kappa = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Closeness(SHIFTS, excesses, C, kappa, measured.measure.risk.title)
