"""A strategy's settings on a grid: half of the trials choose the best, the other half says how good it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.errors import InputError
from evenhand.extending import split_name
from evenhand.notation import JsonObject
from evenhand.risks import title_of
from evenhand.simulation.metrics import Gain, is_risk, paired, spread, worst_by
from evenhand.simulation.simulate import simulate
from evenhand.sources.base import Source
from evenhand.strategies import parse_strategy, strategy_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Sweep", "parse_grid", "sweep"]

_HIGHEST = 500
"""More settings than this are most likely a mistake."""


@dataclass(frozen=True)
class Sweep:
    """What a sweep found.

    Attributes:
        table: a row for each setting: its values, and mean and sd of the worst group's accuracy, or risk, in both halves.
        names: the settings that were varied.
        best: the text of the strategy that was best in the first half.
        base: the strategy as given, which the best is compared with.
        advantage: by how much best is better than base in the second half, which had no say in the choice, with its
            95 % interval.
        flattered: the same in the first half, where the best is favoured by having been chosen.
    """

    table: pd.DataFrame
    names: tuple[str, ...]
    best: str
    base: str
    advantage: Gain
    flattered: Gain
    risk: str = "error"

    @property
    def measured(self) -> str:
        """What the table measures, in words."""
        return "accuracy" if self.risk == "error" else title_of(self.risk)

    def plot(self) -> Figure:
        """A heat map over two settings, a line over one; further settings at their best."""
        from evenhand.plotting.sweep import draw

        return draw(self)

    def to_dict(self) -> JsonObject:
        """Plain values, for JSON."""
        return {
            "risk": self.risk,
            "best": self.best,
            "base": self.base,
            "advantage": dict(zip(("mean", "low", "high"), self.advantage, strict=True)),
            "advantage_where_chosen": dict(zip(("mean", "low", "high"), self.flattered, strict=True)),
            "settings": self.table.to_dict(orient="records"),
        }


def parse_grid(texts: Sequence[str]) -> dict[str, list[str]]:
    """`["c0=0.01,0.1", "xi=0.5"]` as names and values.

    >>> parse_grid(["c0=0.01,0.1", "xi=0.5"])
    {'c0': ['0.01', '0.1'], 'xi': ['0.5']}
    """
    grid: dict[str, list[str]] = {}
    for text in texts:
        name, mark, values = text.partition("=")
        found = [value.strip() for value in values.split(",") if value.strip()]
        if not mark or not name.strip() or not found:
            raise InputError(f"cannot read the grid {text!r}: write NAME=VALUE,VALUE,…, e.g. c0=0.01,0.1,1")
        if name.strip() in grid:
            raise InputError(f"the grid has {name.strip()!r} twice")
        grid[name.strip()] = found
    if not grid:
        raise InputError("there is no grid: give --grid NAME=VALUE,VALUE,… once or more, e.g. --grid c0=0.01,0.1,1")
    return grid


def sweep(
    source: Source,
    strategy: str,
    grid: Mapping[str, Sequence[str]],
    *,
    budget: int,
    trials: int = 100,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] | bool = False,
    **settings: Any,
) -> Sweep:
    """Run a strategy with every combination of settings on the same trials.

    Args:
        source: where the examples come from.
        strategy: the strategy as text, with the settings that stay as they are.
        grid: the values to try for each setting.
        budget: labels of a trial.
        trials: how many, at least 4; the first half chooses, the second confirms.
        seed: the same seed gives the same result.
        jobs: how many processes.
        progress: as for `simulate`.
        settings: as for `simulate`.
    """
    if trials < 4:
        raise InputError(f"a sweep needs 4 trials or more, two to choose and two to confirm, not {trials}")
    texts = _texts(strategy, grid)
    base = strategy_text(strategy)
    # the strategy as given is run too, where it is not among the settings: the best one is measured against it
    rules = {strategy_text(text): text for text in [*texts, strategy]}
    given = {"seed": seed, "jobs": jobs, "progress": progress, "trace": "none"} | settings
    chosen = {name: parse_strategy(text)[1] for name, text in rules.items()}
    result = simulate(source, chosen, budget=budget, trials=trials, **given)
    worst = worst_by(result.final, ["strategy", "trial"], result.measured).unstack("strategy")
    if worst.isna().any(axis=None):
        raise InputError(
            "a sweep compares settings on test examples, and a trial has none: give a test part (test=0.3)"
        )
    # so that more is better for a risk too
    sign = -1 if is_risk(result.measured) else 1
    # the best of many settings looks better than it is;
    # trials that had no say in the choice tell by how much
    first, second = worst[worst.index < trials // 2], worst[worst.index >= trials // 2]
    rows = []
    for text, values in texts.items():
        name = strategy_text(text)
        row: JsonObject = {"strategy": name, **values}
        for half, found in (("choosing", first), ("confirming", second)):
            mean, sd = spread(found[name].to_numpy())
            row |= {f"{half}_mean": float(mean), f"{half}_std": float(sd)}
        rows.append(row)
    table = pd.DataFrame(rows)
    best = str(table["strategy"].iloc[int(np.argmax(sign * table["choosing_mean"].to_numpy()))])
    gains = [paired(sign * half[best].to_numpy(), sign * half[base].to_numpy()) for half in (second, first)]
    return Sweep(table, tuple(grid), best, base, gains[0], gains[1], result.settings["risk"])


def _texts(strategy: str, grid: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Every combination as the text of a strategy, with its values."""
    head, tail = split_name(strategy_text(strategy))
    fixed = [item for item in tail.split(",") if tail and item.partition("=")[0].strip() not in grid]
    count = int(np.prod([len(values) for values in grid.values()]))
    if count > _HIGHEST:
        raise InputError(f"the grid has {count} settings, more than {_HIGHEST}: thin it out")
    found = {}
    for values in product(*grid.values()):
        own = dict(zip(grid, values, strict=True))
        found[f"{head}:{','.join([*fixed, *(f'{k}={v}' for k, v in own.items())])}"] = own
    return found
