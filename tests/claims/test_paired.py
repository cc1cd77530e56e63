"""Paired differences against scipy, and the verdicts that follow from an interval."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evenhand.claims.paired import DOES_NOT_HOLD, HOLDS, OPEN, Interval, paired, together

LEVELS = st.sampled_from([0.8, 0.95, 0.999])


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=2, max_size=30), LEVELS)
@settings(deadline=None)
def test_the_interval_is_students(pairs, level):
    a, b = np.array(pairs).T
    found, d = paired(a, b, level), a - b
    half = stats.t.ppf((1 + level) / 2, len(d) - 1) * stats.sem(d)
    np.testing.assert_allclose(found, (d.mean(), d.mean() - half, d.mean() + half), atol=1e-9)
    assert paired(d, level=level) == found


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=30, unique=True), st.floats(-1, 1), LEVELS)
@settings(deadline=None)
def test_above_is_a_two_sided_test_against_the_bound(values, bound, level):
    test = stats.ttest_1samp(values, bound)
    if abs(test.pvalue - (1 - level)) < 1e-9:
        return
    expected = OPEN if test.pvalue > 1 - level else HOLDS if test.statistic > 0 else DOES_NOT_HOLD
    assert paired(values, level=level).above(bound) == expected


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=30, unique=True), st.floats(0.01, 1), st.floats(-1, 1), LEVELS)
@settings(deadline=None)
def test_within_is_two_one_sided_tests_of_equivalence(values, margin, centre, level):
    tail = (1 - level) / 2
    least, most = centre - margin, centre + margin
    p = [
        stats.ttest_1samp(values, end, alternative=side).pvalue for end in (least, most) for side in ("greater", "less")
    ]
    if min(abs(one - tail) for one in p) < 1e-9:
        return
    above_least, below_least, above_most, below_most = (one < tail for one in p)
    expected = HOLDS if above_least and below_most else DOES_NOT_HOLD if below_least or above_most else OPEN
    assert paired(values, level=level).within(margin, centre) == expected


@pytest.mark.parametrize("values", [[], [0.5], [0.5, np.nan]])
def test_fewer_than_two_pairs_leave_everything_open(values):
    found = paired(values)
    assert np.isnan([found.low, found.high]).all()
    assert found.above() == found.within(1.0) == OPEN
    if values:
        assert str(found) == "+0.5000 in the one trial"


def test_trials_that_one_of_both_lacks_are_left_out():
    assert paired([1.0, 2.0, np.nan, 5.0], [0.0, 0.5, 1.0, np.nan]) == paired([1.0, 2.0], [0.0, 0.5])


def test_an_exact_number_is_its_own_interval():
    exact = Interval(0.2, 0.2, 0.2)
    assert str(exact) == "+0.2000"
    assert (exact.above(0.1), exact.above(0.3), exact.within(0.01, 0.195)) == (HOLDS, DOES_NOT_HOLD, HOLDS)


def test_intervals_at_the_joint_level_cover_together():
    # three rules' gains over a fourth, which all share its noise: all intervals cover in all but 5 % of the runs
    rng = np.random.default_rng(0)
    runs = rng.normal(size=(400, 4, 20))
    wrong = [any(paired(a, run[0], together(3)).above() != OPEN for a in run[1:]) for run in runs]
    assert np.mean(wrong) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert together(1) == together(0) == 0.95


def test_bad_pairs_are_refused():
    for a, b in (([1.0, 2.0], [1.0]), ([[1.0]], 0.0)):
        with pytest.raises(ValueError, match="one length"):
            paired(a, b)
    with pytest.raises(ValueError, match="level"):
        paired([1.0, 2.0], level=1.0)
