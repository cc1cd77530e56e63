"""The front of group risks: what one group's risk costs the others, with the fair mixture on it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats
from evenhand.claims.guarantees.measured import Measured
from evenhand.errors import InputError
from evenhand.notation import JsonObject
from evenhand.risks import Risk


@dataclass(frozen=True)
class Front:
    """Group risks of the best classifiers for many mixtures, and the mixture with the lowest worst-group risk.

    Attributes:
        groups: the names, in the order of the last axis.
        mixtures: the mixtures π that were tried, (k, m).
        risks: L(z, f_π), (k, m).
        risk: what was measured.
    """

    groups: tuple[str, ...]
    mixtures: Floats
    risks: Floats
    risk: str

    @property
    def fair(self) -> int:
        """The position of the fair mixture among those tried: it has the smallest worst-group risk."""
        return int(np.argmin(self.risks.max(axis=1)))

    @property
    def dominated(self) -> Floats:
        """How much better another classifier is for every group at once; 0 on the Pareto front (Property 1)."""
        # the least gain over the groups: above 0 only where the other one is better for all of them
        margin = (self.risks[:, None, :] - self.risks[None, :, :]).min(axis=-1)
        return np.asarray(np.maximum(margin.max(axis=1), 0.0))

    @property
    def slack(self) -> Floats:
        """How far f_π is from the best of all tried for its own mixture; 0 where it minimises π·L (Property 3)."""
        return np.asarray(np.sum(self.mixtures * self.risks, axis=1) - (self.mixtures @ self.risks.T).min(axis=1))

    def as_dict(self) -> JsonObject:
        """The front as plain values."""
        return {
            "groups": list(self.groups),
            "risk": self.risk,
            "mixtures": self.mixtures.tolist(),
            "risks": self.risks.tolist(),
            "fair": self.fair,
        }

    def __str__(self) -> str:
        shares = ", ".join(f"{g} {p:.2f}" for g, p in zip(self.groups, self.mixtures[self.fair], strict=True))
        risks = ", ".join(f"{g} {r:.3f}" for g, r in zip(self.groups, self.risks[self.fair], strict=True))
        return f"fair mixture of {len(self.mixtures)} tried: {shares}; {self.risk} there: {risks}"


def pareto(
    learner: Any,
    X: Any,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    risk: str | Risk = "error",
    positive: Any = None,
    points: int = 40,
    seed: int = 0,
) -> Front:
    """The front from classifiers trained on half of each group for many mixtures, risks from the other half.

    `points` mixtures are spread over the simplex, and half as many more close in on the fair one. The fair mixture is
    selected by these risks: they are an indication, never a claim.
    """
    if points < 3:
        raise InputError(f"points must be 3 or more, got {points!r}")
    measured = Measured.of(learner, X, y, groups, risk=risk, positive=positive, seed=seed)
    mixtures = list(_spread(measured.m, points, seed))
    risks = [measured.risks(pi) for pi in mixtures]
    pi = mixtures[int(np.argmin([found.max() for found in risks]))]
    for step in range(points // 2 if measured.m > 1 else 0):
        # the least risk V(π) is concave and its slope is L(·, f_π): uphill, the larger risks gain share
        found = measured.risks(pi)
        # by ratio, so that shares stay positive; over the spread of the risks, so that the step does not hang on their unit
        pi = pi * np.exp(_pace(step) * (found - found.mean()) / max(float(np.ptp(found)), 1e-12))
        pi = pi / pi.sum()
        mixtures.append(pi)
        risks.append(measured.risks(pi))
    return Front(measured.groups, np.array(mixtures), np.array(risks), measured.measure.risk.title)


def _pace(step: int) -> float:
    # steps that shrink: near the fair mixture the worst group changes from step to step
    return 0.5 * 0.8**step


def _spread(m: int, points: int, seed: int) -> Floats:
    """Mixtures all over the inside of the simplex: evenly spaced for two groups, else random, equal shares first."""
    if m == 1:
        return np.ones((1, 1))
    if m == 2:
        # midpoints: at the corners one group has no share, and its risk is that of a model that never saw it
        first = (np.arange(points) + 0.5) / points
        return np.column_stack([first, 1 - first])
    drawn = np.random.default_rng(seed).dirichlet(np.ones(m), points - 1)
    return np.concatenate([np.full((1, m), 1 / m), drawn])
