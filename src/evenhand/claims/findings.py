"""The evidence about a frozen model: by first labels, by current labels, and from labels that never came.

Whoever sees a model's errors could correct them, take them back, or choose which requests to answer. So both labellings
are counted and the worse one decides; labels taken back or missing are errors; and a bound that was good once counts only
if it was so in the order in which the labels were *asked for*, which nobody can choose.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from evenhand.arrays import Floats, Ints
from evenhand.claims.certificates import Certificate, Evidence, spent_by
from evenhand.claims.search import smallest
from evenhand.claims.sequences import log_evidence, upper_rate


@dataclass(frozen=True)
class Answered:
    """One request since the freeze: its group, and by stratum the count and the losses of its first labels.

    Labels that it still waits for, or that will not come, count as relevant and wrong.
    """

    group: int
    n: Ints
    total: Floats


@dataclass
class Findings:
    """Evidence on one frozen model.

    Attributes:
        first, now: evidence by the first labels and by the current labels.
        labels: labels of each group that came, relevant or not.
        gone: labels withdrawn or erased, which count as errors.
        missing: labels asked for that did not come, which count as errors.
        open: labels that open requests wait for, none of which has come.
        corrected: labels corrected, withdrawn or erased.
        answered: the requests since the freeze, in the order they were made.
        elsewhere: errors of each group that belong to none of these requests.
        known_shares: each stratum's share of a group's labels before the freeze; equal shares if nothing is known.
    """

    groups: tuple[str, ...]
    strata: int = 1
    first: Evidence = field(init=False)
    now: Evidence = field(init=False)
    answered: list[Answered] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first, self.now = Evidence(self.groups, self.strata), Evidence(self.groups, self.strata)
        self.known_shares = np.full((len(self.groups), self.strata), 1.0 / self.strata)
        names = ("labels", "gone", "missing", "open", "corrected", "elsewhere")
        self.labels, self.gone, self.missing, self.open, self.corrected, self.elsewhere = (
            np.zeros(len(self.groups), dtype=np.int64) for _ in names
        )

    @property
    def against(self) -> tuple[Evidence, Evidence]:
        """Evidence by first and by current labels; labels taken back or missing count against the model."""
        errors = self.gone + self.missing
        return self.first.plus_errors(errors), self.now.plus_errors(errors)

    @property
    def against_all(self) -> tuple[Evidence, Evidence]:
        """The same with open labels against the model too: people may choose which requests to leave open."""
        first, now = self.against
        return first.plus_errors(self.open), now.plus_errors(self.open)

    def worst_at_most(self, spent: float) -> float:
        """A bound that no group's risk exceeds, at level `spent`: the worse one of both labellings."""
        first, now = (float(evidence.upper(spent).max()) for evidence in self.against)
        # people may choose which requests to leave open: only `least` is safe then
        first = first if not self.open.any() else 1.0
        # by first labels a bound that once held stays proven; by
        # labels now it is what it is, since corrections may come late
        return max(min(first, self.least(spent)), now)

    def least(self, spent: float) -> float:
        """The smallest bound so far by first labels, computed after every request in the order they were made."""
        bounds = np.ones((len(self.answered) + 1, len(self.groups)))
        for z in range(len(self.groups)):
            mine = [k for k, request in enumerate(self.answered) if request.group == z]
            if not mine:
                continue
            n, total = (np.cumsum([getattr(self.answered[k], name) for k in mine], axis=0) for name in ("n", "total"))
            more = int(self.elsewhere[z])
            high = upper_rate(total + more, n + more, spent / self.strata).mean(axis=1)
            # between two requests of a group its bound stays as it was
            before = np.searchsorted(mine, np.arange(len(bounds)))
            bounds[:, z] = np.append(1.0, high)[before]
        return float(bounds.max(axis=1).min())

    def upper(self, spent: float, waiting: Iterable[int] | None = None) -> Floats:
        """Every group's upper bound; labels still `waiting` are assumed wrong at the rate (errors + ½)/(n + 1)."""
        extra = self.open if waiting is None else np.asarray(list(waiting))
        bounds = []
        for evidence in self.against:
            rate = (evidence.total + 0.5) / (evidence.n + 1)
            more = extra[:, None] * self.shares
            bounds.append(upper_rate(evidence.total + rate * more, evidence.n + more, spent / self.strata).mean(axis=1))
        return np.asarray(np.maximum(*bounds))

    def lower(self, spent: float) -> Floats:
        """Lower bounds that hold for all groups at once; every doubtful label counts in the model's favour."""
        doubtful = self.gone + self.missing + self.open
        level = spent / len(self.groups)
        return np.asarray(
            np.minimum(*(evidence.plus_right(doubtful).lower(level) for evidence in (self.first, self.now)))
        )

    @property
    def shares(self) -> Floats:
        """Each stratum's share of a group's labels; the share known before the freeze counts as one label."""
        return np.asarray((self.now.n + self.known_shares) / (self.labels[:, None] + 1))

    def further(
        self, target: float, spent: float, rates: Floats | None = None, *, benefit: float = 0.0
    ) -> list[int | None]:
        """How many more labels each group probably needs until its bound reaches the target; None: never at this rate.

        `rates` by group and stratum are used where there are no labels yet; `benefit` is how many standard errors
        better than observed each rate is assumed to be.
        """
        # the labelling that speaks more against the model is
        # the one that decides, so it is the one to plan for
        evidence = max(self.against, key=lambda e: float(e.total.sum()))
        rate = (evidence.total + 0.5) / (evidence.n + 1)
        rate = np.maximum(rate - benefit * np.sqrt(rate * (1 - rate) / (evidence.n + 1)), 0.0)
        if rates is not None:
            rate = np.where(evidence.n > 0, rate, rates)
        return [
            _until(target, spent / self.strata, *row)
            for row in zip(evidence.n, evidence.total, rate, self.shares, strict=True)
        ]

    def _worst_groups(self, spent: float) -> tuple[str, ...]:
        """{z: U_z ≥ max ℓ_z'}: upper bounds at δ/2, since the worst group is one group; lower ones at δ/(2m)."""
        high = np.maximum(*(evidence.upper(spent / 2) for evidence in self.against_all))
        return tuple(np.array(self.groups)[high >= self.lower(spent / 2).max()].tolist())

    def certificate(self, version: int, delta: float, risk: str, equal: int | None = None) -> Certificate:
        """The certificate; doubtful labels count against the model."""
        spent = spent_by(version, delta)
        highs = np.maximum(*(evidence.upper(spent / len(self.groups)) for evidence in self.against_all))
        return Certificate(
            version=version,
            groups=self.groups,
            n=(self.now.plus_errors(self.gone)).counts if self.strata == 1 else self.now.counts,
            mean=self.now.mean,
            low=tuple(self.lower(spent).tolist()),
            high=tuple(highs.tolist()),
            worst_at_most=self.worst_at_most(spent),
            worst_groups=self._worst_groups(spent),
            confidence=1 - delta,
            risk=risk,
            corrected=tuple(self.corrected.tolist()),
            missing=tuple(self.missing.tolist()),
            equal=equal,
            open=tuple(self.open.tolist()),
        )


def _until(target: float, level: float, n: Ints, total: Floats, rate: Floats, share: Floats) -> int | None:
    """How many more labels bring the mean of the strata's bounds to the target."""
    if not share.any() or float(rate.mean()) >= target:
        return None

    def reached(more: int) -> bool:
        come = share * more
        if len(n) == 1:  # the evidence at the target alone decides, without the search for the bound
            return bool((log_evidence(total + rate * come, n + come, target) >= np.log(1 / level)).all())
        return bool(upper_rate(total + rate * come, n + come, level).mean() <= target)

    below = bool((total <= target * n).all()) if len(n) == 1 else True
    return 0 if below and n.any() and reached(0) else smallest(reached, start=_turn(target, n, total, rate, share))


def _turn(target: float, n: Ints, total: Floats, rate: Floats, share: Floats) -> int:
    """The number of labels from which the mean is below the target; before that, the evidence speaks against it."""
    excess = float((total - target * n).sum())
    gain = float(((target - rate) * share).sum())
    return max(1, int(np.ceil(excess / gain))) if excess > 0 and gain > 0 else 1
