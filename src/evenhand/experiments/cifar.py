"""fig-cifar, fig-cifar-groups: five pairs of CIFAR-10's classes."""

from __future__ import annotations

from evenhand.experiments.image_figures import groups_figure, image_study, worst_figure

NAME = "CIFAR-10"
STUDY = image_study("cifar10")
PAPER = {"A_opt": (0.743, 0.004), "Greedy": (0.742, 0.005), "Uniform": (0.726, 0.010), "Uncurated": (0.726, 0.010)}

EXPERIMENTS = (
    worst_figure("fig-cifar", NAME, STUDY, PAPER, "The adaptive rules improve on Uniform in the worst case."),
    groups_figure("fig-cifar-groups", NAME, STUDY),
)
