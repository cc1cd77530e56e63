"""A curated set as a page: self-contained HTML with inline charts, made from plain values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from evenhand.curation import words
from evenhand.notation import JsonObject
from evenhand.report import charts
from evenhand.report.pages import both, environment
from evenhand.report.plane import isolated
from evenhand.simulation.metrics import share

MOST_GROUPS = 30
BINS = 40
WHY = {
    "warm-up": "first examples of every group",
    "forced": "too few examples so far",
    "explore": "drawn at random to explore",
    "score": "largest score",
    "fewest": "fewest examples",
    "population": "drawn by population share",
}
MEASURES = {
    "false_negative_rate": "false negatives",
    "false_positive_rate": "false positives",
    "selection_rate": "said positive",
    "base_rate": "are positive",
    "balanced_accuracy": "balanced accuracy",
    "mean_prediction": "mean probability",
    "calibration_error": "calibration error",
}
"""Further figures of a group, in the order of the page, and the headings of their columns."""


def render(summary: JsonObject) -> str:
    """The report as one self-contained HTML page."""
    templates = environment()
    filters: dict[str, Callable[..., str]] = {
        "percent": lambda share: _kept(words.percent(share)),
        "count": lambda value: f"{value:,}",
        "points": words.points,
        "kept": lambda text: _kept(_marked(text, summary["groups"])),
        "risk": lambda value: _kept(words.value(risk, value)),
        "gain": lambda value: words.gain(risk, value),
    }
    templates.filters |= filters
    risk = summary["risk"]
    rows = [summary["by_group"][z] for z in _worst_first(summary)]
    enough = [row for row in rows if not row["few"]]
    return templates.get_template("report.html").render(
        s=summary,
        rows=enough,
        few=[row for row in rows if row["few"]],
        unit="points" if words.is_rate(risk) else risk,
        best=_best(summary),
        spread=lambda sd: words.spread(risk, sd),
        measures={key: head for key, head in MEASURES.items() if any(row.get(key) is not None for row in rows)},
        counted=words.counted(summary),
        risk_chart=both(partial(_risk_chart, enough[:MOST_GROUPS], summary)),
        accuracy_chart=both(partial(_accuracy_chart, enough[:MOST_GROUPS], summary)),
        hidden=max(len(enough) - MOST_GROUPS, 0),
        mixture_chart=both(partial(_mixture_chart, summary)),
        time_chart=both(partial(_time_chart, summary)),
        why_chart=both(partial(_why_chart, summary)),
        terms_chart=both(partial(_terms_chart, summary)),
    )


def _best(summary: JsonObject) -> list[JsonObject]:
    """The plain model and the best candidates, including the chosen one."""
    candidates = (summary["choice"] or {}).get("candidates") or []
    return [*candidates[:1], *words.best_candidates(candidates)]


def _marked(text: str, names: Sequence[str]) -> str:
    """A sentence in which names in right-to-left scripts are isolated."""
    for name in names:
        if (marked := isolated(name)) != name:
            text = text.replace(name, marked)
    return text


def _kept(text: str) -> str:
    """A text in which a line break never separates a number from its sign or unit."""
    return text.replace(" %", "\u00a0%").replace("± ", "±\u00a0").replace(" ±", "\u00a0±")


def _accuracy_chart(rows: Sequence[JsonObject], summary: JsonObject, width: int) -> str:
    marks = ["this model, 95 % interval for all groups at once", f"always {summary['majority']}"]
    bars = [
        charts.Interval(
            row["group"],
            row["accuracy"],
            row["low"],
            row["high"],
            (row["majority_accuracy"],),
            f"n = {row['count']:,}",
        )
        for row in rows
    ]
    said = "; ".join(f"{row['group']} {words.percent(row['accuracy'])}" for row in rows)
    title = f"Test accuracy of every group, {'worst first' if summary['risk'] == 'error' else 'in the same order'}"
    return charts.intervals(bars, marks, title=title, description=said, x_label="test accuracy", width=width)


def _risk_chart(rows: Sequence[JsonObject], summary: JsonObject, width: int) -> str:
    """What "worst-off" means where it is another rate than the error: accuracy alone would show other groups as the worst."""
    known = [row for row in rows if row["risk_low"] is not None]
    if summary["risk"] == "error" or not words.is_rate(summary["risk"]):
        return ""
    bars = [
        charts.Interval(row["group"], row["risk"], row["risk_low"], row["risk_high"], (), f"n = {row['relevant']:,}")
        for row in known
    ]
    said = "; ".join(f"{row['group']} {words.percent(row['risk'])}" for row in known)
    name = summary["risk_title"]
    title = f"{name[0].upper()}{name[1:]} of every group, worst first"
    return charts.intervals(bars, [], title=title, description=said, x_label=f"{name} on test rows", width=width)


def _worst_first(summary: JsonObject) -> list[int]:
    """The groups by risk, those with few test rows or none last: one order, hence one colour, in every chart."""
    rows = summary["by_group"]
    risk = [-math.inf if row["risk"] is None else row["risk"] for row in rows]
    return sorted(range(len(rows)), key=lambda z: (rows[z]["few"], -risk[z]))


def _mixture_chart(summary: JsonObject, width: int) -> str:
    counts = np.array(summary["rounds"]["counts"])
    if not len(counts):
        return ""
    order = _worst_first(summary)
    names, shares = charts.few_areas([summary["groups"][z] for z in order], share(counts)[:, order].tolist())
    said = "; ".join(f"{name} {words.percent(value)}" for name, value in zip(names, shares[-1], strict=True))
    return charts.areas(
        names,
        summary["rounds"]["labels"],
        shares,
        title="Share of every group in the training rows",
        description=f"At the end: {said}",
        x_label="labels",
        y_label="share of training rows",
        width=width,
    )


def _time_chart(summary: JsonObject, width: int) -> str:
    rounds = summary["rounds"]
    at = [i for i, found in enumerate(rounds["accuracy"]) if found is not None]
    shown = _worst_first(summary)[
        : charts.MOST_AREAS if len(summary["groups"]) == charts.MOST_AREAS else charts.MOST_AREAS - 1
    ]
    series = [
        charts.Line(
            summary["groups"][z],
            [rounds["labels"][i] for i in at],
            [_value(rounds["accuracy"][i][z]) for i in at],
        )
        for z in shown
    ]
    return charts.lines(
        series,
        title="Test accuracy as the labels came in",
        description="A line for each group, for the model fitted on the training rows alone",
        x_label="labels",
        y_label="test accuracy",
        width=width,
    )


def _value(value: float | None) -> float:
    return math.nan if value is None else value


def _binned(rounds: int) -> list[range]:
    """Rounds in at most `BINS` stretches of equal length."""
    edges = np.linspace(0, rounds, min(rounds, BINS) + 1).round().astype(int).tolist()
    return [range(a, b) for a, b in itertools.pairwise(edges)]


def _why_chart(summary: JsonObject, width: int) -> str:
    rounds = summary["rounds"]
    kinds = [kind for kind in WHY if kind in rounds["kind"]]
    bins = _binned(len(rounds["kind"]))
    shares = [[sum(rounds["kind"][i] == kind for i in b) / len(b) for kind in kinds] for b in bins]
    labels = [0, *rounds["labels"]]
    return charts.areas(
        [WHY[kind] for kind in kinds],
        [at for b in bins for at in (labels[b[0]], labels[b[-1] + 1])],
        [row for row in shares for _ in range(2)],
        title="Why a group was chosen",
        description="; ".join(f"{WHY[kind]}: {rounds['kind'].count(kind):,} rounds" for kind in kinds),
        x_label="labels",
        y_label="share of rounds",
        width=width,
    )


def _terms_chart(summary: JsonObject, width: int) -> str:
    rounds = summary["rounds"]
    names = list(
        dict.fromkeys(
            name
            for kind, terms in zip(rounds["kind"], rounds["terms"], strict=True)
            for name in terms
            if kind == "score"
        )
    )
    bins = [[i for i in b if rounds["kind"][i] == "score"] for b in _binned(len(rounds["kind"]))]
    kept = [b for b in bins if b]
    series = [
        charts.Line(
            name,
            [rounds["labels"][b[-1]] for b in kept],
            [float(np.mean([rounds["terms"][i].get(name, math.nan) for i in b])) for b in kept],
        )
        for name in names
    ]
    return charts.lines(
        series,
        title="The score of the chosen group, term by term",
        description="Means over rounds in which the largest score decided",
        x_label="labels",
        y_label="value of the term",
        y_format=lambda value: f"{value:g}",
        width=width,
    )
