"""When to stop: rules on what a campaign knows, joined with `&` and `|`.

`ErrorBelow` rests on a certificate. `NoImprovement` looks at validation scores: a rule of thumb, without a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np

from evenhand.arrays import plain_fields
from evenhand.claims import checks
from evenhand.claims.certificates import spent_by
from evenhand.claims.findings import Findings
from evenhand.errors import InputError
from evenhand.notation import JsonMapping

__all__ = [
    "AllOf", "AnyOf", "Deadline", "LabelsSpent", "NoImprovement", "Rule", "Seen", "ErrorBelow", "parse_stop",
]  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """What a stopping rule can see of a campaign.

    Attributes:
        groups: the names of the groups.
        labels: labels spent.
        now: the ledger's time.
        scores: every group's mean validation loss at the last scores, oldest first; None without any.
        rates, validated: every group's risk on the steering validation set and its size: an indication, not a claim.
        left: labels that may still be asked for.
        outcome: how the last proof ended: `outcome`, `target`, `delta`; None without one.
        version: how many models have been frozen.
        frozen_labels: labels spent when the last model was frozen.
        risk: what certificates are about, in words.
    """

    groups: tuple[str, ...]
    labels: int = 0
    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    scores: Sequence[Sequence[float | None]] = ()
    rates: Sequence[float] = ()
    validated: Sequence[int] = ()
    left: int = 0
    outcome: JsonMapping | None = None
    version: int = 0
    frozen_labels: int = 0
    risk: str = "error"


class Rule:
    """A stopping rule: `reason` says why to stop now, or None."""

    @property
    def rounds_back(self) -> int:
        """How many rounds of scores the rule looks back on."""
        return 0

    @property
    def needs_certificate(self) -> bool:
        """Whether the rule looks at evidence on a frozen model."""
        return False

    def reason(self, seen: Seen) -> str | None:
        """The reason to stop, or None to continue."""
        raise NotImplementedError

    def to_prove(self, seen: Seen) -> ErrorBelow | None:
        """The target for a proof about the newest model that should begin now; None if none should."""
        return None

    def __and__(self, other: Rule) -> AllOf:
        return AllOf((self, other))

    def __or__(self, other: Rule) -> AnyOf:
        return AnyOf((self, other))


@dataclass(frozen=True)
class ErrorBelow(Rule):
    """Stop when it is certified that no group's risk is above `target`.

    The rule begins the proof by itself, once the remaining labels would be enough at the risks that the steering
    validation set shows. A failed proof costs its labels; the next one begins when the labels have doubled since.
    """

    target: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        plain_fields(self)
        checks.probability("target", self.target)
        checks.probability("confidence", self.confidence)
        if self.confidence < 1 - checks.MOST_DELTA:
            raise InputError(f"confidence must be at least {1 - checks.MOST_DELTA}, got {self.confidence!r}")

    @property
    def needs_certificate(self) -> bool:
        """Whether the rule looks at evidence on a frozen model: always."""
        return True

    def __str__(self) -> str:
        return f"target={self.target:g}" + ("" if self.confidence == 0.95 else f",{self.confidence:g}")

    def reason(self, seen: Seen) -> str | None:
        """The reason to stop, once the target is certified."""
        found = seen.outcome
        if found is None or found["outcome"] != "certified":
            return None
        # a proof of something weaker, which certify() may have been asked for, is not this one
        if found["target"] > self.target or found["delta"] > 1 - self.confidence + 1e-12:
            return None
        return f"no group's {seen.risk} is above {self.target:g}, with {checks.confidence(1 - self.confidence)}"

    def to_prove(self, seen: Seen) -> ErrorBelow | None:
        """The target, once a model as good as the scores show could be certified with the remaining labels."""
        # every attempt uses up part of δ for good; with the labels doubled there are few of them
        if self.reason(seen) is not None or seen.labels < 2 * seen.frozen_labels or not all(seen.validated):
            return None
        # the proof would be that of the next version, which may use less of δ than those before
        spent = spent_by(seen.version + 1, 1 - self.confidence)
        needed = Findings(seen.groups).further(self.target, spent, np.array(seen.rates)[:, None])
        # a proof begun too early fails and costs its labels: it waits until the remaining labels would be enough
        if any(labels is None for labels in needed) or sum(labels or 0 for labels in needed) > seen.left:
            return None
        return self


@dataclass(frozen=True)
class NoImprovement(Rule):
    """Stop when no group's validation loss has fallen by more than `by` over the last `rounds` rounds."""

    rounds: int
    by: float = 0.0

    def __post_init__(self) -> None:
        plain_fields(self)
        if self.rounds < 1:
            raise InputError(f"rounds must be at least 1, got {self.rounds!r}")

    @property
    def rounds_back(self) -> int:
        """How many rounds of scores the rule looks back on."""
        return self.rounds

    def __str__(self) -> str:
        return f"no-improvement={self.rounds}" + (f",{self.by:g}" if self.by else "")

    def reason(self, seen: Seen) -> str | None:
        """The reason to stop, if the best of the last rounds is no better than the round before them."""
        if len(seen.scores) <= self.rounds:
            return None
        # against the round before the stretch: noise within it must not look like progress
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
        plain_fields(self)
        if self.labels < 1:
            raise InputError(f"labels must be at least 1, got {self.labels!r}")

    def __str__(self) -> str:
        return f"labels={self.labels}"

    def reason(self, seen: Seen) -> str | None:
        """The reason to stop, once the labels are spent."""
        return f"{self.labels:,} labels are spent" if seen.labels >= self.labels else None


