"""What steering by misses buys, and what it costs: A_opt by the false negative rate beside A_opt by the error and Uniform.

Every run is tested by both risks, whatever steered it. The trials are paired: the k-th example of a group is the same.
"""

from typing import Any, NamedTuple

import numpy as np

import evenhand as eh
from evenhand.arrays import Floats
from evenhand.engine.run import Settings, each_round
from evenhand.engine.trials import Trials
from evenhand.risks import ERROR, Risk, as_risk
from evidence.common import gain, spread

CLINICS = eh.SyntheticModel1(
    {"u": {0: [0.5], 1: [2.5]}, "v": {0: [-0.5], 1: [1.5]}},
    name="two clinics",
)
"""One measurement, lower by 1 in v: with one threshold for both, u has the false alarms and v the misses."""


class Case(NamedTuple):
    """A source, its positive class, labels of a trial, trials, and how many of them run together."""

    source: Any
    positive: Any
    budget: int
    trials: int
    block: int


def ended(case: Case, strategy: Any, steer: Risk, tested: dict[str, Risk]) -> tuple[Floats, dict[str, Floats]]:
    """The shares of the groups at the end, and test risks by name, (trials, groups) each, of models of half the labels."""
    shares: list[Floats] = []
    risks: dict[str, list[Floats]] = {name: [] for name in tested}
    for start in range(0, case.trials, case.block):
        numbers = range(start, min(start + case.block, case.trials))
        block = Trials(case.source, strategy, eh.Logistic(), Settings(case.budget, evaluate=1, risk=steer), numbers)
        for _ in each_round(block, test=False, test_risk=False):
            pass
        block.engine.refit()
        stream: Any = block.stream
        shares.append(block.engine.counts / block.engine.counts.sum(axis=-1, keepdims=True))
        for name, risk in tested.items():
            measured = risk.for_classes(case.source.classes)
            risks[name].append(stream.accuracies_and_risks(block.memory.models(), measured)[1])
    return np.concatenate(shares), {name: np.concatenate(parts) for name, parts in risks.items()}


def compare(case: Case) -> dict[str, Any]:
    """Worst-group risks at the end of A_opt by either risk, and of Uniform, with paired differences."""
    tested = {"error": ERROR, "fnr": as_risk("fnr", case.positive)}
    steered = {
        "A_opt by fnr": (eh.Optimistic(c0=0.1), tested["fnr"]),
        "A_opt by error": (eh.Optimistic(c0=0.1), ERROR),
        "Uniform": (eh.Uniform(), ERROR),
    }
    rules: dict[str, Any] = {}
    worst: dict[str, dict[str, Floats]] = {}
    for label, (strategy, steer) in steered.items():
        shares, risks = ended(case, strategy, steer, tested)
        worst[label] = {name: np.nanmax(found, axis=1) for name, found in risks.items()}
        mixture = dict(zip(case.source.groups, shares.mean(axis=0).round(4).tolist(), strict=True))
        rules[label] = {"mixture": mixture, "worst": {name: spread(v) for name, v in worst[label].items()}}
    return {
        "budget": case.budget,
        "trials": case.trials,
        "rules": rules,
        # above 0: steering by misses leaves the worst-off group with less of this risk
        "less": {
            other: {name: gain(worst[other][name], worst["A_opt by fnr"][name]) for name in tested}
            for other in ("A_opt by error", "Uniform")
        },
    }


def measure(small: bool) -> dict[str, Any]:
    """The synthetic source, and Adult."""
    if small:
        return {"clinics": compare(Case(CLINICS, 1, 60, 2, 2))}
    adult = Case(eh.datasets.load("adult"), ">50K", 1000, 32, 8)
    return {"clinics": compare(Case(CLINICS, 1, 400, 200, 100)), "adult": compare(adult)}
