"""The solver: convergence from anywhere, exact derivatives, rows appended."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse

from evenhand.learners.logistic.csr import Csr, _csc_matvec, _csr_matvec
from evenhand.learners.logistic.objectives import BinaryBlock, BinaryRows, SharedRows, Softmax, SparseBlock
from evenhand.learners.logistic.solver import append, minimise


def make(kind, rng, n=30, d=3):
    rows = np.column_stack((rng.standard_normal((n, d)), np.ones(n)))
    y = np.arange(n) % (3 if kind.startswith("softmax") else 2)
    sign = np.where(y == 1, 1.0, -1.0)
    one = np.full((1, d + 1), float(n))
    match kind:
        case "block":
            return BinaryBlock((rows * sign[:, None]).T[None].copy(), 1.3, 1.3 * one)
        case "rows":
            return BinaryRows(rows, sign, 1.3, 1.3 * one)
        case "csr":
            return BinaryRows(sparse.csr_array(rows), sign, 1.3, 1.3 * one)
        case "shared":
            return SharedRows(rows, sign, 1.3, 1.3 * one, np.ones((n, 1)))
        case "blocks":
            signed = sparse.csr_array(rows * sign[:, None])
            return SparseBlock([Csr.of(signed)], 1.3, 1.3 * one)
        case "softmax":
            return Softmax(rows, y, 3, 1.3, 1.3 * np.tile(one, 3))
    return Softmax(sparse.csr_array(rows), y, 3, 1.3, 1.3 * np.tile(one, 3))


KINDS = ["block", "blocks", "rows", "csr", "shared", "softmax", "softmax-csr"]
ONE = np.zeros(1, dtype=np.intp)


@pytest.mark.parametrize("kind", KINDS)
def test_hessian_is_the_derivative_of_the_gradient(kind):
    rng = np.random.default_rng(0)
    problem = make(kind, rng)
    q = problem.scale.shape[1]
    theta, vector = rng.standard_normal((1, q)), rng.standard_normal(q)
    numeric = optimize.approx_fprime(theta[0], lambda x: problem.gradient(x[None], ONE)[0], 1e-7)
    hessian = problem.hessian(theta, ONE, np.zeros(1, dtype=bool))[0]
    if "softmax" in kind:  # the added term along the direction that moves all intercepts
        hessian[np.ix_(range(3, q, 4), range(3, q, 4))] -= 1.3 * 30 / 9
    assert hessian == pytest.approx(numeric, abs=1e-5)
    assert problem.product(theta, vector) == pytest.approx(hessian @ vector)


@pytest.mark.parametrize("kind", ["block", "softmax", "softmax-csr"])
def test_tail_is_everything_but_the_penalty(kind):
    problem = make(kind, np.random.default_rng(1))
    theta = np.random.default_rng(2).standard_normal((1, problem.scale.shape[1]))
    gradient, root = problem.tail(theta)
    penalty = theta.copy()
    penalty[:, 3::4] = 0.0
    assert gradient + penalty == pytest.approx(problem.gradient(theta, ONE))
    curvature = np.array([problem.product(theta, e) for e in np.eye(theta.size)])
    assert root[0].T @ root[0] + np.diag(np.where(penalty[0] == 0, 0, 1)) == pytest.approx(curvature)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), far=st.floats(0, 300))
def test_converges_from_anywhere(kind, seed, far):
    rng = np.random.default_rng(seed)
    problem = make(kind, rng)
    q = problem.scale.shape[1]
    theta, near = far * rng.standard_normal((1, q)), np.zeros((1, q))
    for start in (theta, near):
        norm = minimise(problem, start, np.full((1, q, q), np.nan), 1e-9)
        assert norm[0] <= 1e-9
        if "softmax" in kind:
            start[:, 3::4] -= start[:, 3::4].mean()
    assert theta == pytest.approx(near, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_matrix(kind):
    problem = make(kind, np.random.default_rng(7))
    q = problem.scale.shape[1]
    theta, other = np.zeros((1, q)), np.zeros((1, q))
    minimise(problem, theta, np.full((1, q, q), np.nan), 1e-9)
    minimise(problem, other, None, 1e-9)
    assert other == pytest.approx(theta, abs=1e-6)


def test_one_more_row_costs_few_passes():
    rng = np.random.default_rng(8)
    n, d = 2000, 10
    rows = np.column_stack((rng.standard_normal((n, d)), np.ones(n)))
    rows *= np.where(rows[:, :1] + rng.standard_normal((n, 1)) > 0, 1.0, -1.0)
    theta, inverse = np.zeros((1, d + 1)), np.full((1, d + 1, d + 1), np.nan)
    passes = []
    for t in range(1900, n):
        problem = Counting(rows[:t].T[None].copy(), 1.0, np.full((1, d + 1), float(t)))
        if t > 1900:
            append(BinaryBlock(problem.rows[:, :, -1:], 1.0, problem.scale), theta, inverse)
        minimise(problem, theta, inverse, 1e-9)
        passes.append(problem.passes)
    assert np.mean(passes[1:]) <= 3
    expected = np.zeros((1, d + 1))
    minimise(problem, expected, np.full_like(inverse, np.nan), 1e-12)
    assert theta == pytest.approx(expected, abs=1e-7)


class Counting(BinaryBlock):
    passes = 0

    def gradient(self, theta, which):
        self.passes += 1
        return super().gradient(theta, which)


def test_products_without_scipys_private_kernels(monkeypatch):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((20, 7), density=0.3, rng=rng, format="csr")
    x, y, rows = rng.standard_normal(7), rng.standard_normal(20), Csr.of(matrix)
    for name, slow in ((None, None), ("csr_matvec", _csr_matvec), ("csc_matvec", _csc_matvec)):
        if name is not None:
            monkeypatch.setattr(f"evenhand.learners.logistic.csr.{name}", slow)
        out, transposed = np.ones(20), np.ones(7)
        rows.add_product(x, out)
        rows.add_transposed_product(y, transposed)
        assert out == pytest.approx(1 + matrix @ x)
        assert transposed == pytest.approx(1 + matrix.T @ y)
