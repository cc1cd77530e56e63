"""fig-over-exploration: ε-greedy that explores too much stays away from π*, A_opt still gets there."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.experiments.base import Experiment, Findings, Needs, Runs
from evenhand.experiments.convergence import ORACLES
from evenhand.experiments.drawing import draw_share, panels
from evenhand.experiments.measures import curves, final_share, mean_number, share
from evenhand.experiments.study import Study
from evenhand.experiments.verdicts import Above, Test, Within
from evenhand.sources.synthetic.model1 import SyntheticModel1

RULES = {
    "A_opt, c0 = 0.1": "optimistic:c0=0.1",
    "A_opt, c0 = 1": "optimistic:c0=1",
    "ε-greedy, ε = 0.1": "epsilon-greedy:epsilon=0.1",
    "ε-greedy, ε = 0.5": "epsilon-greedy:epsilon=0.5",
    "Oracle": ORACLES["I"],
}
BOLD, TOO_MUCH = "A_opt, c0 = 1", "ε-greedy, ε = 0.5"
FLOOR = 0.25
"""With ε = 0.5 and two groups, exploring alone gives u this share."""
LONG = "I, the long run"
NEAR = 0.025
"""Half the way from π* to the floor."""
NEEDS = Needs(paper=True)
AWAY = Test(
    "ε-greedy with ε = 0.5 does not get below its floor, so it stays away from π*",
    (
        Above("ε = 0.5, the long run: share of u less the floor 0.25", -0.005),
        Above("ε = 0.5, the long run: share of u less π*", NEAR),
    ),
)
STILL = Test(
    "A_opt with c0 = 1 still approaches π*: it ends nearer to it than half the way to ε-greedy's floor",
    (
        Within("c0 = 1, the long run: share of u less π*", NEAR),
        Above("c0 = 1, the long run: distance from π* after a quarter less that at the end"),
        Above("share of u after the long run: ε = 0.5 less c0 = 1"),
    ),
)


def find(runs: Runs, scale: str) -> Findings:
    """Where the rules that explore too much end, and whether they still move."""
    found, long = runs["I"], runs[LONG]
    fair = float(SyntheticModel1.instance("I").pi_star()[0])
    # what was run, which at the quick scale is less than the paper's scale has
    spent = [f"{next(iter(records.values())).labels[-1].max():,} labels" for records in (found, long)]
    figure, axes = panels(spent, "round", "share of u")
    for ax, records in zip(axes, (found, long), strict=True):
        ax.axhline(FLOOR, color="#444444", linewidth=1, linestyle=":", label=f"floor of ε = 0.5: ε/2 = {FLOOR:.2f}")
        draw_share(ax, records, "u", fair)
        ax.set_ylim(0, 0.6)
    numbers = [
        mean_number(f"final share of u, {label}, {labels}", final_share(record, "u"))
        for labels, records in zip(spent, (found, long), strict=True)
        for label, record in records.items()
    ]
    stuck, bold = final_share(long[TOO_MUCH], "u"), share(long[BOLD], "u")
    early = bold[len(bold) // 4 - 1]
    away = {
        "ε = 0.5, the long run: share of u less the floor 0.25": stuck - FLOOR,
        "ε = 0.5, the long run: share of u less π*": stuck - fair,
    }
    still = {
        "c0 = 1, the long run: share of u less π*": bold[-1] - fair,
        "c0 = 1, the long run: distance from π* after a quarter less that at the end": np.abs(early - fair)
        - np.abs(bold[-1] - fair),
        "share of u after the long run: ε = 0.5 less c0 = 1": stuck - bold[-1],
    }
    by_claim = {AWAY.claim: NEEDS.measured(away, scale), STILL.claim: NEEDS.measured(still, scale)}
    table = pd.concat(
        [curves(one, source=name) for name, one in zip(spent, (found, long), strict=True)], ignore_index=True
    )
    return Findings(figure, table, numbers, by_claim, [f"the long run: {spent[1]}"])


EXPERIMENT = Experiment(
    id="fig-over-exploration",
    title="Exploring too much, SyntheticModel1 instance I",
    paper="A large ε keeps the mixture away from π*; A_opt with a much larger c0 still converges.",
    studies={
        "I": Study("synthetic1:I", RULES, budget=2000, trials=500, quick={"trials": 30}),
        LONG: Study(
            "synthetic1:I",
            {label: RULES[label] for label in (BOLD, TOO_MUCH, "Oracle")},
            budget=20_000,
            trials=500,
            quick={"trials": 10, "budget": 4000},
            block=25,
        ),
    },
    find=find,
    tests=(AWAY, STILL),
    needs=NEEDS,
    note="The paper gives no budget: 2,000 labels, and 20,000 to see where it goes (4,000 at the quick scale).",
)
