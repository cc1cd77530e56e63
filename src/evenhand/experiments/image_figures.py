"""What the image experiments share: the rules, the length of a run, and their two kinds of figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

from evenhand.engine.run import Record
from evenhand.experiments.base import Experiment, Findings, Needs, Runs
from evenhand.experiments.drawing import PAIRED, draw_ahead, draw_groups, draw_worst, panels
from evenhand.experiments.measures import curves, final_gap, gains, gains_between, mean_number, worst
from evenhand.experiments.study import Study
from evenhand.experiments.verdicts import Above, Test

__all__ = ["AHEAD", "NEEDS", "ROUNDS", "RULES", "groups_figure", "image_study", "length", "worst_figure"]

RULES = {
    "A_opt": "optimistic:c0=0.1",
    "A_opt+": "optimistic:c0=0.1,c1=0.1,window=20",
    "Greedy": "greedy",
    "ε-greedy": "epsilon-greedy:epsilon=0.1",
    "Uniform": "uniform",
    "Uncurated": "uncurated",
}
ROUNDS, BATCH = 500, 50
NEEDS = Needs(rounds=100)
"""Shorter runs are not judged; longer ones that end before the paper's say so beside the verdict."""
Paper = Mapping[str, tuple[float, float]]
Pairs = tuple[tuple[str, str], ...]
AHEAD: Pairs = (("A_opt", "Uniform"), ("Greedy", "Uniform"))
THROUGHOUT = {
    rule: Test(
        f"{rule} is ahead of Uniform throughout",
        tuple(Above(f"{rule} − Uniform, mean of the tested rounds of the {half} half") for half in ("first", "second")),
    )
    for rule, _ in AHEAD
}
FAIRER = "As for FashionMNIST: A_opt improves fairness between the groups, compared with Uniform."
CLOSER = Test("A_opt keeps the groups closer together", (Above("Uniform's spread less A_opt's"),))


def image_study(source: str, rules: Iterable[str] = RULES) -> Study:
    """500 rounds of two batches of 50, ten trials; at the quick scale 30 rounds and two trials."""
    chosen = {label: RULES[label] for label in rules}
    quick = {"trials": 2, "budget": 30 * 2 * BATCH, "evaluate": 5}
    budget = ROUNDS * 2 * BATCH
    return Study(
        source, chosen, budget, 10, quick, learner="network:update=step", batch=BATCH, warmup=10, evaluate=50, block=1
    )


def length(record: Record) -> str:
    """How long the runs are, in words."""
    trials = len(record.trials)
    return f"{len(record.labels)} of the paper's {ROUNDS} rounds, {trials} trial{'s' if trials > 1 else ''}"


def tested(found: Mapping[str, Record]) -> str:
    """The rounds that all runs tested, in words."""
    rounds = np.flatnonzero(np.all([np.isfinite(one.accuracy).all(axis=(1, 2)) for one in found.values()], axis=0)) + 1
    return f"in {len(rounds)} rounds" if len(rounds) > 10 else f"in rounds {', '.join(map(str, rounds))}"


def find_worst(name: str, paper: Paper, pairs: Pairs, throughout: bool, runs: Runs, scale: str) -> Findings:
    """Worst-group accuracy against the round."""
    found = runs[name]
    figure, (ax, ahead) = panels([name, PAIRED], "round", "test accuracy of the worst group", sharey=False)
    draw_worst(ax, found, by="round")
    draw_ahead(ahead, found, "Uniform", by="round")
    ours, long = found["A_opt"], length(found["A_opt"])
    whole = len(ours.labels) >= ROUNDS
    numbers = [
        mean_number(label, worst(record), *(paper.get(label, ()) if whole else ())) for label, record in found.items()
    ]
    numbers += [mean_number(f"{label} − Uniform", gains(found, label, "Uniform")) for label in ("A_opt", "Greedy")]
    values = {_beats(rule, other): {_end(rule, other): gains(found, rule, other)} for rule, other in pairs}
    by_claim = {claim: NEEDS.measured(own, scale, len(ours.labels), long) for claim, own in values.items()}
    if throughout:
        half = ours.labels[-1].max() / 2
        note = f"{long}, tested {tested(found)}"
        for rule, test in THROUGHOUT.items():
            parts = [gains_between(found, rule, "Uniform", low, low + half) for low in (0, half)]
            own = {one.name: part for one, part in zip(test.comparisons, parts, strict=True)}
            by_claim[test.claim] = NEEDS.measured(own, scale, len(ours.labels), note)
    return Findings(figure, curves(found, "Uniform", source=name), numbers, by_claim, [long])


def _beats(rule: str, other: str) -> str:
    return f"{rule} beats {other} on the worst group"


def _end(rule: str, other: str) -> str:
    return f"{rule} − {other} at the end"


def find_groups(name: str, runs: Runs, scale: str) -> Findings:
    """Every group's accuracy, A_opt compared with Uniform."""
    found = {label: runs[name][label] for label in ("A_opt", "Uniform")}
    figure, axes = panels(list(found), "round", "test accuracy")
    for ax, record in zip(axes, found.values(), strict=True):
        draw_groups(ax, record, by="round")
    gaps = {label: final_gap(record) for label, record in found.items()}
    numbers = [mean_number(f"best less worst group, {label}", values) for label, values in gaps.items()]
    ours, long = found["A_opt"], length(found["A_opt"])
    smaller = {"Uniform's spread less A_opt's": gaps["Uniform"] - gaps["A_opt"]}
    closer = NEEDS.measured(smaller, scale, len(ours.labels), long)
    return Findings(figure, curves(found, source=name), numbers, {CLOSER.claim: closer}, [long])


def worst_figure(
    id: str, name: str, study: Study, paper: Paper, says: str, pairs: Pairs = AHEAD, throughout: bool = False
) -> Experiment:
    """The experiment that draws the worst group of a data set.

    Args:
        id: its name on the command line.
        name: the data set's.
        study: what is run.
        paper: the paper's numbers at the end, by rule.
        says: what the paper says of it.
        pairs: who is claimed to be ahead of whom at the end.
        throughout: whether the adaptive rules are claimed to be ahead all the way.
    """
    tests = [Test(_beats(rule, other), (Above(_end(rule, other)),)) for rule, other in pairs]
    tests += THROUGHOUT.values() if throughout else ()
    find: Callable[[Runs, str], Findings] = partial(find_worst, name, paper, pairs, throughout)
    return Experiment(id, f"Worst group against round, {name}", says, {name: study}, find, tuple(tests), NEEDS, NOTE)


def groups_figure(id: str, name: str, study: Study, says: str = FAIRER) -> Experiment:
    """The experiment that draws every group of a data set; `says` is what the paper says of it."""
    find: Callable[[Runs, str], Findings] = partial(find_groups, name)
    return Experiment(
        id, f"Every group, A_opt beside Uniform, {name}", says, {name: study}, find, (CLOSER,), NEEDS, NOTE
    )


NOTE = (
    "One full-batch step of Adam a round. The paper gives no warmup and no c0 for images: 10 and 0.1. The full length takes "
    "days on a CPU: evenhand reproduce ID --scale paper, on a GPU or a cluster."
)
