"""A simulation as a page: self-contained HTML with inline charts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from evenhand.report.charts import Line, areas, lines
from evenhand.report.pages import both, environment
from evenhand.report.plane import percent
from evenhand.risks import title_of
from evenhand.simulation.metrics import worst_by

if TYPE_CHECKING:
    from evenhand.simulation.result import Result

__all__ = ["render"]

_HALF = 490
_MOST_AREAS = 8


def render(result: Result) -> str:
    """The result as one self-contained HTML page."""
    summary = result.summary()
    key = "accuracy" if result.measured == "test_accuracy" else "risk"
    drawn = result.settings["trace"] == "full" and len(result.trace) > 0
    return (
        environment()
        .get_template("simulation.html")
        .render(
            s=summary,
            key=key,
            measure="test accuracy" if key == "accuracy" else f"{title_of(summary['risk'])} on test examples",
            chosen=result.settings["final"] == "chosen",
            differences=[d for d in summary["differences"] if d["metric"] == f"worst_group_{key}"],
            worst_chart=both(partial(_worst, result)) if drawn else "",
            mixtures={label: both(_mixture(result, label), _HALF) for label in result.labels} if drawn else {},
        )
    )


def _means(series: pd.Series) -> pd.DataFrame:
    """Mean and standard deviation over trials, by labels; of rounds with the same number of labels the last counts."""
    last = series.dropna().groupby(level=[0, 1]).last()
    found: pd.DataFrame = last.groupby(level=1).agg(["mean", "std"]).fillna({"std": 0.0})
    return found


def _worst(result: Result, width: int) -> str:
    tested = result.trace.dropna(subset=[result.measured])
    worst = worst_by(tested, ["strategy", "trial", "labels", "round"], result.measured)
    series = []
    for i, label in enumerate(result.labels):
        own = _means(worst[worst.index.get_level_values("strategy") == label].droplevel(["strategy", "round"]))
        mean, sd = own["mean"].tolist(), own["std"].tolist()
        low, high = ([m + sign * s for m, s in zip(mean, sd, strict=True)] for sign in (-1, 1))
        series.append(Line(label, own.index.tolist(), mean, low, high, colour=i))
    rate = result.settings["risk"] != "log"
    return lines(
        series, title="The worst-off group over labels", description="; ".join(f"{s.name} ends at {s.y[-1]:.3f}" for s in series if s.y),
        x_label="labels", y_label="test accuracy" if result.measured == "test_accuracy" else "risk", width=width,
        y_format=percent if rate else (lambda value: f"{value:.2f}"),
    )  # fmt: skip


def _mixture(result: Result, label: str) -> Callable[[int], str]:
    own = result.trace[result.trace["strategy"] == label]
    shares = own.groupby(["labels", "group"], observed=True)["mixture"].mean().unstack("group")
    names = [str(group) for group in result.groups if group in shares]
    table = shares[names].dropna()
    if len(names) > _MOST_AREAS:
        rest = table[names[_MOST_AREAS - 1 :]].sum(axis=1)
        table = table[names[: _MOST_AREAS - 1]].assign(**{"other groups": rest})
        names = [*names[: _MOST_AREAS - 1], f"{len(names) - _MOST_AREAS + 1} other groups"]
    marks, height = list[float](), 0.0
    for group in result.groups[:-1] if result.fair_mixture is not None and len(names) == len(result.groups) else ():
        height += (result.fair_mixture or {})[group]
        marks.append(height)
    return lambda width: areas(
        names, table.index.tolist(), table.to_numpy().tolist(), title=f"Mixture over labels, {label}",
        description="; ".join(f"{n} {percent(v)}" for n, v in zip(names, table.to_numpy()[-1], strict=True)) if len(table) else "",
        x_label="labels", y_label="share of training examples", marks=marks, width=width,
    )  # fmt: skip
