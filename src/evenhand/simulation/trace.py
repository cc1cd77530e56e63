"""The record of a run as tidy tables, and their summary."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from evenhand.claims.paired import paired
from evenhand.engine.run import Record
from evenhand.notation import JsonObject
from evenhand.simulation.metrics import mean_and_sd, share, worst_by
from evenhand.strategies.decision import KINDS

TRACE_COLUMNS = (
    "trial", "strategy", "round", "labels", "group", "chosen", "kind", "count", "mixture", "validation_loss",
    "test_accuracy",
)  # fmt: skip
FINAL_COLUMNS = ("trial", "strategy", "group", "mixture", "test_accuracy", "final_test_accuracy")


METRICS = {
    "worst_group_accuracy": "test_accuracy",
    "final_worst_group_accuracy": "final_test_accuracy",
    "worst_group_risk": "test_risk",
    "final_worst_group_risk": "final_test_risk",
    "chosen_worst_group_accuracy": "chosen_test_accuracy",
    "chosen_worst_group_risk": "chosen_test_risk",
}
"""Metrics, and the column of `final` whose worst group each one is; risk columns exist unless the risk is the error."""


def trace_frame(label: str, record: Record, *, chosen_only: bool = False) -> pd.DataFrame:
    """A row per round and group of every trial in the record, or per round with the chosen group alone."""
    R, T, m = record.counts.shape
    trial, round_, group = np.meshgrid(record.trials, np.arange(1, R + 1), np.arange(m), indexing="ij")
    # trials of a block end at different rounds; what the others wait through never happened in them
    happened = np.broadcast_to((record.chosen >= 0).T[:, :, None], (T, R, m))
    chosen = record.chosen.T[:, :, None] == np.arange(m)
    keep = chosen if chosen_only else happened

    def column(values: Any) -> Any:
        return np.broadcast_to(np.moveaxis(values, 0, 1), (T, R, m))[keep]

    measured = {"test_accuracy": record.accuracy} | ({} if record.risk is None else {"test_risk": record.risk})
    return pd.DataFrame(
        {
            "trial": trial[keep],
            # codes, not text: a trace has millions of rows and a handful of names
            "strategy": pd.Categorical.from_codes(
                np.zeros(int(keep.sum()), dtype=np.int8), categories=pd.Index([label])
            ),
            "round": round_[keep],
            "labels": column(record.labels[:, :, None]),
            "group": pd.Categorical.from_codes(group[keep], categories=pd.Index(record.groups)),
            "chosen": chosen[keep],
            "kind": pd.Categorical.from_codes(column(record.kind[:, :, None]), categories=pd.Index(KINDS)),
            "count": column(record.counts),
            "mixture": column(share(record.counts)),
            "validation_loss": column(record.validation_loss),
        }
        | {name: column(values) for name, values in measured.items()}
    )


def final_frame(label: str, record: Record) -> pd.DataFrame:
    """A row per trial and group: where the run ended, with the model on half of the labels, on all, and the one chosen."""
    T, m = record.final_accuracy.shape
    # trials that ended early repeat their last round with nothing chosen
    last = np.maximum((record.chosen >= 0).sum(axis=0) - 1, 0)
    counts = record.counts[last, np.arange(T)]
    measured = {"test_accuracy": record.accuracy[-1], "final_test_accuracy": record.final_accuracy}
    if record.risk is not None and record.final_risk is not None:
        measured |= {"test_risk": record.risk[-1], "final_test_risk": record.final_risk}
    if record.chosen_accuracy is not None:
        measured["chosen_test_accuracy"] = record.chosen_accuracy
    if record.chosen_risk is not None:
        measured["chosen_test_risk"] = record.chosen_risk
    return pd.DataFrame(
        {
            "trial": np.repeat(record.trials, m),
            "strategy": label,
            "group": np.tile(list(record.groups), T),
            "mixture": share(counts).ravel(),
        }
        | {name: values.ravel() for name, values in measured.items()}
    )


def _metrics(final: pd.DataFrame) -> dict[str, str]:
    """The metrics whose column a result has."""
    return {metric: column for metric, column in METRICS.items() if column in final}


def summarise(final: pd.DataFrame, labels: Sequence[str], seconds: dict[str, float]) -> JsonObject:
    """Means and standard deviations over trials, strategy by strategy."""
    found: JsonObject = {}
    for label in labels:
        own = final[final["strategy"] == label]
        groups = list(dict.fromkeys(own["group"]))
        by_group = {group: own[own["group"] == group] for group in groups}
        found[label] = {
            "mixture": {g: mean_and_sd(rows["mixture"]) for g, rows in by_group.items()},
            **{
                name: {g: mean_and_sd(rows[name]) for g, rows in by_group.items()}
                for name in ("test_accuracy", "test_risk")
                if name in final
            },
            **{name: mean_and_sd(worst_by(own, ["trial"], column)) for name, column in _metrics(final).items()},
            "trials": int(own["trial"].nunique()),
            "seconds": seconds.get(label, 0.0),
        }
    return found


def differences(final: pd.DataFrame, labels: Sequence[str]) -> list[JsonObject]:
    """Paired differences a − b over the trials both have, with 95 % intervals."""
    found = []
    for metric, column in _metrics(final).items():
        worst = {label: worst_by(final[final["strategy"] == label], ["trial"], column) for label in labels}
        for a, b in combinations(labels, 2):
            # trials that both have: a rule that was interrupted earlier must not be compared on easier ones
            gains = (worst[a] - worst[b]).dropna().to_numpy()
            if len(gains) > 1:
                found.append({"a": a, "b": b, "metric": metric, **paired(gains)._asdict(), "trials": len(gains)})
    return found
