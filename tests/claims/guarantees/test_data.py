"""Assumption 2 and the front of group risks in data, against exact risks and brute force."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

import evenhand as eh
import evenhand.claims.guarantees as g
from evenhand.plotting.guarantees import plot_front

I = eh.SyntheticModel1.instance("I")
THREE = eh.SyntheticModel1(
    {
        "a": {0: (-1, 0, 0), 1: (1, 0, 0)},
        "b": {0: (0, -1.5, 0), 1: (0, 1.5, 0)},
        "c": {0: (0, 0, -2), 1: (0, 0, 2)},
    }
)


def drawn(model, n, seed=0):
    rng = np.random.default_rng(seed)
    parts = [model.examples(z, rng.standard_normal((n, model.normals))) for z in range(len(model.groups))]
    X, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    return X, y, np.repeat(model.groups, n)


class Threshold:
    """A learner of one cut on the line, 1 above it; it takes no weights."""

    def fit(self, X, y, *, previous=None, seed=0):
        cuts = np.quantile(X[:, 0], np.linspace(0.02, 0.98, 49))
        rule = Threshold()
        rule.cut = min(cuts, key=lambda c: np.mean((X[:, 0] > c) != y))
        return rule

    @property
    def classes(self):
        return np.array([0, 1])

    def predict(self, X):
        return (X[:, 0] > self.cut).astype(int)


def on_a_line(sizes, rng):
    means = {"easy": 3.0, "hard": 0.3}
    X, y, z = [], [], []
    for group, n in sizes.items():
        labels = rng.integers(0, 2, n)
        X += list((2 * labels - 1) * means[group] + rng.normal(size=n))
        y += list(labels)
        z += [group] * n
    return np.array(X)[:, None], np.array(y), z


def test_assumption_2_fails_for_a_group_that_stays_worse():
    found = g.probe(Threshold(), *on_a_line({"easy": 2000, "hard": 2000}, np.random.default_rng(0)))
    assert found.fails == (("hard", "easy"),)
    assert "A_opt+" in str(found)
    assert found.risks[1, 1] == pytest.approx(norm.cdf(-0.3), abs=0.04)


def test_assumption_2_of_equals_and_of_few():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(0, 0.1, (400, 1)), rng.normal(3, 0.1, (400, 1))])
    y = (X[:, 0] > np.repeat([0.0, 3.0], 400)).astype(int)
    groups = np.repeat(["a", "b"], 400)
    assert "holds" in str(g.probe(Threshold(), X, y, groups))
    few = g.probe(Threshold(), X[395:405], y[395:405], groups[395:405])
    assert "undecided" in str(few)
    with pytest.raises(ValueError, match="at least 2"):
        g.probe(Threshold(), X[399:405], y[399:405], groups[399:405])


def test_other_risks_learners_and_frames():
    X, y, groups = drawn(I, 400)
    frame = pd.DataFrame(X, columns=["one", "two"])
    plain = g.pareto(LogisticRegression(C=1.0, tol=1e-8), X, y, groups, points=5)
    assert g.pareto(eh.Logistic(), frame, y, groups, points=5).risks == pytest.approx(plain.risks, abs=0.006)
    one = g.pareto(eh.Logistic(), X, y, groups, points=5, risk="fnr", positive=1)
    assert one.risk == "false negative rate"
    probed = g.probe(eh.Logistic(), X, y, groups, risk="fnr", positive=1)
    assert probed.counts.sum() < 400


@pytest.mark.parametrize("risk", ["error", "log"])
def test_the_front_has_the_fair_mixture_on_it(risk):
    front = g.pareto(eh.Logistic(), *drawn(I, 3000), risk=risk)
    fair = front.mixtures[front.fair]
    assert fair == pytest.approx(I.pi_star(risk), abs=0.06)
    assert front.risks[front.fair].max() == pytest.approx(I.worst_risk(I.pi_star(risk), risk), abs=0.02)
    assert front.risks == pytest.approx(I.mixture_risk(front.mixtures, risk), abs=0.12)
    assert front.fair == np.argmin([row.max() for row in front.risks])


def test_properties_1_and_3_hold_where_the_learner_minimises_the_risk():
    """On the population itself no f_π is dominated, each minimises its own mixture's risk, and the fair one is minimax."""
    shares = np.linspace(0.02, 0.98, 49)
    mixtures = np.column_stack([shares, 1 - shares])
    front = g.Front(I.groups, mixtures, I.mixture_risk(mixtures, "log"), "log loss")
    assert not front.dominated.any()
    assert front.slack == pytest.approx(0, abs=1e-12)
    # no linear rule at all beats the worst group of the fair mixture
    rng = np.random.default_rng(0)
    coef, intercept = I.f_pi(I.pi_star("log"))
    others = I.group_risk(coef + rng.normal(size=(2000, 2)), intercept + rng.normal(size=2000), "log")
    assert others.max(axis=1).min() >= I.worst_risk(I.pi_star("log"), "log") - 1e-12


def test_dominated_and_slack_by_hand():
    front = g.Front(("u", "v"), np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([[0.2, 0.3], [0.1, 0.25]]), "error")
    assert front.dominated == pytest.approx([0.05, 0.0])
    assert front.slack == pytest.approx([0.5 * 0.1 + 0.5 * 0.05, 0.0])
    assert front.fair == 1
    assert "u 0.20, v 0.80" in str(front)


def test_three_groups_meet_at_the_fair_mixture():
    front = g.pareto(eh.Logistic(), *drawn(THREE, 2000), risk="log")
    assert front.mixtures[front.fair] == pytest.approx(THREE.pi_star("log"), abs=0.06)
    assert front.mixtures.sum(axis=1) == pytest.approx(1)
    assert np.ptp(front.risks[front.fair]) < 0.02


def test_pictures(tmp_path):
    for model in (I, THREE):
        figure = plot_front(g.pareto(eh.Logistic(), *drawn(model, 200), points=4))
        assert isinstance(figure, Figure)
        figure.savefig(tmp_path / "front.png")
        assert (tmp_path / "front.png").stat().st_size > 5000


def test_bad_input():
    X, y, groups = drawn(I, 10)
    for call, message in (
        (lambda: g.pareto(eh.Logistic(), X, y, groups, points=2), "points"),
        (lambda: g.probe(eh.Logistic(), X, y, groups, risk="balanced"), "fnr"),
        (lambda: g.probe(eh.Logistic(), X, y[1:], groups), "as many rows"),
        (lambda: g.probe(LinearRegression, X, y, groups), "not the class"),
        (
            lambda: g.pareto(eh.Logistic(), X, np.where(groups == "u", 0, y), groups, risk="fnr", positive=1),
            "no example",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
