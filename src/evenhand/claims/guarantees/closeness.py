"""Assumption 3 in data: how far group risks move while the mixture's risk stays close to its least."""

from dataclasses import dataclass

import numpy as np

from evenhand.arrays import Floats
from evenhand.claims.guarantees.measured import Measured

SHIFTS = (0.3, 0.1, 0.03, 0.01)


@dataclass(frozen=True)
class Closeness:
    """The constants that ever closer mixtures need, with the examples taken as the whole population.

    Attributes:
        shifts: how far the mixture was moved away from equal shares, towards one group after the other.
        excess: for each shift, the largest excess risk under equal shares of a classifier trained for a moved mixture.
        C, kappa: max_z π_z·|ΔL(z)| over the excess, and over its square root; NaN where no excess was above 0.
        risk: the risk it is about, the one the learner minimises.
    """

    shifts: tuple[float, ...]
    excess: Floats
    C: Floats
    kappa: Floats
    risk: str

    @property
    def resolution(self) -> float:
        """The smallest excess risk that was looked at: C holds here from there up."""
        return float(self.excess[self.excess > 0].min(initial=np.inf))

    @property
    def minimised(self) -> bool:
        """Whether the learner minimises this risk, so that no classifier beats the mixture's own."""
        return bool(np.isfinite(self.C).all())

    @property
    def grows(self) -> bool:
        """Whether the constant more than doubles as mixtures come closer."""
        return bool(self.C[-1] > 2 * self.C[0])

    def __str__(self) -> str:
        if not self.minimised:
            return (
                f"Assumption 3 cannot be judged: classifiers trained for other mixtures have a {self.risk} below the "
                "mixture's own, so the learner does not minimise it (a penalty on its weights is enough for that)."
            )
        told = (
            f"the C of Assumption 3 goes from {self.C[0]:.3g} at an excess {self.risk} of {self.excess[0]:.2g} to "
            f"{self.C[-1]:.3g} at {self.excess[-1]:.2g}"
        )
        if not self.grows:
            return f"Assumption 3 is not contradicted: {told}."
        return f"Assumption 3 fails for small excess: {told}. The square-root form needs κ = {np.max(self.kappa):.3g}."


def closeness(measured: Measured) -> Closeness:
    """Move the mixture from equal shares towards each group, ever less far."""
    m = measured.m
    here = np.full(m, 1 / m)
    at_home = measured.risks(here)
    rows = []
    for shift in SHIFTS:
        moved = np.array([measured.risks(here + shift * (np.eye(m)[z] - here)) for z in range(m)]) - at_home
        excess = moved @ here
        seen = np.where(excess > 0, excess, np.nan)
        size = np.max(here * np.abs(moved), axis=1)
        some = bool((excess > 0).all())
        rows.append(
            (excess.max(), np.max(size / seen), np.max(size / np.sqrt(seen)))
            if some
            else (excess.max(), np.nan, np.nan)
        )
    excesses, C, kappa = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Closeness(SHIFTS, excesses, C, kappa, measured.measure.risk.title)
