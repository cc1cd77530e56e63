"""Weights of examples: checked, and the same as repeating rows, whichever learner takes them."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import evenhand as eh
from evenhand.learners.torch.trainer import Trainer
from evenhand.learners.weights import takes_weights, weight_key

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
y = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)
TIMES = RNG.integers(0, 4, 60)
TIMES[:2] = 1
REPEATED = np.repeat(np.arange(60), TIMES)


@pytest.mark.parametrize(
    "learner",
    [eh.Logistic(C=3.0), eh.SklearnLearner(GaussianNB()), eh.SklearnLearner(LogisticRegression(tol=1e-10))],
    ids=["Logistic", "naive Bayes", "LogisticRegression"],
)
def test_a_whole_weight_is_so_many_copies(learner):
    weighted = learner.fit(X, y, sample_weight=TIMES)
    copied = learner.fit(X[REPEATED], y[REPEATED])
    assert np.allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-6)


def test_a_pipeline_hands_weights_to_its_last_step():
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    model = eh.SklearnLearner(estimator).fit(X, y, sample_weight=TIMES)
    scaled = StandardScaler().fit_transform(X)
    alone = LogisticRegression().fit(scaled, y, sample_weight=TIMES)
    assert np.allclose(model.predict_proba(X), alone.predict_proba(scaled))


@pytest.mark.parametrize(
    ("estimator", "key"),
    [
        (RandomForestClassifier(), "sample_weight"),
        (KNeighborsClassifier(), None),
        (make_pipeline(StandardScaler(), KNeighborsClassifier()), None),
        (make_pipeline(StandardScaler(), make_pipeline(GaussianNB())), "pipeline__gaussiannb__sample_weight"),
        (GridSearchCV(LogisticRegression(), {"C": [1, 2]}), "sample_weight"),
        (GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 2]}), None),
    ],
)
def test_who_takes_weights_is_found_out_without_a_fit(estimator, key):
    assert weight_key(estimator) == key
    learner = eh.SklearnLearner(estimator)
    assert takes_weights(learner) is (key is not None)
    if key is None:
        with pytest.raises(eh.InputError, match="takes no sample_weight"):
            learner.fit(X, y, sample_weight=np.ones(60))
    else:
        learner.fit(X, y, sample_weight=np.ones(60))


def test_a_search_over_settings_is_weighted():
    learner = eh.SklearnLearner(GridSearchCV(LogisticRegression(), {"C": [1.0]}))
    model = learner.fit(X, y, sample_weight=TIMES)
    assert np.allclose(
        model.predict_proba(X), LogisticRegression(C=1.0).fit(X, y, sample_weight=TIMES).predict_proba(X)
    )


def test_partial_fit_is_weighted():
    learner = eh.SklearnLearner(SGDClassifier(random_state=0), update="partial_fit")
    model = learner.fit(X, y, sample_weight=TIMES)
    bare = SGDClassifier(random_state=0).partial_fit(X, y, classes=[0, 1], sample_weight=TIMES)
    assert np.array_equal(model.estimator.coef_, bare.coef_)


def test_a_network_takes_weights_as_copies():
    learner = eh.TorchLearner(lambda: torch.nn.Linear(3, 2), chunk=7)
    weighted, copied = learner.fit(X, y, sample_weight=TIMES), learner.fit(X[REPEATED], y[REPEATED])
    assert takes_weights(learner)
    for a, b in zip(weighted.module.parameters(), copied.module.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    start = Trainer(learner, 0).module
    assert not torch.allclose(next(weighted.module.parameters()), next(start.parameters()), atol=1e-5)


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (np.ones(59), "shape \\(59,\\) for 60"),
        (np.ones((60, 1)), "one number for each"),
        (np.r_[-1.0, np.ones(59)], "row 0 \\(-1.0\\)"),
        (np.r_[np.ones(59), np.nan], "row 59 \\(nan\\)"),
        (np.r_[np.ones(59), np.inf], "row 59 \\(inf\\)"),
        (np.zeros(60), "zero for every example"),
        (["heavy"] * 60, "must be numbers"),
    ],
)
@pytest.mark.parametrize("learner", [eh.Logistic(), eh.SklearnLearner(GaussianNB())], ids=["Logistic", "sklearn"])
def test_weights_that_are_none_are_refused(learner, weight, match):
    with pytest.raises(eh.InputError, match=match):
        learner.fit(X, y, sample_weight=weight)


class Counting:
    """Remembers the groups it is given."""

    needs_groups = True
    seen: list[list[str]] = []  # noqa: RUF012

    def fit(self, X, y, *, groups, sample_weight=None, previous=None, seed=0):
        Counting.seen.append(np.asarray(groups).tolist())
        return eh.Logistic().fit(X, y)


def test_a_learner_that_needs_groups_is_given_their_names():
    Counting.seen.clear()
    campaign = eh.Campaign(["u", "v"], eh.Uniform(), Counting(), budget=12)
    while not campaign.done:
        request = campaign.ask()
        campaign.tell(request, RNG.normal(size=(request.size, 3)), np.arange(request.size) % 2)
    campaign.model()
    campaign.final_model()
    assert set(Counting.seen[-1]) == {"u", "v"}
    assert len(Counting.seen[-1]) == 12
    Counting.seen.clear()
    eh.simulate(eh.SyntheticModel1.instance("I"), [eh.Uniform()], Counting(), budget=20, trials=1, evaluate=1)
    assert sorted(Counting.seen[-1]) == ["u"] * 10 + ["v"] * 10
