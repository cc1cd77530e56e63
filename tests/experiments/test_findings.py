"""Every experiment without image data, tiny, from its trials to its verdicts."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from evenhand.engine.run import Record
from evenhand.experiments import drawing, measures
from evenhand.experiments.base import Experiment, measured
from evenhand.experiments.catalogue import experiments
from evenhand.experiments.run import Options, reproduce
from evenhand.experiments.verdicts import NOT_TESTED

SMALL = {"budget": 60, "trials": 2}
WITHOUT_IMAGES = (
    "fig-mixture-curve",
    "fig-convergence",
    "fig-over-exploration",
    "fig-adult",
    "fig-german",
    "fig-trend",
)


@pytest.mark.parametrize("name", WITHOUT_IMAGES)
def test_from_trials_to_verdicts(tmp_path, name):
    whole = experiments()[name]
    studies = {key: replace(study, quick=SMALL) for key, study in whole.studies.items()}
    (outcome,) = reproduce([replace(whole, studies=studies)], tmp_path, Options())
    assert outcome.status == "done"
    entry = json.loads((tmp_path / "results.json").read_text())["experiments"][name]
    assert entry["numbers"]
    if studies:
        assert {claim["verdict"] for claim in entry["claims"]} == {NOT_TESTED}


TRIALS = 6


def records(rules, groups, rounds, ends):
    """Records whose accuracy at the end is `ends` plus a little of each trial's and each rule's own."""
    found = {}
    for k, label in enumerate(rules):
        own = np.arange(TRIALS) * 0.001 + np.arange(TRIALS) % 2 * 0.0005 * k
        accuracy = np.tile(np.array(ends[label]), (rounds, TRIALS, 1)) + own[:, None]
        counts = np.ones(accuracy.shape, dtype=int) * (np.arange(rounds) + 1)[:, None, None]
        counts[..., 0] *= 3
        same = np.zeros((rounds, TRIALS), dtype=int)
        labels = np.tile(100 * (np.arange(rounds) + 1)[:, None], (1, TRIALS))
        found[label] = Record(
            groups, np.arange(TRIALS), labels, same, same, counts, accuracy, accuracy, accuracy[-1], 1.0
        )
    return found


def verdicts(name, runs):
    experiment = experiments()[name]
    return [claim.verdict for claim in experiment.claims(experiment.find(runs, "paper").measured)]


@pytest.mark.parametrize(("ours", "verdict"), [(0.9, "holds"), (0.7, "does not hold")])
def test_image_figures_judge_full_runs(ours, verdict):
    rules = ("A_opt", "Greedy", "Uniform")
    groups = ("T-shirt/Shirt", "Trouser/Dress", "Pullover/Coat", "Sandal/Bag", "Sneaker/Ankle boot")
    ends = {rule: [0.8, 0.98, 0.97, 0.96, 0.99] for rule in rules}
    ends["A_opt"][0] = ours
    runs = {"FashionMNIST": records(rules, groups, 500, ends)}
    for name in ("fig-fashion-groups", "table-final"):
        assert verdicts(name, runs) == [verdict]
    # Greedy is as good as Uniform here, but for a little less in every other trial
    assert verdicts("fig-fashion", runs) == [verdict, "open", verdict, "open"]
    assert verdicts("fig-fashion-mixture", runs) == ["does not hold"]
    short = {"FashionMNIST": records(rules, groups, 20, ends)}
    assert verdicts("fig-fashion", short) == 4 * [NOT_TESTED]
    assert experiments()["table-final"].find(runs, "paper").numbers[0].paper == 0.936


@pytest.mark.parametrize(
    ("early", "late", "verdict"), [(0.02, 0.002, "holds"), (0.002, 0.02, "does not hold"), (0.005, 0.005, "open")]
)
def test_an_advantage_at_small_budgets_is_one_that_shrinks(early, late, verdict):
    noise = np.random.default_rng(0).normal(0, 0.002, (2, 30))
    claims = experiments()["fig-adult"]
    values = {
        test.claim: measured({one.name: early - late + noise[0] - noise[1] for one in test.comparisons})
        for test in claims.tests
        if test.claim == "Adult's advantage is larger at small budgets"
    }
    assert [claim.verdict for claim in claims.claims(values)] == [verdict]


def test_measures():
    found = records(("A_opt", "Uniform"), ("a", "b"), 10, {"A_opt": [0.8, 0.9], "Uniform": [0.7, 0.95]})
    own = 0.0005 * np.array([0, 1] * 3)
    assert measures.gains(found, "A_opt", "Uniform") == pytest.approx(0.1 - own)
    assert measures.gains_between(found, "A_opt", "Uniform", 0, 500) == pytest.approx(0.1 - own)
    assert measures.final_gap(found["Uniform"]) == pytest.approx([0.25] * TRIALS)
    assert measures.final_share(found["A_opt"], "a") == pytest.approx([0.75] * TRIALS)
    table = measures.curves(found, source="s")
    assert len(table) == 2 * 2 * 10
    assert table["worst_accuracy_mean"].max() == pytest.approx(0.8025)


def test_leads_are_of_the_trials_and_rounds_that_both_have():
    rng = np.random.default_rng(3)
    found = records(("A_opt", "Uniform"), ("a", "b"), 8, {"A_opt": [0.8, 0.9], "Uniform": [0.7, 0.95]})
    for label, left_out, order in (("A_opt", 1, [5, 1, 2, 0, 4, 3]), ("Uniform", 4, [0, 1, 2, 3, 4, 7])):
        accuracy = found[label].accuracy + rng.normal(0, 0.05, found[label].accuracy.shape)
        accuracy[left_out] = np.nan
        found[label] = replace(found[label], accuracy=accuracy, trials=np.array(order))
    rounds, leads = measures.leads(found, "A_opt", "Uniform")
    assert rounds.tolist() == [0, 2, 3, 5, 6, 7]
    ours, theirs = (
        {t: found[label].accuracy[:, k].min(axis=1) for k, t in enumerate(found[label].trials)} for label in found
    )
    for z, lead in zip(rounds, leads, strict=True):
        pairs = [(ours[t][z], theirs[t][z]) for t in (0, 1, 2, 3, 4)]
        test = ttest_rel(*zip(*pairs, strict=True))
        assert (lead.low, lead.high) == pytest.approx(tuple(test.confidence_interval()))
    table = measures.curves(found, "Uniform").query("strategy == 'A_opt' and group == 'a'").set_index("round")
    assert table["ahead_mean"][1] == pytest.approx(leads[0].mean)
    # Uniform was not tested there
    assert np.isnan(table["ahead_low"][5])
    _, (ax,) = drawing.panels([drawing.PAIRED], "labels", "")
    drawing.draw_ahead(ax, found, "Uniform")
    line, zero = ax.get_lines()
    assert list(zero.get_ydata()) == [0, 0]
    assert line.get_ydata() == pytest.approx([100 * lead.mean for lead in leads])
    assert line.get_xdata() == pytest.approx(100 * (rounds + 1))


def test_ceilings_are_those_of_the_whole_pool():
    import evenhand as eh

    alone, everybody = measures.ceilings(eh.datasets.load("adult"))["white men"]
    assert everybody == pytest.approx(0.807, abs=0.003)
    assert alone == pytest.approx(0.807, abs=0.005)


def test_an_experiment_knows_its_scales():
    known = experiments()
    assert all(isinstance(experiment, Experiment) for experiment in known.values())
    assert known["fig-german"].at("paper", None, None)["german"].trials == 8000
    assert known["fig-german"].at("quick", 7, 3)["german"].trials == 7


def test_images_may_be_cut_short_and_nothing_else_is():
    studies = experiments()["table-final"].at("paper", None, None, 100)
    cut = studies["FashionMNIST"]
    assert (cut.budget, cut.trials, cut.evaluate) == (10_000, 1, 10)
    assert experiments()["fig-cifar"].at("paper", 3, None, 40)["CIFAR-10"].trials == 3
    assert (studies["Adult"].budget, studies["Adult"].trials) == (8000, 200)
    with pytest.raises(ValueError, match="11 or more"):
        Options(image_rounds=10)


def test_one_trial_has_no_deviation():
    assert measures.mean_number("worst", np.array([0.75])).sd is None
