"""What a theorem promises at a budget, and whether its conditions hold."""

from dataclasses import asdict, dataclass

from evenhand.claims.search import BEYOND
from evenhand.notation import JsonObject


def count(labels: int) -> str:
    """A number of labels as text for people: in full up to a billion, in powers of ten above."""
    return f"{labels:,}" if labels < 10**9 else f"{labels:.3g}"


@dataclass(frozen=True)
class Condition:
    """A condition of a theorem: from how many labels it holds, or the name of the input that is missing.

    `labels` is the budget from which it holds; None if that is not known, or beyond 10^60 rounds.
    """

    name: str
    labels: int | None
    met: bool | None
    unknown: str | None = None

    def __str__(self) -> str:
        if self.unknown is not None:
            return f"{self.name}: not known, give `{self.unknown}`"
        if self.labels is None:
            return f"{self.name}: needs {BEYOND}"
        return f"{self.name}: holds from {count(self.labels)} labels"


@dataclass(frozen=True)
class Promise:
    """A bound on the excess risk at a budget.

    Attributes:
        rule: the only rule it holds for: one that lacks a term which the theorem assumes has no promise.
        labels, rounds: the budget; the theorems count rounds, one training example each, half the labels.
        value: with probability `probability` the excess risk is at most this, if the conditions hold.
        order: the same without constants, (m·C/π_min)·max e or (m·C/q)·max e; with κ·√(max e) in place of C·max e.
        deviation: max_z e_z at the count the theorem uses.
        speaks_from: labels from which the value is below 1 and every known condition holds; None: not within 10^60 rounds.
        rate: the value falls like rounds^−rate in the long run, up to logs.
        floor: the limit that the value never falls below, because of the resolution of C.
        note: what the proof leaves open, in words.
    """

    rule: str
    labels: int
    rounds: int
    value: float
    order: float
    deviation: float
    probability: float
    conditions: tuple[Condition, ...]
    speaks_from: int | None
    rate: float | None
    floor: float = 0.0
    note: str = ""

    @property
    def vacuous(self) -> bool:
        """Whether the value is too large to say anything."""
        return self.value >= 1

    @property
    def valid(self) -> bool | None:
        """Whether every condition holds; None if one is not known and none fails."""
        met = [condition.met for condition in self.conditions]
        # one that fails decides, whatever the unknown ones are
        if False in met:
            return False
        return None if None in met else True

    def as_dict(self) -> JsonObject:
        """The promise as plain values."""
        return {**asdict(self), "vacuous": self.vacuous, "valid": self.valid}

    def __str__(self) -> str:
        parts = [
            f"excess risk ≤ {self.value:.4g} with probability {self.probability:.4g} after {count(self.labels)} labels of "
            f"{self.rule}"
        ]
        if self.vacuous:
            parts = [
                f"no promise at {count(self.labels)} labels of {self.rule}: the bound is {self.value:.4g}, above 1"
            ]
        if self.vacuous or not self.valid:
            parts.append(
                f"it speaks from {count(self.speaks_from)} labels"
                if self.speaks_from
                else f"it needs {BEYOND} to speak"
            )
        parts += [str(condition) for condition in self.conditions if not condition.met]
        return "; ".join(parts)
