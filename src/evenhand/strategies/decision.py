"""The choice of a group and its reason, in one object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from evenhand.arrays import Floats, Ints
from evenhand.errors import InputError
from evenhand.strategies.standing import Standing

KINDS = ("warm-up", "forced", "explore", "score", "fewest", "population", "certify", "test")
"""Why a group was chosen; `Decision.code` indexes this."""


class DecisionFacts(TypedDict):
    """A single decision as plain values, the same in Python, CLI, trace, ledger and page."""

    group: str
    kind: str
    terms: dict[str, dict[str, float | None]]
    probability: dict[str, float | None] | None


@dataclass(frozen=True, eq=False)
class Decision:
    """Which group is next, and why.

    Arrays have the groups on their last axis; `index` and `code` have the leading axes only.

    Attributes:
        groups: the names of the groups.
        index: the chosen group, as a position in `groups`.
        code: why, as a position in `KINDS`.
        terms: named parts of the score, a number per group each; their sum is the score.
        probability: the chance of each group, where the choice was drawn; 0 everywhere where it was not.
    """

    groups: tuple[str, ...]
    index: Ints
    code: Ints
    terms: Mapping[str, Floats] = field(default_factory=dict)
    probability: Floats | None = None

    @classmethod
    def of(
        cls, standing: Standing, group: str, kind: str = "score", terms: Mapping[str, Floats] | None = None
    ) -> Decision:
        """A single decision, for use in a custom strategy: the group by name, the kind, and the terms behind it."""
        if group not in standing.groups:
            raise InputError(f"unknown group {group!r}: the groups are {', '.join(map(repr, standing.groups))}")
        if kind not in KINDS:
            raise InputError(f"unknown kind {kind!r}: use one of {', '.join(KINDS)}")
        index, code = np.array(standing.groups.index(group)), np.array(KINDS.index(kind))
        return cls(standing.groups, index, code, dict(terms or {}))

    @classmethod
    def checked(cls, found: object) -> Decision:
        """The decision a strategy returned; anything else, as a custom strategy may return, is refused."""
        if not isinstance(found, Decision):
            raise InputError(f"the strategy gave {found!r}: a strategy returns a Decision (see Decision.of)")
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision) or self.groups != other.groups or self.terms.keys() != other.terms.keys():
            return False
        pairs = [(self.index, other.index), (self.code, other.code), (self.probability, other.probability)]
        pairs += [(self.terms[name], other.terms[name]) for name in self.terms]
        return all(np.array_equal(a, b) if a is not None and b is not None else a is b for a, b in pairs)

    # arrays are compared by value, and have no hash that goes with it
    __hash__ = None  # type: ignore[assignment]

    @property
    def group(self) -> str:
        """The chosen group of a single decision."""
        return self.groups[int(self.index)]

    @property
    def kind(self) -> str:
        """Why it was chosen, one of `KINDS`."""
        return KINDS[int(self.code)]

    @property
    def score(self) -> Floats | None:
        """The sum of the terms, or None where the rule has none."""
        return sum(self.terms.values(), np.zeros(())) if self.terms else None

    def as_dict(self) -> DecisionFacts:
        """A single decision as plain JSON values, the same in Python, CLI, trace, ledger and page."""

        def named(values: Floats) -> dict[str, float | None]:
            numbers = np.asarray(values, dtype=float).tolist()
            # JSON has neither NaN nor infinity; one sum is quicker than a test of every number
            if not math.isfinite(sum(numbers)):
                numbers = [v if math.isfinite(v) else None for v in numbers]
            return dict(zip(self.groups, numbers, strict=True))

        # a rule that did not draw this time has no probabilities to record
        drawn = self.kind in ("explore", "population") and self.probability is not None
        return {
            "group": self.group,
            "kind": self.kind,
            "terms": {name: named(values) for name, values in self.terms.items()},
            "probability": named(self.probability) if drawn and self.probability is not None else None,
        }

    @classmethod
    def from_dict(cls, groups: tuple[str, ...], record: DecisionFacts) -> Decision:
        """The decision that `as_dict` wrote down."""

        def array(values: Mapping[str, float | None]) -> Floats:
            return np.array([np.nan if values[g] is None else values[g] for g in groups], dtype=float)

        chance = record["probability"]
        return cls(
            groups=groups,
            index=np.array(groups.index(record["group"])),
            code=np.array(KINDS.index(record["kind"])),
            terms={name: array(values) for name, values in record["terms"].items()},
            probability=None if chance is None else array(chance),
        )
