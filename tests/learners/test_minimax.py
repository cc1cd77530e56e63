"""`Minimax` against bisection, a convex solver and closed forms, and what it refuses."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import evenhand as eh
from evenhand.learners.simplex import maximise, optimality_gap
from evenhand.learners.storing import dump_model, load_model


def two_groups(instance, sizes, seed=0):
    """Examples of SyntheticModel1, so many of each group."""
    stream = eh.SyntheticModel1.instance(instance).open(seed, [0])
    parts = [stream.draw(np.array([z]), np.array([n])) for z, n in enumerate(sizes)]
    X, y = np.vstack([part.X for part in parts]), np.concatenate([part.y for part in parts])
    return X, y, np.repeat(["u", "v"], sizes)


def log_risks(theta, X, y, group):
    losses = np.logaddexp(0.0, -(2 * y - 1) * (X @ theta[:-1] + theta[-1]))
    return np.array([losses[group == z].mean() for z in np.unique(group)])


@pytest.mark.parametrize(("instance", "sizes"), [("I", (47_500, 2_500)), ("II", (2_500, 47_500))])
def test_the_exact_minimax_of_a_sample_and_the_population(instance, sizes):
    X, y, group = two_groups(instance, sizes)
    fair = eh.Minimax(eh.Logistic(C=1e4), risk="log", folds=0).fit(X, y, groups=group)
    n = dict(zip("uv", sizes, strict=True))

    def fitted(q):
        weight = np.where(group == "u", q / n["u"], (1 - q) / n["v"]) * len(y)
        model = LogisticRegression(C=1e4, solver="newton-cholesky", tol=1e-8).fit(X, y, sample_weight=weight)
        return log_risks(np.append(model.coef_, model.intercept_), X, y, group)

    low, high = 0.0, 1.0
    for _ in range(16):
        q = (low + high) / 2
        u, v = fitted(q)
        low, high = (q, high) if u > v else (low, q)
    assert fair.risks_.max() == pytest.approx(max(u, v), abs=1e-5)
    assert fair.weights_["u"] == pytest.approx(q, abs=1e-3)
    source = eh.SyntheticModel1.instance(instance)
    fresh_X, fresh_y, fresh_group = two_groups(instance, (20_000, 20_000), seed=1)
    theta = np.append(fair.model_.coef_, fair.model_.intercept_)
    worst = log_risks(theta, fresh_X, fresh_y, fresh_group).max()
    assert worst == pytest.approx({"I": 0.24577, "II": 0.11494}[instance], abs=0.02)
    assert fair.weights_["u"] == pytest.approx(source.pi_star()[0], abs=0.1)


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_agrees_with_a_convex_solver_in_epigraph_form(groups):
    rng = np.random.default_rng(groups)
    n = 60 * groups
    X, group = rng.normal(size=(n, 3)), rng.choice(groups, n, p=np.arange(1, groups + 1) / sum(range(groups + 1)))
    axis = rng.normal(size=(groups, 3))
    y = (rng.random(n) < expit(2 * (X * axis[group]).sum(axis=1) + 0.3 * group)).astype(int)
    C = 10.0
    fair = eh.Minimax(eh.Logistic(C=C), risk="log", folds=0).fit(X, y, groups=group)

    def gradient(theta):
        slope = -(2 * y - 1) * expit(-(2 * y - 1) * (X @ theta[:3] + theta[3]))
        rows = slope[:, None] * np.column_stack((X, np.ones(n)))
        return np.array([np.append(-rows[group == z].mean(axis=0), 1.0) for z in range(groups)])

    # min t + |w|²/(2Cn) so that every group's mean log loss is at most t
    found = minimize(
        lambda v: v[4] + v[:3] @ v[:3] / (2 * C * n),
        np.append(np.zeros(4), 1.0),
        jac=lambda v: np.append(v[:3] / (C * n), [0.0, 1.0]),
        constraints={
            "type": "ineq",
            "fun": lambda v: v[4] - log_risks(v[:4], X, y, group),
            "jac": lambda v: gradient(v[:4]),
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    theta = np.append(fair.model_.coef_, fair.model_.intercept_)
    assert fair.risks_.max() == pytest.approx(found.x[4], abs=1e-4)
    assert log_risks(theta, X, y, group).max() == pytest.approx(found.x[4], abs=1e-4)
    assert theta == pytest.approx(found.x[:4], abs=1e-2)


def test_the_maximum_on_the_simplex():
    rng = np.random.default_rng(0)
    for m in (2, 4, 9):
        root = rng.normal(size=(m, m))
        matrix, linear = root @ root.T + 0.01 * np.eye(m), 3 * rng.normal(size=m)
        q = maximise(lambda q, A=matrix, b=linear: b - A @ q, np.full(m, 1 / m))
        best = minimize(
            lambda q, A=matrix, b=linear: 0.5 * q @ A @ q - b @ q,
            np.full(m, 1 / m),
            bounds=[(0, 1)] * m,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        assert q == pytest.approx(best.x, abs=1e-4)
        assert optimality_gap(q, linear - matrix @ q) < 1e-7


@pytest.mark.parametrize("folds", [0, 5])
def test_the_worst_group_gains_and_the_same_seed_gives_the_same(folds):
    X, y, group = two_groups("I", (900, 100))
    fair = eh.Minimax(eh.Logistic(), folds=folds).fit(X, y, groups=group, seed=3)
    again = clone(fair).fit(X, y, groups=group, seed=3)
    assert np.array_equal(fair.model_.coef_, again.model_.coef_)
    test_X, test_y, test_group = two_groups("I", (5000, 5000), seed=5)

    def worst(model):
        wrong = model.predict(test_X) != test_y
        return max(wrong[test_group == z].mean() for z in "uv")

    assert worst(fair) < worst(eh.Logistic().fit(X, y)) - 0.05
    assert fair.weights_.sum() == pytest.approx(1.0)
    assert fair.weights_.index.tolist() == ["u", "v"]
    assert set(fair.history_) == {"round", "group", "weight", "risk"}


def test_weights_of_examples_count_as_copies():
    X, y, group = two_groups("II", (120, 60))
    times = np.random.default_rng(1).integers(1, 4, len(y))
    copies = np.repeat(np.arange(len(y)), times)
    settings = {"learner": eh.Logistic(), "risk": "log", "folds": 0}
    weighted = eh.Minimax(**settings).fit(X, y, groups=group, sample_weight=times)
    copied = eh.Minimax(**settings).fit(X[copies], y[copies], groups=group[copies])
    assert weighted.weights_["u"] == pytest.approx(copied.weights_["u"], abs=1e-5)
    assert weighted.model_.coef_ == pytest.approx(copied.model_.coef_, abs=1e-4)


@pytest.mark.parametrize(
    "learner",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(n_estimators=5, max_depth=3),
        eh.TorchLearner(lambda: torch.nn.Linear(2, 2)),
        "factory",
    ],
    ids=["Pipeline", "forest", "network", "own"],
)
def test_any_learner_that_takes_weights(learner):
    class Own:
        def fit(self, X, y, *, sample_weight=None, previous=None, seed=0):
            return eh.Logistic().fit(X, y, sample_weight)

    X, y, group = two_groups("I", (80, 20))
    fair = eh.Minimax(Own() if learner == "factory" else learner, rounds=6, folds=2).fit(X, y, groups=group)
    assert set(fair.predict(X)) <= {0, 1}
    assert len(fair.history_) == 2 * 7


@pytest.mark.parametrize("risk", ["error", "log", "fnr", "fpr", "balanced", eh.Costs([[0, 1], [5, 0]])], ids=str)
def test_every_risk(risk):
    X, y, group = two_groups("I", (150, 50))
    positive = 1 if risk in ("fnr", "fpr") else None
    fair = eh.Minimax(eh.Logistic(), risk=risk, positive=positive).fit(X, y, groups=group)
    assert np.isfinite(fair.risks_).all()
    assert np.ptp(fair.risks_) < 0.15


def test_as_the_learner_of_a_simulation_and_a_campaign():
    result = eh.simulate(
        eh.SyntheticModel1.instance("I"),
        [eh.Uniform()],
        eh.Minimax(eh.Logistic(), rounds=4),
        budget=40,
        trials=2,
        evaluate=1,
    )
    assert 0.3 < result.summary()["strategies"]["uniform"]["final_worst_group_accuracy"]["mean"] <= 1
    campaign = eh.Campaign(["u", "v"], eh.Uniform(), eh.Minimax(eh.Logistic(), rounds=4), budget=40)
    rng = np.random.default_rng(0)
    while not campaign.done:
        request = campaign.ask()
        X = rng.normal(size=(request.size, 2))
        campaign.tell(request, X, (X[:, 0] > 0).astype(int))
    model = campaign.final_model()
    form, data = dump_model(model)
    assert np.array_equal(load_model(form, data).predict(X), model.predict(X))


@pytest.mark.parametrize("rows", [3, 1])
def test_tiny_groups_one_group_and_one_class(rows):
    X, y, group = two_groups("I", (60, rows))
    fair = eh.Minimax(eh.Logistic()).fit(X, y, groups=group)
    assert np.isfinite(fair.risks_).all()
    alone = eh.Minimax(eh.Logistic()).fit(X, y, groups=np.full(len(y), "all"))
    assert alone.weights_.to_dict() == {"all": 1.0}
    assert alone.model_.coef_ == pytest.approx(eh.Logistic().fit(X, y).coef_, abs=1e-7)
    constant = eh.Minimax(eh.Logistic()).fit(X, np.ones(len(y), dtype=int), groups=group)
    assert constant.risks_.max() == 0
    # a class that only the small group has must not vanish with its weight
    y[-1] = 2
    assert 2 in eh.Minimax(eh.Logistic()).fit(X, y, groups=group).classes_


def test_the_plot_shows_every_group():
    X, y, group = two_groups("I", (60, 20))
    fair = eh.Minimax(eh.Logistic(), rounds=5)
    with pytest.raises(eh.InputError, match="not fitted"):
        eh.plot_minimax(fair)
    figure = eh.plot_minimax(fair.fit(X, y, groups=group))
    risks = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    assert set(risks) == {"u", "v", "worst-off"}
    assert np.array_equal(risks["worst-off"], np.maximum(risks["u"], risks["v"]))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"learner": KNeighborsClassifier()}, "KNeighborsClassifier takes no sample_weight"),
        ({"learner": eh.Minimax()}, "inside Minimax"),
        ({"folds": 1}, "folds must be 0"),
        ({"rounds": 0}, "rounds must be"),
        ({"rate": -1.0}, "rate must be"),
        ({"risk": "hinge"}, "unknown risk"),
        ({"risk": "fnr"}, "positive"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, match):
    X, y, group = two_groups("I", (20, 20))
    with pytest.raises(eh.InputError, match=match):
        eh.Minimax(**settings).fit(X, y, groups=group)


def test_groups_are_needed():
    X, y, group = two_groups("I", (20, 20))
    with pytest.raises(eh.InputError, match="group of every row is needed"):
        eh.Minimax().fit(X, y)
    with pytest.raises(eh.InputError, match="shape"):
        eh.Minimax().fit(X, y, groups=group[:5])
