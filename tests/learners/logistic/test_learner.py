"""`Logistic` against scikit-learn and as a scikit-learn classifier."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from evenhand.learners.base import Learner, Model
from evenhand.learners.logistic.learner import Logistic
from evenhand.learners.logistic.solver import ConvergenceError
from evenhand.risks import log_losses


def random_problem(seed):
    """Labelled rows of every kind that could be hard: the seed decides which."""
    rng = np.random.default_rng(seed)
    n, d, K = int(rng.integers(6, 200)), int(rng.integers(1, 10)), int(rng.choice([2, 2, 3, 4]))
    X = rng.standard_normal((n, d))
    noise = 0.0 if seed % 4 == 0 else 1.0  # without noise: separable
    y = np.argmax(np.outer(X[:, 0], np.arange(K)) + noise * rng.standard_normal((n, K)), axis=1)
    y[:K] = np.arange(K)
    if seed % 5 == 1:
        X *= 10 ** rng.uniform(-2, 2)
    if seed % 5 == 2:
        X *= 10 ** rng.uniform(-1, 1, d)
    if seed % 7 == 0:
        X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    weight = rng.uniform(0.1, 3, len(y)) if seed % 3 == 1 else None
    if seed % 4 == 2:
        X = sparse.csr_array(X * (rng.random(X.shape) < 0.5))
    return X, y, weight, float(10 ** rng.uniform(-2, 1))


def reference(X, y, weight, C, solvers=("newton-cholesky", "lbfgs")):
    """Both of scikit-learn's tight solvers: where one stops early the other one does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for solver in solvers:
            yield LogisticRegression(C=C, solver=solver, tol=1e-10, max_iter=100_000).fit(X, y, weight)


@pytest.mark.parametrize("block", range(10))
def test_coefficients_are_scikit_learns(block):
    for seed in range(20 * block, 20 * block + 20):
        X, y, weight, C = random_problem(seed)
        ours = Logistic(C=C).fit(X, y, weight)
        apart = [
            max(np.abs(ours.coef_ - theirs.coef_).max(), np.abs(ours.intercept_ - theirs.intercept_).max())
            for theirs in reference(X, y, weight, C)
        ]
        assert min(apart) < 1e-6, f"seed {seed}"
        assert ours.gradient_norm_ <= ours.tol


@pytest.mark.parametrize("K", [2, 3])
def test_certificate_is_the_gradient_of_the_mean_objective(K):
    rng = np.random.default_rng(K)
    X, y = rng.standard_normal((80, 4)), rng.integers(0, K, 80)
    model = Logistic(C=0.7, tol=1e-6).fit(X, y)
    p, coef = model.predict_proba(X), model.coef_
    residual = (p - np.eye(K)[y]) if K > 2 else (p[:, 1:] - y[:, None])
    gradient = residual.T @ np.column_stack((X, np.ones(80))) / 80
    gradient[:, :-1] += coef / (0.7 * 80)
    assert np.abs(gradient).max() <= 1e-6
    assert model.gradient_norm_ == pytest.approx(np.abs(gradient).max(), rel=1e-3)


def test_scikit_learns_estimator_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(Logistic(), on_skip=None)


def test_is_learner_and_model():
    model = Logistic().fit([[0.0], [1.0]], [0, 1])
    assert isinstance(Logistic(), Learner)
    assert isinstance(model, Model)


@pytest.mark.parametrize(("k", "label"), [(1, "yes"), (5, "no")])
def test_one_class_is_the_constant_classifier(k, label):
    model = Logistic().fit(np.ones((k, 2)), [label] * k)
    assert model.predict(np.zeros((3, 2))).tolist() == [label] * 3
    assert model.predict_proba(np.zeros((1, 2)))[0, 0] == pytest.approx((k + 1) / (k + 2))
    assert log_losses(model, np.zeros((2, 2)), [label, "other"]) == pytest.approx(
        [-np.log((k + 1) / (k + 2)), np.log(k + 2)]
    )


