import itertools
import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize
from scipy.stats import multivariate_normal, norm

from evenhand.learners.logistic.learner import Logistic
from evenhand.risks import as_risk
from evenhand.sources.base import ConfusionStream, RiskStream, Source, Stream
from evenhand.sources.synthetic.fair_mixture import two_groups
from evenhand.sources.synthetic.model1 import SyntheticModel1

I, II = SyntheticModel1.instance("I"), SyntheticModel1.instance("II")
SKEW = SyntheticModel1(
    {"a": {0: (0.0, -0.5), 1: (1.5, 0.3)}, "b": {0: (-1.0, 0.2), 1: (0.4, 0.1)}, "c": {0: (0.3, 2.0), 1: (0.0, 0.0)}}
)


@pytest.mark.parametrize(
    ("model", "share", "error", "log_loss"), [(I, 0.20, 0.10295, 0.24577), (II, 0.64, 0.04484, 0.11494)]
)
def test_known_values(model, share, error, log_loss):
    pi = model.pi_star()
    assert pi[0] == share
    assert model.worst_risk(pi) == pytest.approx(error, abs=5e-6)
    assert model.worst_risk(pi, "log") == pytest.approx(log_loss, abs=5e-6)
    np.testing.assert_allclose(model.mixture_risk(pi), model.worst_risk(pi), atol=1e-12)


@given(st.floats(0.2, 3), st.floats(0.2, 3), st.floats(0, np.pi), st.sampled_from(["error", "log"]))
@settings(max_examples=15, deadline=None)
def test_orthogonal_closed_form_is_where_the_risks_cross(ru, rv, angle, risk):
    u, v = ru * np.array([np.cos(angle), np.sin(angle)]), rv * np.array([-np.sin(angle), np.cos(angle)])
    model = SyntheticModel1({"u": {0: -u, 1: u}, "v": {0: -v, 1: v}})
    crossing = two_groups(lambda pi: model.mixture_risk(pi, risk))
    assert crossing[0] == pytest.approx(rv**2 / (ru**2 + rv**2), abs=1e-7)


def test_log_risk_by_integration_in_the_plane():
    coef, intercept = np.array([1.7, -0.6]), 0.4
    expected = []
    for mean in SKEW.mu:
        total = 0.0
        for y in (0, 1):
            density = multivariate_normal(mean[y]).pdf

            def integrand(b, a, density=density, y=y):
                return density([a, b]) * np.logaddexp(0, (1 - 2 * y) * (coef @ [a, b] + intercept))

            (a, b) = mean[y]
            total += 0.5 * integrate.dblquad(integrand, a - 8, a + 8, b - 8, b + 8, epsabs=1e-7)[0]
        expected.append(total)
    np.testing.assert_allclose(SKEW.group_risk(coef, intercept, "log"), expected, atol=1e-6)


@given(st.floats(-6, 6), st.just(0.0) | st.floats(0.01, 30), st.floats(-4, 4))
@example(mean=0.0, weight=0.125, intercept=2.2250738585072014e-308)
@example(mean=1.0000000000000002, weight=1.0, intercept=-1.0)
@settings(max_examples=40, deadline=None)
def test_one_dimensional_risks_by_quadrature(mean, weight, intercept):
    model = SyntheticModel1({"a": {0: (mean,), 1: (1.0,)}})

    def expectation(f):
        kink = [] if weight == 0 else [-intercept / weight]
        cuts = [-16.0, 16.0]
        for p in (*kink, mean, 1.0):
            if -16 < p < 16 and min(abs(p - cut) for cut in cuts) > 1e-9:  # quad fails on shorter intervals
                cuts.append(p)
        pieces = itertools.pairwise(sorted(cuts))
        return sum(integrate.quad(f, a, b, epsabs=1e-12, limit=200)[0] for a, b in pieces)

    def log_loss(x):
        s = weight * x + intercept
        return 0.5 * (norm.pdf(x - mean) * np.logaddexp(0, s) + norm.pdf(x - 1) * np.logaddexp(0, -s))

    def zero_one(x):
        one = weight * x + intercept > 0
        return 0.5 * (norm.pdf(x - mean) * one + norm.pdf(x - 1) * (not one))

    assert model.group_risk([weight], intercept, "log")[0] == pytest.approx(expectation(log_loss), abs=1e-8)
    assert model.group_risk([weight], intercept)[0] == pytest.approx(expectation(zero_one), abs=1e-6)


def test_f_pi_minimises_the_mixture_risk():
    pi = np.array([0.5, 0.2, 0.3])
    coef, intercept = SKEW.f_pi(pi)

    def loss(theta):
        return float(pi @ SKEW.group_risk(theta[:2], theta[2], "log"))

    at = np.append(coef, intercept)
    slope = optimize.approx_fprime(at, loss, 1e-6)
    np.testing.assert_allclose(slope, 0, atol=1e-6)
    peer = optimize.minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15})
    np.testing.assert_allclose(at, peer.x, atol=1e-5)