@dataclass(frozen=True)
class Deadline(Rule):
    """Stop from a moment on: a date (from its beginning, UTC), a datetime, or either as ISO text."""

    when: date | str

    def __post_init__(self) -> None:
        plain_fields(self)
        if not isinstance(self.when, str):
            # as text, which a ledger can hold
            object.__setattr__(self, "when", self.when.isoformat())
        self.moment()

    def moment(self) -> datetime:
        """The moment, with a time zone."""
        found = datetime.fromisoformat(str(self.when))
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def __str__(self) -> str:
        return f"until={self.when}"

    def reason(self, seen: Seen) -> str | None:
        """The reason to stop, once the moment has passed."""
        return f"it is past {self.moment().isoformat()}" if seen.now >= self.moment() else None


@dataclass(frozen=True)
class _Several(Rule):
    rules: Sequence[Rule]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        if not self.rules or not all(isinstance(rule, Rule) for rule in self.rules):
            raise InputError(f"give at least one stopping rule, got {self.rules!r}")

    @property
    def rounds_back(self) -> int:
        """How many rounds of scores the rule that looks back furthest needs."""
        return max(rule.rounds_back for rule in self.rules)

    @property
    def needs_certificate(self) -> bool:
        """Whether one of the rules looks at evidence on a frozen model."""
        return any(rule.needs_certificate for rule in self.rules)

    def to_prove(self, seen: Seen) -> ErrorBelow | None:
        """The target of the first rule that wants a proof now."""
        return next((found for rule in self.rules if (found := rule.to_prove(seen)) is not None), None)

    def _reasons(self, seen: Seen) -> list[str]:
        return [reason for rule in self.rules if (reason := rule.reason(seen)) is not None]


@dataclass(frozen=True)
class AnyOf(_Several):
    """Stop as soon as one of the rules says so."""

    def __str__(self) -> str:
        return " | ".join(map(str, self.rules))

    def reason(self, seen: Seen) -> str | None:
        """The reason of the first rule that says stop."""
        return next(iter(self._reasons(seen)), None)


@dataclass(frozen=True)
class AllOf(_Several):
    """Stop when all of the rules say so."""

    def __str__(self) -> str:
        return " & ".join(map(str, self.rules))

    def reason(self, seen: Seen) -> str | None:
        """All reasons joined, once every rule has one."""
        found = self._reasons(seen)
        return " and ".join(found) if len(found) == len(self.rules) else None


def parse_stop(stop: Rule | str | Sequence[str] | None) -> Rule | None:
    """A stopping rule from its text; several texts, or `|` between them, stop as soon as one does, `&` when all do.

    >>> str(parse_stop(["labels=2000", "no-improvement=50 & until=2027-03-01"]))
    'labels=2000 | no-improvement=50 & until=2027-03-01'
    """
    if stop is None or isinstance(stop, Rule):
        return stop
    texts = [stop] if isinstance(stop, str) else list(stop) if isinstance(stop, Iterable) else [stop]
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"stop must be stopping rules such as ErrorBelow(0.1) or 'target=0.1', not {stop!r}")
    # & binds closer than |, as in Python
    some = [_joined(AllOf, [_parse(one) for one in part.split("&")]) for text in texts for part in text.split("|")]
    return _joined(AnyOf, some) if some else None


def _joined(kind: type[_Several], rules: list[Rule]) -> Rule:
    return rules[0] if len(rules) == 1 else kind(rules)


_RULES: dict[str, Callable[..., Rule]] = {
    "target": lambda target, confidence="0.95": ErrorBelow(float(target), float(confidence)),
    "labels": lambda labels: LabelsSpent(int(labels)),
    "until": Deadline,
    "no-improvement": lambda rounds, by="0": NoImprovement(int(rounds), float(by)),
}


def _parse(text: str) -> Rule:
    name, mark, values = text.strip().partition("=")
    if not mark or name not in _RULES:
        known = "target=0.1, labels=2000, until=2027-03-01 or no-improvement=50"
        raise InputError(f"cannot read the stopping rule {text!r}: write {known}")
    try:
        return _RULES[name](*values.split(","))
    except (TypeError, ValueError) as error:
        raise InputError(f"cannot read the stopping rule {text!r}: {error}") from None
