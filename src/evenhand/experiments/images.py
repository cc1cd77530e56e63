"""fig-fashion…, fig-cifar…, fig-utkface…: the image data sets, their worst group, every group, and one mixture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

from evenhand.engine.run import Record
from evenhand.experiments.base import Experiment, Findings, Needs, Runs
from evenhand.experiments.drawing import PAIRED, draw_ahead, draw_groups, draw_mixture, draw_worst, panels
from evenhand.experiments.measures import curves, final_gap, final_share, gains, gains_between, mean_number, worst
from evenhand.experiments.study import Study
from evenhand.experiments.verdicts import Above, Test

RULES = {
    "A_opt": "optimistic:c0=0.1",
    "A_opt+": "optimistic:c0=0.1,c1=0.1,window=20",
    "Greedy": "greedy",
    "ε-greedy": "epsilon-greedy:epsilon=0.1",
    "Uniform": "uniform",
    "Uncurated": "uncurated",
}
FASHION, CIFAR, UTKFACE = "FashionMNIST", "CIFAR-10", "UTKFace"
PAPER = {
    FASHION: {
        "A_opt": (0.936, 0.004),
        "Greedy": (0.924, 0.010),
        "Uniform": (0.893, 0.002),
        "Uncurated": (0.893, 0.002),
    },
    CIFAR: {"A_opt": (0.743, 0.004), "Greedy": (0.742, 0.005), "Uniform": (0.726, 0.010), "Uncurated": (0.726, 0.010)},
    UTKFACE: {
        "A_opt": (0.946, 0.003),
        "Greedy": (0.946, 0.012),
        "Uniform": (0.919, 0.008),
        "Uncurated": (0.933, 0.007),
    },
}
"""The paper's worst-group accuracy at the end, mean and standard deviation."""
ROUNDS, BATCH = 500, 50
NEEDS = Needs(rounds=100)
"""Shorter runs are not judged; longer ones that end before the paper's say so beside the verdict."""
Pairs = tuple[tuple[str, str], ...]
AHEAD: Pairs = (("A_opt", "Uniform"), ("Greedy", "Uniform"))
THROUGHOUT = {
    rule: Test(
        f"{rule} is ahead of Uniform throughout",
        tuple(Above(f"{rule} − Uniform, mean of the tested rounds of the {half} half") for half in ("first", "second")),
    )
    for rule, _ in AHEAD
}
CLOSER = Test("A_opt keeps the groups closer together", (Above("Uniform's spread less A_opt's"),))
HARD = ("T-shirt/Shirt", "Pullover/Coat")
MAJORITY = Test(
    "The vast majority of the examples are T-shirt/Shirt and Pullover/Coat", (Above("their share together", 2 / 3),)
)
NOTE = (
    "One full-batch step of Adam a round. The paper gives no warmup and no c0 for images: 10 and 0.1. The full length takes "
    "days on a CPU: evenhand reproduce ID --scale paper, on a GPU or a cluster."
)


def image_study(source: str, rules: Iterable[str] = RULES) -> Study:
    """500 rounds of two batches of 50, ten trials; at the quick scale 30 rounds and two trials."""
    chosen = {label: RULES[label] for label in rules}
    quick = {"trials": 2, "budget": 30 * 2 * BATCH, "evaluate": 5}
    budget = ROUNDS * 2 * BATCH
    return Study(
        source, chosen, budget, 10, quick, learner="network:update=step", batch=BATCH, warmup=10, evaluate=50, block=1
    )


STUDIES = {
    FASHION: image_study("fashion-mnist"), CIFAR: image_study("cifar10"), UTKFACE: image_study("utkface", PAPER[UTKFACE]),
}  # fmt: skip


def length(record: Record) -> str:
    """How long the runs are, in words."""
    trials = len(record.trials)
    return f"{len(record.labels)} of the paper's {ROUNDS} rounds, {trials} trial{'s' if trials > 1 else ''}"


def tested(found: Mapping[str, Record]) -> str:
    """The rounds that all runs tested, in words."""
    rounds = np.flatnonzero(np.all([np.isfinite(one.accuracy).all(axis=(1, 2)) for one in found.values()], axis=0)) + 1
    return f"in {len(rounds)} rounds" if len(rounds) > 10 else f"in rounds {', '.join(map(str, rounds))}"


