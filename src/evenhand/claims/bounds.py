"""Deviation sequences e_z(N): how far a group's mean loss over N examples can lie from its risk, for all rules at once.

They assume losses in [0, 1], which the log loss exceeds.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, plain_fields
from evenhand.claims import checks
from evenhand.errors import InputError
from evenhand.notation import JsonObject


@cache
def _probe() -> Floats:
    """The counts at which a sequence is tested for growth: all up to 2,000, then fewer and fewer."""
    # not at import: np.unique imports numpy.ma, which a short command should not wait for
    return np.unique(np.concatenate([np.arange(1, 2001), np.geomspace(2000, 1e12, 400).round()]))


class Bound(Protocol):
    """A deviation sequence: e_z(N) for counts of shape (…, m)."""

    def __call__(self, n: ArrayLike, groups: int | None = None) -> Floats:
        """e_z(N); `groups` is the number of groups it must hold for at once, by default the length of the last axis."""
        ...


def _counts(n: ArrayLike, groups: int | None) -> tuple[Floats, int]:
    counts = np.asarray(n, dtype=float)
    if groups is None:
        groups = counts.shape[-1] if counts.ndim else 1
    if groups < 1:
        raise InputError(f"groups must be at least 1, got {groups!r}")
    return counts, groups


@dataclass(frozen=True)
class VCBound:
    """For a class of VC dimension d: 2·√((2d log(2eN/d) + 2 log(k·N²π²m/(3δ)))/N), never above 1.

    k = 4 is the two-sided bound: it makes 4·(2eN/d)^d·exp(−N·e²/8), which bounds the chance of a larger deviation
    in either direction, equal to 3δ/(π²N²m), the share of δ for one count of one group. `two_sided=False` gives the
    form printed in the paper, k = 2, which holds in one direction.

    >>> VCBound(d=3)(np.array([100, 10_000, 1_000_000]), groups=2).round(4)
    array([1.    , 0.208 , 0.0248])
    """

    d: int
    delta: float = 0.05
    two_sided: bool = True

    def __post_init__(self) -> None:
        plain_fields(self)
        if self.d < 1:
            raise InputError(f"d, the VC dimension, must be at least 1, got {self.d!r}")
        checks.level(self.delta)

    def __call__(self, n: ArrayLike, groups: int | None = None) -> Floats:
        """e(N), 1 where it says nothing."""
        counts, m = _counts(n, groups)
        # below d/2 the formula is not a bound; from there on it falls wherever it is under 1
        speaks = counts >= max(self.d / 2, 1.0)
        safe = np.where(speaks, counts, float(self.d))
        # a promise compares two classifiers, one of which may look too good and the other too bad: it needs both sides
        sides = 4 if self.two_sided else 2
        logs = 2 * self.d * np.log(2 * math.e * safe / self.d) + 2 * np.log(
            sides * safe**2 * np.pi**2 * m / (3 * self.delta)
        )
        value = 2 * np.sqrt(logs / safe)
        # losses lie in [0, 1], so no deviation is above 1
        return np.asarray(np.where(speaks, np.minimum(1.0, value), 1.0))


@dataclass(frozen=True)
class RademacherBound:
    """For a class of Rademacher complexity R_N: 2 R_N + √(log(N²π²m/(3δ))/N), never above 1.

    R_N is B·N^−α, or any non-increasing function of N given as `complexity`.

    >>> RademacherBound(B=1.0, alpha=0.5)(np.array([100.0, 10_000.0]), groups=1).round(4)
    array([0.566 , 0.0675])
    """

    B: float = 1.0
    alpha: float = 0.5
    complexity: Callable[[Floats], ArrayLike] | None = None
    delta: float = 0.05

    def __post_init__(self) -> None:
        plain_fields(self)
        checks.level(self.delta)
        if self.B < 0:
            raise InputError(f"B must not be negative, got {self.B!r}")
        if self.alpha <= 0:
            raise InputError(f"alpha must be positive, or the sequence does not fall; got {self.alpha!r}")
        if self.complexity is not None:
            check_bound(self.complexity)

    def __call__(self, n: ArrayLike, groups: int | None = None) -> Floats:
        """e(N), 1 where it says nothing."""
        counts, m = _counts(n, groups)
        safe = np.maximum(counts, 1.0)
        r = self.B * safe**-self.alpha if self.complexity is None else _apply(self.complexity, safe, m)
        value = 2 * r + np.sqrt(np.log(safe**2 * np.pi**2 * m / (3 * self.delta)) / safe)
        return np.asarray(np.where(counts >= 1, np.minimum(1.0, value), 1.0))


@dataclass(frozen=True)
class OwnBound:
    """A custom sequence, given as a function of N; it is checked not to grow."""

    function: Callable[..., ArrayLike]

    def __post_init__(self) -> None:
        check_bound(self.function)

    def __call__(self, n: ArrayLike, groups: int | None = None) -> Floats:
        """The function's values; below one example, its value at 1."""
        counts, m = _counts(n, groups)
        return _apply(self.function, np.maximum(counts, 1.0), m)


