import pickle

import numpy as np
import pytest

import evenhand as eh
from evenhand.sources.base import Source, Stream
from evenhand.sources.synthetic.model2 import SyntheticModel2

MODEL = SyntheticModel2()
RULES = {"A_opt+": eh.Optimistic(c1=0.1), "A_opt": eh.Optimistic(), "Greedy": eh.Greedy()}


def sample(group, n=200_000):
    draw = MODEL.open(5, [0]).draw(np.array([group]), np.array([n]))
    return draw.X, draw.y


@pytest.mark.parametrize("group", [0, 1])
@pytest.mark.parametrize(
    ("coef", "intercept"),
    [((1.0, 0.5), 0.2), ((-0.4, 2.0), -0.3), ((0.0, 1.0), 0.1), ((0.0, 0.0), 1.0), ((0.0, 0.0), -1.0)],
)
def test_accuracies_of_linear_rules_against_a_sample(group, coef, intercept):
    X, y = sample(group)
    right = np.mean((X @ np.array(coef) + intercept > 0) == y)
    assert MODEL.linear_accuracies(coef, intercept)[group] == pytest.approx(right, abs=0.005)


def test_no_linear_rule_beats_the_ceiling_on_u():
    angles, cuts = np.meshgrid(np.linspace(0, 2 * np.pi, 73), np.linspace(-3, 3, 61))
    coef = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    accuracies = MODEL.linear_accuracies(coef, cuts)[..., 0]
    assert accuracies.max() == pytest.approx(MODEL.ceiling)
    # the overlap of (c_0, c_0+a) and (c_1, c_1+a) is half lost
    (low, high), a = MODEL.starts, MODEL.length
    assert MODEL.ceiling == pytest.approx(1 - (low + a - high) / a / 2)


def test_u_lies_on_a_line_and_v_top_left_and_bottom_right():
    X, y = sample(0, 5000)
    assert np.ptp(X[:, 1]) == 0
    assert X[y == 0, 0].min() >= MODEL.starts[0]
    assert X[y == 1, 0].max() <= MODEL.starts[1] + MODEL.length
    X, _ = sample(1, 50_000)
    far = X[np.linalg.norm(X, axis=1) > 3.2]
    assert len(far) / len(X) == pytest.approx(0.3, abs=0.01)
    assert (far[:, 0] * far[:, 1] < 0).mean() > 0.95


def test_is_a_source():
    assert isinstance(MODEL, Source)
    assert isinstance(MODEL.open(0, [0]), Stream)
    assert pickle.loads(pickle.dumps(MODEL)) == MODEL
    assert MODEL.population.sum() == 1


def advantages(trials):
    """Mean accuracy of A_opt+ minus the other rules', for u and v."""
    final = eh.simulate(MODEL, RULES, budget=1000, trials=trials, evaluate=1).final
    mean = final.groupby(["strategy", "group"], observed=True)["test_accuracy"].mean().unstack()
    return mean.loc["A_opt+"] - mean.loc[["A_opt", "Greedy"]]


def test_the_trend_term_helps_v_and_costs_u_nothing():
    better = advantages(8)
    assert (better["v"] > 0.01).all()
    assert (better["u"].abs() < 0.005).all()


@pytest.mark.soak
def test_the_trend_term_helps_v_by_three_points_or_more():
    better = advantages(100)
    assert (better["v"] > 0.03).all()
    assert (better["u"].abs() < 0.01).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": 0.0}, "length"),
        ({"weights": (0.5, 0.5, 0.5)}, "weights"),
        ({"spreads": ((0.3, 0.3), (0.0, 0.4), (0.4, 0.4))}, "spreads"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        SyntheticModel2(**settings)


def test_confusions_are_those_of_a_large_sample():
    model = SyntheticModel2()
    w, b = np.array([[1.0, 0.3], [-0.5, 0.8], [0.0, 0.0]]), np.array([0.2, -0.4, 1.0])
    found = model.linear_confusions(w, b)
    assert found.shape == (3, 2, 2, 2)
    assert found.sum(axis=(2, 3)) == pytest.approx(1.0)
    assert np.trace(found, axis1=2, axis2=3) == pytest.approx(model.linear_accuracies(w, b))
    normals = np.random.default_rng(0).standard_normal((200_000, 4))
    for z in (0, 1):
        X, y = model.examples(z, normals)
        for rule in range(3):
            predicted = (X @ w[rule] + b[rule] > 0).astype(int)
            counts = np.array([[np.mean((y == i) & (predicted == j)) for j in (0, 1)] for i in (0, 1)])
            assert found[rule, z] == pytest.approx(counts, abs=0.005)
