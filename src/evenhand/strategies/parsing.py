"""Strategies written as text: `name:key=value,key=value`, with `LABEL=` before it to set a label."""

from __future__ import annotations

import difflib
from dataclasses import fields
from typing import Any

from evenhand.errors import InputError
from evenhand.notation import parse_settings
from evenhand.strategies.base import Rule
from evenhand.strategies.epsilon_greedy import EpsilonGreedy, Greedy
from evenhand.strategies.optimistic import BOUND_NAMES, Optimistic
from evenhand.strategies.peers import Peers
from evenhand.strategies.uncurated import Uncurated
from evenhand.strategies.uniform import Uniform

__all__ = ["STRATEGIES", "parse_strategy"]

STRATEGIES: dict[str, type[Rule]] = {
    rule.name: rule for rule in (Optimistic, EpsilonGreedy, Greedy, Uniform, Uncurated, Peers)
}
"""The rules by the name they have on the command line."""

BOUNDS = {name: kind for kind, name in BOUND_NAMES.items()}


def parse_strategy(text: str) -> tuple[str, Rule]:
    """The label and the strategy a text describes.

    >>> parse_strategy("optimistic:c0=0.5")
    ('optimistic:c0=0.5', Optimistic(c0=0.5, ...))
    >>> parse_strategy("bold=optimistic:c0=1")[0]
    'bold'
    """
    head, _, tail = text.partition(":")
    label, mark, name = head.partition("=")
    label, name = (label, name) if mark else (text, head)
    if name not in STRATEGIES:
        near = difflib.get_close_matches(name, STRATEGIES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise InputError(f"unknown strategy {name!r}: {hint}known are {', '.join(STRATEGIES)}")
    rule = STRATEGIES[name]
    settings = parse_settings(tail, where=f"strategy {name!r}")
    if "bound" in settings:
        settings["bound"] = _bound(settings)
    known = [f.name for f in fields(rule) if f.name != "terms"]
    for key in settings:
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"strategy {name!r} has no setting {key!r}: {has}")
    try:
        return label, rule(**settings)
    except TypeError as error:
        raise InputError(f"strategy {text!r}: {error}") from error


def _bound(settings: dict[str, Any]) -> Any:
    """The bound named by `bound=`, with its own settings taken out of the rest."""
    kind = settings.pop("bound")
    if kind not in BOUNDS:
        raise InputError(f"unknown bound {kind!r}: known are {', '.join(BOUNDS)}")
    own = {f.name for f in fields(BOUNDS[kind])} & settings.keys()
    return BOUNDS[kind](**{key: settings.pop(key) for key in sorted(own)})
