"""What may be claimed about the groups' risks, from a campaign's own labels. Two statements, never mixed.

*Running*: every validation example is scored by the model fitted before it came; the mean of those scores is close to
the mean risk of those models. *Certificate*: a model is frozen, and only validation examples that come afterwards
count. The mean over the validation set that steers the sampling is neither: it is a score, without a claim.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, Ints
from evenhand.claims import checks
from evenhand.claims.sequences import lower_rate, running_half_width, upper_rate
from evenhand.errors import InputError
from evenhand.notation import JsonMapping, JsonObject


@dataclass(frozen=True)
class Running:
    """For each group, the average risk of the past models lies in [low, high]; it holds however often one looks."""

    groups: tuple[str, ...]
    n: tuple[int, ...]
    mean: tuple[float | None, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    confidence: float
    risk: str = "error"

    def as_dict(self) -> JsonObject:
        """The statement as plain values, group by group."""
        return {"statement": "running", "confidence": self.confidence, "risk": self.risk, "groups": _by_group(self)}

    @classmethod
    def from_dict(cls, record: JsonMapping) -> Running:
        """The statement that `as_dict` wrote down."""
        found = {name: _column(record, name) for name in ("n", "mean", "low", "high")}
        return cls(tuple(record["groups"]), **found, confidence=record["confidence"], risk=record["risk"])


@dataclass(frozen=True)
class Certificate:
    """What is certified about one frozen model; it holds however often one looks.

    Attributes:
        version: which frozen model this is; version k is given δ/(k(k+1)), so all versions together keep δ.
        n: relevant labels of each group since the freeze.
        mean: each group's risk on them, by their labels now.
        low, high: intervals of all groups at once; corrections and missing labels count against the model in `high`, for
            it in `low`.
        worst_at_most: no group's risk is above this; corrections and missing labels count against the model.
        worst_groups: the worst group is one of these.
        confidence: the probability that each of these statements holds, for all versions together.
        risk: what is certified.
        corrected: labels of each group that were corrected, withdrawn or erased since they were first told.
        missing: labels of each group that were asked for and did not come.
        equal: rows that equal an earlier one in all features and label.
        open: labels of each group that open requests wait for; `worst_at_most` never rests on requests after an open one
            without counting it as an error, `low` and `high` do not count them.
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
    risk: str = "error"
    corrected: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    equal: int | None = None
    open: tuple[int, ...] = field(default=(), compare=False)

    def as_dict(self) -> JsonObject:
        """The certificate as plain values, group by group."""
        names = ("version", "confidence", "risk", "worst_at_most", "equal")
        found = {name: getattr(self, name) for name in names}
        groups = _by_group(self)
        for what, counts in (("corrected", self.corrected), ("missing", self.missing), ("open", self.open)):
            for group, count in zip(self.groups, counts, strict=False):
                groups[group][what] = count
        return {"statement": "certificate", **found, "worst_groups": list(self.worst_groups), "groups": groups}

    @classmethod
    def from_dict(cls, record: JsonMapping) -> Certificate:
        """The certificate that `as_dict` wrote down."""
        columns = ("n", "mean", "low", "high", "corrected", "missing", "open")
        found: JsonObject = {name: _column(record, name) for name in columns}
        found |= {name: record[name] for name in ("version", "confidence", "risk", "worst_at_most", "equal")}
        return cls(groups=tuple(record["groups"]), worst_groups=tuple(record["worst_groups"]), **found)

    def __str__(self) -> str:
        notes = [checks.confidence(1 - self.confidence), f"{sum(self.n):,} labels since it was frozen"]
        notes += [f"{sum(self.corrected):,} of them corrected or taken back"] if sum(self.corrected) else []
        notes += [f"{sum(self.missing):,} missing, counted as errors"] if sum(self.missing) else []
        notes += [f"{sum(self.open):,} still open"] if sum(self.open) else []
        notes += [f"{self.equal:,} rows equal earlier ones"] if self.equal else []
        return f"model {self.version}: no group's {self.risk} is above {self.worst_at_most:.3f} ({', '.join(notes)})"


def _by_group(statement: Running | Certificate) -> dict[str, JsonObject]:
    columns = zip(statement.groups, statement.n, statement.mean, statement.low, statement.high, strict=True)
    return {group: {"n": n, "mean": mean, "low": low, "high": high} for group, n, mean, low, high in columns}


def _column(record: JsonMapping, name: str) -> tuple[Any, ...]:
    """One value for every group that has it."""
    return tuple(values[name] for values in record["groups"].values() if name in values)


