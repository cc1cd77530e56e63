"""What may be claimed about the groups' risks, from a campaign's own labels. Two statements, never mixed.

*Running*: every validation example is scored by the model fitted before it came; the mean of those scores is close to
the mean risk of those models. *Certificate*: a model is frozen, and only validation examples that come afterwards
count. The mean over the validation set that steers the sampling is neither: it is a score, without a claim.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.arrays import Floats
from evenhand.claims import checks
from evenhand.claims.sequences import EmpiricalBernstein, error_rate, log_evidence, running_half_width
from evenhand.errors import InputError


@dataclass(frozen=True)
class Running:
    """For each group: the average risk of the models of the past lies in [low, high], at every look at once."""

    groups: tuple[str, ...]
    n: tuple[int, ...]
    mean: tuple[float | None, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    confidence: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, group by group."""
        return {"statement": "running", "confidence": self.confidence, "groups": _by_group(self)}


@dataclass(frozen=True)
class Certificate:
    """What is certain about one frozen model, at every look at once.

    Attributes:
        version: which frozen model this is; version k is given δ/(k(k+1)), so all versions together keep δ.
        n: labels of each group since the freeze.
        mean: each group's error on them, by their labels now.
        low, high: intervals of all groups at once; corrections and missing labels count against the model in `high`, for
            it in `low`.
        worst_at_most: no group's error is above this; corrections and missing labels count against the model.
        worst_groups: the worst group is one of these.
        confidence: of each of these statements, all versions together.
        corrected: labels of each group that were corrected, withdrawn or erased since they were first told.
        missing: labels of each group that were asked for and did not come.
        equal: rows that equal an earlier one in all features and label.
        open: labels of each group that open requests wait for; they are not counted, so give requests a lease.
    """

    version: int
    groups: tuple[str, ...]
    n: tuple[int, ...]
    mean: tuple[float | None, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    worst_at_most: float
    worst_groups: tuple[str, ...]
    confidence: float
    loss: str
    corrected: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    equal: int | None = None
    open: tuple[int, ...] = field(default=(), compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, group by group."""
        names = ("version", "confidence", "loss", "worst_at_most", "equal")
        found = {name: getattr(self, name) for name in names}
        groups = _by_group(self)
        for what, counts in (("corrected", self.corrected), ("missing", self.missing), ("open", self.open)):
            for group, count in zip(self.groups, counts, strict=False):
                groups[group][what] = count
        return {"statement": "certificate", **found, "worst_groups": list(self.worst_groups), "groups": groups}

    def __str__(self) -> str:
        notes = [f"confidence {self.confidence:.0%}", f"{sum(self.n):,} labels since it was frozen"]
        notes += [f"{sum(self.corrected):,} of them corrected or taken back"] if sum(self.corrected) else []
        notes += [f"{sum(self.missing):,} missing, counted as errors"] if sum(self.missing) else []
        notes += [f"{sum(self.open):,} still open, not counted"] if sum(self.open) else []
        notes += [f"{self.equal:,} rows equal earlier ones"] if self.equal else []
        return f"model {self.version}: no group's error is above {self.worst_at_most:.3f} ({', '.join(notes)})"


def _by_group(statement: Running | Certificate) -> dict[str, dict[str, Any]]:
    columns = zip(statement.groups, statement.n, statement.mean, statement.low, statement.high, strict=True)
    return {group: {"n": n, "mean": mean, "low": low, "high": high} for group, n, mean, low, high in columns}


@dataclass
class Evidence:
    """Losses of one model, or one row of models, group by group; the state never grows.

    Zero-one losses need a count and a sum, other losses in [0, 1] six numbers more.
    """

    groups: tuple[str, ...]
    loss: str = "zero_one"
    n: NDArray[np.int64] = field(init=False)
    total: Floats = field(init=False)
    bernstein: EmpiricalBernstein | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.n, self.total = np.zeros(len(self.groups), dtype=np.int64), np.zeros(len(self.groups))
        if self.loss != "zero_one":
            self.bernstein = EmpiricalBernstein.empty((len(self.groups),))

    def add(self, group: ArrayLike, losses: ArrayLike) -> None:
        """One loss in [0, 1] for each example; `group` are positions."""
        where, values = np.asarray(group, dtype=np.int64), np.asarray(losses, dtype=float)
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError("losses must lie in [0, 1] for a certificate: use zero_one, or scale the loss")
        if self.loss == "zero_one" and not np.isin(values, (0.0, 1.0)).all():
            raise InputError("zero_one losses are 0 or 1: name the loss to certify another one")
        self.n += np.bincount(where, minlength=len(self.groups))
        self.total += np.bincount(where, weights=values, minlength=len(self.groups))
        if self.bernstein is not None:
            for z, value in zip(where.tolist(), values.tolist(), strict=True):
                self.bernstein.push(np.where(np.arange(len(self.groups)) == z, value, np.nan))

    @property
    def mean(self) -> tuple[float | None, ...]:
        """Mean loss of every group; None without examples."""
        return tuple(t / n if n else None for t, n in zip(self.total.tolist(), self.n.tolist(), strict=True))

    def interval(self, delta: float) -> tuple[Floats, Floats]:
        """Each group's interval at level δ."""
        return error_rate(self.total, self.n, delta) if self.bernstein is None else self.bernstein.interval(delta)

    def running(self, delta: float = 0.05) -> Running:
        """The running statement, where the losses are those of a row of models."""
        mean = self.total / np.maximum(self.n, 1)
        half = running_half_width(self.n, delta)
        low, high = np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)
        return Running(self.groups, _ints(self.n), self.mean, _floats(low), _floats(high), 1 - delta)

    def certificate(self, version: int = 1, delta: float = 0.05) -> Certificate:
        """The certificate, where the losses are those of one frozen model on examples that came afterwards."""
        spent = _spent(version, delta)
        low, high = self.interval(spent / len(self.groups))
        return Certificate(
            version=version,
            groups=self.groups,
            n=_ints(self.n),
            mean=self.mean,
            low=_floats(low),
            high=_floats(high),
            worst_at_most=float(self.interval(spent)[1].max()),
            worst_groups=self._worst(spent),
            confidence=1 - delta,
            loss=self.loss,
        )

    def worst_is_at_most(self, target: float, version: int = 1, delta: float = 0.05) -> bool:
        """Whether the certificate puts every group's error at or below the target; quicker than the whole of it."""
        spent = _spent(version, delta)
        if self.bernstein is not None:
            return bool(self.bernstein.interval(spent)[1].max() <= target)
        below = self.total <= target * self.n
        return bool(np.all(below & (log_evidence(self.total, self.n, target) >= np.log(1 / spent))))

    def _worst(self, delta: float) -> tuple[str, ...]:
        """{z: U_z ≥ max ℓ_z'}: upper bounds at δ/2, since the worst group is one group; lower ones at δ/(2m)."""
        _, high = self.interval(delta / 2)
        low, _ = self.interval(delta / 2 / len(self.groups))
        return tuple(np.array(self.groups)[high >= low.max()].tolist())

    def as_dict(self) -> dict[str, Any]:
        """The state as plain values."""
        state: dict[str, Any] = {"loss": self.loss, "n": self.n.tolist(), "total": self.total.tolist()}
        if self.bernstein is not None:
            names = ("n", "total", "squares", "bets", "weighted", "price")
            state["bernstein"] = {name: getattr(self.bernstein, name).tolist() for name in names}
        return state

    @classmethod
    def from_dict(cls, groups: Sequence[str], state: dict[str, Any]) -> "Evidence":
        """The state back from plain values."""
        evidence = cls(tuple(groups), state["loss"])
        evidence.n, evidence.total = np.array(state["n"], dtype=np.int64), np.array(state["total"], dtype=float)
        if evidence.bernstein is not None:
            for name, values in state["bernstein"].items():
                setattr(evidence.bernstein, name, np.array(values, dtype=float))
        return evidence


def certificate_of(
    groups: Sequence[str], counts: Sequence["Counted"], *, version: int, delta: float, equal: int | None = None
) -> Certificate:
    """The certificate from what was counted in every group, doubtful labels against the model."""
    against, for_it = Evidence(tuple(groups)), Evidence(tuple(groups))
    against.n = for_it.n = np.array([c.n + c.missing for c in counts])
    against.total = np.array([c.most + c.missing for c in counts], dtype=float)
    for_it.total = np.array([c.fewest for c in counts], dtype=float)
    found = against.certificate(version, delta)
    lowest = for_it.certificate(version, delta)
    return replace(
        found,
        n=tuple(c.n for c in counts),
        mean=tuple(c.now / c.n if c.n else None for c in counts),
        low=lowest.low,
        corrected=tuple(c.corrected for c in counts),
        missing=tuple(c.missing for c in counts),
        open=tuple(c.open for c in counts),
        equal=equal,
    )


@dataclass
class Counted:
    """Evidence of one group: labels told since the freeze, and the frozen model's errors on them.

    Attributes:
        n: labels told.
        first, now: errors by the first labels and by the labels now.
        gone: labels withdrawn or erased, which count as errors.
        corrected: labels corrected, withdrawn or erased.
        missing: labels asked for that did not come.
        open: labels that open requests wait for, none of which has come.
    """

    n: int = 0
    first: int = 0
    now: int = 0
    gone: int = 0
    corrected: int = 0
    missing: int = 0
    open: int = 0

    @property
    def most(self) -> int:
        """Errors by the labelling that is worse for the model."""
        return max(self.first, self.now) + self.gone

    @property
    def fewest(self) -> int:
        """Errors by the labelling that is better for it."""
        return min(self.first, self.now)


def _spent(version: int, delta: float) -> float:
    """δ/(k(k+1)): what version k may use; over all versions that sums to δ."""
    checks.probability("delta", delta)
    if version < 1:
        raise InputError(f"versions count from 1, got {version!r}")
    return delta / (version * (version + 1))


def _ints(values: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(v) for v in values)


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
