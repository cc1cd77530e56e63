"""Confidence sequences against mpmath and brute force, and their coverage when looked at after every label."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from evenhand.claims.intervals import wilson
from evenhand.claims.sequences import error_rate, log_evidence, running_half_width

counts = st.integers(0, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def evidence(s, n, p):
    mixture = mp.log(mp.beta(s + mp.mpf("0.5"), n - s + mp.mpf("0.5"))) - mp.log(mp.beta(0.5, 0.5))
    return mixture - s * mp.log(p) - (n - s) * mp.log(1 - mp.mpf(p))


@given(counts, st.floats(0.001, 0.999))
@settings(deadline=None)
def test_evidence_formula(case, p):
    s, n = case
    assert float(log_evidence(s, n, p)) == pytest.approx(float(evidence(s, n, p)), rel=1e-9, abs=1e-8)


@given(counts, st.floats(0.001, 0.5))
@settings(deadline=None, max_examples=40)
def test_error_rate_is_where_the_evidence_crosses(case, delta):
    s, n = case
    low, high = (float(x) for x in error_rate(s, n, delta))
    limit = mp.log(1 / mp.mpf(delta))
    assert 0 <= low <= (s / n if n else 0.5) <= high <= 1
    for edge in (low, high):
        if 0 < edge < 1:
            assert float(evidence(s, n, edge)) == pytest.approx(float(limit), abs=1e-5)
    assert (low == 0) == (s == 0)
    assert (high == 1) == (s == n)


@given(counts, st.floats(0.01, 0.5), st.floats(0.1, 0.9))
@settings(deadline=None, max_examples=30)
def test_more_confidence_is_wider(case, delta, factor):
    tight, wide = error_rate(*case, delta), error_rate(*case, delta * factor)
    assert wide[0] <= tight[0] + 1e-12
    assert wide[1] >= tight[1] - 1e-12


def test_running_width_formula():
    n, delta = np.array([1, 10, 500, 10_000]), 0.05
    log = 2 * mp.log(1 / mp.mpf(delta))
    rho = mp.mpf(125) / (log + mp.log(1 + log))
    expected = [
        mp.sqrt((k / mp.mpf(4) + rho) * mp.log((k / mp.mpf(4) + rho) / (rho * mp.mpf(delta) ** 2))) / k for k in n
    ]
    np.testing.assert_allclose(running_half_width(n, delta), np.minimum(1, [float(x) for x in expected]), rtol=1e-12)


def test_running_width_is_about_least_where_it_should_be():
    settings = np.geomspace(50, 5000, 60)
    widths = [float(running_half_width(500, best_at=at)) for at in settings]
    assert min(widths) == pytest.approx(float(running_half_width(500, best_at=500)), rel=0.005)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: error_rate(1, 2, 0.0), "delta"),
        (lambda: error_rate(1, 2, 1.0), "delta"),
        (lambda: error_rate(3, 2), "between 0 and n"),
        (lambda: running_half_width(10, 1.5), "delta"),
        (lambda: running_half_width(10, best_at=0), "best_at"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---------------------------------------------------------------- coverage, looked at after every label


def sequence_misses(p, runs, n, rng):
    """Runs in which the error-rate sequence ever leaves out p."""
    missed = np.zeros(runs, dtype=bool)
    for rows in np.array_split(np.arange(runs), max(1, runs // 200)):
        errors = np.cumsum(rng.random((len(rows), n)) < p, axis=1)
        missed[rows] = (log_evidence(errors, np.arange(1, n + 1), p) >= np.log(1 / 0.05)).any(axis=1)
    return int(missed.sum())


def running_misses(p, runs, n, rng):
    """Runs in which the running width is ever exceeded, the risk moving with what was seen."""
    surprise, missed = np.zeros(runs), np.zeros(runs, dtype=bool)
    for k in range(1, n + 1):
        risk = np.clip(p * (1 + 0.5 * np.sign(surprise) / np.sqrt(k)), 0, 1)
        surprise += (rng.random(runs) < risk) - risk
        missed |= np.abs(surprise) / k > running_half_width(k)
    return int(missed.sum())


def between_misses(p, runs, n, rng):
    """Runs in which the sequence ever leaves out p, for losses between 0 and 1."""
    missed = np.zeros(runs, dtype=bool)
    for rows in np.array_split(np.arange(runs), max(1, runs // 200)):
        sums = np.cumsum(rng.beta(2 * p, 2 * (1 - p), (len(rows), n)), axis=1)
        missed[rows] = (log_evidence(sums, np.arange(1, n + 1), p) >= np.log(1 / 0.05)).any(axis=1)
    return int(missed.sum())


def too_many(misses, runs):
    return binomtest(misses, runs, 0.05, alternative="greater").pvalue < 0.001


KINDS = [sequence_misses, running_misses, between_misses]


@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("misses", KINDS)
def test_coverage_short(misses, p):
    assert not too_many(misses(p, 300, 600, np.random.default_rng(0)), 300)


@pytest.mark.soak
@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("misses", KINDS)
def test_coverage(misses, p):
    found = misses(p, 2000, 5000, np.random.default_rng(1))
    assert not too_many(found, 2000)


def test_looking_after_every_label_breaks_wilson():
    rng = np.random.default_rng(0)
    errors = np.cumsum(rng.random((300, 600)) < 0.1, axis=1)
    low, high = wilson(errors, np.arange(1, 601))
    assert ((low > 0.1) | (high < 0.1)).any(axis=1).mean() > 0.2


@pytest.mark.parametrize("n", [500, 1000, 5000])
@pytest.mark.parametrize("p", [0.01, 0.1, 0.5])
def test_width_against_wilson(p, n):
    low, high = error_rate(p * n, n)
    fixed_low, fixed_high = wilson(p * n, n)
    assert (high - low) / (fixed_high - fixed_low) < 2.2