def test_f_pi_has_the_closed_form_of_orthogonal_groups():
    # at π* both groups press equally: w = 2(π_u μ_u·… ) solves the Stein equations exactly
    np.testing.assert_allclose(I.f_pi([0.2, 0.8])[0], [2.4, 0.8], atol=1e-10)
    np.testing.assert_allclose(II.f_pi([0.64, 0.36])[0], [3.36, -0.48], atol=1e-10)
    # a single group: Fisher's rule, w = μ1 − μ0
    np.testing.assert_allclose(I.f_pi([1.0, 0.0])[0], [4, -4], atol=1e-10)


def test_f_pi_of_many_mixtures_at_once():
    shares = np.linspace(0, 1, 7)
    many = np.stack([shares, 1 - shares], axis=-1).reshape(7, 1, 2)
    coef, intercept = I.f_pi(many)
    assert coef.shape == (7, 1, 2)
    assert intercept.shape == (7, 1)
    for k, share in enumerate(shares):
        np.testing.assert_allclose(coef[k, 0], I.f_pi([share, 1 - share])[0], atol=1e-11)


@pytest.mark.parametrize("risk", ["error", "log"])
def test_excess_risk_is_least_at_the_fair_mixture(risk):
    shares = np.linspace(0, 1, 41)
    excess = I.excess_risk(np.stack([shares, 1 - shares], axis=-1), risk)
    assert (excess >= -1e-12).all()
    assert shares[excess.argmin()] == pytest.approx(0.2)
    assert I.excess_risk(I.pi_star(), risk) == 0


def test_fair_mixture_of_three_groups_beats_its_neighbours():
    pi = SKEW.pi_star("log")
    assert pi.sum() == pytest.approx(1)
    rng = np.random.default_rng(0)
    others = rng.dirichlet(np.ones(3), 300)
    near = 0.98 * pi + 0.02 * others
    assert (SKEW.excess_risk(np.concatenate([others, near]), "log") > -1e-8).all()


def test_fair_mixture_sits_in_a_corner_when_one_group_stays_worse():
    model = SyntheticModel1({"easy": {0: (-4.0,), 1: (4.0,)}, "hard": {0: (-0.2,), 1: (0.2,)}})
    np.testing.assert_array_equal(model.pi_star(), [0, 1])
    np.testing.assert_array_equal(SyntheticModel1(dict(reversed(model.means.items()))).pi_star(), [1, 0])
    assert SyntheticModel1({"only": {0: (0.0,), 1: (1.0,)}}).pi_star() == [1.0]


def test_constant_rules_are_right_half_the_time():
    np.testing.assert_allclose(I.linear_accuracies(np.zeros((2, 2)), [1.0, -1.0]), 0.5)


def test_is_a_source():
    assert isinstance(I, Source)
    stream = I.open(0, [0])
    assert all(isinstance(stream, kind) for kind in (Stream, RiskStream, ConfusionStream))
    assert I.open(0, [0]).left() is None
    assert pickle.loads(pickle.dumps(I)) == I
    np.testing.assert_array_equal(I.population, [0.5, 0.5])
    assert SyntheticModel1(I.means, shares={"v": 3, "u": 1}).population.tolist() == [0.25, 0.75]


def take(model, seed, trials, wanted):
    """All examples per (trial, group) when drawn in the given sizes, one list of (group, size) a round."""
    stream = model.open(seed, trials)
    seen = {}
    for group, size in wanted:
        draw = stream.draw(np.asarray(group), np.asarray(size))
        for t, g, x, y in zip(draw.trial, draw.group, draw.X, draw.y, strict=True):
            seen.setdefault((trials[t], int(g)), []).append((*x, y))
    return seen


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_the_kth_example_depends_on_seed_trial_group_and_k_only(data):
    rounds = data.draw(st.lists(st.tuples(st.lists(st.integers(-1, 2), min_size=2, max_size=2),
                                          st.lists(st.sampled_from([0, 1, 2, 7, 150, 700]), min_size=2, max_size=2)),
                                max_size=8))  # fmt: skip
    pair = take(SKEW, 3, [4, 9], rounds)
    for (trial, group), rows in pair.items():
        alone = take(SKEW, 3, [trial], [([group], [1])] * min(len(rows), 40))
        assert rows[:40] == alone[trial, group]
        whole = take(SKEW, 3, [7, trial], [([-1, group], [5, len(rows)])])
        assert rows == whole[trial, group]


def test_other_seed_trial_or_group_other_examples():
    first = {
        (seed, trial, group): take(I, seed, [trial], [([group], [1])])[trial, group][0]
        for seed in (0, 1) for trial in (0, 1) for group in (0, 1)
    }  # fmt: skip
    assert len(set(first.values())) == 8


