"""fig-adult: accuracy of Adult's worst group against the labels spent."""

from __future__ import annotations

from evenhand.experiments.base import Experiment, Findings, Number, Runs, judge
from evenhand.experiments.drawing import draw_worst, panels
from evenhand.experiments.measures import ceilings, curves, gain, mean_number, worst
from evenhand.experiments.study import Study, open_study_source

RULES = {
    "A_opt": "optimistic:c0=0.1",
    "Greedy": "greedy",
    "Uniform": "uniform",
    "Uncurated": "uncurated",
    "ε-greedy": "epsilon-greedy:epsilon=0.1",
}
STUDY = Study("adult", RULES, budget=8000, trials=10, quick={"budget": 800, "trials": 10}, evaluate=80, block=5)
PAPER = {"A_opt": (0.801, 0.001), "Greedy": (0.800, 0.002), "Uniform": (0.798, 0.002), "Uncurated": (0.797, 0.003)}
SMALL = 500
SAME = 0.01
"""Rules count as comparable when the interval of their difference lies within a point."""


def find(runs: Runs, scale: str) -> Findings:
    """Worst-group accuracy, how much the rules differ early and late, and what no rule can beat."""
    found = runs["adult"]
    figure, (ax,) = panels(["Adult"], "labels", "test accuracy of the worst group")
    draw_worst(ax, found)
    # with all of Adult white men are the worst-off group: what they reach is what no rule can beat
    top = ceilings(open_study_source(STUDY))["white men"]
    ax.axhline(top[1], color="#444444", linewidth=1, linestyle="--", label="all of Adult")
    ax.set_ylim(0.68, 0.82)
    budget, full = int(found["A_opt"].labels[-1].max()), scale == "paper"
    numbers = [
        mean_number(f"{label}, {budget:,} labels", worst(record), *(PAPER.get(label, ()) if full else ()))
        for label, record in found.items()
    ]
    numbers += [mean_number(f"{label}, {SMALL} labels", worst(record, SMALL)) for label, record in found.items()]
    numbers += [
        Number("ceiling: white men, trained on all white men", top[0]),
        Number("ceiling: white men, trained on everybody", top[1], paper=0.805),
    ]
    early, late, peer = (
        gain(found, "A_opt", "Uniform", SMALL),
        gain(found, "A_opt", "Uniform"),
        gain(found, "A_opt", "ε-greedy"),
    )
    trials = len(found["A_opt"].trials)
    claims = [
        judge(
            "Adaptive beats Uniform on the worst group",
            late.above,
            f"A_opt − Uniform, {budget:,} labels: {late}",
            tested=full and trials >= 5,
        ),
        judge(
            "Adult's advantage is at small budgets",
            early.above and early[0] > late[0],
            f"A_opt − Uniform: {early} at {SMALL} labels, {late} at {budget:,}",
            tested=full and trials >= 5,
        ),
        judge("A_opt and ε-greedy are comparable", peer.within(SAME), f"A_opt − ε-greedy: {peer}", tested=trials >= 5),
    ]
    return Findings(figure, curves(found, source="adult"), numbers, claims)


EXPERIMENT = Experiment(
    id="fig-adult",
    title="Worst group against budget, Adult",
    paper="All rules approach 80.5 %; the adaptive ones are well ahead of Uniform at small budgets.",
    studies={"adult": STUDY},
    find=find,
    note="The paper gives no budget; with 8,000 labels Uniform does not yet use up the 2,129 non-white women.",
)
