"""Trials of images that are run by number, and the figures that are judged by all of them."""

import numpy as np
import pytest

from evenhand.engine.run import Record
from evenhand.simulation.store import Store
from evidence import image_trials

GROUPS = ("airplane/ship", "bird/cat")


def record(trial, accuracy):
    """Three rounds, of which the last two are tested."""
    by_round = np.array([[np.nan, np.nan], [0.5, 0.6], accuracy])[:, None]
    counts = np.array([[[1, 1]], [[2, 1]], [[3, 1]]])
    return Record(
        groups=GROUPS, trials=np.array([trial]), labels=np.array([[2], [4], [6]]), chosen=np.zeros((3, 1), int),
        kind=np.zeros((3, 1), int), counts=counts, validation_loss=np.zeros((3, 1, 2)), accuracy=by_round,
        final_accuracy=np.array([accuracy]), seconds=2.0,
    )  # fmt: skip


@pytest.fixture
def keep(tmp_path):
    study, store = image_trials.study_of("CIFAR-10"), Store(tmp_path)
    for rule, trials in {"A_opt": (0, 1, 5), "Greedy": (0, 5), "Uniform": (0, 1, 5), "ε-greedy": (0,)}.items():
        for trial in trials:
            store.put(study.settings(rule), record(trial, (0.7, 0.8)))
    return tmp_path


def test_those_trials_are_judged_that_every_needed_rule_has(keep):
    found = image_trials.kept("CIFAR-10", keep)
    assert {label: one.trials.tolist() for label, one in found.items()} == {
        label: [0, 5] for label in image_trials.NEEDED
    }


def test_a_trial_as_a_row_of_the_results(keep):
    [row] = image_trials.rows_of("A_opt", record(5, (0.7, 0.8)))
    assert (row["trial"], row["rounds"], row["half"]) == (5, 3, dict(zip(GROUPS, (0.7, 0.8), strict=True)))
    assert row["mixture"] == dict(zip(GROUPS, (0.75, 0.25), strict=True))
    assert row["worst"] == {"2": 0.5, "3": 0.7}