def test_draws_follow_the_model():
    stream = SKEW.open(0, [0])
    for group, mean in enumerate(SKEW.mu):
        draw = stream.draw(np.array([group]), np.array([40_000]))
        assert draw.y.mean() == pytest.approx(0.5, abs=0.01)
        for y in (0, 1):
            rows = draw.X[draw.y == y]
            np.testing.assert_allclose(rows.mean(axis=0), mean[y], atol=0.03)
            np.testing.assert_allclose(np.cov(rows.T), np.eye(2), atol=0.04)


class Rule:
    """A rule that is not linear: 1 outside the unit circle."""

    classes = np.array([0, 1])

    def predict(self, X):
        return (np.square(X).sum(axis=1) > 1).astype(int)


def test_other_models_are_evaluated_on_a_held_out_sample():
    model = SyntheticModel1({"a": {0: (0.0, 0.0), 1: (2.0, 0.0)}, "b": {0: (0.0, 0.0), 1: (0.0, 0.0)}})
    accuracies = model.open(0, [0, 1]).accuracies([Rule(), Rule()])
    assert accuracies.shape == (2, 2)
    assert accuracies[0, 0] == accuracies[1, 0]
    # P(‖N(0,I)‖² < 1) = 1 − e^−½
    inside = 1 - np.exp(-0.5)
    assert accuracies[0, 1] == pytest.approx(0.5, abs=0.02)
    assert accuracies[0, 0] > 0.5 * (inside + 0.7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SyntheticModel1.instance("III"), "instance must be"),
        (lambda: SyntheticModel1({"a": {0: (1.0,)}}), "label 0 and for label 1"),
        (lambda: SyntheticModel1({"a": {0: (1.0,), 1: (1.0, 2.0)}}), "same number of features"),
        (lambda: SyntheticModel1({}), "same number of features"),
        (lambda: SyntheticModel1({"a": {0: (1.0,), 1: (np.nan,)}}), "finite"),
        (lambda: SyntheticModel1(I.means, shares=[0.5]), "shares must be"),
        (lambda: SyntheticModel1(I.means, shares={"u": 1.0}), "shares name"),
        (lambda: I.group_risk([1.0], 0.0), "coef needs 2"),
        (lambda: I.group_risk([1.0, 1.0], 0.0, "hinge"), "hinge"),
        (lambda: I.f_pi([0.5, 0.6]), "sum to 1"),
        (lambda: I.f_pi([1.0]), "needs 2 shares"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_misses_and_false_alarms_are_exact():
    model = SyntheticModel1({"a": {0: (0.0, 1.0), 1: (2.0, -0.5)}, "b": {0: (-1.0, 0.0), 1: (0.5, 0.5)}})
    rng = np.random.default_rng(3)
    w, b = rng.normal(size=(6, 2)), rng.normal(size=6)
    for z, group in enumerate(model.groups):
        # the score of a label is normal with mean w·μ + b and deviation ‖w‖
        low, high = (norm(w @ np.array(model.means[group][y]) + b, np.linalg.norm(w, axis=1)).cdf(0) for y in (0, 1))
        assert model.group_risk(w, b, "fnr")[:, z] == pytest.approx(high)
        assert model.group_risk(w, b, "fpr")[:, z] == pytest.approx(1 - low)
        assert model.group_risk(w, b, "balanced")[:, z] == pytest.approx((high + 1 - low) / 2)
        assert model.group_risk(w, b, "costs:0,1;5,0")[:, z] == pytest.approx((1 - low + 5 * high) / 2 / 5)
    assert model.group_risk(w, b, "balanced") == pytest.approx(model.group_risk(w, b))


def test_the_fair_mixture_for_misses_is_the_best_of_all():
    model = SyntheticModel1({"u": {0: (-1.0, 1.8), 1: (-0.3, -0.9)}, "v": {0: (0.0, -1.2), 1: (-3.0, -0.8)}})
    shares = np.linspace(0, 1, 2001)
    worst = model.worst_risk(np.stack([shares, 1 - shares], axis=-1), "fnr")
    assert model.worst_risk(model.pi_star("fnr"), "fnr") <= worst.min() + 1e-9
    assert abs(model.pi_star("fnr")[0] - model.pi_star()[0]) > 0.1


class Other:
    """A linear rule that does not tell that it is one."""

    def __init__(self, model):
        self.classes, self.predict, self.predict_log_proba = model.classes, model.predict, model.predict_log_proba


def test_risks_of_models_are_exact_or_on_the_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    linear = Logistic().fit(X, (X[:, 0] > 0).astype(int))
    stream = I.open(0, [0, 1, 2])
    for name in ("fnr", "fpr", "balanced", "log"):
        measure = as_risk(name, 1 if name in ("fnr", "fpr") else None).for_classes(I.classes)
        if name != "log":
            found = stream.accuracies_and_risks([linear, Rule(), None], measure)[1]
            assert np.isnan(found[2]).all()
            assert 0 < found[1].min() < 1
        exact = stream.accuracies_and_risks([linear], measure)[1][0]
        assert stream.accuracies_and_risks([Other(linear)], measure)[1][0] == pytest.approx(exact, abs=0.02)
