"""What a live campaign is created with, checked and in plain values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.campaign import Campaign
from evenhand.live.learners import live_learner
from evenhand.live.stopping import stop_settings
from evenhand.strategies import Rule, parse_strategy

__all__ = ["as_refit", "as_seconds", "check_change", "first_header", "make_campaign"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SHARED = ("budget", "batch", "warmup", "validation", "classes", "population")


def as_seconds(lease: str | float | None) -> float | None:
    """How long a request waits for its answer: seconds, or `90m`, `24h`, `7d`; None or `never` is for ever.

    >>> as_seconds("2h"), as_seconds("never")
    (7200.0, None)
    """
    if lease is None or lease == "never":
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", str(lease))
    if not found or float(found[1]) <= 0:
        raise ValueError(f"cannot read the lease {lease!r}: write e.g. 90m, 24h, 7d or never")
    return float(found[1]) * _UNITS[found[2] or "s"]


def as_refit(refit: str | int) -> str | int:
    """When the model is refitted: `always`, every so many labels, or in the `background`.

    >>> as_refit("100")
    100
    """
    if refit in ("always", "background"):
        return refit
    if not str(refit).isdecimal() or int(refit) < 1:
        raise ValueError(f"refit must be always, background or a number of labels, not {refit!r}")
    return int(refit)


def first_header(
    groups: Sequence[str],
    strategy: str | Rule = "optimistic",
    learner: str | None = "logistic",
    *,
    budget: int,
    batch: int = 1,
    warmup: int | None = None,
    validation: float = 0.5,
    classes: Sequence[Any] | None = None,
    population: Mapping[str, float] | Sequence[float] | None = None,
    seed: int = 0,
    refit: str | int = "always",
    lease: str | float | None = "1d",
    stop: str | Sequence[str] | None = None,
    label: str = "label",
    group: str = "group",
    features: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The settings a campaign's first event records, after making the campaign once to have them checked."""
    rule = parse_strategy(strategy)[1] if isinstance(strategy, str) else strategy
    if isinstance(strategy, str):
        strategy = str(rule)
    elif parse_strategy(str(strategy))[1] != strategy:
        raise ValueError(f"{strategy} cannot be written down: a live campaign takes the strategies that come along")
    if len({label, group}) < 2 or {label, group} & set(features or ()):
        raise ValueError(f"the label column {label!r}, the group column {group!r} and the features must differ")
    live_learner(learner, getattr(rule, "loss", "zero_one"))
    header = {
        "groups": [str(name) for name in groups],
        "strategy": str(strategy),
        "window": int(getattr(rule, "window", 20)),
        "learner": learner,
        "budget": budget,
        "batch": batch,
        "warmup": warmup,
        "validation": validation,
        "classes": None if classes is None else list(classes),
        "population": population if population is None or isinstance(population, Mapping) else list(population),
        "seed": seed,
        "refit": as_refit(refit),
        "lease": as_seconds(lease),
        "label": label,
        "group": group,
        "features": None if features is None else list(features),
        **stop_settings(stop, learner),
    }
    header = dict(json.loads(json.dumps(header, default=_plain)))
    make_campaign(header)
    return header


def _plain(value: Any) -> Any:
    """A number or an array of NumPy's as Python's own."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"a campaign cannot keep {value!r} among its settings: use plain values")
    return value.tolist()


def make_campaign(settings: Mapping[str, Any]) -> Campaign:
    """The campaign these settings describe, without examples; it never fits: scores come from the ledger."""
    strategy = parse_strategy(settings["strategy"])[1]
    return Campaign(settings["groups"], strategy, seed=settings["seed"], **{k: settings[k] for k in _SHARED})


def check_change(settings: Mapping[str, Any], used: int, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changed settings in plain values: `budget`, `refit`, `lease`, `stop`."""
    readers: dict[str, Any] = {"budget": int, "refit": as_refit, "lease": as_seconds}
    unknown = sorted(changes.keys() - readers.keys() - {"stop"})
    if unknown:
        raise ValueError(f"cannot change {unknown[0]!r}: only budget, refit, lease and stop can")
    found = {name: readers[name](value) for name, value in changes.items() if name != "stop"}
    if "stop" in changes:
        found |= stop_settings(changes["stop"], settings["learner"])
    if found.get("budget", used) < used:
        raise ValueError(f"a budget of {found['budget']} is less than the {used} labels already used")
    make_campaign({**settings, **found})
    return found
