"""All folds in one go against scikit-learn's fits of each fold's own rows."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_expit
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.learners.crossing import CrossFit, Rows, make_folds, measure_of
from evenhand.risks import as_risk


def some_rows(n=160, classes=2):
    rng = np.random.default_rng(n + classes)
    X, group = rng.normal(size=(n, 4)) * [1.0, 1.0, 0.1, 30.0], rng.integers(0, 3, n)
    X[rng.random((n, 4)) < 0.4] = 0.0
    y = np.digitize(X[:, 0] + 0.5 * group * X[:, 1] + 0.3 * rng.normal(size=n), np.arange(classes - 1))
    return Rows(X, y, group, rng.integers(1, 4, n).astype(float))


def fitted_apart(rows, fold, q, C):
    """scikit-learn's scores and predictions of every row by the model of the other folds, in whose fit group z counts q_z."""
    predicted = np.empty(len(rows.y))
    scores = np.empty(len(rows.y)) if rows.y.max() == 1 else np.empty((len(rows.y), 3))
    for k in np.unique(fold):
        train = fold != k
        size = np.bincount(rows.group[train], rows.weight[train])
        weight = rows.weight[train] * (q * size.sum() / size)[rows.group[train]]
        model = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, solver="newton-cg")
        model.fit(rows.X[train], rows.y[train], sample_weight=weight * rows.weight[train].sum() / weight.sum())
        scores[~train], predicted[~train] = model.decision_function(rows.X[~train]), model.predict(rows.X[~train])
    return scores, predicted


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_folds_together_are_the_folds_one_by_one(kind):
    rows = some_rows()
    given = rows._replace(X=kind(rows.X))
    fold = make_folds(rows.group, rows.y, 5, seed=3)
    errors, logs = (
        CrossFit(eh.Logistic(), given, measure_of(as_risk(risk, None), rows.y), 3, 5, 3) for risk in ("error", "log")
    )
    # weights and penalties that jump, so that every fit starts far from its optimum
    for q, C in (([0.3, 0.3, 0.4], 1.0), ([0.98, 0.01, 0.01], 100.0), ([0.01, 0.01, 0.98], 0.01)):
        scores, predicted = fitted_apart(rows, fold, np.array(q), C)
        wrong = predicted != rows.y
        found = errors.outcomes(np.array(q), 1.0, C)
        assert np.array_equal(found.wrong, wrong)
        losses = logs.outcomes(np.array(q), 1.0, C).values
        assert losses == pytest.approx(-log_expit(np.where(rows.y == 1, scores, -scores)), abs=1e-3)
        means = [np.average(wrong[rows.group == z], weights=rows.weight[rows.group == z]) for z in range(3)]
        assert errors.risks(found) == pytest.approx(means)


def test_a_fold_whose_removal_leaves_one_class_and_rows_of_three_classes():
    rows = some_rows(60)
    rare = rows._replace(y=(np.arange(60) == 7).astype(int))
    measure = measure_of(as_risk("error", None), rare.y)
    found = CrossFit(eh.Logistic(), rare, measure, 3, 5, 0).outcomes(np.full(3, 1 / 3))
    assert np.flatnonzero(found.wrong).tolist() == [7]  # it is predicted by a model that never saw its class
    three, q = some_rows(200, classes=3), np.array([0.2, 0.3, 0.5])
    found = CrossFit(eh.Logistic(), three, measure_of(as_risk("error", None), three.y), 3, 5, 0).outcomes(q)
    _, predicted = fitted_apart(three, make_folds(three.group, three.y, 5, seed=0), q, 1.0)
    assert np.array_equal(found.wrong, predicted != three.y)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_more_columns_than_rows_give_the_same_models(classes: int, kind: str) -> None:
    """They are fitted in the space that the rows span: 99 labels of a table of texts took minutes otherwise."""
    rng = np.random.default_rng(classes)
    X, y = rng.normal(size=(40, 300)) * (rng.random((40, 300)) < 0.2), np.arange(40) % classes
    others, weight = rng.normal(size=(25, 300)), rng.uniform(0.5, 2.0, 40)
    rows = sparse.csr_array(X) if kind == "sparse" else X
    refits = eh.Logistic(C=2.0).refits(rows, y)
    for C in (0.3, 2.0):
        expected = eh.Logistic(C=C).fit(rows, y, sample_weight=weight)
        found = refits.fit(weight, C)
        assert np.allclose(found.coef_, expected.coef_, atol=1e-6)
        assert np.allclose(found.intercept_, expected.intercept_, atol=1e-6)
        measure = as_risk("log").for_classes(list(range(classes)))
        codes = rng.integers(0, classes, 25)
        values = refits.outcomes(weight, C, measure, others, codes).values
        assert np.allclose(values, -expected.predict_log_proba(others)[np.arange(25), codes], atol=1e-5)
    assert np.allclose(refits.last.coef_, expected.coef_, atol=1e-6)
