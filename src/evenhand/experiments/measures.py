"""What the figures take from records, by `simulation.metrics`, and tidy tables of means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Floats, Ints
from evenhand.claims.paired import Interval, paired
from evenhand.engine.run import Record
from evenhand.experiments.base import Number
from evenhand.simulation import metrics


def share(record: Record, group: str) -> Floats:
    """π_t of a group, (rounds, trials)."""
    return metrics.share(record.counts)[..., record.groups.index(group)]


def final_share(record: Record, group: str) -> Floats:
    """The group's share where each trial ended, (trials,)."""
    return np.asarray(share(record, group)[-1])


def worst(record: Record, at: int | None = None) -> Floats:
    """Test accuracy of the worst group, (trials,), at the last round or the first tested one with `at` labels."""
    return metrics.worst(record.accuracy[_row(record, at)])


def final_gap(record: Record) -> Floats:
    """Accuracy of the best group minus that of the worst at the end, (trials,)."""
    return metrics.gap(record.accuracy[-1])


def tested_rounds(record: Record) -> Ints:
    """The rounds after which test accuracy was measured."""
    return np.flatnonzero(~np.isnan(record.accuracy).all(axis=(1, 2)))


def _row(record: Record, labels: int | None) -> int:
    rounds = tested_rounds(record)
    # the slowest trial: a mean over trials at other budgets would mix them
    enough = rounds[record.labels[rounds].min(axis=1) >= labels] if labels is not None else rounds[:0]
    return int(enough[0]) if len(enough) else len(record.labels) - 1


def gains(runs: Mapping[str, Record], a: str, b: str, at: int | None = None) -> Floats:
    """Worst-group accuracy of a minus that of b in every trial that both have."""
    first, second = (pd.Series(worst(runs[label], at), index=runs[label].trials) for label in (a, b))
    found = (first - second).dropna().to_numpy()
    assert len(found), "the two strategies share no trial"
    return np.asarray(found)


def gains_between(runs: Mapping[str, Record], a: str, b: str, low: float, high: float) -> Floats:
    """The same as every trial's mean over the tested rounds with `low` to `high` labels."""
    rounds, found = _gain_curves(runs, a, b)
    # a block of trials spends its labels in step; the slowest says where a round stands
    labels = runs[a].labels[rounds].min(axis=1)
    chosen = (labels > low) & (labels <= high)
    # a run this short has no such rounds: its last round is used, and no verdict rests on it
    return np.asarray(found[chosen].mean(axis=0) if chosen.any() else found[-1])


def leads(runs: Mapping[str, Record], rule: str, base: str) -> tuple[Ints, list[Interval]]:
    """The rounds that both rules tested, and how far the rule's worst group was ahead of the base's in each."""
    rounds, found = _gain_curves(runs, rule, base)
    return rounds, [paired(one) for one in found]


def _gain_curves(runs: Mapping[str, Record], a: str, b: str) -> tuple[Ints, Floats]:
    """Rounds that both tested; worst-group accuracy of a minus that of b there, in every trial that both have."""
    known = [np.isfinite(runs[label].accuracy).all(axis=(1, 2)) for label in (a, b)]
    rounds = np.flatnonzero(known[0] & known[1])
    first, second = (
        pd.DataFrame(metrics.worst(runs[label].accuracy[rounds]), columns=runs[label].trials) for label in (a, b)
    )
    return rounds, (first - second).dropna(axis="columns").to_numpy()


def half_gap(paper: Mapping[str, tuple[float, float]]) -> float:
    """Half of A_opt's lead over Uniform in the paper: rules that differ by less are comparable."""
    return round((paper["A_opt"][0] - paper["Uniform"][0]) / 2, 6)


def mean_number(name: str, values: Floats, paper: float | None = None, paper_sd: float | None = None) -> Number:
    """Mean and standard deviation over trials, together with the paper's."""
    mean, sd = map(float, metrics.spread(values))
    return Number(name, mean, sd if len(values) > 1 else None, paper, paper_sd)


def curves(runs: Mapping[str, Record], base: str | None = None, **columns: str) -> pd.DataFrame:
    """Means and standard deviations over trials, a row for each strategy, tested round and group.

    Args:
        runs: what was found, by strategy.
        base: a strategy that the others' worst group is compared with; paired, with 95 % intervals.
        columns: the same in every row.
    """
    frames = []
    for label, record in runs.items():
        rounds = tested_rounds(record)
        # closed forms are known at every round; a hundred points draw the same curve
        rounds = rounds[np.unique(np.linspace(0, len(rounds) - 1, 100).round().astype(int))]
        lowest = metrics.worst(record.accuracy[rounds])
        for z, group in enumerate(record.groups):
            accuracy, mixture = record.accuracy[rounds, :, z], share(record, group)[rounds]
            values = {"mixture": mixture, "accuracy": accuracy, "worst_accuracy": lowest}
            pairs = {name: zip(("mean", "sd"), metrics.spread(found), strict=True) for name, found in values.items()}
            spread = {f"{name}_{how}": value for name, pair in pairs.items() for how, value in pair}
            about = {"strategy": label, "group": group, "round": rounds + 1}
            labels = {"labels": record.labels[rounds].max(axis=1), "trials": len(record.trials)}
            ahead = _lead_columns(runs, label, base, rounds) if base else {}
            frames.append(pd.DataFrame({**columns, **about, **labels, **spread, **ahead}))
    return pd.concat(frames, ignore_index=True)


def _lead_columns(runs: Mapping[str, Record], rule: str, base: str, rounds: Ints) -> dict[str, Floats]:
    tested, found = leads(runs, rule, base)
    by_round = pd.DataFrame(found, index=tested).reindex(rounds)
    return {f"ahead_{how}": by_round[how].to_numpy() for how in Interval._fields}


def ceilings(source: Any, trials: int = 1) -> dict[str, tuple[float, float]]:
    """For every group, the accuracy of a logistic rule trained on its whole pool alone, and on all groups' pools."""
    from evenhand.engine.memories.rows import stack
    from evenhand.learners import Logistic

    alone, together = [], []
    for trial in range(trials):
        stream = source.open(0, [trial])
        size = stream.left()[0]
        draws = [stream.draw(np.array([z]), size[[z]]) for z in range(len(size))]
        fit = [Logistic().fit(draw.X, source.classes[draw.y]) for draw in draws]
        alone.append([stream.accuracies([model])[0, z] for z, model in enumerate(fit)])
        y = np.concatenate([draw.y for draw in draws])
        everything = Logistic().fit(stack([draw.X for draw in draws]), source.classes[y])
        together.append(stream.accuracies([everything])[0])
    pairs = zip(np.mean(alone, axis=0), np.mean(together, axis=0), strict=True)
    return {group: (float(a), float(b)) for group, (a, b) in zip(source.groups, pairs, strict=True)}
