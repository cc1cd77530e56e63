"""A verdict can hold, fail and stay open; being unable to tell is not a proof."""

import numpy as np
import pytest
import scipy.stats

from evenhand.claims.paired import DOES_NOT_HOLD, HOLDS, OPEN
from evenhand.errors import InputError
from evenhand.experiments.catalogue import experiments
from evenhand.experiments.verdicts import FAMILY, LEVEL, NOT_TESTED, Above, MoreOften, Test, Within, count, judge


def sample(mean, n=100, sd=0.01):
    """Values whose mean and standard deviation are these."""
    values = np.random.default_rng(3).normal(size=n)
    return mean + sd * (values - values.mean()) / values.std(ddof=1)


def verdict(comparison, values, **given):
    return judge(Test("it is so", (comparison,)), {comparison.name: values}, **given).verdict


# the half width of the interval around 100 values with standard deviation 0.01
HALF = scipy.stats.t.ppf((1 + LEVEL) / 2, 99) * 0.001


@pytest.mark.parametrize(
    ("mean", "expected"),
    [(0.01, HOLDS), (1.01 * HALF, HOLDS), (0.99 * HALF, OPEN), (-0.99 * HALF, OPEN), (-1.01 * HALF, DOES_NOT_HOLD)],
)
def test_above_needs_the_whole_interval(mean, expected):
    assert verdict(Above("a − b"), sample(mean)) == expected


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        (0, HOLDS), (0.02 - 1.01 * HALF, HOLDS), (0.02 - 0.99 * HALF, OPEN), (0.02 + 0.99 * HALF, OPEN),
        (-0.02 - 1.01 * HALF, DOES_NOT_HOLD), (0.1, DOES_NOT_HOLD),
    ],
)  # fmt: skip
def test_within_needs_the_whole_interval_inside_the_margin(mean, expected):
    assert verdict(Within("a − b", 0.02), sample(mean)) == expected


def test_not_being_significant_is_not_being_alike():
    noisy = sample(0.0, n=10, sd=0.1)
    assert scipy.stats.ttest_1samp(noisy, 0).pvalue > 0.9
    assert verdict(Within("a − b", 0.02), noisy) == OPEN


@pytest.mark.parametrize(("one", "other", "expected"), [(7, 2, OPEN), (35, 10, HOLDS), (10, 35, DOES_NOT_HOLD)])
def test_how_often_by_the_trials_that_differ(one, other, expected):
    values = np.repeat([1.0, -1.0, 0.0], [one, other, 500 - one - other])
    assert verdict(MoreOften("I", "a", "b", "stuck"), values) == expected
    # McNemar's exact test at the same level
    significant = scipy.stats.binomtest(one, one + other).pvalue < 1 - LEVEL
    assert (expected != OPEN) == significant


def test_how_often_says_of_how_many_trials():
    test = Test("", (MoreOften("I", "a", "b", "stuck"),))
    said = judge(test, {"I: a stuck and b not": [1.0] * 35 + [-1.0] * 5 + [0.0] * 60}).evidence
    assert said.startswith("I: of the 40 trials in which just one of the two is stuck, a is it in 87.5 % [")
    assert judge(test, {"I: a stuck and b not": [0.0] * 9}).evidence.startswith("I: there is no trial")
    assert judge(test, {"I: a stuck and b not": [1.0] * 4}).evidence.endswith("a is it in 100.0 %")


def test_all_comparisons_have_to_hold_and_one_can_fail_the_claim():
    test = Test("both", (Above("a"), Above("b")))
    good, bad, unclear = sample(0.01), sample(-0.01), sample(0)
    assert judge(test, {"a": good, "b": good}).verdict == HOLDS
    assert judge(test, {"a": good, "b": unclear}).verdict == OPEN
    assert judge(test, {"a": bad, "b": unclear}).verdict == DOES_NOT_HOLD
    with pytest.raises(InputError, match="no values of 'b'"):
        judge(test, {"a": good})


def test_too_little_says_nothing():
    assert verdict(Above("a − b"), sample(1.0, n=4)) == NOT_TESTED
    assert verdict(Above("a − b"), np.array([1.0])) == NOT_TESTED
    assert verdict(Above("a − b"), sample(1.0), untested="stopped early") == NOT_TESTED
    test = Test("", (Above("a"),))
    assert judge(test, {"a": [1.0]}).evidence == "a: +1.0000 in the one trial"
    assert judge(test, {"a": [1.0, 2.0, 3.0]}).evidence == "a: +2.0000 in 3 trials"
    assert judge(test, {"a": sample(1.0)}, untested="short").evidence == "a: +1.0000 in 100 trials (short)"


def test_an_exact_number_is_its_own_interval():
    peak = Test("about 0.23", (Within("peak", 0.01, 0.23),), exact=True)
    assert [judge(peak, {"peak": [at]}).verdict for at in (0.2, 0.225)] == [DOES_NOT_HOLD, HOLDS]


def test_the_family_counts_every_comparison_and_covers():
    assert count([test for one in experiments().values() for test in one.tests]) <= FAMILY
    # a family of true nulls: all intervals cover in all but 5 % of the pages
    draws = np.random.default_rng(0).normal(size=(300, FAMILY, 20))
    half = scipy.stats.t.ppf((1 + LEVEL) / 2, 19) * draws.std(axis=-1, ddof=1) / np.sqrt(20)
    wrong = (np.abs(draws.mean(axis=-1)) > half).any(axis=1)
    assert wrong.mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_every_claim_has_a_test_and_names_are_its_own():
    for experiment in experiments().values():
        assert experiment.tests
        assert len({test.claim for test in experiment.tests}) == len(experiment.tests)
        for test in experiment.tests:
            assert len({one.name for one in test.comparisons}) == len(test.comparisons)
