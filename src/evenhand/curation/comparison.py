"""The run compared with other rules: the same trials and splits, all labels, the model one would deploy."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from evenhand.claims.paired import paired, together
from evenhand.notation import JsonObject
from evenhand.simulation.metrics import mean_and_sd


def compared(risks: pd.DataFrame, rules: Sequence[str], groups: Sequence[str]) -> JsonObject:
    """Means over trials of every rule and group, and how much better the first rule serves the worst-off.

    The worst-off group is the one with the largest risk in the trial among `groups`, those with enough test rows. A
    difference is how much lower that risk is under the first rule: above 0, it serves the worst-off better. The
    intervals of the differences hold for all of them at once (each at 5 % divided by their number).

    Args:
        risks: `Result.deployed`: a row for each trial, strategy and group.
        rules: the strategies; the first one is compared with every other.
        groups: which groups count.
    """
    known = risks[risks["group"].isin(list(groups)) & risks["risk"].notna()]
    tables = {rule: _by_trial(known[known["strategy"] == rule]) for rule in rules}
    kept = [rule for rule, table in tables.items() if len(table)]
    # every figure uses only the trials that all rules have finished
    trials = sorted(set.intersection(*(set(map(int, tables[rule].index)) for rule in kept))) if kept else []
    found = {rule: tables[rule].loc[trials] for rule in kept}
    worst = {rule: table.max(axis="columns") for rule, table in found.items()}
    # an interrupted comparison may lack the run's own rule: there is then nothing to compare the others with
    others = kept[1:] if kept[:1] == list(rules[:1]) else []
    level = together(len(others))
    return {
        "trials": len(trials),
        "rules": kept,
        "groups": list(groups),
        "worst": {rule: mean_and_sd(worst[rule]) for rule in kept},
        "by_group": {rule: {str(g): mean_and_sd(table[g]) for g in table} for rule, table in found.items()},
        "level": level,
        "differences": [
            {"a": kept[0], "b": other, **paired(worst[other], worst[kept[0]], level)._asdict()}
            for other in others
            if len(trials) > 1
        ],
        "by_trial": [
            {"trial": trial, "strategy": rule, "by_group": dict(zip(names, values, strict=True))}
            for rule, table in found.items()
            for names in [list(map(str, table.columns))]
            for trial, values in zip(trials, table.to_numpy().tolist(), strict=True)
        ],
    }


def no_comparison() -> JsonObject:
    """The comparison in a report without other rules."""
    return compared(pd.DataFrame(columns=["trial", "strategy", "group", "risk"]), (), ())


def _by_trial(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each trial, a column for each group; trials that lack a group are left out."""
    return rows.pivot_table(index="trial", columns="group", values="risk", observed=True, sort=False).dropna()
