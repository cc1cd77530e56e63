import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from evenhand.engine.memories.lockstep import LockstepLogistic
from evenhand.engine.memories.sparse_blocks import SparseBlocks
from evenhand.learners.logistic import sparse_refit
from evenhand.learners.logistic.learner import Logistic
from evenhand.learners.logistic.objectives import SparseBlock
from evenhand.learners.logistic.solver import inverse_hessian, minimise

TOL, SMALL = 1e-8, 5e-7


def drawn(seed, n, features, scale=1.0):
    """Sparse rows and labels of both classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features)) * (rng.random((n, features)) < 0.4) * scale
    y = (X @ rng.normal(size=features) / scale + rng.logistic(size=n) > 0).astype(int)
    y[:2] = 0, 1
    return sparse.csr_array(X), y


def block_of(X, y, n):
    """One trial that has the first n rows."""
    block = SparseBlocks(1, X.shape[1], 4)
    add(block, X, y, np.arange(n))
    return block


def add(block, X, y, rows):
    return block.append(np.zeros(len(rows), dtype=np.int64), X, rows, np.where(y[rows] == 1, 1.0, -1.0))


def fitted(block, kind):
    """Parameters and inverse at the optimum of a block's rows."""
    scale = np.maximum(block.n[:, None], block.size)
    problem: SparseBlock = block.problem(slice(None), int(block.n[0]), 1.0, scale)
    theta = np.zeros(scale.shape)
    minimise(problem, theta, np.full((1, theta.shape[1], theta.shape[1]), np.nan), TOL)
    return theta, inverse_hessian(problem, theta).astype(kind)


def test_rows_are_kept_as_scipy_stacks_them():
    X, y = drawn(0, 60, 7)
    block = SparseBlocks(2, 7, 4)
    trial = np.arange(60) % 2
    at = block.append(trial, X, np.arange(60), np.where(y == 1, 1.0, -1.0))
    assert at.tolist() == [k // 2 for k in range(60)]
    for t in (0, 1):
        whole = np.column_stack((X.toarray(), np.ones(60)))[t::2] * np.where(y[t::2] == 1, 1.0, -1.0)[:, None]
        assert np.array_equal(block.part(np.array([t]), 0, 30)[0].T, whole)
        assert block.size[t] == pytest.approx(np.abs(whole).sum(axis=0))
        theta = np.random.default_rng(t).normal(size=(1, 8))
        found = block.margins(np.array([t]), theta, 5, 30)[0]
        assert found == pytest.approx(whole[5:] @ theta[0], rel=1e-12, abs=1e-13)


@given(st.floats(-1e3, 1e3), st.floats(0.01, 100))
def test_slopes_are_the_logistic_function(margin, C):
    found = np.array([margin])
    sparse_refit._to_slopes(found, 1, C)
    assert found[0] == pytest.approx(C * expit(-margin), rel=1e-12, abs=1e-16 * C)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    features=st.integers(1, 45),
    n=st.integers(5, 120),
    new=st.integers(1, 3),
    scale=st.sampled_from([0.01, 1.0, 30.0]),
    kind=st.sampled_from([np.float32, np.float64]),
)
def test_a_followed_trial_is_at_the_optimum_or_says_that_it_is_not(seed, features, n, new, scale, kind):
    X, y = drawn(seed, n + new, features, scale)
    block = block_of(X, y, n)
    theta, inverse = fitted(block, kind)
    add(block, X, y, np.arange(n, n + new))
    norm, before = np.zeros(1), np.array([n])
    block.refit_sparse(np.array([0]), before, 1.0, TOL, SMALL, theta, inverse, norm)
    if np.isfinite(norm[0]):
        assert norm[0] <= TOL
        exact = fitted(block, np.float64)[0]
        assert theta[0] == pytest.approx(exact[0], abs=2e-5 * max(1.0, np.abs(exact).max()))


def test_many_rows_one_by_one_stay_at_scikit_learns_optimum():
    X, y = drawn(3, 400, 40)
    block = block_of(X, y, 60)
    theta, inverse = fitted(block, np.float32)
    failed = 0
    for n in range(60, 400):
        add(block, X, y, np.array([n]))
        norm = np.zeros(1)
        block.refit_sparse(np.array([0]), np.array([n]), 1.0, TOL, SMALL, theta, inverse, norm)
        if not np.isfinite(norm[0]):
            failed += 1
            theta, inverse = fitted(block, np.float32)
    model = LogisticRegression(tol=1e-12, max_iter=10_000).fit(X, y)
    assert theta[0] == pytest.approx([*model.coef_[0], model.intercept_[0]], abs=1e-5)
    assert failed <= 5


@pytest.mark.parametrize("scale", [50.0, np.inf, np.nan])
def test_a_useless_inverse_is_noticed(scale):
    X, y = drawn(4, 80, 5)
    block = block_of(X, y, 79)
    theta, _ = fitted(block, np.float64)
    add(block, X, y, np.array([79]))
    norm = np.zeros(1)
    block.refit_sparse(
        np.array([0]), np.array([79]), 1.0, TOL, SMALL, theta, np.where(np.eye(6), scale, 0.0)[None], norm
    )
    assert norm[0] == np.inf


def test_where_following_fails_the_solver_takes_over():
    X, y = drawn(5, 80, 5)
    memory, zero = LockstepLogistic(Logistic(), np.array([0, 1]), 1), np.zeros(80, dtype=np.int64)
    for rows in (slice(0, 79), slice(79, 80)):
        if rows.start:
            memory._sets._inverse[:] = np.inf
        memory.add(zero[rows], X[rows], y[rows], zero[rows], zero[rows] > 0)
        memory.fit()
    model = LogisticRegression(tol=1e-12, max_iter=10_000).fit(X, y)
    assert memory.coef[0] == pytest.approx(model.coef_[0], abs=1e-5)


def test_a_function_is_compiled_also_where_nothing_can_be_kept():
    space: dict = {}
    exec("def twice(x):\n    return 2 * x", space)  # without a file there is no place beside it
    assert sparse_refit._compiled(space["twice"])(21) == 42