@pytest.mark.parametrize("K", [2, 3])
def test_log_probabilities(K):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, K, 60)
    model = Logistic().fit(X, y)
    assert model.predict_log_proba(X) == pytest.approx(np.log(model.predict_proba(X)))
    chosen = model.predict_proba(X)[np.arange(60), y]
    assert log_losses(model, X, y) == pytest.approx(-np.log(chosen))
    assert log_losses(model, X[:1], [K + 5]) == pytest.approx(-np.log(1e-15))
    far = model.predict_log_proba(1e5 * X)
    assert np.isfinite(far).all()
    assert far.min() < -1e4


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pl.DataFrame,
        lambda columns: pa.table(columns),
        lambda columns: np.column_stack([*columns.values()]),
    ],
)
def test_frames(make):
    rng = np.random.default_rng(0)
    columns = {"a": rng.standard_normal(40), "b": rng.integers(0, 5, 40)}
    y = np.arange(40) % 2
    expected = Logistic().fit(np.column_stack([*columns.values()]), y)
    model = Logistic().fit(make(columns), y)
    assert model.coef_ == pytest.approx(expected.coef_, abs=1e-12)
    assert model.predict(make(columns)).tolist() == expected.predict(np.column_stack([*columns.values()])).tolist()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_text_columns_are_refused_by_name(make):
    with pytest.raises(ValueError, match=r"\['city'\].*SklearnLearner"):
        Logistic().fit(make({"age": [1.0, 2.0], "city": ["a", "b"]}), [0, 1])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_no_numbers_are_refused(value):
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        Logistic().fit([[1.0], [value]], [0, 1])


@pytest.mark.parametrize("settings", [{"C": 0.0}, {"C": -1}, {"tol": 0}, {"C": "1"}, {"C": np.inf}])
def test_bad_settings(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        Logistic(**settings).fit([[0.0], [1.0]], [0, 1])


def test_weights_of_zero_everywhere():
    with pytest.raises(ValueError, match="zero for every example"):
        Logistic().fit([[0.0], [1.0]], [0, 1], [0, 0])


def test_an_impossible_tolerance_is_an_honest_error():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), np.arange(50) % 2
    with pytest.raises(ConvergenceError, match="larger tol"):
        Logistic(tol=1e-300).fit(X, y)


def test_columns_of_very_different_size():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 4)) * [1e-6, 1.0, 1e4, 1e8]
    y = (X @ [0, 1, 1e-4, 1e-8] + rng.standard_normal(300) > 0).astype(int)
    model = Logistic().fit(X, y)
    assert model.gradient_norm_ <= model.tol
    scaled = Logistic().fit(X / [1, 1, 1, 100], y)  # the penalty does not matter for columns that large
    assert model.coef_ * [1, 1, 1, 100] == pytest.approx(scaled.coef_, rel=1e-5)


@pytest.mark.parametrize("K", [2, 3])
def test_more_parameters_than_a_matrix_is_held_for(K):
    rng = np.random.default_rng(4)
    X = sparse.random_array((120, 2100), density=0.02, rng=rng, format="csr")
    y = np.arange(120) % K
    ours = Logistic().fit(X, y)
    assert ours.gradient_norm_ <= ours.tol
    (theirs,) = reference(X, y, None, 1.0, ["lbfgs"])
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-6)


def test_previous_is_a_start_only():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((100, 3)), rng.integers(0, 2, 100)
    first = Logistic().fit(X[:90], y[:90])
    again = clone(first).fit(X, y, previous=first)
    assert again.coef_ == pytest.approx(Logistic().fit(X, y).coef_, abs=1e-7)
    assert first.coef_ == pytest.approx(Logistic().fit(X[:90], y[:90]).coef_)
    assert Logistic().fit(X[:, :2], y, previous=first).coef_.shape == (1, 2)
