"""Strategies written as text: `name:key=value,key=value` or `factory:…`, with `LABEL=` before it to set a label."""

from __future__ import annotations

import difflib
from dataclasses import MISSING, fields
from typing import Any

from evenhand import extending
from evenhand.claims.bounds import BOUND_NAMES
from evenhand.errors import InputError
from evenhand.notation import parse_settings
from evenhand.strategies.base import Rule, Strategy
from evenhand.strategies.epsilon_greedy import EpsilonGreedy, Greedy
from evenhand.strategies.optimistic import Optimistic
from evenhand.strategies.oracle import Oracle
from evenhand.strategies.uncurated import Uncurated
from evenhand.strategies.uniform import Uniform

STRATEGIES: dict[str, type[Rule]] = {
    rule.name: rule for rule in (Optimistic, EpsilonGreedy, Greedy, Uniform, Uncurated, Oracle)
}
"""The rules by the name they have on the command line."""

BOUNDS = {name: kind for kind, name in BOUND_NAMES.items()}


def parse_strategy(text: str) -> tuple[str, Strategy]:
    """The label and the strategy a text describes.

    A factory makes any custom strategy; its settings follow a second colon: `factory:package.module.function:depth=3`.

    >>> parse_strategy("optimistic:c0=0.5")
    ('optimistic:c0=0.5', Optimistic(c0=0.5, ...))
    >>> parse_strategy("bold=optimistic:c0=1")[0]
    'bold'
    """
    label, bare = _split_label(text)
    if extending.is_factory(bare):
        return label, extending.make(bare, "strategy", _why_no_strategy)
    return label, _rule(bare)


def strategy_text(text: str) -> str:
    """A strategy's text without its label: the same text for equal rules; a factory's text stays as given.

    >>> strategy_text("bold=optimistic:xi=0.5,c0=0.1")
    'optimistic:c0=0.1'
    """
    _, bare = _split_label(text)
    if extending.is_factory(bare):
        return bare
    rule = _rule(bare)
    return describe_strategy(rule) or bare


def describe_strategy(strategy: object, *, in_full: bool = False) -> str | None:
    """The text that `parse_strategy` reads back to this strategy, or None where there is none.

    Settings at their defaults are left out, unless the text is to be `in_full`.
    """
    if not isinstance(strategy, Rule):
        return None
    text = strategy.in_full() if in_full else str(strategy)
    try:
        # tried out rather than trusted: a rule that holds a user's
        # function may print a text that reads back to something else
        same = parse_strategy(text)[1] == strategy
    except InputError:
        same = False
    return text if same else None


def _split_label(text: str) -> tuple[str, str]:
    """The label and the text without it; where no label is set, the whole text is the label."""
    head, _, _ = text.partition(":")
    # before the first colon only: settings have = as well
    label, mark, _ = head.partition("=")
    return (label, text[len(label) + 1 :]) if mark else (text, text)


def _why_no_strategy(found: object) -> str | None:
    return (
        None if callable(found) else "a strategy is called with the standing and random numbers, and gives a Decision"
    )


def _rule(text: str) -> Rule:
    name, _, tail = text.partition(":")
    if name not in STRATEGIES:
        near = difflib.get_close_matches(name, STRATEGIES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        known = f"{', '.join(STRATEGIES)}, or factory:package.module.function"
        raise InputError(f"unknown strategy {name!r}: {hint}known are {known}")
    rule = STRATEGIES[name]
    settings = parse_settings(tail, where=f"strategy {name!r}")
    if "bound" in settings:
        # before unknown settings are refused: those of the bound are not the rule's own
        settings["bound"] = _bound(settings)
    known_settings = [f.name for f in fields(rule)]
    for key in settings:
        if key not in known_settings:
            has = f"it has {', '.join(known_settings)}" if known_settings else "it has none"
            raise InputError(f"strategy {name!r} has no setting {key!r}: {has}")
    if "terms" in settings:
        settings["terms"] = [extending.find(path.strip(), "term") for path in str(settings["terms"]).split("+")]
    try:
        return rule(**settings)
    except TypeError as error:
        raise InputError(f"strategy {text!r}: {error}") from error


def _bound(settings: dict[str, object]) -> Any:
    """The bound named by `bound=`, with its own settings taken out of the rest."""
    kind = settings.pop("bound")
    if kind not in BOUNDS:
        raise InputError(f"unknown bound {kind!r}: known are {', '.join(BOUNDS)}")
    own = {f.name: settings.pop(f.name) for f in fields(BOUNDS[kind]) if f.name in settings}
    try:
        return BOUNDS[kind](**own)
    except TypeError as error:
        needed = [f"{f.name}=…" for f in fields(BOUNDS[kind]) if f.default is MISSING and f.name not in own]
        what = f"give {','.join(needed)} too" if needed else str(error)
        raise InputError(f"the bound {kind!r} cannot be made: {what}") from error
