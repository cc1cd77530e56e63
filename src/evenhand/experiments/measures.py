"""What is read off the records: shares, worst groups, paired differences, and tidy tables of means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evenhand.arrays import Floats
from evenhand.claims.intervals import paired_difference
from evenhand.engine.run import Record
from evenhand.experiments.base import Number

__all__ = ["Gain", "ceilings", "curves", "final_share", "gain", "mean_number", "paired", "share", "spread_of", "worst"]


def share(record: Record, group: str) -> Floats:
    """π_t of a group, (rounds, trials)."""
    counts = record.counts
    return np.asarray(counts[..., record.groups.index(group)] / np.maximum(counts.sum(axis=-1), 1))


def final_share(record: Record, group: str) -> Floats:
    """The group's share where each trial ended, (trials,)."""
    return np.asarray(share(record, group)[-1])


def worst(record: Record, at: int | None = None) -> Floats:
    """Test accuracy of the worst group, (trials,), at the last round or the first tested one with `at` labels."""
    return np.asarray(record.accuracy[_row(record, at)].min(axis=-1))


def spread_of(record: Record) -> Floats:
    """Accuracy of the best group less that of the worst at the end, (trials,)."""
    last = record.accuracy[-1]
    return np.asarray(last.max(axis=-1) - last.min(axis=-1))


def _row(record: Record, labels: int | None) -> int:
    if labels is None:
        return len(record.labels) - 1
    tested = ~np.isnan(record.accuracy).all(axis=(1, 2)) & (record.labels.min(axis=1) >= labels)
    return int(np.argmax(tested)) if tested.any() else len(record.labels) - 1


class Gain(tuple[float, float, float]):
    """A paired difference: mean and the ends of its 95 % interval, infinite where there is one trial."""

    def __str__(self) -> str:
        mean, low, high = self
        if np.isinf(low):
            return f"{mean:+.4f} in the one trial"
        return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"

    @property
    def above(self) -> bool:
        """Whether the whole interval is above 0."""
        return self[1] > 0

    def within(self, margin: float) -> bool:
        """Whether the whole interval is closer to 0 than a margin."""
        return -margin < self[1] and self[2] < margin


def paired(a: Floats, b: Floats) -> Gain:
    """a − b over the same trials."""
    if len(a) < 2:
        return Gain((float(np.mean(a - b)), -np.inf, np.inf))
    mean, low, high, _ = paired_difference(a, b)
    return Gain((mean, low, high))


def gain(runs: Mapping[str, Record], a: str, b: str, at: int | None = None) -> Gain:
    """Worst-group accuracy of a less that of b, paired over the trials both have."""
    first, second = runs[a], runs[b]
    both, mine, theirs = np.intersect1d(first.trials, second.trials, return_indices=True)
    assert len(both), "the two strategies share no trial"
    return paired(worst(first, at)[mine], worst(second, at)[theirs])


def mean_number(name: str, values: Floats, paper: float | None = None, paper_sd: float | None = None) -> Number:
    """Mean and standard deviation over trials, beside the paper's."""
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Number(name, float(np.mean(values)), sd, paper, paper_sd)


def curves(runs: Mapping[str, Record], **columns: Any) -> pd.DataFrame:
    """Means and standard deviations over trials, a row for each strategy, tested round and group."""
    frames = []
    for label, record in runs.items():
        tested = ~np.isnan(record.accuracy).all(axis=(1, 2))
        rounds = np.flatnonzero(tested)
        # closed forms are known at every round; a hundred points draw the same curve
        rounds = rounds[np.unique(np.linspace(0, len(rounds) - 1, 100).round().astype(int))]
        lowest = record.accuracy[rounds].min(axis=-1)
        for z, group in enumerate(record.groups):
            accuracy, mixture = record.accuracy[rounds, :, z], share(record, group)[rounds]
            values = {"mixture": mixture, "accuracy": accuracy, "worst_accuracy": lowest}
            spread = {f"{k}_{how}": f(v, axis=1) for k, v in values.items() for how, f in _SPREAD.items()}
            about = {"strategy": label, "group": group, "round": rounds + 1}
            labels = {"labels": record.labels[rounds].max(axis=1), "trials": len(record.trials)}
            frames.append(pd.DataFrame({**columns, **about, **labels, **spread}))
    return pd.concat(frames, ignore_index=True)


def _sd(values: Floats, axis: int) -> Floats:
    return np.std(values, axis=axis, ddof=1) if values.shape[axis] > 1 else np.zeros(values.shape[0])


def _mean(values: Floats, axis: int) -> Floats:
    return np.asarray(values.mean(axis=axis))


_SPREAD = {"mean": _mean, "sd": _sd}


def ceilings(source: Any, trials: int = 1) -> dict[str, tuple[float, float]]:
    """For every group: accuracy of a logistic rule trained on its whole pool alone, and on everybody's."""
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
