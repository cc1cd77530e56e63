"""table-final: accuracy of the worst group at the end, on every data set that is available."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from evenhand.experiments import adult, german, images
from evenhand.experiments.base import Experiment, Findings, Needs, Runs
from evenhand.experiments.measures import gains, mean_number, worst
from evenhand.experiments.verdicts import Above, Test

_IMAGES = (images.UTKFACE, images.FASHION, images.CIFAR)
STUDIES = {name: images.STUDIES[name] for name in _IMAGES} | {"Adult": adult.STUDY, "German": german.STUDY}
PAPER = images.PAPER | {"Adult": adult.PAPER, "German": german.PAPER}
NEEDS = Needs(paper=True, rounds=images.NEEDS.rounds)
RULES = ("A_opt", "Greedy", "Uniform", "Uncurated")
JUDGED = {"German": german.JUDGED}
"""Labels of a data set's rows, where they are not those of the end."""
TESTS = {
    name: Test(
        f"{name}: A_opt ends ahead of Uniform{f', at {JUDGED[name]} labels' if name in JUDGED else ''}",
        # named as in the figure of the data set: the values are the same
        (Above(f"A_opt − Uniform, {JUDGED[name]} labels" if name in JUDGED else "A_opt − Uniform at the end"),),
        study=name,
    )
    for name in STUDIES
}


def find(runs: Runs, scale: str) -> Findings:
    """A row for every data set that was run; images that were cut short say so."""
    numbers, rows, by_claim = [], [], {}
    for name, found in runs.items():
        rounds = len(found["A_opt"].labels)
        # a shorter run of images ends at a lower accuracy: its number must not stand beside the paper's unmarked
        cut = name in _IMAGES and rounds < images.ROUNDS
        at = JUDGED.get(name)
        shown = f"{name}, round {rounds}" if cut else f"{name}, {at} labels" if at else name
        for label in (rule for rule in RULES if rule in found):
            number = mean_number(f"{shown}, {label}", worst(found[label], at), *PAPER[name].get(label, ()))
            numbers.append(number)
            about = {"data": shown, "strategy": label, "labels": at or int(found[label].labels[-1].max())}
            own = {"trials": len(found[label].trials), "mean": number.measured, "sd": number.sd}
            rows.append(about | own | {"paper_mean": number.paper, "paper_sd": number.paper_sd})
        test, note = TESTS[name], f"{rounds} of the paper's {images.ROUNDS} rounds" if cut else ""
        ahead = {test.comparisons[0].name: gains(found, "A_opt", "Uniform", at)}
        by_claim[test.claim] = NEEDS.measured(ahead, scale, rounds, note)
    table = pd.DataFrame(rows)
    return Findings(draw(table), table, numbers, by_claim)


def draw(table: pd.DataFrame) -> Figure:
    """The table as a picture."""
    cells = []
    for name, rows in table.groupby("data", sort=False):
        means = {row.strategy: f"{row.mean:.3f}{_sd(row)}\n({_paper(row)})" for row in rows.itertuples()}
        theirs = PAPER[str(name).partition(", ")[0]]
        cells.append([str(name).replace(", ", "\n"), *(means.get(rule, _not_run(theirs, rule)) for rule in RULES)])
    figure = Figure(figsize=(8.5, 0.8 + 0.6 * len(cells)), layout="constrained")
    ax = figure.subplots()
    ax.axis("off")
    ax.set_title("Worst-group accuracy at the end (the paper's below)", fontsize=11)
    drawn = ax.table(cells, colLabels=["", *RULES], loc="center", cellLoc="center")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    drawn.scale(1, 2.4)
    return figure


def _not_run(theirs: Mapping[str, tuple[float, float]], rule: str) -> str:
    return f"not run\n(paper {theirs[rule][0]:.3f} ± {theirs[rule][1]:.3f})"


def _sd(row: Any) -> str:
    return "" if pd.isna(row.sd) else f" ± {row.sd:.3f}"


def _paper(row: Any) -> str:
    mean, sd = row.paper_mean, row.paper_sd
    return "paper: none" if pd.isna(mean) else f"paper {mean:.3f} ± {sd:.3f}"


EXPERIMENT = Experiment(
    id="table-final",
    title="Final worst-group accuracy",
    paper="The adaptive rules are ahead of Uniform on all five data sets.",
    studies=STUDIES,
    find=find,
    tests=tuple(TESTS.values()),
    needs=NEEDS,
    optional=True,
)