def find_worst(name: str, pairs: Pairs, throughout: bool, runs: Runs, scale: str) -> Findings:
    """Worst-group accuracy against the round."""
    found = runs[name]
    figure, (ax, ahead) = panels([name, PAIRED], "round", "test accuracy of the worst group", sharey=False)
    draw_worst(ax, found, by="round")
    draw_ahead(ahead, found, "Uniform", by="round")
    ours, long = found["A_opt"], length(found["A_opt"])
    whole = len(ours.labels) >= ROUNDS
    numbers = [
        mean_number(label, worst(record), *(PAPER[name].get(label, ()) if whole else ()))
        for label, record in found.items()
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
        draw_groups(ax, record)
    gaps = {label: final_gap(record) for label, record in found.items()}
    numbers = [mean_number(f"best less worst group, {label}", values) for label, values in gaps.items()]
    ours, long = found["A_opt"], length(found["A_opt"])
    smaller = {"Uniform's spread less A_opt's": gaps["Uniform"] - gaps["A_opt"]}
    closer = NEEDS.measured(smaller, scale, len(ours.labels), long)
    return Findings(figure, curves(found, source=name), numbers, {CLOSER.claim: closer}, [long])


def find_mixture(runs: Runs, scale: str) -> Findings:
    """The mixture A_opt builds on FashionMNIST."""
    record = runs[FASHION]["A_opt"]
    figure, (ax,) = panels([FASHION], "round", "share of each pair, A_opt")
    draw_mixture(ax, record)
    shares = {group: final_share(record, group) for group in record.groups}
    numbers = [mean_number(f"final share of {group}", values) for group, values in shares.items()]
    together = {"their share together": shares[HARD[0]] + shares[HARD[1]]}
    both = NEEDS.measured(together, scale, len(record.labels), length(record))
    table = curves({"A_opt": record}, source=FASHION)
    return Findings(figure, table, numbers, {MAJORITY.claim: both}, [length(record)])


def worst_figure(id: str, name: str, says: str, pairs: Pairs = AHEAD, throughout: bool = False) -> Experiment:
    """The experiment that draws the worst group of a data set.

    Args:
        id: its name on the command line.
        name: the data set's.
        says: what the paper says of it.
        pairs: who is claimed to be ahead of whom at the end.
        throughout: whether the adaptive rules are claimed to be ahead all the way.
    """
    tests = [Test(_beats(rule, other), (Above(_end(rule, other)),)) for rule, other in pairs]
    tests += THROUGHOUT.values() if throughout else ()
    find: Callable[[Runs, str], Findings] = partial(find_worst, name, pairs, throughout)
    return _experiment(id, f"Worst group against round, {name}", name, says, find, *tests)


def groups_figure(id: str, name: str, says: str) -> Experiment:
    """The experiment that draws every group of a data set; `says` is what the paper says of it."""
    find: Callable[[Runs, str], Findings] = partial(find_groups, name)
    return _experiment(id, f"Every group, A_opt beside Uniform, {name}", name, says, find, CLOSER)


def _experiment(
    id: str, title: str, name: str, says: str, find: Callable[[Runs, str], Findings], *tests: Test
) -> Experiment:
    return Experiment(id, title, says, {name: STUDIES[name]}, find, tests, NEEDS, NOTE)


FAIRER = "As for FashionMNIST: A_opt improves fairness between the groups, compared with Uniform."
GAP = "A clear gap between the adaptive rules and the others. Every test image of the paper is in its training file."
EXPERIMENTS = (
    worst_figure("fig-fashion", FASHION, "Both adaptive rules outperform Uniform throughout.", throughout=True),
    groups_figure(
        "fig-fashion-groups", FASHION, "A_opt keeps a much smaller spread of accuracies over the groups than Uniform."
    ),
    _experiment(
        "fig-fashion-mixture",
        "The mixture over time, FashionMNIST",
        FASHION,
        "The vast majority of the examples go to (T-shirt, Shirt) and (Pullover, Coat).",
        find_mixture,
        MAJORITY,
    ),
    worst_figure("fig-cifar", CIFAR, "The adaptive rules improve on Uniform in the worst case."),
    groups_figure("fig-cifar-groups", CIFAR, FAIRER),
    worst_figure("fig-utkface", UTKFACE, GAP, (*AHEAD, ("A_opt", "Uncurated"))),
    groups_figure("fig-utkface-groups", UTKFACE, FAIRER),
)
