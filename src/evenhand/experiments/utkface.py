"""fig-utkface, fig-utkface-groups: male or female, for five ethnicities; a random split, not the paper's."""

from __future__ import annotations

from evenhand.experiments.image_figures import AHEAD, groups_figure, image_study, worst_figure

NAME = "UTKFace"
PAPER = {
    "A_opt": (0.946, 0.003),
    "Greedy": (0.946, 0.012),
    "Uniform": (0.919, 0.008),
    "Uncurated": (0.933, 0.007),
}
STUDY = image_study("utkface", PAPER)
SAYS = "A clear gap between the adaptive rules and the others. Every test image of the paper is in its training file."

EXPERIMENTS = (
    worst_figure("fig-utkface", NAME, STUDY, PAPER, SAYS, (*AHEAD, ("A_opt", "Uncurated"))),
    groups_figure("fig-utkface-groups", NAME, STUDY),
)
