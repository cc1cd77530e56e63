"""Published rivals against a convex solver, and means over data sets against pandas and scipy."""

import numpy as np
import pandas as pd
import pytest
from evidence.common import gain
from evidence.rivals import adaptive_weights, mixture_of_models
from evidence.sources import DATA_SETS, SOURCES, digits, over_data_sets, sample
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import ttest_1samp, ttest_rel

C = 100.0


@pytest.fixture(scope="module")
def problem():
    """Three groups that want different rules, and the least worst-group log loss there is (epigraph form)."""
    rng = np.random.default_rng(3)
    X, group = rng.normal(size=(180, 2)), rng.choice(["a", "b", "c"], 180, p=[0.2, 0.3, 0.5])
    axis = {"a": [1.0, 2.0], "b": [2.0, -1.0], "c": [0.0, 2.0]}
    y = (rng.random(180) < expit((X * np.array([axis[z] for z in group])).sum(axis=1))).astype(int)

    def risks(theta):
        losses = np.logaddexp(0.0, -(2 * y - 1) * (X @ theta[:2] + theta[2]))
        return np.array([losses[group == z].mean() for z in "abc"])

    found = minimize(
        lambda v: v[3] + v[:2] @ v[:2] / (2 * C * len(y)),
        np.append(np.zeros(3), 1.0),
        constraints={"type": "ineq", "fun": lambda v: v[3] - risks(v[:3])},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    return X, y, group, lambda model: risks(np.append(model.coef_, model.intercept_)), found.x[3]


def test_adaptive_weights_come_to_the_minimax(problem):
    X, y, group, risks, best = problem
    model = adaptive_weights(X, y, group, risk="log", C=C, rounds=800)
    assert best - 1e-6 < risks(model).max() < best + 0.002


def test_a_mixture_of_models_comes_to_the_minimax(problem):
    X, y, group, risks, best = problem
    few, many = (mixture_of_models(X, y, group, risk="log", C=C, rounds=n).risks(risks).max() for n in (20, 400))
    assert many < best + 0.01
    assert many - best < few - best


def test_samples_are_the_rules_shares():
    uneven = sample(SOURCES["adult"].make(), 200, 0, 0, even=False)
    assert sorted(np.unique(uneven.groups, return_counts=True)[1].tolist()) == [13, 16, 53, 118]
    assert np.unique(sample(digits(), 100, 0, 0, even=True).groups, return_counts=True)[1].tolist() == [20] * 5


def test_sources_of_a_data_set_are_averaged_first():
    assert sorted(source for sources in DATA_SETS.values() for source in sources) == sorted(SOURCES)
    cells = [("adult", 1.0), ("adult", 3.0), ("adult by age", 4.0), ("wine", 6.0), ("synthetic2", 9.0)]
    for real, means in ((False, [3, 6, 9]), (True, [3, 6])):
        low, high = ttest_1samp(means, 0).confidence_interval()
        assert over_data_sets(cells, real=real) == pytest.approx({"mean": np.mean(means), "low": low, "high": high})


def test_gains_are_those_of_a_paired_test():
    ours, theirs = np.random.default_rng(0).normal(size=(2, 7))
    found = gain(pd.Series(ours, index=range(3, 10)), theirs)
    assert (found["low"], found["high"]) == pytest.approx(tuple(ttest_rel(ours, theirs).confidence_interval()))
