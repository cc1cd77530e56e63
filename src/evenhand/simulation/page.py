"""A simulation as a page: self-contained HTML with inline charts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from evenhand.report.charts import Line, areas, few_areas, lines
from evenhand.report.pages import both, environment
from evenhand.report.plane import percent
from evenhand.risks import title_of

if TYPE_CHECKING:
    from evenhand.simulation.result import Result


_HALF = 490


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


def _worst(result: Result, width: int) -> str:
    series = []
    for i, label in enumerate(result.labels):
        own = result.curve(label, result.measured)
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
    known = [str(group) for group in result.groups if group in shares]
    table = shares[known].dropna()
    names, values = few_areas(known, table.to_numpy().tolist())
    marks, height = list[float](), 0.0
    for group in result.groups[:-1] if result.fair_mixture is not None and len(names) == len(result.groups) else ():
        height += (result.fair_mixture or {})[group]
        marks.append(height)
    return lambda width: areas(
        names, table.index.tolist(), values, title=f"Mixture over labels, {label}",
        description="; ".join(f"{n} {percent(v)}" for n, v in zip(names, values[-1], strict=True)) if len(table) else "",
        x_label="labels", y_label="share of training examples", marks=marks, width=width,
    )  # fmt: skip
