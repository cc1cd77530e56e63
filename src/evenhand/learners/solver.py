r"""Exact L2-regularised logistic regression, cheap to repeat after one more row.

**Objective** (scikit-learn's). Rows :math:`a_i` carry a trailing 1 for the intercept; :math:`s_i` are weights.

.. math:: F(θ) = C \sum_i s_i\,ℓ_i(θ) + ½‖w‖², \qquad θ = (w, b),\; b\ \text{not penalised}

Two classes: :math:`ℓ_i = \log(1 + e^{-m_i})` with the margin :math:`m_i = ±a_i·θ`; rows are stored multiplied by
their sign, so the gradient is :math:`-C Σ s_i σ(-m_i) a_i + w` and the Hessian
:math:`C Σ s_i σ(m_i)σ(-m_i) a_i a_iᵀ + I_w`. Three or more: softmax, one θ a class. There F does not change when
all intercepts move together; the Hessian gets a term along that direction, the gradient has none, so the
intercepts keep the sum zero they start with.

**Iteration.** M approximates the inverse Hessian. A pass evaluates the gradient g at θ + δ, δ = −αMg. Then

* the *secant* (BFGS) update makes M agree with the curvature just seen along δ, at O(q²) for q parameters;
* if ‖g‖ fell to half of the smallest seen, or below the tolerance, the point is taken;
* otherwise, if g·δ ≤ 0 the point is taken too (F is convex, so it has fallen along all of δ), and M is computed
  anew there;
* otherwise δ went too far: M is computed anew if it was old, then from a Hessian that is cautious far out, and
  after that α is halved.

*It converges from anywhere:* a halving of the best norm happens finitely often before the tolerance is reached, and
between two of them every point taken lowers F along a descent direction with a step no shorter than half of
the way to the minimum on it, which forces g → 0 for a smooth, strictly convex F with bounded level sets.

**One more row.** The optimum moves by O(1/t). `append` adds the row's curvature to M (Woodbury) and takes the Newton
step for the row's own gradient, reading no other row. What is left, O(1/t²), takes one to three passes.

**Certificate.** The norm is :math:`\max_j |g_j| / (C Σ s_i · \max(1, \text{mean}|x_j|))`: the largest entry of the
gradient of the mean objective, relative to the column's size where that exceeds 1. What is returned is below the
tolerance, or `ConvergenceError` is raised.

**Many trials at once.** Arrays have a leading trial axis; every trial stops at its own norm and never sees another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]
Rows = Floats | sparse.csr_array

DENSE_LIMIT = 2000  # parameters up to which the inverse Hessian is held as a matrix
_BLOCK = 1 << 17  # numbers worked on at a time: stays in the processor's cache
_MAX_PASSES = 1000
_STEP = 1e-7  # a trial also goes on while its next step would change a parameter by more than this,
_CAUTIOUS = 2
_MAX_POLISH = 6  # for at most so many passes below the tolerance


class ConvergenceError(RuntimeError):
    """The tolerance was not reached."""


class Problem(Protocol):
    """T objectives of q parameters each; `which` names the trials meant, one for each row of `theta`."""

    scale: Floats

    def gradient(self, theta: Floats, which: Ints) -> Floats:
        """Gradient of F, (k, q)."""
        ...

    def hessian(self, theta: Floats, which: Ints, cautious: Mask) -> Floats:
        """Hessian of F, (k, q, q), made positive definite where F is flat; `cautious` (k,): see `_bump`."""
        ...

    def product(self, theta: Floats, vector: Floats) -> Floats:
        """Hessian of the first trial times a vector, without the matrix."""
        ...


class BinaryBlock:
    """Two classes, dense: signed rows of T trials, features first (T, p, n), all trials with n rows."""

    def __init__(self, rows: Floats, C: float, scale: Floats) -> None:
        self.rows, self.C, self.scale = rows, C, scale

    def gradient(self, theta: Floats, which: Ints) -> Floats:
        """Gradient of F, (k, p)."""
        result = _penalised(theta, 1)
        for part, rows in self._parts(which):
            slope = self.C * _sigmoid(-margins(theta[part], rows))
            result[part] -= _times(rows, slope)
        return result

    def hessian(self, theta: Floats, which: Ints, cautious: Mask) -> Floats:
        """Hessian of F, (k, p, p)."""
        result = _ridge(len(theta), theta.shape[1], 1)
        for part, rows in self._parts(which):
            curvature = self.C * _bump(margins(theta[part], rows), cautious[part, None])
            result[part] += np.matmul(rows * curvature[:, None, :], rows.transpose(0, 2, 1))
        return result

    def product(self, theta: Floats, vector: Floats) -> Floats:
        """Hessian of the first trial times a vector."""
        rows = self.rows[0]
        result: Floats = rows @ (self.C * _bump(theta[0] @ rows) * (vector @ rows))
        result += _penalised(vector[None], 1)[0]
        return result

    def tail(self, theta: Floats, count: int) -> tuple[Floats, Floats]:
        """Gradient (T, p) and a root (T, count, p) of the Hessian of each trial's last `count` rows."""
        rows = self.rows[:, :, self.rows.shape[2] - count :]
        margin = margins(theta, rows)
        root = np.sqrt(self.C * _bump(margin))[:, :, None] * rows.transpose(0, 2, 1)
        return -self.C * _times(rows, _sigmoid(-margin)), root

    def _parts(self, which: Ints) -> Iterator[tuple[slice, Floats]]:
        """The wanted trials a few at a time; how many depends on a trial's size only, never on its neighbours."""
        step = max(1, _BLOCK // max(1, self.rows[0].size))
        whole = len(which) == len(self.rows)
        for start in range(0, len(which), step):
            part = slice(start, min(start + step, len(which)))
            pick: Any = part if whole else which[part] if step > 1 else slice(which[start], which[start] + 1)
            yield part, self.rows[pick]


class BinaryRows:
    """Two classes: rows (n, p), dense or CSR, of one trial, with signs ±1."""

    def __init__(self, rows: Rows, sign: Floats, C: float, scale: Floats, weight: Floats | None = None) -> None:
        self.rows, self.columns, self.sign, self.C, self.scale = rows, rows.T, sign, C, scale
        self.weight: Floats | float = C if weight is None else C * weight

    def gradient(self, theta: Floats, which: Ints) -> Floats:
        """Gradient of F, (1, p)."""
        slope = self.sign * _sigmoid(-self.sign * (self.rows @ theta[0])) * self.weight
        result: Floats = _penalised(theta, 1) - self.columns @ slope
        return result

    def hessian(self, theta: Floats, which: Ints, cautious: Mask) -> Floats:
        """Hessian of F, (1, p, p)."""
        return _ridge(1, theta.shape[1], 1) + _gram(self.rows, self._curvature(theta, cautious))

    def product(self, theta: Floats, vector: Floats) -> Floats:
        """Hessian times a vector."""
        result: Floats = self.columns @ (self._curvature(theta) * (self.rows @ vector))
        result += _penalised(vector[None], 1)[0]
        return result

    def tail(self, theta: Floats, count: int) -> tuple[Floats, Floats]:
        """Gradient (1, p) and a root (1, count, p) of the Hessian of the last `count` rows."""
        rows = self.sign[-count:, None] * _last(self.rows, count)
        margin = rows @ theta[0]
        root = np.sqrt(self.C * _bump(margin))[:, None] * rows
        return -self.C * (_sigmoid(-margin) @ rows)[None], root[None]

    def _curvature(self, theta: Floats, cautious: Mask | bool = False) -> Floats:
        return _bump(self.rows @ theta[0], cautious) * self.weight


class Softmax:
    """K ≥ 3 classes: rows (n, p), dense or CSR, of one trial; parameters are (K, p) laid flat."""

    def __init__(self, rows: Rows, y: Ints, K: int, C: float, scale: Floats, weight: Floats | None = None) -> None:
        self.rows, self.columns, self.K, self.C, self.scale = rows, rows.T, K, C, scale
        self.wanted = np.eye(K)[y]
        self.weight: Floats = np.full(len(y), C) if weight is None else C * weight

    def gradient(self, theta: Floats, which: Ints) -> Floats:
        """Gradient of F, (1, K·p)."""
        excess = (self._probability(theta) - self.wanted) * self.weight[:, None]
        result: Floats = _penalised(theta, self.K) + (self.columns @ excess).T.reshape(1, -1)
        return result

    def hessian(self, theta: Floats, which: Ints, cautious: Mask) -> Floats:
        """Hessian of F plus a term along the direction that moves all intercepts together, (1, K·p, K·p)."""
        K, p = self.K, theta.shape[1] // self.K
        scores = self.rows @ theta.reshape(K, -1).T
        soft = _soft(np.ptp(scores, axis=1), cautious)
        probability = softmax(scores / soft[:, None])
        result = _ridge(1, K * p, K)
        blocks = result.reshape(K, p, K, p)
        for k in range(K):
            for j in range(k + 1):
                curvature = self.weight / soft * probability[:, k] * (float(k == j) - probability[:, j])
                block = _gram(self.rows, curvature)
                blocks[k, :, j, :] += block
                if j < k:
                    blocks[j, :, k, :] += block
        blocks[:, -1, :, -1] += self.weight.sum() / K**2
        return result

    def product(self, theta: Floats, vector: Floats) -> Floats:
        """Hessian times a vector."""
        probability = self._probability(theta)
        change = self.rows @ vector.reshape(self.K, -1).T
        change = probability * (change - (probability * change).sum(axis=1, keepdims=True)) * self.weight[:, None]
        result: Floats = (self.columns @ change).T.ravel()
        result += _penalised(vector[None], self.K)[0]
        return result

    def tail(self, theta: Floats, count: int) -> tuple[Floats, Floats]:
        """Gradient (1, K·p) and a root (1, K·count, K·p) of the Hessian of the last `count` rows."""
        rows = _last(self.rows, count)
        probability = softmax(rows @ theta.reshape(self.K, -1).T)
        gradient = self.C * (probability - self.wanted[-count:]).T @ rows
        u = np.sqrt(probability)
        # diag(p) − ppᵀ = BBᵀ with B = diag(u)(I − uuᵀ), because uuᵀ is a projection.
        root = np.sqrt(self.C) * (u[:, :, None] * (np.eye(self.K) - u[:, :, None] * u[:, None, :]))
        return gradient.reshape(1, -1), np.einsum("ikl,ip->ilkp", root, rows).reshape(1, count * self.K, -1)

    def _probability(self, theta: Floats) -> Floats:
        return softmax(self.rows @ theta.reshape(self.K, -1).T)


AnyProblem = BinaryBlock | BinaryRows | Softmax


def minimise(problem: Problem, theta: Floats, inverse: Floats | None, tol: float) -> Floats:
    """Move `theta` (T, q) and `inverse` (T, q, q) in place to the optimum of every trial; the norms there, (T,).

    A trial whose inverse starts with NaN has none yet. Without any matrix, steps come from conjugate gradients.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        norm = _newton_cg(problem, theta, tol) if inverse is None else _newton(problem, theta, inverse, tol)
    if not (norm <= tol).all():
        raise ConvergenceError(
            f"Logistic: the gradient norm {np.nanmax(norm):.2g} did not fall to the tolerance {tol:g}; "
            "give a larger tol, a smaller C, or scale the columns of X to similar sizes"
        )
    return norm


def append(problem: AnyProblem, theta: Floats, inverse: Floats, count: int) -> None:
    """Let `theta` and `inverse` follow, to first order, the last `count` rows of every trial, in place."""
    with np.errstate(over="ignore"):
        gradient, root = problem.tail(theta, count)
    spread = np.matmul(root, inverse)
    inner = np.matmul(spread, root.transpose(0, 2, 1)) + np.eye(root.shape[1])
    inverse -= np.matmul(spread.transpose(0, 2, 1), np.linalg.solve(inner, spread))
    theta -= _times(inverse, gradient)


def _newton(problem: Problem, theta: Floats, inverse: Floats, tol: float) -> Floats:
    T = len(theta)
    gradient = problem.gradient(theta, np.arange(T))
    norm = _norm(gradient, problem.scale)
    best, length, polish = norm.copy(), np.ones(T), np.full(T, _MAX_POLISH)
    # The kind of M each trial has: old (0), exact at θ (1), cautious at θ (2); renew: to be computed anew, one kind up.
    kind, renew = np.zeros(T, dtype=np.int8), np.isnan(inverse[:, 0, 0])
    active = np.arange(T)
    for _ in range(_MAX_PASSES):
        due = active[renew[active]]
        if due.size:
            kind[due] += 1
            inverse[due] = _inverse(problem.hessian(theta[due], due, kind[due] == _CAUTIOUS))
            renew[due] = False
        step = -_times(inverse[active], gradient[active])
        reached = norm[active] <= tol
        small = (np.abs(step) <= _STEP * np.maximum(1.0, np.abs(theta[active]))).all(axis=1)
        going = ~(reached & (small | (polish[active] == 0)))
        if not going.any():
            break
        polish[active[reached]] -= 1
        active, step = active[going], step[going] * length[active[going], None]

        M, g, moved = inverse[active], gradient[active], theta[active] + step
        g_moved = problem.gradient(moved, active)
        norm_moved = _norm(g_moved, problem.scale[active])
        inverse[active] = _secant(M, step, g_moved - g)

        falls = norm_moved <= np.where(reached[going], norm[active], np.maximum(tol, 0.5 * best[active]))
        lower = _dot(g_moved, step) <= 0.0
        taken, last = falls | lower, kind[active] == _CAUTIOUS
        renew[active] = ~falls & (lower | ~last)
        length[active] = np.where(taken | ~last, 1.0, 0.5 * length[active])
        at = active[taken]
        theta[at], gradient[at], norm[at], kind[at] = moved[taken], g_moved[taken], norm_moved[taken], 0
        best[at] = np.minimum(best[at], norm[at])
    return norm


def _newton_cg(problem: Problem, theta: Floats, tol: float) -> Floats:
    """The same rules for one trial with too many parameters for a matrix: M is a few conjugate-gradient steps."""
    one = np.zeros(1, dtype=np.intp)
    gradient = problem.gradient(theta, one)
    norm = best = _norm(gradient, problem.scale)
    for _ in range(_MAX_PASSES):
        if norm[0] <= tol:
            break
        step = _conjugate_gradients(problem, theta, gradient[0])
        for _ in range(60):
            g_moved = problem.gradient(theta + step, one)
            norm_moved = _norm(g_moved, problem.scale)
            if norm_moved[0] <= max(tol, 0.5 * best[0]) or g_moved[0] @ step <= 0.0:
                break
            step *= 0.5
        theta += step
        gradient, norm = g_moved, norm_moved
        best = np.minimum(best, norm)
    return norm


def _conjugate_gradients(problem: Problem, theta: Floats, gradient: Floats) -> Floats:
    """A descent direction d with H·d ≈ −gradient, to a hundredth."""
    step, residual = np.zeros_like(gradient), -gradient
    direction, size = residual.copy(), float(residual @ residual)
    target = 1e-4 * size
    for _ in range(len(gradient)):
        image = problem.product(theta, direction)
        along = size / float(direction @ image)
        step += along * direction
        residual = residual - along * image
        size, before = float(residual @ residual), size
        if size <= target:
            break
        direction = residual + (size / before) * direction
    return step


def _secant(M: Floats, step: Floats, change: Floats) -> Floats:
    """The BFGS update of M: symmetric, positive definite, and M·change = step."""
    curvature = _dot(step, change)
    usable = curvature > 0.0
    rho = 1.0 / np.where(usable, curvature, 1.0)
    image = _times(M, change)
    half = 0.5 * rho * (1.0 + rho * _dot(change, image))
    other = np.where(usable[:, None], half[:, None] * step - rho[:, None] * image, 0.0)
    update: Floats = np.matmul(np.stack((step, other), axis=2), np.stack((other, step), axis=1))
    return M + update


def _inverse(hessian: Floats) -> Floats:
    """Inverses, computed on a unit diagonal so that columns of very different sizes do no harm."""
    size = hessian.shape[1]
    root = np.sqrt(np.maximum(np.einsum("tqq->tq", hessian), np.finfo(float).tiny))
    unit = hessian / root[:, :, None] / root[:, None, :] + 1e-14 * size * np.eye(size)
    inverse: Floats = np.linalg.inv(unit) / root[:, :, None] / root[:, None, :]
    return 0.5 * (inverse + inverse.transpose(0, 2, 1))


def _norm(gradient: Floats, scale: Floats) -> Floats:
    norm: Floats = (np.abs(gradient) / scale).max(axis=1)
    return norm


def _times(M: Floats, vector: Floats) -> Floats:
    result: Floats = np.matmul(M, vector[:, :, None])[:, :, 0]
    return result


def _dot(one: Floats, two: Floats) -> Floats:
    # Not einsum: its order of summation depends on how many trials there are.
    result: Floats = np.matmul(one[:, None, :], two[:, :, None])[:, 0, 0]
    return result


def margins(theta: Floats, rows: Floats) -> Floats:
    """Scores (k, n) of rows (k, p, n)."""
    # With very few columns the order of summation depends on the layout, which must not differ between blocks.
    rows = np.ascontiguousarray(rows) if rows.shape[2] < 8 else rows
    result: Floats = np.matmul(theta[:, None, :], rows)[:, 0, :]
    return result


def _sigmoid(margin: Floats) -> Floats:
    # Overflow to infinity gives the right limit, 0; several times as fast as scipy's expit.
    result: Floats = 1.0 / (1.0 + np.exp(-margin))
    return result


def _bump(margin: Floats, cautious: Mask | bool = False) -> Floats:
    """σ(m)σ(−m), without the cancellation of 1 − σ; cautious: falling like 1/|m|, not exponentially.

    Far out, where every row is decided, the exact curvature is next to nothing and its step goes anywhere.
    """
    size = np.abs(margin)
    soft = _soft(size, cautious)
    small = np.exp(-size / soft)
    result: Floats = small / (1.0 + small) ** 2 / soft
    return result


def _soft(size: Floats, cautious: Mask | bool) -> Floats:
    return np.where(cautious, np.maximum(1.0, size), 1.0)


def softmax(scores: Floats) -> Floats:
    """Probabilities from scores, along the last axis."""
    raised: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised


def _penalised(theta: Floats, classes: int) -> Floats:
    """Gradient of the penalty: θ without its intercepts, the last entry of every class's part."""
    result = theta.copy()
    result.reshape(len(theta), classes, -1)[:, :, -1] = 0.0
    return result


def _ridge(trials: int, size: int, classes: int) -> Floats:
    """Hessian of the penalty."""
    diagonal = _penalised(np.ones((1, size)), classes)[0]
    return np.repeat(np.diag(diagonal)[None], trials, axis=0)


def _gram(rows: Rows, weight: Floats) -> Floats:
    """Σ weight_i a_i a_iᵀ; a few thousand rows at a time so that sparse rows are never all made dense."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    step = max(1, 8 * _BLOCK // rows.shape[1])
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        dense = part.toarray() if isinstance(part, sparse.csr_array) else part
        total += (dense * weight[start : start + step, None]).T @ dense
    return total


def _last(rows: Rows, count: int) -> Floats:
    part = rows[rows.shape[0] - count :]
    return part.toarray() if isinstance(part, sparse.csr_array) else part
