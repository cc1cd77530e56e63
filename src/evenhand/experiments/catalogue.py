"""The experiments by name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module

from evenhand.errors import InputError
from evenhand.experiments.base import Experiment

_MODULES = (
    "mixture_curve",
    "convergence",
    "over_exploration",
    "adult",
    "german",
    "images",
    "trend",
    "table_final",
)


def experiments() -> dict[str, Experiment]:
    """All experiments by id, in the paper's order."""
    found: list[Experiment] = []
    for name in _MODULES:
        module = import_module(f"evenhand.experiments.{name}")
        found.extend(getattr(module, "EXPERIMENTS", None) or (module.EXPERIMENT,))
    return {experiment.id: experiment for experiment in found}


def choose(ids: Sequence[str]) -> list[Experiment]:
    """The experiments with these ids; all of them if no id is given.

    >>> [experiment.id for experiment in choose(["fig-adult"])]
    ['fig-adult']
    """
    known = experiments()
    for name in ids:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(f"there is no experiment {name!r}: {hint}known are {', '.join(known)}")
    return [experiment for name, experiment in known.items() if not ids or name in ids]
