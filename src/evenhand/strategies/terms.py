"""The named parts of a score; each is one number per group (the last axis of a standing)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand.arrays import Floats
from evenhand.strategies.standing import Standing

Term = Callable[[Standing], Floats]
"""A custom term: a callable that takes the standing and returns one number per group."""


def title_of(term: Term) -> str:
    """The name of a custom term in decisions."""
    return getattr(term, "__name__", type(term).__name__)


def path_of(term: Term) -> str:
    """The import path of a custom term; it reads back if the term is a function of a module.

    >>> path_of(behind)
    'evenhand.strategies.terms.behind'
    """
    kind: Any = term if hasattr(term, "__qualname__") else type(term)
    return f"{kind.__module__}.{kind.__qualname__}"


def loss(standing: Standing) -> Floats:
    """Mean loss of the current model on each validation set (equation 4, first part)."""
    return standing.mean_loss


def confidence(standing: Standing, c0: float) -> Floats:
    """`c0 / √N_z`: the fewer examples a group has, the larger this is."""
    # open requests count: else ten asks in a row would all go to the group with the fewest
    return c0 / np.sqrt(np.maximum(standing.examples, 1))


def deviation(standing: Standing, bound: Callable[..., Floats]) -> Floats:
    """`e_z(N_z)`: how far a mean over N_z examples may be from the truth."""
    return bound(np.maximum(standing.examples, 1), groups=len(standing.groups))


def coupling(
    standing: Standing,
    bound: Callable[..., Floats],
    C: float | None = None,
    *,
    resolution: float = 0.0,
    kappa: float | None = None,
) -> Floats:
    """`C·max(2ρ, resolution) / π_t(z)`, or `κ·√(2ρ) / π_t(z)`, where ρ is `Σ π_t(z') e_z'(N_z')`.

    It covers the step from the fitted classifier to the mixture's best one, whose mixture risk is at most 2ρ lower.
    """
    pi = standing.mixture
    excess = 2 * (pi * deviation(standing, bound)).sum(axis=-1, keepdims=True)
    # C is only claimed for excess risks above the resolution, so a smaller excess is taken for that
    moved = (C or 0.0) * np.maximum(excess, resolution) if kappa is None else kappa * np.sqrt(excess)
    return np.asarray(moved / np.maximum(pi, np.finfo(float).tiny))


def trend(standing: Standing, c1: float) -> Floats:
    """`c1 · S_z / √var(S_z)`, the Mann–Kendall trend of the recent accuracies: is the group still improving?"""
    return c1 * standing.trend


def count(standing: Standing) -> Floats:
    """`−N_z`, open requests counted in: the group with the fewest examples comes first."""
    return (-standing.examples).astype(float)


def behind(standing: Standing) -> Floats:
    """`p_z·ΣN − N_z`, open requests counted in: how many examples a group is short of its population share."""
    n = standing.examples
    share = 0.0 if standing.population is None else standing.population
    return np.asarray(share * n.sum(axis=-1, keepdims=True) - n, dtype=float)
