"""Any scikit-learn classifier as a learner, and learners written as text."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import evenhand as eh
from evenhand.learners import ConstantModel, as_learner
from evenhand.learners.parsing import describe_learner, parse_learner
from evenhand.risks import as_risk, is_wrong, log_losses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)


def test_losses_are_those_of_scikit_learn():
    model = eh.SklearnLearner(LogisticRegression()).fit(X, y)
    reference = LogisticRegression().fit(X, y)
    assert np.array_equal(is_wrong(model, X, y), reference.predict(X) != y)
    chance = reference.predict_proba(X)[np.arange(60), y]
    assert np.allclose(log_losses(model, X, y), -np.log(chance))


def test_a_label_never_seen_costs_much_and_does_not_crash():
    model = eh.SklearnLearner(GaussianNB()).fit(X, y)
    assert log_losses(model, X[:1], np.array([7]))[0] == pytest.approx(-np.log(1e-15))


def test_one_class_only_is_the_constant_classifier():
    model = eh.SklearnLearner(LogisticRegression()).fit(X[:5], np.ones(5, dtype=int))
    assert isinstance(model, ConstantModel)
    assert model.predict(X[:2]).tolist() == [1, 1]
    assert np.allclose(log_losses(model, X[:2], np.array([1, 0])), [-np.log(6 / 7), -np.log(1 / 7)])


def test_the_same_seed_gives_the_same_forest():
    learner = eh.SklearnLearner(RandomForestClassifier(n_estimators=3))
    a, b, c = (learner.fit(X, y, seed=s).predict_proba(X) for s in (1, 1, 2))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_partial_fit_goes_on_from_the_previous_model_without_touching_it():
    learner = eh.SklearnLearner(SGDClassifier(), update="partial_fit")
    first = learner.fit(X, y, seed=1)
    before = first.estimator.coef_.copy()
    second = learner.fit(X, y, previous=first, seed=1)
    assert np.array_equal(first.estimator.coef_, before)
    assert not np.array_equal(second.estimator.coef_, before)
    third = learner.fit(np.vstack([X, X]), np.concatenate([y, y + 2]), previous=second, seed=1)
    assert third.classes.tolist() == [0, 1, 2, 3]


def test_what_is_no_learner_is_refused():
    with pytest.raises(ValueError, match="not the class"):
        as_learner(GaussianNB)
    with pytest.raises(ValueError, match="no partial_fit"):
        eh.SklearnLearner(RandomForestClassifier(), update="partial_fit")
    with pytest.raises(ValueError, match="no fit and predict"):
        eh.SklearnLearner(3)
    with pytest.raises(ValueError, match="update must be"):
        eh.SklearnLearner(GaussianNB(), update="often")
    with pytest.raises(ValueError, match="needs probabilities"):
        as_learner(LinearSVC(), as_risk("log"))


@pytest.mark.parametrize(
    "text",
    [
        "logistic",
        "logistic:C=0.5",
        "sklearn.naive_bayes.GaussianNB",
        "sklearn.linear_model._logistic.LogisticRegression:C=2.0",
        "sklearn.linear_model._stochastic_gradient.SGDClassifier:update=partial_fit,loss=log_loss",
    ],
)
def test_texts_parse_and_are_written_back(text):
    assert describe_learner(parse_learner(describe_learner(parse_learner(text)))) == describe_learner(
        parse_learner(text)
    )
    assert text.startswith("sklearn") or describe_learner(parse_learner(text)) == text


@pytest.mark.parametrize("text", ["os.system", "sklearn.decomposition.PCA", "sklearn.nothing.Here", "logistic:D=1"])
def test_texts_that_name_no_classifier_are_refused(text):
    with pytest.raises(ValueError, match=r"learner|classifier|scikit-learn"):
        parse_learner(text)
