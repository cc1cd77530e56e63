"""fig-convergence: the share of u over time, with exploration and without."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.experiments.base import Experiment, Findings, Runs, judge
from evenhand.experiments.drawing import draw_share, panels
from evenhand.experiments.measures import curves, final_share, mean_number
from evenhand.experiments.study import Study
from evenhand.sources.synthetic.model1 import SyntheticModel1

RULES = {"A_opt": "optimistic:c0=0.1", "ε-greedy": "epsilon-greedy:epsilon=0.1", "Greedy": "greedy"}
STUDIES = {
    which: Study(f"synthetic1:{which}", RULES, budget=1000, trials=100, quick={"trials": 30}) for which in ("I", "II")
}
STUCK = 0.05
"""A trial counts as stuck when one of the groups has less than this share at the end."""


def find(runs: Runs, scale: str) -> Findings:
    """Where each rule ends, and how often it ends far from π*."""
    figure, axes = panels(["instance I", "instance II"], "round", "share of u")
    numbers, tables, near, wide, stuck, goals = [], [], [], [], [], []
    for ax, (which, found) in zip(axes, runs.items(), strict=True):
        fair = float(SyntheticModel1.instance(which).pi_star()[0])
        goals.append(f"{fair:.2f}")
        draw_share(ax, found, "u", fair)
        tables.append(curves(found, source=f"synthetic1:{which}"))
        ends = {label: final_share(record, "u") for label, record in found.items()}
        for label, end in ends.items():
            paper = fair if label != "Greedy" else None
            numbers.append(mean_number(f"final share of u, {label}, instance {which}", end, paper))
            # three standard errors: few trials must not refute what many would confirm; three points allow for a finite budget
            error = 3 * np.std(end) / np.sqrt(len(end))
            if label != "Greedy":
                near.append(abs(np.mean(end) - fair) <= max(0.03, error))
        wide.append(np.std(ends["Greedy"]) / np.std(ends["A_opt"]))
        stuck.append([float(np.mean(np.minimum(ends[rule], 1 - ends[rule]) < STUCK)) for rule in ("Greedy", "A_opt")])
    trials = min(len(record.trials) for found in runs.values() for record in found.values())
    ends_text = "; ".join(f"{number.name[18:]}: {number.measured:.3f}" for number in numbers)
    shares = ", ".join(f"{greedy:.0%} of Greedy's and {ours:.0%} of A_opt's trials" for greedy, ours in stuck)
    spread = " and ".join(f"{ratio:.1f}" for ratio in wide)
    claims = [
        judge(
            "With exploration the mixture converges to π*",
            all(near),
            f"π* is {' and '.join(goals)}; {ends_text}",
            tested=trials >= 20,
        ),
        judge(
            "Greedy often gets stuck with a wrong mixture and varies more",
            min(wide) > 1 and all(greedy > ours for greedy, ours in stuck),
            f"Greedy's sd is {spread} times A_opt's (I, II); a group is below {STUCK:.0%} at the end in {shares}",
            tested=trials >= 20,
        ),
    ]
    return Findings(figure, pd.concat(tables, ignore_index=True), numbers, claims)


EXPERIMENT = Experiment(
    id="fig-convergence",
    title="The mixture over time, SyntheticModel1",
    paper="A_opt and ε-greedy converge to π*(u); Greedy often gets stuck, with high variability.",
    studies=STUDIES,
    find=find,
    note="n = 1000 is read as labels: 500 rounds of two. The paper's number is the exact π*.",
)
