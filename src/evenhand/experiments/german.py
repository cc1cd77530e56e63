"""fig-german: accuracy of German credit's worst group against the labels spent."""

from __future__ import annotations

from evenhand.experiments.adult import RULES, SAME
from evenhand.experiments.base import Experiment, Findings, Number, Runs, judge
from evenhand.experiments.drawing import draw_worst, panels
from evenhand.experiments.measures import ceilings, curves, gain, mean_number, worst
from evenhand.experiments.study import Study, open_study_source

STUDY = Study("german", RULES, budget=400, trials=500, quick={"trials": 50}, evaluate=40)
PAPER = {"A_opt": (0.721, 0.035), "Greedy": (0.713, 0.036), "Uniform": (0.716, 0.032), "Uncurated": (0.715, 0.038)}


def find(runs: Runs, scale: str) -> Findings:
    """Worst-group accuracy over many random splits."""
    found = runs["german"]
    figure, (ax,) = panels(["German credit"], "labels", "test accuracy of the worst group")
    draw_worst(ax, found)
    numbers = [
        mean_number(f"{label}, 400 labels", worst(record), *PAPER.get(label, ())) for label, record in found.items()
    ]
    for group, (alone, everybody) in ceilings(open_study_source(STUDY), trials=20).items():
        numbers += [
            Number(f"ceiling: {group}, trained on all {group}", alone),
            Number(f"ceiling: {group}, trained on everybody", everybody),
        ]
    uniform, greedy, peer = (gain(found, "A_opt", other) for other in ("Uniform", "Greedy", "ε-greedy"))
    early = "; ".join(f"{at} labels: {gain(found, 'A_opt', 'Uniform', at)}" for at in (100, 200, 300))
    enough = len(found["A_opt"].trials) >= 200
    claims = [
        judge(
            "Adaptive beats Uniform on the worst group",
            uniform.above,
            f"A_opt − Uniform, 400 labels: {uniform}; {early}",
            tested=enough,
        ),
        judge("A_opt is ahead of Greedy on average", greedy.above, f"A_opt − Greedy: {greedy}", tested=enough),
        judge("A_opt and ε-greedy are comparable", peer.within(SAME), f"A_opt − ε-greedy: {peer}", tested=enough),
    ]
    return Findings(figure, curves(found, source="german"), numbers, claims)


EXPERIMENT = Experiment(
    id="fig-german",
    title="Worst group against budget, German credit",
    paper="On average A_opt is ahead of Uniform and Greedy; the spread over splits is very large.",
    studies={"german": STUDY},
    find=find,
    note="The paper gives no budget; 400 labels, the most for which Uniform does not use up the 217 women.",
)
