import json

import numpy as np
import pytest
from scipy.stats import binomtest

from evenhand.claims.certificates import Evidence
from evenhand.claims.sequences import error_rate, running_half_width

GROUPS = ("u", "v", "w")


def evidence(errors, n):
    found = Evidence(GROUPS[: len(n)])
    for z, (s, k) in enumerate(zip(errors, n, strict=True)):
        found.add([z] * k, [1.0] * s + [0.0] * (k - s))
    return found


def test_the_certificate_states_each_groups_interval_and_the_worst():
    found = evidence([5, 30, 8], [100, 200, 100]).certificate()
    low, high = error_rate([5, 30, 8], [100, 200, 100], 0.05 / 2 / 3)  # all three at once
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)
    # the worst group is one group: no correction for their number
    assert found.worst_at_most == pytest.approx(error_rate([5, 30, 8], [100, 200, 100], 0.05 / 2)[1].max())
    assert found.mean == (0.05, 0.15, 0.08)
    assert found.confidence == 0.95
    assert "no group's error is above" in str(found)


def test_later_versions_spend_less():
    e = evidence([5, 30], [100, 200])
    assert e.certificate(3).high == pytest.approx(error_rate([5, 30], [100, 200], 0.05 / 12 / 2)[1])
    # all versions together spend δ
    assert sum(0.05 / (k * (k + 1)) for k in range(1, 100_000)) == pytest.approx(0.05, rel=1e-4)


def test_the_worst_group_is_one_of_those_that_may_be():
    clear = evidence([2, 300, 3], [600, 600, 600]).certificate()
    assert clear.worst_groups == ("v",)
    assert evidence([2, 3, 3], [600, 600, 600]).certificate().worst_groups == GROUPS
    # a group without labels may always be the worst
    assert evidence([2, 300, 0], [600, 600, 0]).certificate().worst_groups == ("v", "w")
    assert evidence([0, 0, 0], [0, 0, 0]).certificate().worst_at_most == 1


def test_the_worst_groups_by_their_definition():
    errors, n, delta = np.array([12, 30, 22]), np.array([150, 210, 180]), 0.05 / 2
    upper = error_rate(errors, n, delta / 2)[1]
    lower = error_rate(errors, n, delta / 2 / 3)[0]
    expected = tuple(z for z, u in zip(GROUPS, upper, strict=True) if u >= lower.max())
    assert evidence(errors, n).certificate().worst_groups == expected


def test_running_statement():
    found = evidence([5, 30, 0], [100, 200, 0]).running(0.1)
    mean, half = np.array([0.05, 0.15, 0.0]), running_half_width([100, 200, 0], 0.1)
    assert found.low == pytest.approx(np.clip(mean - half, 0, 1))
    assert found.high == pytest.approx(np.clip(mean + half, 0, 1))
    assert found.mean[2] is None
    assert json.loads(json.dumps(found.as_dict()))["groups"]["u"]["n"] == 100


def test_the_mean_of_the_classes_is_certified_class_by_class():
    e = Evidence(("u",), strata=2)
    for k, (s, n) in enumerate([(5, 100), (30, 200)]):
        e.add([0] * n, [1.0] * s + [0.0] * (n - s), k)
    found = e.certificate()
    low, high = error_rate([5, 30], [100, 200], 0.05 / 2 / 2)  # half of the first certificate's half for each class
    assert found.mean == (pytest.approx((0.05 + 0.15) / 2),)
    assert found.high == pytest.approx([high.mean()])
    assert found.low == pytest.approx([low.mean()])
    # a class nobody has seen in this group may have any error
    alone = Evidence(("u",), strata=2)
    alone.add([0] * 10_000, [0.0] * 10_000, 0)
    assert alone.certificate().worst_at_most > 0.5


def test_losses_in_between_are_covered():
    rng = np.random.default_rng(0)
    missed, runs = 0, 200
    for _ in range(runs):
        losses = rng.choice([0.0, 0.2, 1.0], p=[0.8, 0.15, 0.05], size=600)
        sums, n = np.cumsum(losses), np.arange(1, 601)
        low, high = error_rate(sums[9::10], n[9::10], 0.05)
        missed += bool(((low > 0.08) | (high < 0.08)).any())
    assert binomtest(missed, runs, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Evidence(GROUPS).add([0], [1.2]), r"\[0, 1\]"),
        (lambda: Evidence(GROUPS).add([0], [np.nan]), r"\[0, 1\]"),
        (lambda: Evidence(GROUPS).certificate(0), "versions count"),
        (lambda: Evidence(GROUPS).certificate(delta=1.0), "delta"),
        (lambda: Evidence(GROUPS).running(delta=0.0), "delta"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def frozen_misses(errors, n, runs, rng):
    """Runs in which "no group's error is above" is ever false, looked at after every round of one label a group."""
    p = np.asarray(errors)
    missed = 0
    for _ in range(runs):
        sums = np.cumsum(rng.random((n, len(p))) < p, axis=0)
        high = error_rate(sums[::10], np.arange(1, n + 1)[::10, None], 0.05)[1]
        missed += bool((high.max(axis=1) < p.max()).any())
    return missed


def test_no_bonferroni_is_needed_for_the_worst_group():
    misses = frozen_misses([0.3] * 20, 300, 150, np.random.default_rng(0))
    assert binomtest(misses, 150, 0.05, alternative="greater").pvalue > 0.001
