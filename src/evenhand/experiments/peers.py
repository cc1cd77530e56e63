"""peers: ε-greedy over a fixed pool with one stochastic gradient step a round, beside our strategies."""

from __future__ import annotations

import pandas as pd

from evenhand.arrays import Floats
from evenhand.experiments.base import Experiment, Findings, Needs, Runs
from evenhand.experiments.drawing import draw_worst, panels
from evenhand.experiments.measures import curves, final_share, gains, mean_number, worst
from evenhand.experiments.study import Study
from evenhand.experiments.verdicts import Above, Test

RULES = {
    "A_opt": "optimistic:c0=0.1",
    "ε-greedy": "epsilon-greedy:epsilon=0.1",
    "peers": "peers:epsilon=0.1,rate=0.1,passes=1",
    "peers, 10 × the rounds": "peers:epsilon=0.1,rate=0.1,passes=10",
}
TITLES = {"I": "instance I", "II": "instance II", "adult": "Adult"}
STUDIES = {
    "I": Study("synthetic1:I", RULES, budget=1000, trials=500, quick={"trials": 30}),
    "II": Study("synthetic1:II", RULES, budget=1000, trials=500, quick={"trials": 30}),
    "adult": Study("adult", RULES, budget=2000, trials=50, quick={"budget": 500}, block=5),
}

THEIRS = [label for label in RULES if label.startswith("peers")]
NEEDS = Needs(trials=10)
MARGIN = 0.01
"""Not worse means: by less than a point."""
NOT_WORSE = Test(
    "For the same labels, refitting on a grown set is not worse, by a point or more, than their steps over a fixed pool",
    tuple(Above(f"{title}: A_opt − {label}", -MARGIN) for title in TITLES.values() for label in THEIRS),
)


def find(runs: Runs, scale: str) -> Findings:
    """Worst-group accuracy of both for the same number of labels."""
    figure, axes = panels(
        [TITLES[name] for name in runs],
        "round (the peers have paid for all labels at the start)",
        "accuracy of the worst group",
        sharey=False,
    )
    numbers, tables = [], []
    ahead: dict[str, Floats] = {}
    for ax, (name, found) in zip(axes, runs.items(), strict=True):
        rounds = len(found["A_opt"].labels)
        # the form with ten times the rounds has another axis: its end is in the numbers
        draw_worst(ax, {label: record for label, record in found.items() if len(record.labels) == rounds}, by="round")
        if name != "adult":
            # the rules differ by less than a point at the end, which a whole axis would hide
            ax.set_ylim(0.8, None)
        tables.append(curves(found, source=STUDIES[name].source))
        for label, record in found.items():
            numbers.append(mean_number(f"{TITLES[name]}: worst group, {label}", worst(record)))
            if name != "adult":
                numbers.append(mean_number(f"{TITLES[name]}: share of u, {label}", final_share(record, "u")))
        ahead |= {f"{TITLES[name]}: A_opt − {label}": gains(found, "A_opt", label) for label in THEIRS}
    by_claim = {NOT_WORSE.claim: NEEDS.measured(ahead, scale)}
    return Findings(figure, pd.concat(tables, ignore_index=True), numbers, by_claim)


EXPERIMENT = Experiment(
    id="peers",
    title="The peers' rule beside ours",
    paper="Not a figure of the paper: Abernethy et al.'s rule in its own form, on the same trials and labels.",
    studies=STUDIES,
    find=find,
    tests=(NOT_WORSE,),
    needs=NEEDS,
    note="Theirs buys all labels first, by the population's shares; step size 0.1, which nobody tuned, 0-1 loss chooses the group.",
)
