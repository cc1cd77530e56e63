"""A_opt, its theoretical form, and A_opt+: optimism about the group that may be worst off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from evenhand.arrays import Floats
from evenhand.claims.bounds import as_bound, bound_settings
from evenhand.errors import InputError
from evenhand.notation import JsonObject, real, whole
from evenhand.strategies import terms as named
from evenhand.strategies.base import FORCED, SCORE, WARM_UP, Rule, decide, either, pick
from evenhand.strategies.decision import Decision
from evenhand.strategies.standing import Standing

if TYPE_CHECKING:
    from evenhand.claims.bounds import Bound


@dataclass(frozen=True)
class Optimistic(Rule):
    """Sample the group whose risk may be largest, and keep at least `(ΣN)^ξ` examples of every group.

    The score is loss + confidence, plus a trend when `c1 > 0` (A_opt+), plus any custom terms. With a
    `bound` the confidence term gives way to deviation, and to coupling when `C` or `kappa` is given: the form the
    theorems speak of, best made by `Optimistic.theoretical`.

    Args:
        c0: weight of the confidence term `c0 / √N_z`. The paper's is 0.1; the default was measured on thirteen sources.
        c1: weight of the Mann–Kendall trend of recent accuracies. Unlike the confidence term it does not shrink as N_z
            grows: with a window of 20 it can be anything up to ±6.16·c1, at every count.
        window: how many recent accuracies the trend looks at.
        xi: exponent of forced exploration, in (0, 1).
        terms: your own terms; each takes the standing and returns one number per group.
        bound: deviation sequence `e_z(N)`, or a list with one per group.
        C: constant of the coupling term `C·max(2ρ, resolution)/π_t(z)`, ρ = Σ π_t e; None leaves the term out.
        resolution: the smallest excess risk at which C is claimed.
        kappa: constant of the coupling term in its square-root form `κ·√(2ρ)/π_t(z)`, in place of C.

    >>> str(Optimistic(c0=0.1, xi=0.5))
    'optimistic:c0=0.1'
    """

    name: ClassVar[str] = "optimistic"
    c0: float = 1.0
    c1: float = 0.0
    window: int = 20
    xi: float = 0.5
    terms: tuple[named.Term, ...] = ()
    bound: Any = None
    C: float | None = None
    resolution: float = 0.0
    kappa: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # the only way to normalise a field of a frozen dataclass
        object.__setattr__(self, "terms", tuple(self.terms))
        if not 0 < real("xi", self.xi) < 1:
            raise InputError(f"xi must lie strictly between 0 and 1, not {self.xi}")
        if real("c0", self.c0) < 0:
            raise InputError(f"c0 must be a number from 0 up, not {self.c0}")
        if real("c1", self.c1) < 0:
            raise InputError(f"c1 must be a number from 0 up, not {self.c1}")
        whole("window, the values a trend is over,", self.window, 3)
        self._check_coupling()
        self._check_terms()
        if self.bound is not None:
            object.__setattr__(self, "bound", as_bound(self.bound))

    def _check_coupling(self) -> None:
        """Refuse C together with κ, a resolution without C, and any of them without a bound."""
        for name in ("C", "kappa"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise InputError(f"{name} must be a positive number or None, not {value}")
            if value is not None and self.bound is None:
                raise InputError(f"{name} belongs to the coupling term, which needs a bound: give bound=... too")
        if not (np.isfinite(self.resolution) and self.resolution >= 0):
            raise InputError(f"resolution must be a number from 0 up, not {self.resolution}")
        if self.kappa is not None and self.C is not None:
            raise InputError("C and kappa are two forms of one term: give one of them")
        if self.resolution > 0 and self.C is None:
            raise InputError("resolution belongs to C: give C=... too")

    def _check_terms(self) -> None:
        """Refuse two terms of one title: a decision is keyed by it, so the second would silently replace the first."""
        taken = {"loss", "confidence" if self.bound is None else "deviation"}
        taken |= {"coupling"} if self.coupled else set()
        taken |= {"trend"} if self.c1 > 0 else set()
        for term in self.terms:
            if not callable(term):
                raise InputError(f"{term!r} is not a term: a term takes the standing and returns one number per group")
            if named.title_of(term) in taken:
                raise InputError(f"two terms are named {named.title_of(term)!r}: give one function another name")
            taken.add(named.title_of(term))

    @property
    def coupled(self) -> bool:
        """Whether the score has a coupling term."""
        return self.C is not None or self.kappa is not None

    @property
    def needs_trend(self) -> bool:
        """Whether the rule looks at recent accuracies: A_opt+ does, and a custom term may."""
        return self.c1 > 0 or bool(self.terms)

    @property
    def needs_half(self) -> bool:
        """Whether the rule holds for a validation share of one half alone: the forms with a bound do."""
        return self.bound is not None

    @classmethod
    def theoretical(
        cls,
        bound: Callable[..., Floats] | Sequence[Callable[..., Floats]],
        C: float | None = 1.0,
        xi: float | None = None,
        *,
        resolution: float = 0.0,
        kappa: float | None = None,
    ) -> Optimistic:
        """The form the theorems speak of: loss + deviation + coupling; with `kappa` its square-root form, without C.

        `C=None` drops the coupling term, which is sound for ξ above 1/(1+α) only, so ξ is then 0.7 by default.
        """
        constant = C if kappa is None else None
        if xi is None:
            # ξ must exceed 1/(1+α), which is 2/3 for deviations of order N^(−1/2)
            xi = 0.7 if constant is None and kappa is None else 0.5
        return cls(xi=xi, bound=bound, C=constant, resolution=resolution, kappa=kappa)

    def settings(self) -> JsonObject:
        """The settings that differ from their defaults, those of the bound spelt out."""
        return self._described(super().settings(), bound_settings)

    def all_settings(self) -> JsonObject:
        """Every setting that has an effect, those of the bound spelt out."""
        unused = {"bound", "C", "resolution", "kappa"} if self.bound is None else {"c0"}
        unused |= set() if self.needs_trend else {"window"}
        unused |= set() if self.C is not None else {"resolution"}
        found = {key: value for key, value in super().all_settings().items() if key not in unused}
        return self._described(found, partial(bound_settings, defaults=True))

    def _described(self, found: JsonObject, describe: Callable[[Bound], JsonObject]) -> JsonObject:
        """The settings with objects replaced by values that a text can hold."""
        bound = found.pop("bound", None)
        if self.terms:
            found["terms"] = "+".join(named.path_of(term) for term in self.terms)
        return found if bound is None else describe(bound) | found

    def score_terms(self, standing: Standing) -> dict[str, Floats]:
        """The terms of the score by name."""
        found = {"loss": named.loss(standing)}
        if self.bound is None:
            found["confidence"] = named.confidence(standing, self.c0)
        else:
            found["deviation"] = named.deviation(standing, self.bound)
            if self.coupled:
                found["coupling"] = named.coupling(
                    standing, self.bound, self.C, resolution=self.resolution, kappa=self.kappa
                )
        if self.c1 > 0:
            found["trend"] = named.trend(standing, self.c1)
        for term in self.terms:
            found[named.title_of(term)] = _own(term, standing)
        return found

    def __call__(self, standing: Standing, uniforms: Floats) -> Decision:
        """Warm-up first; then forced exploration where a group lags behind, else the group with the largest score."""
        found = self.score_terms(standing)
        n = standing.examples
        # forced exploration of the paper's Algorithm 1: no group below (ΣN)^ξ. Without it a
        # group whose few validation examples happen to be right would never be asked of again.
        enough = np.add.reduce(n, axis=-1, keepdims=True) ** self.xi
        forced = np.logical_or.reduce((n < enough) & standing.available, axis=-1)
        score = either(standing.starting | forced, -n, reduce(np.add, found.values()))  # first the fewest examples
        index = pick(score, standing.available, uniforms[..., 0])
        code = either(standing.starting, WARM_UP, either(forced, FORCED, SCORE))
        return decide(standing, index, code, found)


def _own(term: named.Term, standing: Standing) -> Floats:
    """The values of a user's term, checked: the right shape, and no NaN among the groups that can still be chosen."""
    label = named.title_of(term)
    values = np.asarray(term(standing), dtype=float)
    if values.shape[-1:] != (len(standing.groups),):
        raise InputError(f"term {label!r} gave shape {values.shape}: it must give a number per group on the last axis")
    values = np.broadcast_to(values, standing.counts.shape)
    unusable = np.isnan(values) & standing.available & ~standing.starting[..., None]
    if unusable.any():
        group = standing.groups[int(np.argwhere(unusable)[0, -1])]
        raise InputError(f"term {label!r} gave NaN for group {group!r}: return a number, 0 where nothing is known")
    return values
