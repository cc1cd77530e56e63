"""The model to deploy: chosen by worst-group risk on rows not fitted on, and the reasons for staying plain."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import evenhand as eh
from evenhand.learners import as_learner
from evenhand.learners.choosing import FEW_PENALTIES, PENALTIES, fit_chosen
from evenhand.learners.crossing import Rows, group_weights, make_folds
from evenhand.learners.table import TableLearner
from evenhand.risks import as_risk


def choose(*given, **settings):
    return fit_chosen(*given, **settings).choice


def unequal(n=(900, 100), seed=0):
    """A large and a small group with opposite needs: a plain fit serves the large one."""
    stream = eh.SyntheticModel1.instance("I").open(seed, [0])
    parts = [stream.draw(np.array([z]), np.array([k])) for z, k in enumerate(n)]
    X, y = np.vstack([part.X for part in parts]), np.concatenate([part.y for part in parts])
    return X, y, np.repeat(["u", "v"], n)


def worst_error(model, X, y, group):
    wrong = np.asarray(model.predict(X)) != y
    return max(wrong[group == z].mean() for z in np.unique(group))


def test_groups_are_weighted_where_that_helps_and_the_table_says_why():
    X, y, group = unequal()
    model = fit_chosen(eh.Logistic(), X, y, group)
    test = unequal((5000, 5000), seed=1)
    assert worst_error(model, *test) < worst_error(eh.Logistic().fit(X, y), *test) - 0.05
    choice = model.choice
    assert "weights" in choice.chosen
    assert "below the plain model's" in choice.why
    assert len(choice.candidates) == 3 * len(PENALTIES)
    assert choice.candidates[0].name == "plain, C=1"
    table = choice.table
    assert {"candidate", "worst_group_risk", "se", "gain", "gain_se", "u", "v"} <= set(table)
    assert table.loc[table["chosen"], "candidate"].tolist() == [choice.chosen]
    assert np.allclose(table["worst_group_risk"], table[["u", "v"]].max(axis=1))
    assert json.loads(json.dumps(choice.as_dict()))["chosen"] == choice.chosen
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_the_chosen_model_is_the_learner_under_these_weights():
    X, y, group = unequal()
    model = fit_chosen(eh.Logistic(), X, y, group)
    best = min(model.choice.candidates, key=lambda c: c.risk)
    q = np.array([model.choice.weights[z] for z in "uv"])
    rows = Rows(X, y, (group == "v").astype(int), np.ones(len(y)))
    size = np.array([900, 100])
    by_hand = (1 + best.strength * (q * 1000 / size - 1))[rows.group]
    assert group_weights(rows, q, best.strength) == pytest.approx(by_hand)
    reference = LogisticRegression(C=best.C, tol=1e-10, max_iter=10_000).fit(X, y, sample_weight=by_hand)
    assert model.coef_ == pytest.approx(reference.coef_, abs=1e-5)


def test_risks_of_candidates_are_those_of_cross_validation():
    X, y, group = unequal((150, 60))
    choice = choose(eh.Logistic(), X, y, group, seed=4)
    split = PredefinedSplit(make_folds((group == "v").astype(int), y, 5, seed=5))
    for candidate in choice.candidates[: len(PENALTIES)]:
        predicted = cross_val_predict(LogisticRegression(C=candidate.C, solver="newton-cholesky"), X, y, cv=split)
        for z in "uv":
            assert candidate.by_group[z] == pytest.approx((predicted != y)[group == z].mean())


def test_standard_errors_are_those_of_shares():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 1))
    group = np.repeat(["easy", "hard"], 400)
    y = (X[:, 0] > 0) ^ ((group == "hard") & (rng.random(800) < 0.3))
    plain = choose(eh.Logistic(), X, y, group).candidates[0]
    assert plain.risk == plain.by_group["hard"]
    assert plain.se == pytest.approx(np.sqrt(plain.risk * (1 - plain.risk) / 400), rel=0.2)
    assert plain.gain == plain.gain_se == 0


def test_folds_hold_every_group_and_label_in_equal_parts():
    rng = np.random.default_rng(0)
    group, label = rng.integers(0, 4, 503), rng.integers(0, 3, 503)
    fold = make_folds(group, label, 5, seed=1)
    for z in range(4):
        for k in range(3):
            count = np.bincount(fold[(group == z) & (label == k)], minlength=5)
            assert np.ptp(count) <= 1
    assert np.ptp(np.bincount(fold)) <= 1
    assert not np.array_equal(fold, make_folds(group, label, 5, seed=2))


def test_plain_where_nothing_is_to_be_gained():
    rng = np.random.default_rng(1)
    X, group = rng.normal(size=(600, 3)), rng.choice(["a", "b"], 600)
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    model = fit_chosen(eh.Logistic(), X, y, group)
    assert model.choice.chosen == "plain, C=1"
    assert np.array_equal(model.coef_, eh.Logistic().fit(X, y).coef_)
    assert fit_chosen(eh.Logistic(), X, y, group, plain=True).choice.why == "asked for"


@pytest.mark.parametrize(
    ("learner", "match"),
    [
        (eh.SklearnLearner(KNeighborsClassifier()), "KNeighborsClassifier takes no sample_weight"),
        (eh.TorchLearner(lambda: torch.nn.Linear(2, 2)), "Minimax"),
        (eh.Minimax(eh.Logistic(), rounds=3), "already"),
    ],
    ids=["no weights", "network", "minimax"],
)
def test_learners_that_stay_plain_say_so(learner, match):
    X, y, group = unequal((60, 30))
    choice = fit_chosen(learner, X, y, group).choice
    assert choice.chosen == "plain"
    assert match in choice.why
    assert choice.table.empty


def test_one_group_one_class_and_a_group_of_three_rows():
    X, y, group = unequal((60, 3))
    assert "one group" in fit_chosen(eh.Logistic(), X, y, np.full(63, "all")).choice.why
    constant = fit_chosen(eh.Logistic(), X, np.ones(63, dtype=int), group)
    assert "one class" in constant.choice.why
    assert set(constant.predict(X)) == {1}
    assert fit_chosen(eh.Logistic(), X, y, group).choice.candidates
    one = np.zeros(63, dtype=int)
    one[:2] = 1  # folds without the second class
    assert np.isfinite([c.risk for c in choose(eh.Logistic(), X, one, group).candidates]).all()
    assert fit_chosen(eh.Logistic(), X[:3], np.array([0, 1, 1]), ["a", "a", "b"]).choice.candidates


@pytest.mark.parametrize("risk", ["log", "fnr", "balanced", eh.Costs([[0, 1], [4, 0]])], ids=str)
def test_other_risks_are_compared(risk):
    X, y, group = unequal((300, 60))
    choice = choose(eh.Logistic(), X, y, group, risk=as_risk(risk, 1 if risk == "fnr" else None))
    assert choice.candidates[0].risk == max(choice.candidates[0].by_group.values())
    assert choice.risk == str(risk)
    if risk == "fnr":
        split = PredefinedSplit(make_folds((group == "v").astype(int), y, 5, seed=1))
        missed = cross_val_predict(LogisticRegression(solver="newton-cholesky"), X, y, cv=split) != 1
        for z in "uv":
            assert choice.candidates[0].by_group[z] == pytest.approx(missed[(group == z) & (y == 1)].mean())


def test_no_relevant_example_stays_plain():
    X, y, group = unequal((60, 30))

    def nobody(model, X, y):
        return np.zeros(len(y)), np.zeros(len(y), dtype=bool)

    choice = choose(eh.Logistic(), X, y, group, risk=as_risk(nobody))
    assert (choice.chosen, choice.why) == ("plain", "no example is relevant to the risk so far")


def test_frames_sparse_rows_pipelines_and_several_classes():
    X, y, group = unequal((300, 40))
    frame = pd.DataFrame(X, columns=["a", "b"])
    dense = choose(eh.Logistic(), X, y, group)
    for rows in (frame, sparse.csr_array(X)):
        assert [c.by_group for c in choose(eh.Logistic(), rows, y, group).candidates] == [
            pytest.approx(c.by_group) for c in dense.candidates
        ]
    assert fit_chosen(eh.Logistic(), frame, y, group).feature_names_in_.tolist() == ["a", "b"]
    table = fit_chosen(TableLearner(), frame.assign(city=np.where(y, "x", "z")), y, group)
    assert len(table.choice.candidates) == 3 * len(PENALTIES)
    X, y, group = unequal((50, 10))
    pipeline = as_learner(make_pipeline(StandardScaler(), LogisticRegression()))
    assert len(choose(pipeline, X, y, group).candidates) == 3 * len(FEW_PENALTIES)
    forest = as_learner(RandomForestClassifier(n_estimators=2))
    assert [c.name for c in choose(forest, X, y, group).candidates] == ["plain", "half weights", "full weights"]
    data, kind = load_wine(return_X_y=True)
    scaled = StandardScaler().fit_transform(data)
    assert choose(eh.Logistic(), scaled, kind, data[:, 2] > 2.3).candidates


def test_digits_in_pairs_gain():
    pairs = np.zeros((10, 2), dtype=int)
    for z, (first, second) in enumerate([(3, 8), (1, 7), (4, 9), (0, 6), (2, 5)]):
        pairs[first], pairs[second] = (z, 0), (z, 1)
    X, digit = load_digits(return_X_y=True)
    group, y = pairs[digit].T
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        bought = np.concatenate([rng.choice(np.flatnonzero(group == z), 80, replace=False) for z in range(5)])
        rest = np.setdiff1d(np.arange(len(y)), bought)
        rows = (X[bought] / 16, y[bought])
        plain, chosen = eh.Logistic().fit(*rows), fit_chosen(eh.Logistic(), *rows, group[bought])
        test = (X[rest] / 16, y[rest], group[rest])
        gains.append(worst_error(plain, *test) - worst_error(chosen, *test))
    assert np.mean(gains) > 0


def test_a_single_relevant_example_is_no_reason_for_a_warning() -> None:
    """Bootstrap samples without it say nothing."""
    rng = np.random.default_rng(0)
    y = np.zeros(40, dtype=int)
    y[3] = 1
    found = fit_chosen(
        eh.Logistic(),
        rng.normal(size=(40, 2)),
        y,
        np.repeat(["u", "v"], 20),
        risk=as_risk("fnr", 1),
        classes=[0, 1],
        seed=0,
    )
    assert found.choice.candidates
    assert all(np.isfinite(c.se) for c in found.choice.candidates)
