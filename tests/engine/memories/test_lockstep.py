"""Lockstep trials against scikit-learn refits and against trials run alone."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from evenhand.engine.memories.base import Memory
from evenhand.engine.memories.lockstep import LockstepLogistic
from evenhand.learners.logistic.learner import Logistic
from evenhand.learners.logistic.solver import ConvergenceError
from evenhand.risks import ERROR, Costs, as_risk

GROUPS = 3


def draws(trials, rounds, K=2, d=3, seed=0, ragged=False, size=2):
    """Rounds of (trial, X, y, group, validation); in ragged ones some trials get nothing or more."""
    rng = np.random.default_rng(seed)
    for r in range(rounds):
        sizes = rng.choice([0, size, 3 * size], trials) if ragged and r else np.full(trials, size)
        trial = np.repeat(np.arange(trials), sizes)
        k = len(trial)
        y = rng.integers(0, K, k)
        X = rng.standard_normal((k, d)) + y[:, None] * np.linspace(1, 0, d)
        yield trial, X, y, rng.integers(0, GROUPS, k), np.arange(k) % 2 == 1


def fill(memory, rounds, *, as_sparse=False, only=None):
    """Feed rounds to a memory, refitting and scoring after each; the scores after the last."""
    scores = None
    for trial, X, y, group, validation in rounds:
        mask = np.ones(len(trial), dtype=bool) if only is None else trial == only
        X = sparse.csr_array(X[mask]) if as_sparse else X[mask]
        if mask.any():
            memory.add(
                trial[mask] if only is None else np.zeros(mask.sum(), int), X, y[mask], group[mask], validation[mask]
            )
        memory.fit()
        scores = memory.score()
    return scores


def held(rounds, t, which):
    """The rows of one trial and role."""
    rounds = list(rounds)
    masks = [(trial == t) & ((validation == which) | (which is None)) for trial, _, _, _, validation in rounds]
    return tuple(np.concatenate([part[i][m] for part, m in zip(rounds, masks, strict=True)]) for i in (1, 2, 3))


CASES = [
    pytest.param(2, False, id="dense"),
    pytest.param(2, True, id="sparse"),
    pytest.param(3, False, id="softmax"),
    pytest.param(3, True, id="softmax-sparse"),
]


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(("K", "as_sparse"), CASES)
def test_equals_scikit_learn_from_scratch(K, as_sparse, ragged):
    T, rounds = 5, list(draws(5, 30, K, ragged=ragged))
    memory = LockstepLogistic(Logistic(), np.arange(K), GROUPS, T)
    scores = fill(memory, rounds, as_sparse=as_sparse)
    for t, model in enumerate(memory.models()):
        X, y, _ = held(rounds, t, False)
        theirs = LogisticRegression(tol=1e-10, solver="newton-cholesky").fit(X, y)
        assert model.coef_ == pytest.approx(theirs.coef_, abs=1e-6)
        assert model.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)
        X, y, group = held(rounds, t, True)
        right = theirs.predict(X) == y
        assert scores.n[t].tolist() == np.bincount(group, minlength=GROUPS).tolist()
        assert scores.correct[t].tolist() == np.bincount(group[right], minlength=GROUPS).tolist()
        assert scores.loss_sum[t].tolist() == (scores.n - scores.correct)[t].tolist()


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(("K", "as_sparse"), CASES)
def test_a_trial_does_not_depend_on_its_neighbours(K, as_sparse, ragged):
    T, rounds = 20, list(draws(20, 25, K, ragged=ragged))
    together = LockstepLogistic(Logistic(), np.arange(K), GROUPS, T, capacity=3)
    scores = fill(together, rounds, as_sparse=as_sparse)
    for t, (model, final) in enumerate(zip(together.models(), together.final_models(), strict=True)):
        alone = LockstepLogistic(Logistic(), np.arange(K), GROUPS, 1)
        own = fill(alone, rounds, as_sparse=as_sparse, only=t)
        assert alone.models()[0].coef_.tolist() == model.coef_.tolist()
        assert alone.models()[0].gradient_norm_ == model.gradient_norm_ <= Logistic().tol
        assert alone.final_models()[0].coef_.tolist() == final.coef_.tolist()
        assert own.correct[0].tolist() == scores.correct[t].tolist()


RISKS = [
    ERROR,
    as_risk("log"),
    as_risk("fnr", 1),
    as_risk("fpr", 0),
    as_risk("balanced"),
    as_risk(lambda model, X, y: (np.abs(X[:, 0]) / 10 * (model.predict(X) != y), X[:, 1] > 0)),
]


def lockstep(risk, K, trials):
    return LockstepLogistic(Logistic(), np.arange(K), GROUPS, trials, measure=risk.for_classes(np.arange(K)))


@pytest.mark.parametrize("risk", [*RISKS, "costs"], ids=str)
@pytest.mark.parametrize(("K", "as_sparse"), CASES)
def test_every_risk_is_that_of_the_models(K, as_sparse, risk):
    """The fast paths are the plain one: to the last bit for the error, to rounding for sums of other numbers."""
    risk = Costs(np.arange(K * K).reshape(K, K) * (1 - np.eye(K))) if risk == "costs" else risk
    measure = risk.for_classes(np.arange(K))
    rounds = list(draws(4, 14, K, ragged=True))
    memory = lockstep(risk, K, 4)
    scores = fill(memory, rounds, as_sparse=as_sparse)
    for t, model in enumerate(memory.models()):
        X, y, group = held(rounds, t, True)
        plain = measure.tally(measure.of_model(model, X, y), group, GROUPS)
        assert scores.loss_sum[t] == pytest.approx(plain.loss_sum, abs=0 if risk.is_error else 1e-12, rel=0)
        assert scores.relevant[t].tolist() == plain.behind.tolist()
        assert scores.n[t].tolist() == plain.n.tolist()
        assert (scores.n - scores.correct)[t].tolist() == plain.wrong.tolist()


@pytest.mark.parametrize("risk", RISKS[:-1], ids=str)
@pytest.mark.parametrize(("K", "as_sparse"), CASES)
def test_new_validation_rows_alone_are_scored_with_the_old_model(K, as_sparse, risk):
    rounds = list(draws(4, 12, K))
    more = [(*rows[:-1], np.ones(len(rows[1]), dtype=bool)) for rows in draws(4, 1, K, seed=9)]
    memory, at_once = lockstep(risk, K, 4), lockstep(risk, K, 4)
    fill(memory, rounds, as_sparse=as_sparse)
    before = [model.coef_.tolist() for model in memory.models()]
    step = fill(memory, more, as_sparse=as_sparse)
    assert [model.coef_.tolist() for model in memory.models()] == before
    for trial, X, y, group, validation in rounds + more:
        at_once.add(trial, sparse.csr_array(X) if as_sparse else X, y, group, validation)
    at_once.fit()
    whole = at_once.score()
    assert step.loss_sum == pytest.approx(whole.loss_sum, rel=1e-5)
    assert step.correct.tolist() == whole.correct.tolist()
    assert step.relevant.tolist() == whole.relevant.tolist()
    assert step.n.sum() == 4 * (12 + 2)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_so_far(label, as_sparse):
    kind = sparse.csr_array if as_sparse else np.asarray
    names = np.array(["a", "b"])
    memory = LockstepLogistic(Logistic(), names, 1, 1)
    log = LockstepLogistic(Logistic(), names, 1, 1, measure=as_risk("log").for_classes(names))
    for each in (memory, log):
        each.add(np.zeros(3, int), kind(np.eye(3)), np.full(3, label), np.zeros(3, int), np.zeros(3, bool))
        each.add(np.zeros(2, int), kind(np.eye(3)[:2]), np.array([0, 1]), np.zeros(2, int), np.ones(2, bool))
        each.fit()
    assert memory.score().correct.tolist() == [[1]]
    assert log.score().loss_sum[0, 0] == pytest.approx(-np.log(4 / 5) - np.log(1 / 5))
    assert memory.models()[0].predict(np.eye(3)).tolist() == ["ab"[label]] * 3
    assert memory.coef.tolist() == [[0.0] * 3]
    assert memory.intercept[0] == pytest.approx(np.log(4) * (1 if label else -1))
    assert sorted(memory.final_models()[0].classes.tolist()) == ["a", "b"]


@pytest.mark.parametrize("as_sparse", [False, True])
def test_a_trial_that_received_nothing(as_sparse):
    memory = LockstepLogistic(Logistic(), np.arange(2), 2, 2)
    assert memory.models() == [None, None]
    memory.fit()
    assert memory.score().n.tolist() == [[0, 0], [0, 0]]
    with pytest.raises(ValueError, match="no trial has an example"):
        memory.final_models()
    X = sparse.csr_array(np.eye(2)) if as_sparse else np.eye(2)
    memory.add(np.ones(2, int), X, np.array([0, 1]), np.array([0, 1]), np.array([False, True]))
    memory.fit()
    assert memory.score().n.tolist() == [[0, 0], [0, 1]]
    assert memory.models()[0] is None
    assert np.isnan(memory.coef[0]).all()
    with pytest.raises(ValueError, match="no example"):
        memory.final_models()


@pytest.mark.parametrize("as_sparse", [False, True])
def test_final_models_are_fits_on_all_rows(as_sparse):
    rounds = list(draws(3, 10))
    memory = LockstepLogistic(Logistic(), np.arange(2), GROUPS, 3)
    fill(memory, rounds, as_sparse=as_sparse)
    before = memory.coef.tolist()
    for t, model in enumerate(memory.final_models()):
        X, y = (np.concatenate([held(rounds, t, role)[i] for role in (False, True)]) for i in (0, 1))
        assert model.coef_ == pytest.approx(
            LogisticRegression(tol=1e-10, solver="newton-cholesky").fit(X, y).coef_, abs=1e-6
        )
    assert memory.coef.tolist() == before


@pytest.mark.parametrize("groups", [1, 200])
def test_any_number_of_groups(groups):
    memory = LockstepLogistic(Logistic(), np.arange(2), groups, 2)
    trial = np.repeat(np.arange(2), 2 * groups)
    group = np.tile(np.repeat(np.arange(groups), 2), 2)
    X = np.random.default_rng(0).standard_normal((4 * groups, 2))
    memory.add(trial, X, np.arange(4 * groups) // 2 % 2, group, np.arange(4 * groups) % 2 == 1)
    memory.fit()
    assert (memory.score().n == 1).all()


def test_large_deliveries_and_many_features():
    rng = np.random.default_rng(0)
    memory = LockstepLogistic(Logistic(), np.arange(2), 1, 1)
    X, y = rng.standard_normal((400, 30)), rng.integers(0, 2, 400)
    for rows in np.split(np.arange(400), [20, 30, 300]):
        zeros = np.zeros(len(rows), int)
        memory.add(zeros, X[rows], y[rows], zeros, zeros.astype(bool))
        memory.fit()
    assert memory.models()[0].coef_ == pytest.approx(Logistic().fit(X, y).coef_, abs=1e-7)


def test_frames_and_wrong_widths():
    memory = LockstepLogistic(Logistic(), np.arange(2), 1)
    zero = np.zeros(2, int)
    memory.add(zero, pd.DataFrame({"a": [0.0, 1.0]}), np.array([0, 1]), zero, zero.astype(bool))
    memory.fit()
    with pytest.raises(ValueError, match="2 features, earlier rows had 1"):
        memory.add(zero, np.eye(2), np.array([0, 1]), zero, zero.astype(bool))
    with pytest.raises(ValueError, match=r"\['city'\]"):
        memory.add(zero, pd.DataFrame({"city": ["x", "y"]}), np.array([0, 1]), zero, zero.astype(bool))
    assert memory.models()[0].coef_.shape == (1, 1)


def test_stays_usable_when_a_fit_fails():
    learner = Logistic(tol=1e-300)
    memory: Memory = LockstepLogistic(learner, np.arange(2), GROUPS, 2)
    with pytest.raises(ConvergenceError):
        fill(memory, draws(2, 10))
    learner.tol = 1e-9
    memory.fit()
    assert all(model.gradient_norm_ <= 1e-9 for model in memory.models())


def test_a_column_twice_in_a_sparse_row_is_summed():
    twice = sparse.csr_array(([1.0, 2.0, 1.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    found = []
    for X in (twice, sparse.csr_array(twice.toarray())):
        memory = LockstepLogistic(Logistic(), np.arange(2), 1)
        memory.add(np.zeros(2, int), X, np.array([0, 1]), np.zeros(2, int), np.zeros(2, bool))
        memory.fit()
        found.append(memory.coef.tolist())
    assert found[0] == found[1]
    assert twice.nnz == 3