@dataclass(frozen=True)
class PerGroup:
    """One bound for every group, in the groups' order."""

    bounds: tuple[Bound, ...]

    def __call__(self, n: ArrayLike, groups: int | None = None) -> Floats:
        """e_z(N_z), the last axis running over the groups."""
        counts, m = _counts(n, groups)
        if counts.ndim == 0 or counts.shape[-1] != len(self.bounds):
            raise InputError(
                f"{len(self.bounds)} bounds given, but counts of shape {counts.shape}: one bound per group"
            )
        return np.stack([bound(counts[..., i], m) for i, bound in enumerate(self.bounds)], axis=-1)


def as_bound(bound: "Bound | Callable[..., ArrayLike] | Sequence[Bound | Callable[..., ArrayLike]]") -> Bound:
    """A bound from a bound, from a function of N, or from a list of those, one per group.

    >>> as_bound(lambda n: n**-0.5)([4.0, 100.0])
    array([0.5, 0.1])
    """
    if isinstance(bound, VCBound | RademacherBound | OwnBound | PerGroup):
        return bound
    if callable(bound):
        return OwnBound(bound)
    if isinstance(bound, Sequence) and not isinstance(bound, str) and bound:
        return PerGroup(tuple(as_bound(b) for b in bound))
    raise InputError(
        f"a bound is VCBound, RademacherBound, a function of N, or a list of them per group; got {bound!r}"
    )


BOUND_NAMES: dict[type[Any], str] = {VCBound: "vc", RademacherBound: "rademacher"}
"""The bounds by the name they have in the text form of a rule."""


def bound_settings(bound: Bound, *, defaults: bool = False) -> JsonObject:
    """A bound as the settings of a rule's text form; one without a name is `own`, which does not read back.

    Settings at their defaults are left out unless `defaults` asks for them.

    >>> bound_settings(VCBound(d=3, delta=0.1))
    {'bound': 'vc', 'd': 3, 'delta': 0.1}
    """
    if not isinstance(bound, VCBound | RademacherBound):
        return {"bound": "own"}
    own = {f.name: v for f in fields(bound) if (v := getattr(bound, f.name)) != f.default or defaults}
    return {"bound": BOUND_NAMES[type(bound)], **own}


def check_bound(bound: Callable[..., ArrayLike]) -> None:
    """Refuse a sequence that grows, or is negative or not a number, and say at which N."""
    counts = _probe()
    values = _apply(bound, counts, 2)
    bad = ~(values >= 0)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"a deviation sequence must be a number ≥ 0: it is {values[at]} at N = {counts[at]:.0f}")
    # the sign of a difference of nearly equal numbers is rounding
    grows = np.diff(values) > 1e-12 * np.abs(values[1:])
    if grows.any():
        at = int(np.argmax(grows))
        raise InputError(
            f"a deviation sequence must not grow: it goes from {values[at]:.6g} at N = {counts[at]:.0f} "
            f"to {values[at + 1]:.6g} at N = {counts[at + 1]:.0f}"
        )


def _apply(function: Callable[..., ArrayLike], counts: Floats, groups: int) -> Floats:
    """A user's function on an array of counts, called one by one if it takes single numbers only."""
    # a union bound over groups is part of the sequence: a function with this argument is given their number
    extra = {"groups": groups} if _takes_groups(function) else {}
    try:
        values = np.asarray(function(counts, **extra), dtype=float)
    except (TypeError, ValueError):
        # math.sqrt and if-else need single numbers
        values = np.vectorize(lambda n: function(float(n), **extra), otypes=[float])(counts)
    return np.asarray(np.broadcast_to(values, counts.shape))


def _takes_groups(function: Callable[..., ArrayLike]) -> bool:
    try:
        return "groups" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
