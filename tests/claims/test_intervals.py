import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evenhand.claims.intervals import bounded_mean, clopper_pearson, wilson


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(deadline=None)
def test_wilson_agrees_with_scipy(case):
    k, n = case
    expected = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose(wilson(k, n), (expected.low, expected.high), atol=1e-12)


def test_wilson_without_observations_knows_nothing():
    np.testing.assert_array_equal(wilson([0, 3], [0, 3])[0][0], 0)
    np.testing.assert_array_equal(wilson([0, 3], [0, 3])[1], [1, 1])


@pytest.mark.parametrize(("k", "n", "level"), [(5, 4, 0.95), (-1, 4, 0.95), (1, 4, 1.0), (1, 4, 0.0)])
def test_wilson_refuses(k, n, level):
    with pytest.raises(ValueError, match="must lie"):
        wilson(k, n, level)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.9, 0.999]))
@settings(deadline=None)
def test_clopper_pearson_agrees_with_scipy(case, level):
    k, n = case
    expected = stats.binomtest(k, n).proportion_ci(level, method="exact")
    np.testing.assert_allclose(clopper_pearson(k, n, level), (expected.low, expected.high), atol=1e-9)
    assert [float(end) for end in clopper_pearson(0, 0, level)] == [0, 1]


@pytest.mark.parametrize("draw", [lambda r, n: r.beta(0.3, 1.2, n), lambda r, n: r.random(n) < 0.2])
def test_an_interval_for_numbers_in_the_unit_interval_covers(draw):
    rng = np.random.default_rng(0)
    found = np.array([draw(rng, 50).mean() for _ in range(1000)])
    low, high = bounded_mean(found, 50, 0.9)
    assert np.mean((low <= 0.2) & (high >= 0.2)) >= 0.9
    assert np.all(low <= found)
    assert np.all(found <= high)
    ends = [float(end) for end in bounded_mean(0.0, 20)]
    assert ends == [0, pytest.approx(1 - (0.05 / 2) ** (1 / 20))]  # all zeros: (1 − p)ⁿ is what is left
