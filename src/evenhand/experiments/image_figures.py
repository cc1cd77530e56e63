"""What the image experiments share: the rules, the length of a run, and their two kinds of figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from evenhand.engine.run import Record
from evenhand.experiments.base import Experiment, Findings, Runs, measured
from evenhand.experiments.drawing import draw_groups, draw_worst, panels
from evenhand.experiments.measures import curves, final_gap, gains, gains_between, half_gap, mean_number, worst
from evenhand.experiments.study import Study
from evenhand.experiments.verdicts import Above, Test

__all__ = ["AHEAD", "LEAST", "ROUNDS", "RULES", "groups_figure", "image_study", "length", "too_short", "worst_figure"]

RULES = {
    "A_opt": "optimistic:c0=0.1",
    "A_opt+": "optimistic:c0=0.1,c1=0.1,window=20",
    "Greedy": "greedy",
    "ε-greedy": "epsilon-greedy:epsilon=0.1",
    "Uniform": "uniform",
    "Uncurated": "uncurated",
}
ROUNDS, BATCH = 500, 50
LEAST = 100
"""Shorter runs are not judged; longer ones that end before the paper's say so beside the verdict."""
Paper = Mapping[str, tuple[float, float]]
Pairs = tuple[tuple[str, str], ...]
AHEAD: Pairs = (("A_opt", "Uniform"), ("Greedy", "Uniform"))
THROUGHOUT = Test(
    "A_opt is ahead of Uniform throughout",
    tuple(Above(f"A_opt − Uniform, mean of the {half} half of the rounds") for half in ("first", "second")),
)
CLOSER = Test("A_opt keeps the groups closer together", (Above("Uniform's spread less A_opt's"),))


def image_study(source: str, rules: Iterable[str] = RULES) -> Study:
    """500 rounds of two batches of 50, ten trials; at the quick scale 30 rounds and two trials."""
    chosen = {label: RULES[label] for label in rules}
    quick = {"trials": 2, "budget": 30 * 2 * BATCH, "evaluate": 5}
    budget = ROUNDS * 2 * BATCH
    return Study(
        source, chosen, budget, 10, quick, learner="network:update=step", batch=BATCH, warmup=10, evaluate=50, block=1
    )


def too_short(record: Record) -> str:
    """Why a run is too short for a verdict; empty if it is not."""
    return f"fewer than {LEAST} rounds" if len(record.labels) < LEAST else ""


def length(record: Record) -> str:
    """How long the runs are, in words."""
    trials = len(record.trials)
    return f"{len(record.labels)} of the paper's {ROUNDS} rounds, {trials} trial{'s' if trials > 1 else ''}"


def find_worst(name: str, paper: Paper, pairs: Pairs, throughout: bool, runs: Runs, scale: str) -> Findings:
    """Worst-group accuracy against the round."""
    found = runs[name]
    figure, (ax,) = panels([name], "round", "test accuracy of the worst group")
    draw_worst(ax, found, by="round")
    ours, long = found["A_opt"], length(found["A_opt"])
    whole = len(ours.labels) >= ROUNDS
    numbers = [
        mean_number(label, worst(record), *(paper.get(label, ()) if whole else ())) for label, record in found.items()
    ]
    numbers += [mean_number(f"{label} − Uniform", gains(found, label, "Uniform")) for label in ("A_opt", "Greedy")]
    values = {_beats(rule, other): {_end(rule, other): gains(found, rule, other)} for rule, other in pairs}
    if throughout:
        half = ours.labels[-1].max() / 2
        ends = ((0, half), (half, 2 * half))
        parts = [gains_between(found, "A_opt", "Uniform", low, high) for low, high in ends]
        values[THROUGHOUT.claim] = {one.name: part for one, part in zip(THROUGHOUT.comparisons, parts, strict=True)}
    by_claim = {claim: measured(own, too_short(ours), long) for claim, own in values.items()}
    return Findings(figure, curves(found, source=name), numbers, by_claim, [long])


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
    closer = measured({"Uniform's spread less A_opt's": gaps["Uniform"] - gaps["A_opt"]}, too_short(ours), long)
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
        throughout: whether A_opt is claimed to be ahead all the way.
    """
    tests = [
        Test(_beats(rule, other), (Above(_end(rule, other), 0, half_gap(paper, other, rule)),)) for rule, other in pairs
    ]
    tests += [THROUGHOUT] * throughout
    find: Callable[[Runs, str], Findings] = partial(find_worst, name, paper, pairs, throughout)
    return Experiment(id, f"Worst group against round, {name}", says, {name: study}, find, tuple(tests), NOTE)


def groups_figure(id: str, name: str, study: Study) -> Experiment:
    """The experiment that draws every group of a data set."""
    find: Callable[[Runs, str], Findings] = partial(find_groups, name)
    says = "A_opt keeps the accuracies of the groups much closer together than Uniform."
    return Experiment(id, f"Every group, A_opt beside Uniform, {name}", says, {name: study}, find, (CLOSER,), NOTE)


NOTE = (
    "One full-batch step of Adam a round. The paper gives no warmup and no c0 for images: 10 and 0.1. The full length takes "
    "days on a CPU: evenhand reproduce ID --scale paper, on a GPU or a cluster."
)
