"""The kinds of events: what each says, as a typed record.

To add a kind: a record here, its name in `EventKind` and an overload of `append`, and a method of the same name in
`state`. Every key of a record is always there; None says that there is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict, TypeVar, cast, overload

from evenhand.ledger.base import Event, Writer
from evenhand.notation import JsonValue

Letters = str
"""Roles of examples, a letter each: `t`rain, `v`alidate, `c`ertify, te`x`t → `x` for test; `-` for none."""


class LimitFacts(TypedDict):
    """What one collector may do."""

    labels: int
    lease: float | None
    streams: int


class Settings(TypedDict):
    """What a campaign was created with, as changed since; user's own objects stand as `own:Name`."""

    groups: list[str]
    strategy: str
    window: int
    budget: int
    batch: int
    warmup: int | None
    validation: float
    classes: list[str | int | bool] | None
    population: list[float] | None
    seed: str
    trial: int
    refit: str | int
    lease: float | None
    distinct: bool
    test_labels: int
    label: str
    group: str
    id: str
    features: list[str] | None
    limits: LimitFacts
    risk: str
    positive: str | int | bool | None
    learner: str | None
    stop: str | None
    rounds_back: int
    order: Literal["secret", "seed", "copy"]


class Changes(TypedDict, total=False):
    """Settings that may change while a campaign runs."""

    budget: int
    learner: str | None
    lease: float | None
    stop: str | None
    rounds_back: int
    refit: str | int
    limits: LimitFacts


class DecisionFacts(TypedDict):
    """A decision as `Decision.as_dict` writes it."""

    group: str
    kind: str
    terms: dict[str, dict[str, float | None]]
    probability: dict[str, float | None] | None


class Asked(TypedDict):
    """A request: the decision, its size, when its lease ends, and the scores it rests on."""

    decision: DecisionFacts
    size: int
    until: float | None
    rests_on: int
    scored_at: float | None
    behind: int


class Named(Asked):
    """A request that names examples of the pool, their roles, and how many are handed out for the first time."""

    ids: list[str]
    roles: Letters
    new: int
