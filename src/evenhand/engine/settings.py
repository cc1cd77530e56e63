"""Checks of the settings of a campaign or a simulation, with errors written for the person who reads them."""

from __future__ import annotations

import inspect
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenhand.arrays import Floats
from evenhand.errors import InputError
from evenhand.notation import whole
from evenhand.risks import ERROR, Risk
from evenhand.strategies.base import needs_of

if TYPE_CHECKING:
    from evenhand.strategies.base import Strategy


MOST_LABELS = 10**15
"""The largest budget: larger counts would not fit the databases' integers."""


def check_settings(
    groups: Sequence[str],
    strategy: Strategy,
    *,
    budget: int,
    batch: int,
    warmup: int | None,
    validation: float,
    risk: Risk = ERROR,
) -> tuple[str, ...]:
    """Check everything and return the group names as a tuple."""
    if isinstance(groups, str):
        raise InputError(f"groups must be a list of names, not the text {groups!r}")
    if not isinstance(groups, Iterable):
        raise InputError(f"groups must be a list of names, not {groups!r}")
    groups = list(groups)
    # NaN, which is what pandas has for a missing group, differs from itself
    if any(group is None or group != group for group in groups):
        raise InputError(f"a group has no name: {groups}")
    names = tuple(str(group) for group in groups)
    if not names:
        raise InputError("there are no groups: name at least one")
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InputError(f"the group {twice[0]!r} is named twice")
    # a spreadsheet's stray blank would split a group in two, each looking worse off than it is
    if len({name.strip() for name in names}) < len(names):
        raise InputError(f"two groups differ only by blanks: {', '.join(map(repr, names))}")
    if not callable(strategy) or isinstance(strategy, type):
        raise InputError(f"{strategy!r} is not a strategy: give e.g. Optimistic(), or a callable (standing, uniforms)")
    _check_arguments(strategy)
    if risk.name == "log" and needs_of(strategy).bound is not None:
        raise InputError("a bound speaks of losses in [0, 1], which the log loss leaves: use risk='error'")
    whole("batch", batch, 1, MOST_LABELS)
    if warmup is not None:
        whole("warmup", warmup, 0)
    if not isinstance(validation, int | float | np.number) or not 0 < validation < 1:
        raise InputError(f"validation is a share strictly between 0 and 1, not {validation}")
    if validation != 0.5 and needs_of(strategy).half:
        raise InputError(
            "the theoretical forms hold for validation=0.5 alone: their deviation is that of as many examples as train, and "
            f"with validation={validation:g} another number measures the loss; give validation=0.5, or a rule without a bound"
        )
    if not isinstance(budget, int | np.integer) or budget > MOST_LABELS:
        raise InputError(f"budget must be a whole number of labels, at most {MOST_LABELS:,}, not {budget}")
    start = 2 * int(batch) * len(names)
    if budget < start:
        raise InputError(
            f"a budget of {budget} labels is smaller than one warm-up round: {len(names)} groups × {2 * batch} labels "
            f"need {start}; raise the budget or lower the batch"
        )
    return names


def _check_arguments(strategy: Strategy) -> None:
    """Refuse a function that cannot be called as a strategy is; it would fail at the first request."""
    try:
        signature = inspect.signature(strategy)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        signature.bind(None, None)
    except TypeError:
        name = getattr(strategy, "__name__", type(strategy).__name__)
        raise InputError(
            f"the strategy {name}{signature} must take two arguments, the standing and random numbers: "
            "def strategy(standing, uniforms)"
        ) from None


def drawn_seed() -> int:
    """A seed from the system's random numbers."""
    return secrets.randbits(32)


def as_seed(seed: int | tuple[int, int] | None) -> tuple[int, int]:
    """Seed and trial as plain numbers; None draws a seed from the system's random numbers."""
    seed = drawn_seed() if seed is None else seed
    pair = tuple(seed) if isinstance(seed, tuple | list) else (seed, 0)
    if len(pair) != 2 or any(not isinstance(s, int | np.integer) or s < 0 for s in pair):
        raise InputError(f"seed must be a whole number from 0 up, or a pair (seed, trial) of them, not {seed!r}")
    return int(pair[0]), int(pair[1])


def learner_seed(seed: int, trial: int) -> int:
    """The seed a learner is given in this trial."""
    # spread well: seeds 0 and 1 of a generator that is seeded with them directly may start alike
    return int(np.random.SeedSequence([seed, trial]).generate_state(1)[0])


def as_population(
    population: Mapping[str, float] | Sequence[float] | Floats | None,
    groups: tuple[str, ...],
    strategy: Strategy,
) -> Floats | None:
    """The shares in the order of the groups, summing to one; an error if the strategy needs them and has none."""
    if population is None:
        if needs_of(strategy).population:
            raise InputError(
                f"{strategy} draws from the population's shares: give population={{group: share}}"
                + (" or explore='uniform'" if hasattr(strategy, "explore") else "")
            )
        return None
    if isinstance(population, Mapping):
        if set(population) != set(groups):
            raise InputError(f"population names {sorted(population)}, the groups are {sorted(groups)}")
        population = [population[group] for group in groups]
    try:
        share = np.asarray(population, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"population must be a share for every group, not {population!r}") from None
    if share.shape != (len(groups),):
        raise InputError(f"population has {share.size} shares for {len(groups)} groups")
    if not (np.isfinite(share).all() and (share >= 0).all() and share.sum() > 0):
        raise InputError(f"population's shares must be numbers from 0 up, not all 0: {share.tolist()}")
    return np.asarray(share / share.sum())


def forced_warning(strategy: Strategy, groups: int, examples: float) -> str | None:
    """The warning for a budget more than half of which forced exploration alone would use up; None if it would not."""
    xi = needs_of(strategy).xi
    if xi is None or groups < 2:
        return None
    # m groups at N each reach (mN)^ξ = N when the total is
    # m^(1/(1−ξ)): before that the floor is above the average
    until = groups ** (1 / (1 - xi))
    if until <= examples / 2:
        return None
    message = (
        f"with {groups} groups and xi={xi:g}, forced exploration makes this uniform sampling for the first "
        f"{until:,.0f} training examples, and this budget buys {examples:,.0f}"
    )
    # solves m^(1/(1−ξ)) = n/2 for ξ
    highest = 1 - math.log(groups) / math.log(examples / 2) if examples / 2 > groups else 0.0
    if highest > 0.01:
        return f"{message}; with a smaller xi it would end sooner (optimistic:xi={math.floor(100 * highest) / 100:g})"
    return f"{message}; no xi would help, a larger budget would"
