import numpy as np
import pymannkendall
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evenhand.strategies.trend import RunningTrend, mann_kendall, trend

# few distinct values, so that ties are common
tied = st.integers(0, 4).map(float)


@given(st.lists(tied, min_size=2, max_size=20))
@settings(deadline=None)
def test_agrees_with_pymannkendall(values):
    s, var = mann_kendall(values)
    peer = pymannkendall.original_test(values)
    assert s == peer.s
    assert var == pytest.approx(peer.var_s)


def test_a_full_window_that_rises_has_the_largest_trend():
    assert trend(np.arange(20.0)) == pytest.approx(6.16, abs=0.005)
    assert trend(-np.arange(20.0)) == pytest.approx(-6.16, abs=0.005)


def test_random_series_without_ties():
    rng = np.random.default_rng(0)
    series = rng.normal(size=(50, 20))
    s, var = mann_kendall(series)
    peers = [pymannkendall.original_test(x) for x in series]
    np.testing.assert_array_equal(s, [p.s for p in peers])
    np.testing.assert_allclose(var, [p.var_s for p in peers])


@given(st.lists(tied, max_size=12), st.integers(0, 8), st.integers(0, 8))
@settings(deadline=None)
def test_padding_counts_nothing(values, before, after):
    padded = [np.nan] * before + values + [np.nan] * after
    if not padded:
        return
    expected = mann_kendall(values) if values else (0.0, 0.0)
    assert mann_kendall(padded) == tuple(expected)


def test_trend_is_zero_without_evidence():
    assert trend([np.nan] * 20) == 0
    assert trend([0.1, 0.9] + [np.nan] * 18) == 0
    assert trend([0.5] * 20) == 0
    assert trend([0.1, 0.2, 0.3] + [np.nan] * 17) == pytest.approx(3 / np.sqrt(3 * 2 * 11 / 18))


@given(
    arrays(float, (30, 2, 3), elements=st.one_of(st.just(np.nan), tied)),
    st.integers(1, 8),
)
@settings(deadline=None)
def test_running_equals_the_whole_window(values, width):
    running = RunningTrend.empty((2, 3), width)
    kept = [[[] for _ in range(3)] for _ in range(2)]
    for step in values:
        running.push(step)
        for i, j in np.ndindex(2, 3):
            if step[i, j] == step[i, j]:
                kept[i][j].append(step[i, j])
    for i, j in np.ndindex(2, 3):
        last = kept[i][j][-width:]
        s, var = mann_kendall(last) if last else (0.0, 0.0)
        assert running.s[i, j] == s
        assert running.variance[i, j] == pytest.approx(var)
        assert running.k[i, j] == len(last)
    np.testing.assert_allclose(running.trend, trend(running.window))


@given(arrays(float, (4, 6), elements=st.one_of(st.just(np.nan), tied)), tied)
@settings(deadline=None)
def test_running_can_start_from_a_window(window, value):
    running = RunningTrend.of(window)
    running.push(value)
    for row, start in enumerate(window):
        last = [*start[~np.isnan(start)], value][-6:]
        assert running.s[row] == mann_kendall(last)[0]
        assert running.variance[row] == pytest.approx(mann_kendall(last)[1])
