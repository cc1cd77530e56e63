"""How uncertain worst-group risks are: bootstrap samples within groups, the same ones for every model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.arrays import Floats, Ints
from evenhand.learners.crossing import CrossFit
from evenhand.risks import Outcomes

DRAWS = 200
_ROOM = 2_000_000  # counts kept in memory at a time


def worst_risks(cross: CrossFit, models: Sequence[Outcomes], draws: int = DRAWS) -> Floats:
    """The worst group's risk of every model on `draws` bootstrap samples, (draws, J).

    Groups without relevant rows do not count; a sample without any such row is NaN. The seed is fixed, so the same
    outcomes give the same numbers.
    """
    # the same draws for every model, so that their difference varies less than either
    rng = np.random.default_rng(0)
    values = np.stack([m.values * m.relevant for m in models], axis=1)
    relevant = np.stack([m.relevant for m in models], axis=1).astype(float)
    stratum = models[0].stratum
    found = np.full((draws, len(models)), np.nan)
    for z in range(cross.groups):
        rows = np.flatnonzero(cross.group == z)
        if len(rows):
            risks = _group(rng, values[rows], relevant[rows], stratum[rows], cross.measure.strata, draws)
            found = np.fmax(found, risks)
    return found


def deviation(drawn: Floats) -> Floats:
    """The standard deviation of each column over the samples that have a number, infinite for fewer than two.

    >>> deviation(np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, 1.0]])).round(3).tolist()
    [1.414, inf]
    """
    some = ~np.isnan(drawn)
    n = some.sum(axis=0)
    mean = np.where(some, drawn, 0.0).sum(axis=0) / np.maximum(n, 1)
    squares = np.where(some, (drawn - mean) ** 2, 0.0).sum(axis=0)
    return np.asarray(np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1)), np.inf))


def _group(
    rng: np.random.Generator, values: Floats, relevant: Floats, stratum: Ints, strata: int, draws: int
) -> Floats:
    """Risks of one group on every bootstrap sample; NaN where a sample has no relevant rows."""
    n = len(values)
    step = max(1, _ROOM // n)
    # how often each row comes, not which rows come: one product gives all sums
    parts = [rng.multinomial(n, np.full(n, 1 / n), min(step, draws - i)) for i in range(0, draws, step)]
    means = []
    for k in range(strata):
        own = stratum == k
        total, count = (np.concatenate([part[:, own] @ x[own] for part in parts]) for x in (values, relevant))
        means.append(np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0))
    stacked = np.stack(means)
    some = ~np.isnan(stacked)
    mean = np.nansum(stacked, axis=0) / np.maximum(some.sum(axis=0), 1)
    return np.asarray(np.where(some.any(axis=0), mean, np.nan))
