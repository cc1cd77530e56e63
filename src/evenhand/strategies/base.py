"""What every strategy shares: the contract, the uniforms, the choice with random ties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from evenhand.arrays import Floats, Ints, Mask, Values, plain_fields
from evenhand.errors import InputError
from evenhand.notation import JsonObject
from evenhand.strategies.decision import KINDS, Decision
from evenhand.strategies.standing import Standing

UNIFORMS = 3
"""How many uniform numbers a request gets: for ties, for whether to explore, and for which group to explore."""

WARM_UP, FORCED, EXPLORE, SCORE, FEWEST, POPULATION, CERTIFY, TEST = range(len(KINDS))


class Strategy(Protocol):
    """Which group next: a pure function of the standing and the request's own uniforms.

    Every callable of this form is a strategy. It may carry `window` (accuracies to remember, default 20), `needs_scores`
    (False spares the fits), `needs_trend` (False spares a simulation the recent accuracies) and `needs_population` (True
    asks for shares). The risk of the campaign or simulation defines what a loss is.
    """

    def __call__(self, standing: Standing, uniforms: Floats) -> Decision:
        """The decision; `uniforms` are `UNIFORMS` uniform numbers on the last axis."""


class Needs(NamedTuple):
    """What a strategy needs and does beside its decision; one of your own has these defaults unless it says otherwise.

    Attributes:
        scores: whether it looks at losses; False spares the fits.
        trend: whether it looks at recent accuracies, and window: at how many.
        population: whether it draws from the population's shares.
        xi: the exponent of its forced exploration; None without.
        bound: the bound that its score has instead of a constant, which speaks of losses in [0, 1]; None without.
        half: whether it needs half of the examples to validate.
    """

    scores: bool = True
    trend: bool = True
    window: int = 20
    population: bool = False
    xi: float | None = None
    bound: object = None
    half: bool = False


def needs_of(strategy: Strategy) -> Needs:
    """What a strategy needs: the only place that looks for attributes which one of your own may lack."""
    usual = Needs()
    return Needs(
        scores=bool(getattr(strategy, "needs_scores", usual.scores)),
        trend=bool(getattr(strategy, "needs_trend", usual.trend)),
        window=int(getattr(strategy, "window", usual.window)),
        population=bool(getattr(strategy, "needs_population", usual.population)),
        xi=getattr(strategy, "xi", usual.xi),
        bound=getattr(strategy, "bound", usual.bound),
        half=bool(getattr(strategy, "needs_half", usual.half)),
    )


@dataclass(frozen=True)
class Rule:
    """A strategy with a name and settings, whose text form `name:key=value,…` parses back."""

    name: ClassVar[str]
    needs_scores: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain_fields(self)

    @property
    def needs_trend(self) -> bool:
        """Whether the rule looks at recent accuracies."""
        return False

    @property
    def needs_half(self) -> bool:
        """Whether the rule holds for a validation share of one half alone."""
        return False

    @property
    def needs_population(self) -> bool:
        """Whether the rule draws from the population's shares."""
        return False

    def __call__(self, standing: Standing, uniforms: Floats) -> Decision:
        """The decision; every rule has its own."""
        raise NotImplementedError

    def settings(self) -> JsonObject:
        """The settings that differ from their defaults."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}

    def in_full(self) -> str:
        """The text form with every setting spelt out, so that stored text keeps its meaning when a default changes."""
        return self._text(self.all_settings())

    def all_settings(self) -> JsonObject:
        """Every setting that has an effect."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __str__(self) -> str:
        return self._text(self.settings())

    def _text(self, settings: JsonObject) -> str:
        # None and () are settings that a text cannot carry: leaving them out is the same
        said = {key: getattr(value, "__name__", value) for key, value in settings.items() if value not in (None, ())}
        tail = ",".join(f"{key}={value}" for key, value in said.items())
        return f"{self.name}:{tail}" if tail else self.name


def either(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where the condition holds, else `no`; both may have one axis more, for groups. Quick for one campaign."""
    axes = np.ndim(condition)
    if not axes:
        return yes if condition else no
    return np.where(condition[..., None] if np.ndim(yes) > axes else condition, yes, no)


def pick(score: Values, allowed: Mask, uniform: Floats) -> Ints:
    """The allowed group with the largest score on the last axis, ties broken by the uniform."""
    masked = np.where(allowed, score, -np.inf)
    best = np.maximum.reduce(masked, axis=-1, keepdims=True)
    if np.isnan(best).any():
        raise InputError("the score of a group is not a number: have the loss and the terms give finite numbers")
    tied = masked == best
    if tied.ndim == 1:  # one campaign, which somebody is waiting for
        [places] = tied.nonzero()
        return np.asarray(places[int(uniform * len(places))])
    rank = (uniform * tied.sum(axis=-1)).astype(np.int64)
    chosen: Ints = np.argmax(tied.cumsum(axis=-1) > rank[..., None], axis=-1)
    return chosen


def draw(share: Floats, allowed: Mask, uniform: Floats) -> tuple[Ints, Floats]:
    """A group drawn by its share among the allowed ones, and the probabilities it was drawn with."""
    weight = np.where(allowed, share, 0.0)
    total = weight.sum(axis=-1, keepdims=True)
    # where all that have a share are used up, the others are drawn alike
    weight = np.where(total > 0, weight, allowed)
    chance: Floats = weight / weight.sum(axis=-1, keepdims=True)
    edges = chance.cumsum(axis=-1)
    # times the last edge, which rounding may leave a
    # little off 1; a group without a chance is never drawn
    chosen: Ints = np.argmax((edges > uniform[..., None] * edges[..., -1:]) & (chance > 0), axis=-1)
    return chosen, chance


def choose_start(standing: Standing, uniform: Floats) -> Ints:
    """The group with the fewest examples, open requests counted in, so that warm-up visits the groups in turn."""
    return pick(-standing.examples, standing.available, uniform)


def decide(
    standing: Standing,
    index: Ints,
    code: Ints,
    terms: Mapping[str, Floats] | None = None,
    probability: Floats | None = None,
) -> Decision:
    """Make a decision; a single one keeps only what belongs to its kind.

    A drawn group has probabilities and no score, warm-up goes by counts, and all other kinds carry their terms.
    """
    terms = dict(terms or {})
    index, code = np.asarray(index), np.asarray(code)
    if index.ndim == 0:
        kind = int(code)
        if kind == EXPLORE:
            terms = {}
        elif kind != POPULATION:
            probability = None
        if kind == WARM_UP:
            terms = {"count": (-standing.examples).astype(float)}
    return Decision(standing.groups, index, code, terms, probability)
