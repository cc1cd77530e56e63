import numpy as np
import pytest

import evenhand as eh
from evenhand.claims.guarantees.excess import simulated_excess, slope

I = eh.SyntheticModel1.instance("I")


@pytest.fixture(scope="module")
def result():
    return eh.simulate(I, ["optimistic", "uniform"], budget=400, trials=6, evaluate=1)


def test_excess_comes_from_the_mixture_of_every_trial(result):
    found = simulated_excess(result.trace, I, [100, 400], strategy="optimistic")
    assert found.shape == (2, 6)
    final = result.final[(result.final["strategy"] == "optimistic") & (result.final["group"] == "u")]
    shares = final.sort_values("trial")["mixture"].to_numpy()
    np.testing.assert_allclose(found[1], I.excess_risk(np.stack([shares, 1 - shares], axis=-1)))


def test_a_longer_run_begins_like_a_shorter_one(result):
    short = eh.simulate(I, ["optimistic"], budget=100, trials=6, evaluate=1).trace
    longer = simulated_excess(result.trace, I, [100], strategy="optimistic")
    np.testing.assert_array_equal(simulated_excess(short, I, [100]), longer)


def test_uniform_stays_where_it_is(result):
    found = simulated_excess(result.trace, I, [400], strategy="uniform")
    np.testing.assert_allclose(found, I.excess_risk([0.5, 0.5]))


def test_budgets_that_no_round_ends_at_are_refused(result):
    with pytest.raises(ValueError, match="101 labels"):
        simulated_excess(result.trace, I, [101], strategy="uniform")


def test_slope_of_a_power_law():
    labels = np.array([100, 1000, 10_000])
    noise = np.random.default_rng(0).lognormal(sigma=0.3, size=(3, 200))
    found = slope(labels, 2 * labels[:, None] ** -0.7 * noise)
    assert found.low < -0.7 < found.high
    assert found.low < found.value < found.high
    exact = slope(labels, labels[:, None] ** -0.5 * np.ones(5))
    assert exact == pytest.approx((-0.5, -0.5, -0.5))
