"""fig-convergence: the share of u over time, with exploration and without."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.arrays import Floats
from evenhand.experiments.base import Experiment, Findings, Number, Runs, measured
from evenhand.experiments.drawing import draw_share, panels
from evenhand.experiments.measures import curves, final_share, mean_number, share
from evenhand.experiments.study import Study
from evenhand.experiments.verdicts import Above, MoreOften, Test, Within
from evenhand.sources.synthetic.model1 import SyntheticModel1

RULES = {"A_opt": "optimistic:c0=0.1", "ε-greedy": "epsilon-greedy:epsilon=0.1", "Greedy": "greedy"}
ORACLES = {which: f"oracle:mixture={mixture}" for which, mixture in (("I", "0.2+0.8"), ("II", "0.64+0.36"))}
"""Draws by π*, which no rule knows: what the others would do if they had nothing to find out."""
STUDIES = {
    which: Study(f"synthetic1:{which}", RULES | {"Oracle": oracle}, budget=1000, trials=500, quick={"trials": 30})
    for which, oracle in ORACLES.items()
}
STUCK = 0.05
"""A trial counts as stuck when one of the groups has less than this share at the end."""
NEAR = 0.05
"""A mean final share this close to π* is near it: a twentieth of the labels is spent on the wrong group."""
EXPLORING = ("A_opt", "ε-greedy")
CONVERGES = Test(
    "With exploration the mean mixture ends near π*, and trials come closer to it",
    tuple(
        comparison
        for which in STUDIES
        for rule in EXPLORING
        for comparison in (
            Within(f"{rule}, {which}: final share of u less π*", NEAR),
            Above(f"{rule}, {which}: distance from π* after a quarter less that at the end"),
        )
    ),
)
STUCK_TEST = Test(
    "Greedy gets stuck more often than A_opt, and ends further from π*",
    tuple(
        comparison
        for which in STUDIES
        for comparison in (
            MoreOften(which, "Greedy", "A_opt", "stuck"),
            Above(f"{which}: Greedy's distance from π* at the end less A_opt's"),
        )
    ),
)


def find(runs: Runs, scale: str) -> Findings:
    """Where each rule ends, how near π* it is, and how often it leaves a group out."""
    figure, axes = panels(["instance I", "instance II"], "round", "share of u")
    numbers, tables = [], []
    near: dict[str, Floats] = {}
    stuck: dict[str, Floats] = {}
    often = []
    for ax, (which, found) in zip(axes, runs.items(), strict=True):
        fair = float(SyntheticModel1.instance(which).pi_star()[0])
        draw_share(ax, found, "u", fair)
        tables.append(curves(found, source=f"synthetic1:{which}"))
        ends = {label: final_share(record, "u") for label, record in found.items()}
        for label, end in ends.items():
            numbers.append(mean_number(f"final share of u, {label}, instance {which}", end))
        for rule in EXPLORING:
            over_time = share(found[rule], "u")
            early = np.abs(over_time[len(over_time) // 4 - 1] - fair)
            near[f"{rule}, {which}: final share of u less π*"] = ends[rule] - fair
            near[f"{rule}, {which}: distance from π* after a quarter less that at the end"] = early - np.abs(
                ends[rule] - fair
            )
        left_out = {rule: np.minimum(ends[rule], 1 - ends[rule]) < STUCK for rule in ("Greedy", "A_opt")}
        often += [
            Number(f"trials with a group below {STUCK:.0%}, {rule}, instance {which}", float(np.mean(values)))
            for rule, values in left_out.items()
        ]
        stuck[f"{which}: Greedy stuck and A_opt not"] = left_out["Greedy"].astype(float) - left_out["A_opt"]
        # a squared deviation has tails too heavy for Student's interval: a distance is bounded
        far = {rule: np.abs(ends[rule] - fair) for rule in ("Greedy", "A_opt")}
        stuck[f"{which}: Greedy's distance from π* at the end less A_opt's"] = far["Greedy"] - far["A_opt"]
    found_by_claim = {CONVERGES.claim: measured(near), STUCK_TEST.claim: measured(stuck)}
    return Findings(figure, pd.concat(tables, ignore_index=True), [*numbers, *often], found_by_claim)


EXPERIMENT = Experiment(
    id="fig-convergence",
    title="The mixture over time, SyntheticModel1",
    paper="A_opt and ε-greedy converge to π*(u); Greedy often gets stuck, with high variability.",
    studies=STUDIES,
    find=find,
    tests=(CONVERGES, STUCK_TEST),
    note="n = 1000 is read as labels: 500 rounds of two. The paper has 100 trials. π*(u) is 0.2 in I and 0.64 in II, exactly.",
)
