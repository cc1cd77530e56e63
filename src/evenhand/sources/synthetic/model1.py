"""SyntheticModel1: groups of two Gaussian classes, whose risks, fair mixture and excess risk are known exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, Ints
from evenhand.errors import InputError
from evenhand.risks import ABOUT_POSITIVE, Measure, Risk, as_risk
from evenhand.sources.synthetic import exact_risks as forms
from evenhand.sources.synthetic.stream import LinearStream

_INSTANCES = {
    "I": {"u": {0: (-2.0, 2.0), 1: (2.0, -2.0)}, "v": {0: (-1.0, -1.0), 1: (1.0, 1.0)}},
    "II": {"u": {0: (-1.5, 1.5), 1: (1.5, -1.5)}, "v": {0: (-2.0, -2.0), 1: (2.0, 2.0)}},
}


@dataclass(frozen=True)
class SyntheticModel1:
    """Groups with labels 0 and 1, equally likely, X | y, z ~ N(μ_yz, I).

    Args:
        means: for every group, the mean of label 0 and of label 1.
        shares: each group's share of the population, by name or in order; equal by default.
        name: what the source is called in results.

    >>> model = SyntheticModel1.instance("I")
    >>> model.pi_star()
    array([0.2, 0.8])
    >>> model.worst_risk(model.pi_star()).round(5)
    np.float64(0.10295)
    """

    means: Mapping[str, Mapping[int, Sequence[float]]] = field(hash=False)
    shares: Mapping[str, float] | Sequence[float] | None = field(default=None, hash=False)
    name: str = "synthetic1"

    def __post_init__(self) -> None:
        # frozen dataclasses have no other way
        object.__setattr__(self, "means", _checked_means(self.means))
        object.__setattr__(self, "shares", _checked_shares(self.shares, self.groups))

    @classmethod
    def instance(cls, which: str) -> "SyntheticModel1":
        """One of the paper's two instances, "I" or "II"."""
        if which not in _INSTANCES:
            raise InputError(f'instance must be "I" or "II", got {which!r}')
        return cls(_INSTANCES[which], name=f"synthetic1:{which}")

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, in the order given."""
        return tuple(self.means)

    @property
    def classes(self) -> Ints:
        """The labels, 0 and 1."""
        return np.array([0, 1])

    @cached_property
    def population(self) -> Floats:
        """Each group's share of the population."""
        return np.array(self.shares, dtype=float)

    @cached_property
    def mu(self) -> Floats:
        """The means as an array: group, label, feature."""
        return np.array([[mean[0], mean[1]] for mean in self.means.values()], dtype=float)

    @property
    def dimension(self) -> int:
        """Number of features."""
        return int(self.mu.shape[2])

    @property
    def normals(self) -> int:
        """Standard normal numbers behind one example: one decides the label, the others are noise."""
        return self.dimension + 1

    def examples(self, group: int, normals: Floats) -> tuple[Floats, Ints]:
        """Features and labels of a group, a row of normals each."""
        # the sign of a normal, not a separate draw: every example takes the same count of numbers from its generator
        y = (normals[:, 0] > 0).astype(np.int64)
        return normals[:, 1:] + self.mu[group, y], y

    def open(self, seed: int, trials: Sequence[int]) -> "_Stream1":
        """The draws of these trials."""
        return _Stream1(self, seed, trials)

    def group_risk(self, coef: ArrayLike, intercept: ArrayLike, risk: str | Risk = "error") -> Floats:
        """Exact risk of linear rules on every group: coef (…, d), intercept (…) → (…, m).

        Here and below, `risk` is any risk but a function; `"fnr"` and `"fpr"` take 1 as the positive class.
        """
        w, b = self._rule(coef, intercept)
        what = _known(risk)
        if what.is_error:
            return forms.zero_one_risk(self.mu, w, b)
        if what.name == "log":
            return forms.log_risk(self.mu, w, b)
        return what.for_classes(self.classes).of_confusion(forms.confusions(self.mu, w, b))

    def _rule(self, coef: ArrayLike, intercept: ArrayLike) -> tuple[Floats, Floats]:
        w, b = np.asarray(coef, dtype=float), np.asarray(intercept, dtype=float)
        if w.shape[-1:] != (self.dimension,):
            raise InputError(f"coef needs {self.dimension} numbers on its last axis, got shape {w.shape}")
        return w, np.broadcast_to(b, w.shape[:-1])

    def linear_accuracies(self, coef: ArrayLike, intercept: ArrayLike) -> Floats:
        """Exact accuracy of the rules "1 where x·coef + intercept > 0" on every group, (…, m)."""
        return 1 - self.group_risk(coef, intercept)

    def linear_confusions(self, coef: ArrayLike, intercept: ArrayLike) -> Floats:
        """The chance of every label and prediction together, (…, m, 2, 2), under the same rules."""
        return forms.confusions(self.mu, *self._rule(coef, intercept))

    def f_pi(self, pi: ArrayLike) -> tuple[Floats, Floats]:
        """f_π: coefficients (…, d) and intercept (…) of the logistic rule with the least log loss under a mixture."""
        mixture = _checked_mixture(pi, len(self.groups))
        flat = mixture.reshape(-1, mixture.shape[-1])
        # blocks keep the quadrature grids within a few MB
        parts = [forms.logistic_minimiser(self.mu, part) for part in np.array_split(flat, max(1, len(flat) // 500))]
        coef, intercept = (np.concatenate(list(column)) for column in zip(*parts, strict=True))
        return coef.reshape(*mixture.shape[:-1], -1), intercept.reshape(mixture.shape[:-1])

    def mixture_risk(self, pi: ArrayLike, risk: str | Risk = "error") -> Floats:
        """L(z, f_π) of every group: (…, m) → (…, m)."""
        return self.group_risk(*self.f_pi(pi), risk)

    def worst_risk(self, pi: ArrayLike, risk: str | Risk = "error") -> Floats:
        """max_z L(z, f_π): (…, m) → (…)."""
        return np.asarray(self.mixture_risk(pi, risk).max(axis=-1))[()]

    def pi_star(self, risk: str | Risk = "error") -> Floats:
        """The fair mixture π*: its f_π has the smallest worst-group risk."""
        from evenhand.sources.synthetic.fair_mixture import fair_mixture

        what = _known(risk)
        if what not in self._fair:
            # f_π minimises the log loss of the mixture: more of a group lowers its log loss and error, not always its misses
            falls = what.name in ("error", "log")
            self._fair[what] = fair_mixture(self.mu, lambda pi: self.mixture_risk(pi, what), falls=falls)
        return self._fair[what].copy()

    @cached_property
    def _fair(self) -> dict[Risk, Floats]:
        """π* by risk, filled in when first asked for."""
        return {}

    def excess_risk(self, pi: ArrayLike, risk: str | Risk = "error") -> Floats:
        """max_z L(z, f_π) − max_z L(z, f_π*), exactly: (…, m) → (…)."""
        return np.asarray(self.worst_risk(pi, risk) - self.worst_risk(self.pi_star(risk), risk))[()]

    def least_excess(self, group: int, share: float, risk: str | Risk = "error") -> float:
        """The least excess risk of mixtures that give one group this share."""
        from evenhand.sources.synthetic.fair_mixture import least_worst_risk

        least = least_worst_risk(lambda pi: self.mixture_risk(pi, risk), len(self.groups), group, share)
        # never below 0 by rounding: it is compared with bounds
        return max(0.0, least - float(self.worst_risk(self.pi_star(risk), risk)))

    def gap(self, radius: float, risk: str | Risk = "error") -> float:
        """γ(r): the least excess risk of mixtures with a share further than r from its fair one; ∞ without any."""
        fair = self.pi_star(risk)
        shares = [(z, share) for z, p in enumerate(fair) for share in (p - radius, p + radius)]
        return min((self.least_excess(z, s, risk) for z, s in shares if 0 <= s <= 1), default=float("inf"))


class _Stream1(LinearStream[SyntheticModel1]):
    """Draws of SyntheticModel1, evaluated in closed form where the rule is linear."""

    def exact_risks(self, coef: Floats, intercept: Floats, measure: Measure) -> Floats | None:
        """Exact risks of a linear rule, (m,): the log loss too."""
        return None if measure.risk.function is not None else self.model.group_risk(coef, intercept, measure.risk)


def _known(risk: str | Risk) -> Risk:
    """The risk, if it can be computed exactly for linear rules."""
    found = as_risk(risk, 1 if risk in ABOUT_POSITIVE else None)
    if found.function is not None:
        raise InputError(f"exact risks are known for all risks but functions such as {found.name!r}")
    return found


def _checked_means(means: Mapping[str, Mapping[int, Sequence[float]]]) -> dict[str, dict[int, tuple[float, ...]]]:
    checked = {}
    for group, by_label in means.items():
        if sorted(by_label) != [0, 1]:
            raise InputError(f"group {group!r} needs a mean for label 0 and for label 1, got labels {sorted(by_label)}")
        checked[str(group)] = {y: tuple(float(x) for x in np.atleast_1d(by_label[y])) for y in (0, 1)}
    lengths = {len(mean) for by_label in checked.values() for mean in by_label.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise InputError(f"all means need the same number of features, at least one; got {sorted(lengths)}")
    if not np.isfinite([list(mean) for by_label in checked.values() for mean in by_label.values()]).all():
        raise InputError("means must be finite numbers")
    return checked


def _checked_shares(shares: Mapping[str, float] | Sequence[float] | None, groups: tuple[str, ...]) -> tuple[float, ...]:
    if shares is None:
        return (1 / len(groups),) * len(groups)
    if isinstance(shares, Mapping):
        if set(shares) != set(groups):
            raise InputError(f"shares name the groups {sorted(shares)}, the model has {sorted(groups)}")
        shares = [shares[group] for group in groups]
    values = np.asarray(shares, dtype=float)
    if values.shape != (len(groups),) or not np.isfinite(values).all() or (values < 0).any() or values.sum() <= 0:
        raise InputError(f"shares must be {len(groups)} numbers ≥ 0, not all 0; got {shares!r}")
    return tuple((values / values.sum()).tolist())


def _checked_mixture(pi: ArrayLike, groups: int) -> Floats:
    mixture = np.asarray(pi, dtype=float)
    if mixture.shape[-1:] != (groups,):
        raise InputError(f"a mixture needs {groups} shares on its last axis, got shape {mixture.shape}")
    if (mixture < 0).any() or not np.allclose(mixture.sum(axis=-1), 1, atol=1e-9):
        raise InputError("a mixture's shares must be ≥ 0 and sum to 1")
    return mixture
