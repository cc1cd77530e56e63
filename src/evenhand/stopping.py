"""When to stop: rules on what a campaign knows, joined with `&` and `|`.

`TargetError` rests on a certificate. `NoImprovement` looks at validation scores: a rule of thumb, without a claim.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import numpy as np

from evenhand import checks
from evenhand.certificates import Evidence

if TYPE_CHECKING:
    from evenhand.monitor import Monitor

__all__ = ["All", "Any", "Deadline", "LabelsSpent", "NoImprovement", "Rule", "TargetError"]


class Rule:
    """A stopping rule: `reason` says why to stop now, or None."""

    @property
    def rounds_back(self) -> int:
        """How many rounds of scores the rule looks back on."""
        return 0

    def reason(self, seen: "Monitor") -> str | None:
        """Why to stop, None to go on."""
        raise NotImplementedError

    def freeze(self, seen: "Monitor") -> bool:
        """Whether the rule wants the current model frozen, to gather evidence on it."""
        return False

    def __and__(self, other: "Rule") -> "All":
        return All((self, other))

    def __or__(self, other: "Rule") -> "Any":
        return Any((self, other))


@dataclass(frozen=True)
class TargetError(Rule):
    """Stop when it is certified that no group's error is above `target`.

    The rule freezes a model by itself: when the steering validation set, were it evidence, would do; and again when
    the labels have doubled since without success.
    """

    target: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        checks.probability("target", self.target)
        checks.probability("confidence", self.confidence)

    def reason(self, seen: "Monitor") -> str | None:
        """Certified, or not yet."""
        evidence = seen.since
        if evidence is None or not evidence.worst_is_at_most(self.target, seen.version, 1 - self.confidence):
            return None
        return f"no group's error is above {self.target:g} (confidence {self.confidence:.0%})"

    def freeze(self, seen: "Monitor") -> bool:
        """When scores as good as now, on as many new labels, would do."""
        if seen.labels < 2 * seen.frozen_labels or np.isnan(seen.errors).any():
            return False
        hoped = Evidence(seen.groups)
        hoped.n, hoped.total = seen.validated, np.rint(seen.errors * seen.validated)
        return hoped.worst_is_at_most(self.target, seen.version + 1, 1 - self.confidence)


@dataclass(frozen=True)
class NoImprovement(Rule):
    """Stop when no group's validation loss has fallen by more than `by` over the last `rounds` rounds."""

    rounds: int
    by: float = 0.0

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError(f"rounds must be at least 1, got {self.rounds!r}")

    @property
    def rounds_back(self) -> int:
        """The rounds compared."""
        return self.rounds

    def reason(self, seen: "Monitor") -> str | None:
        """The best of these rounds, compared with the round before them."""
        if len(seen.scores) <= self.rounds:
            return None
        before, *later = list(seen.scores)[-1 - self.rounds :]
        for first, *rest in zip(before, *later, strict=True):
            # a group without a score is still to come
            if first is None or any(x is None or first - x > self.by for x in rest):
                return None
        return f"no group improved for {self.rounds} rounds"


@dataclass(frozen=True)
class LabelsSpent(Rule):
    """Stop once this many labels are spent."""

    labels: int

    def __post_init__(self) -> None:
        if self.labels < 1:
            raise ValueError(f"labels must be at least 1, got {self.labels!r}")

    def reason(self, seen: "Monitor") -> str | None:
        """Spent, or not yet."""
        return f"{self.labels:,} labels are spent" if seen.labels >= self.labels else None


@dataclass(frozen=True)
class Deadline(Rule):
    """Stop from a moment on: a date (its beginning, UTC), a datetime, or its ISO text."""

    when: date | str

    def __post_init__(self) -> None:
        self.moment()

    def moment(self) -> datetime:
        """The moment, with a time zone."""
        found = datetime.fromisoformat(self.when) if isinstance(self.when, str) else self.when
        if not isinstance(found, datetime):
            found = datetime(found.year, found.month, found.day)
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def reason(self, seen: "Monitor") -> str | None:
        """Past it, or not yet."""
        return f"it is past {self.moment().isoformat()}" if seen.now() >= self.moment() else None


@dataclass(frozen=True)
class _Several(Rule):
    rules: Sequence[Rule]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        if not self.rules or not all(isinstance(rule, Rule) for rule in self.rules):
            raise ValueError(f"give at least one stopping rule, got {self.rules!r}")

    @property
    def rounds_back(self) -> int:
        """As far as the rule that looks back furthest."""
        return max(rule.rounds_back for rule in self.rules)

    def freeze(self, seen: "Monitor") -> bool:
        """Whether one of them wants it."""
        return any(rule.freeze(seen) for rule in self.rules)

    def _reasons(self, seen: "Monitor") -> list[str]:
        return [reason for rule in self.rules if (reason := rule.reason(seen)) is not None]


@dataclass(frozen=True)
class Any(_Several):
    """Stop as soon as one of the rules says so."""

    def reason(self, seen: "Monitor") -> str | None:
        """The first reason."""
        return next(iter(self._reasons(seen)), None)


@dataclass(frozen=True)
class All(_Several):
    """Stop when all of the rules say so."""

    def reason(self, seen: "Monitor") -> str | None:
        """All reasons, joined."""
        found = self._reasons(seen)
        return " and ".join(found) if len(found) == len(self.rules) else None
