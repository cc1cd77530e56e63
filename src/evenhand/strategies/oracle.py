"""Oracle: a mixture that is known beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, isfinite
from typing import ClassVar

import numpy as np

from evenhand.arrays import Floats
from evenhand.errors import InputError
from evenhand.notation import JsonObject
from evenhand.strategies.base import POPULATION, Rule, decide, draw
from evenhand.strategies.decision import Decision
from evenhand.strategies.standing import Standing

__all__ = ["Oracle"]


@dataclass(frozen=True)
class Oracle(Rule):
    """Draw every group by a given mixture, such as the fair one: the reference for rules that have to find it.

    Args:
        mixture: a share for each group, in the order of the groups, as numbers or as text such as `"0.2+0.8"`.

    >>> str(Oracle([0.2, 0.8]))
    'oracle:mixture=0.2+0.8'
    """

    name: ClassVar[str] = "oracle"
    needs_scores: ClassVar[bool] = False
    mixture: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mixture", _shares(self.mixture))

    def settings(self) -> JsonObject:
        """The mixture as text, so that it reads back."""
        return {"mixture": "+".join(map(str, self.mixture))}

    def all_settings(self) -> JsonObject:
        """The mixture as text: there is nothing else."""
        return self.settings()

    def __call__(self, standing: Standing, uniforms: Floats) -> Decision:
        """A group drawn by its share; where all that have a share are used up, the others alike."""
        if len(self.mixture) != len(standing.groups):
            groups = ", ".join(standing.groups)
            raise InputError(
                f"the mixture has {len(self.mixture)} shares, and the groups are {groups}: give one for each"
            )
        index, chance = draw(np.array(self.mixture), standing.available, uniforms[..., 2])
        return decide(standing, index, np.full(index.shape, POPULATION), None, chance)


def _shares(mixture: object) -> tuple[float, ...]:
    """The shares as numbers from 0 up that sum to 1."""
    try:
        parts = mixture.split("+") if isinstance(mixture, str) else np.ravel(np.asarray(mixture)).tolist()
        shares = tuple(float(part) for part in parts)
    except (TypeError, ValueError):
        raise InputError(f"mixture must be a share for each group, such as [0.2, 0.8], not {mixture!r}") from None
    if not all(isfinite(share) and share >= 0 for share in shares) or abs(fsum(shares) - 1) > 1e-6:
        raise InputError(f"the shares of mixture must be from 0 up and sum to 1, not {list(shares)}")
    return shares