@dataclass
class Evidence:
    """Losses in [0, 1] of one model, or of a sequence of models; only a count and a sum are kept for each group.

    A group's risk is the mean of its strata's means. There is one stratum, except for the balanced error: there every
    class is a stratum, and each is given δ divided by their number.

    >>> evidence = Evidence(("u", "v"))
    >>> evidence.add([0, 0, 1], [0.0, 1.0, 0.0])
    >>> evidence.mean
    (0.5, 0.0)
    """

    groups: tuple[str, ...]
    strata: int = 1
    n: Ints = field(init=False)
    total: Floats = field(init=False)

    def __post_init__(self) -> None:
        shape = (len(self.groups), self.strata)
        self.n, self.total = np.zeros(shape, dtype=np.int64), np.zeros(shape)

    def add(self, group: ArrayLike, losses: ArrayLike, stratum: ArrayLike = 0) -> None:
        """Add one loss in [0, 1] for each example; `group` and `stratum` are positions."""
        where, values, part = np.broadcast_arrays(
            np.asarray(group, dtype=np.int64), np.asarray(losses, dtype=float), np.asarray(stratum, dtype=np.int64)
        )
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError("losses must lie in [0, 1] for a certificate: use risk='error', or scale the loss")
        # += would count repeated places once
        np.add.at(self.n, (where, part), 1)
        np.add.at(self.total, (where, part), values)

    def plus_errors(self, count: ArrayLike) -> Evidence:
        """A copy with `count` more labels of each group that are relevant and wrong, whichever class they have."""
        more = np.asarray(count)[:, None]
        return self._with(self.n + more, self.total + more)

    def plus_right(self, count: ArrayLike) -> Evidence:
        """A copy with `count` more labels of each group that are relevant and right."""
        return self._with(self.n + np.asarray(count)[:, None], self.total)

    def _with(self, n: Ints, total: Floats) -> Evidence:
        found = Evidence(self.groups, self.strata)
        found.n, found.total = n, np.asarray(total, dtype=float)
        return found

    @property
    def counts(self) -> tuple[int, ...]:
        """Relevant examples of every group."""
        return tuple(self.n.sum(axis=1).tolist())

    @property
    def mean(self) -> tuple[float | None, ...]:
        """The risk of every group, the mean over the strata that have examples; None for a group without examples."""
        some = self.n > 0
        # classes that have not come yet are left out of the mean
        # shown; the bounds count them as unknown, with 0 and 1
        means = np.where(some, self.total / np.maximum(self.n, 1), 0.0).sum(axis=1)
        parts = some.sum(axis=1)
        return tuple(float(m / k) if k else None for m, k in zip(means.tolist(), parts.tolist(), strict=True))

    def lower(self, delta: float) -> Floats:
        """Each group's lower bound at level δ."""
        return np.asarray(lower_rate(self.total, self.n, delta / self.strata).mean(axis=1))

    def upper(self, delta: float) -> Floats:
        """Each group's upper bound at level δ; the same δ serves both bounds."""
        return np.asarray(upper_rate(self.total, self.n, delta / self.strata).mean(axis=1))

    def running(self, delta: float = 0.05, risk: str = "error") -> Running:
        """The running statement, for losses of a sequence of models."""
        mean = self.total / np.maximum(self.n, 1)
        # not the certificate's sequence: the risks change from model to model
        half = running_half_width(self.n, delta / self.strata)
        low, high = (np.clip(edge, 0, 1).mean(axis=1) for edge in (mean - half, mean + half))
        return Running(self.groups, self.counts, self.mean, _floats(low), _floats(high), 1 - delta, risk)

    def certificate(self, version: int = 1, delta: float = 0.05, risk: str = "error") -> Certificate:
        """The certificate, for losses of one frozen model on examples that came after the freeze."""
        spent = spent_by(version, delta)
        # a union bound: all intervals at once, one mistake in δ
        low, high = self.lower(spent / len(self.groups)), self.upper(spent / len(self.groups))
        return Certificate(
            version=version,
            groups=self.groups,
            n=self.counts,
            mean=self.mean,
            low=_floats(low),
            high=_floats(high),
            # no union bound here: the largest bound fails only if
            # that of the truly worst group does, which is one group
            worst_at_most=float(self.upper(spent).max()),
            worst_groups=self.worst_groups(spent),
            confidence=1 - delta,
            risk=risk,
        )

    def worst_groups(self, delta: float) -> tuple[str, ...]:
        """{z: U_z ≥ max ℓ_z'}: upper bounds at δ/2, since the worst group is one group; lower ones at δ/(2m)."""
        # the lower bounds need a union: any of them may be the largest
        high, low = self.upper(delta / 2), self.lower(delta / 2 / len(self.groups))
        return tuple(np.array(self.groups)[high >= low.max()].tolist())


def spent_by(version: int, delta: float) -> float:
    """δ/(k(k+1)): what version k may use; over all versions that sums to δ."""
    checks.level(delta)
    if version < 1:
        raise InputError(f"versions count from 1, got {version!r}")
    return delta / (version * (version + 1))


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
