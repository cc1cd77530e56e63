"""What a pilot found, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isnan

from evenhand.claims.paired import OPEN, Interval
from evenhand.risks import Risk

__all__ = ["Lead", "sentence", "unit_of"]


@dataclass(frozen=True)
class Lead:
    """How much lower the worst-off group's risk is under rule `a` than under `b`, with its interval."""

    a: str
    b: str
    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether it holds that `a` serves the worst-off group better than `b`."""
        return Interval(self.mean, self.low, self.high).above()

    def as_dict(self) -> dict[str, str | float | None]:
        """The lead as plain values; NaN becomes None."""
        return {key: None if isinstance(v, float) and isnan(v) else v for key, v in asdict(self).items()}

    def __str__(self) -> str:
        digits = 1 if max(map(abs, (self.low, self.high))) >= 1 else 3
        return f"{self.mean:+.{digits}f} [{self.low:+.{digits}f}, {self.high:+.{digits}f}]"


def unit_of(risk: Risk) -> str:
    """The unit of gains: points of a rate, or the log loss itself."""
    return "log loss" if risk.name == "log" else "points"


def sentence(
    rule: str, gain: Lead | None, leads: Sequence[Lead], labels: int, trials: int, unit: str, baseline: str
) -> str:
    """Which rule to use, and how much it is expected to gain."""
    if trials < 2:
        return "Interrupted before two trials were done: nothing can be said."
    if gain is not None:
        return (
            f"With {labels:,} labels, use {rule}: it is expected to buy the worst-off group {gain} {unit} over {baseline} "
            f"(95 % interval, corrected for {len(leads)} comparisons)."
        )
    sure = [lead for lead in leads if lead.verdict != OPEN]
    if not sure:
        return f"With {labels:,} labels, all rules are within noise of each other here: use Uniform."
    worse = [lead for lead in sure if lead.b == baseline]
    said = "; ".join(f"{lead.a} over {lead.b}: {lead} {unit}" for lead in worse or sure)
    return f"With {labels:,} labels, no rule is better than Uniform beyond noise ({said}): use Uniform."
