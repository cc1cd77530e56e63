"""fig-fashion, fig-fashion-groups, fig-fashion-mixture: five pairs of garments, one network."""

from __future__ import annotations

from evenhand.experiments.base import Experiment, Findings, Runs
from evenhand.experiments.drawing import draw_mixture, panels
from evenhand.experiments.image_figures import NEEDS, NOTE, groups_figure, image_study, length, worst_figure
from evenhand.experiments.measures import curves, final_share, mean_number
from evenhand.experiments.verdicts import Above, Test

NAME = "FashionMNIST"
STUDY = image_study("fashion-mnist")
PAPER = {"A_opt": (0.936, 0.004), "Greedy": (0.924, 0.010), "Uniform": (0.893, 0.002), "Uncurated": (0.893, 0.002)}
HARD = ("T-shirt/Shirt", "Pullover/Coat")
MAJORITY = Test(
    "The vast majority of the examples are T-shirt/Shirt and Pullover/Coat", (Above("their share together", 2 / 3),)
)


def find_mixture(runs: Runs, scale: str) -> Findings:
    """The mixture A_opt builds."""
    record = runs[NAME]["A_opt"]
    figure, (ax,) = panels([NAME], "round", "share of each pair, A_opt")
    draw_mixture(ax, record)
    shares = {group: final_share(record, group) for group in record.groups}
    numbers = [mean_number(f"final share of {group}", values) for group, values in shares.items()]
    together = {"their share together": shares[HARD[0]] + shares[HARD[1]]}
    both = NEEDS.measured(together, scale, len(record.labels), length(record))
    return Findings(figure, curves({"A_opt": record}, source=NAME), numbers, {MAJORITY.claim: both}, [length(record)])


EXPERIMENTS = (
    worst_figure(
        "fig-fashion", NAME, STUDY, PAPER, "Both adaptive rules outperform Uniform throughout.", throughout=True
    ),
    groups_figure(
        "fig-fashion-groups",
        NAME,
        STUDY,
        "A_opt keeps a much smaller spread of accuracies over the groups than Uniform.",
    ),
    Experiment(
        id="fig-fashion-mixture",
        title="The mixture over time, FashionMNIST",
        paper="The vast majority of the examples go to (T-shirt, Shirt) and (Pullover, Coat).",
        studies={NAME: STUDY},
        find=find_mixture,
        tests=(MAJORITY,),
        needs=NEEDS,
        note=NOTE,
    ),
)
