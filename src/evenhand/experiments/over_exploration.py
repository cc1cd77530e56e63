"""fig-over-exploration: ε-greedy that explores too much stays away from π*, A_opt still gets there."""

from __future__ import annotations

import numpy as np

from evenhand.experiments.base import Experiment, Findings, Runs, judge
from evenhand.experiments.drawing import draw_share, panels
from evenhand.experiments.measures import curves, final_share, mean_number, share
from evenhand.experiments.study import Study
from evenhand.sources.synthetic.model1 import SyntheticModel1

RULES = {
    "A_opt, c0 = 0.1": "optimistic:c0=0.1",
    "A_opt, c0 = 1": "optimistic:c0=1",
    "ε-greedy, ε = 0.1": "epsilon-greedy:epsilon=0.1",
    "ε-greedy, ε = 0.5": "epsilon-greedy:epsilon=0.5",
}
FLOOR = 0.25
"""With ε = 0.5 and two groups, exploring alone gives u this share."""


def find(runs: Runs, scale: str) -> Findings:
    """Where the bold forms end, and whether they still move."""
    found = runs["I"]
    fair = float(SyntheticModel1.instance("I").pi_star()[0])
    figure, (ax,) = panels(["instance I"], "round", "share of u")
    draw_share(ax, found, "u", fair)
    ax.set_ylim(0, 0.6)
    numbers = [mean_number(f"final share of u, {label}", final_share(record, "u")) for label, record in found.items()]
    stuck, bold = final_share(found["ε-greedy, ε = 0.5"], "u"), share(found["A_opt, c0 = 1"], "u")
    early, late = float(np.mean(bold[len(bold) // 4])), float(np.mean(bold[-1]))
    error = float(np.std(stuck, ddof=1) / np.sqrt(len(stuck)))
    trials = len(stuck)
    claims = [
        judge(
            "ε-greedy with ε = 0.5 never gets below its floor, so it stays away from π*",
            # greedy rounds only add to the exploring ones: the share of u lies above the floor, never below
            np.mean(stuck) - 2 * error > FLOOR,
            f"mean {np.mean(stuck):.3f} ± {2 * error:.3f} against the floor {FLOOR} and π* = {fair:.2f}",
            tested=trials >= 20,
        ),
        judge(
            "A_opt with c0 = 1 still converges",
            # c0 = 1 is slow: within this budget it need not arrive, but it must go on falling where ε-greedy has stopped
            late < early and abs(late - fair) < abs(np.mean(stuck) - fair),
            f"mean {early:.3f} after a quarter of the rounds, {late:.3f} at the end, still falling towards {fair:.2f}",
            tested=trials >= 20,
        ),
    ]
    return Findings(figure, curves(found, source="synthetic1:I"), numbers, claims)


EXPERIMENT = Experiment(
    id="fig-over-exploration",
    title="Exploring too much, SyntheticModel1 instance I",
    paper="A large ε keeps the mixture away from π*; A_opt with a much larger c0 still converges.",
    studies={"I": Study("synthetic1:I", RULES, budget=2000, trials=100, quick={"trials": 30})},
    find=find,
    note="The paper gives no budget; 2,000 labels, 1,000 rounds.",
)
