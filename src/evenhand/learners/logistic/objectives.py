"""The objectives of logistic regression: gradient and Hessian of F, for two classes and for several.

`solver` has the mathematics. Rows carry a trailing 1 for the intercept; `scale` is what gradients are divided by to
measure them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from evenhand.arrays import Floats, Mask, Positions
from evenhand.learners.logistic.csr import Csr

Rows = Floats | sparse.csr_array

BLOCK = 1 << 17  # numbers worked on at a time, few enough to stay in the processor's cache


class BinaryBlock:
    """Two classes, dense: signed rows of T trials, features first (T, p, n), all trials with n rows."""

    def __init__(self, rows: Floats, C: float, scale: Floats) -> None:
        self.rows, self.C, self.scale = rows, C, scale

    def gradient(self, theta: Floats, which: Positions) -> Floats:
        """Gradient of F, (k, p)."""
        result = _penalised(theta, 1)
        for part, rows in self._parts(which):
            result[part] -= times(rows, _slope(margins(theta[part], rows), self.C))
        return result

    def hessian(self, theta: Floats, which: Positions, cautious: Mask) -> Floats:
        """Hessian of F, (k, p, p)."""
        result = _ridge(len(theta), theta.shape[1], 1)
        for part, rows in self._parts(which):
            # rows carry their signs, and σ(m)σ(−m) does not depend on them
            curvature = self.C * _bump(margins(theta[part], rows), cautious[part, None])
            result[part] += np.matmul(rows * curvature[:, None, :], rows.transpose(0, 2, 1))
        return result

    def product(self, theta: Floats, vector: Floats, trial: int = 0) -> Floats:
        """Hessian of one trial times a vector."""
        rows = self.rows[trial]
        result: Floats = rows @ (self.C * _bump(theta[0] @ rows) * (vector @ rows))
        result += _penalised(vector[None], 1)[0]
        return result

    def tail(self, theta: Floats) -> tuple[Floats, Floats]:
        """Gradient (T, p) and a root (T, n, p) of the Hessian of the losses alone, without the penalty."""
        margin = margins(theta, self.rows)
        root = np.sqrt(self.C * _bump(margin))[:, :, None] * self.rows.transpose(0, 2, 1)
        return -times(self.rows, _slope(margin, self.C)), root

    def _parts(self, which: Positions) -> Iterator[tuple[slice, Floats]]:
        """The wanted trials, a few at a time; how many depends only on the size of a trial, never on other trials."""
        step = max(1, BLOCK // max(1, self.rows[0].size))
        whole = len(which) == len(self.rows)
        for start in range(0, len(which), step):
            part = slice(start, min(start + step, len(which)))
            pick: Any = part if whole else which[part] if step > 1 else slice(which[start], which[start] + 1)
            yield part, self.rows[pick]


class SparseBlock:
    """Two classes: signed CSR rows of T trials."""

    def __init__(self, trials: Sequence[Csr], C: float, scale: Floats) -> None:
        self.trials, self.C, self.scale = trials, C, scale

    def gradient(self, theta: Floats, which: Positions) -> Floats:
        """Gradient of F, (k, p)."""
        result = _penalised(theta, 1)
        for i, t in enumerate(which.tolist()):
            rows = self.trials[t]
            margin = np.zeros(rows.n)
            rows.add_product(theta[i], margin)
            rows.add_transposed_product(_slope(margin, -self.C), result[i])
        return result

    def hessian(self, theta: Floats, which: Positions, cautious: Mask) -> Floats:
        """Hessian of F, (k, p, p)."""
        result = _ridge(len(theta), theta.shape[1], 1)
        for i, t in enumerate(which.tolist()):
            rows = self.trials[t].matrix()
            result[i] += _gram(rows, self.C * _bump(rows @ theta[i], cautious[i]))
        return result

    def product(self, theta: Floats, vector: Floats, trial: int = 0) -> Floats:
        """Hessian of one trial times a vector."""
        rows = self.trials[trial].matrix()
        result: Floats = rows.T @ (self.C * _bump(rows @ theta[0]) * (rows @ vector))
        result += _penalised(vector[None], 1)[0]
        return result


class BinaryRows:
    """Two classes: rows (n, p), dense or CSR, of one trial, with signs ±1."""

    def __init__(self, rows: Rows, sign: Floats, C: float, scale: Floats, weight: Floats | None = None) -> None:
        self.rows, self.columns, self.sign, self.C, self.scale = rows, rows.T, sign, C, scale
        self.weight: Floats | float = C if weight is None else C * weight

    def gradient(self, theta: Floats, which: Positions) -> Floats:
        """Gradient of F, (1, p)."""
        slope = self.sign * _slope(self.sign * (self.rows @ theta[0]), 1.0) * self.weight
        result: Floats = _penalised(theta, 1) - self.columns @ slope
        return result

    def hessian(self, theta: Floats, which: Positions, cautious: Mask) -> Floats:
        """Hessian of F, (1, p, p)."""
        return _ridge(1, theta.shape[1], 1) + _gram(self.rows, self._curvature(theta, cautious))

    def product(self, theta: Floats, vector: Floats, trial: int = 0) -> Floats:
        """Hessian times a vector."""
        result: Floats = self.columns @ (self._curvature(theta) * (self.rows @ vector))
        result += _penalised(vector[None], 1)[0]
        return result

    def _curvature(self, theta: Floats, cautious: Mask | bool = False) -> Floats:
        return _bump(self.rows @ theta[0], cautious) * self.weight


class SharedRows:
    """Two classes: the same rows (n, p), dense or CSR, in all trials, with signs ±1 and weights of every trial (n, T)."""

    def __init__(self, rows: Rows, sign: Floats, C: float, scale: Floats, weight: Floats) -> None:
        self.rows, self.columns, self.sign, self.scale = rows, rows.T, sign[:, None], scale
        self.weight = C * weight

    def gradient(self, theta: Floats, which: Positions) -> Floats:
        """Gradient of F, (k, p)."""
        slope = self.sign * _slope(self.sign * (self.rows @ theta.T), 1.0) * self._weight(which)
        result: Floats = _penalised(theta, 1) - (self.columns @ slope).T
        return result

    def hessian(self, theta: Floats, which: Positions, cautious: Mask) -> Floats:
        """Hessian of F, (k, p, p)."""
        curvature = _bump(self.rows @ theta.T, cautious) * self._weight(which)
        result = _ridge(len(theta), theta.shape[1], 1)
        for one, of_rows in zip(result, curvature.T, strict=True):
            one += _gram(self.rows, of_rows)
        return result

    def product(self, theta: Floats, vector: Floats, trial: int = 0) -> Floats:
        """Hessian of one trial times a vector."""
        curvature = _bump(self.rows @ theta[0]) * self.weight[:, trial]
        result: Floats = self.columns @ (curvature * (self.rows @ vector))
        result += _penalised(vector[None], 1)[0]
        return result

    def _weight(self, which: Positions) -> Floats:
        return self.weight if len(which) == self.weight.shape[1] else self.weight[:, which]


class Softmax:
    """K ≥ 3 classes: rows (n, p), dense or CSR, of one trial; parameters are (K, p) laid flat."""

    def __init__(self, rows: Rows, y: Positions, K: int, C: float, scale: Floats, weight: Floats | None = None) -> None:
        self.rows, self.columns, self.K, self.C, self.scale = rows, rows.T, K, C, scale
        self.wanted = np.eye(K)[y]
        self.weight: Floats = np.full(len(y), C) if weight is None else C * weight

    def gradient(self, theta: Floats, which: Positions) -> Floats:
        """Gradient of F, (1, K·p)."""
        excess = (self._probability(theta) - self.wanted) * self.weight[:, None]
        result: Floats = _penalised(theta, self.K) + (self.columns @ excess).T.reshape(1, -1)
        return result

    def hessian(self, theta: Floats, which: Positions, cautious: Mask) -> Floats:
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
                # the Hessian is symmetric: the other half is copied
                if j < k:
                    blocks[j, :, k, :] += block
        # F is flat where all intercepts move together, which would leave the Hessian without an inverse
        blocks[:, -1, :, -1] += self.weight.sum() / K**2
        return result

    def product(self, theta: Floats, vector: Floats, trial: int = 0) -> Floats:
        """Hessian times a vector."""
        probability = self._probability(theta)
        change = self.rows @ vector.reshape(self.K, -1).T
        change = probability * (change - (probability * change).sum(axis=1, keepdims=True)) * self.weight[:, None]
        result: Floats = (self.columns @ change).T.ravel()
        result += _penalised(vector[None], self.K)[0]
        return result

    def tail(self, theta: Floats) -> tuple[Floats, Floats]:
        """Gradient (1, K·p) and a root (1, n·K, K·p) of the Hessian of the losses alone; for few rows, dense."""
        rows = self.rows.toarray() if isinstance(self.rows, sparse.csr_array) else self.rows
        probability = self._probability(theta)
        gradient = self.C * (probability - self.wanted).T @ rows
        u = np.sqrt(probability)
        # diag(p) − ppᵀ = BBᵀ with B = diag(u)(I − uuᵀ), because uuᵀ is a projection.
        root = np.sqrt(self.C) * (u[:, :, None] * (np.eye(self.K) - u[:, :, None] * u[:, None, :]))
        return gradient.reshape(1, -1), np.einsum("ikl,ip->ilkp", root, rows).reshape(1, u.size, -1)

    def _probability(self, theta: Floats) -> Floats:
        return softmax(self.rows @ theta.reshape(self.K, -1).T)


def margins(theta: Floats, rows: Floats) -> Floats:
    """Scores (k, n) of rows (k, p, n)."""
    # With very few columns the order of summation depends on the layout, which must not differ between blocks.
    rows = np.ascontiguousarray(rows) if rows.shape[2] < 8 else rows
    result: Floats = np.matmul(theta[:, None, :], rows)[:, 0, :]
    return result


def _slope(margin: Floats, C: float) -> Floats:
    """C·σ(−m), in place of m."""
    # Overflow to infinity gives the right limit, 0; several times as fast as scipy's expit.
    np.exp(margin, out=margin)
    margin += 1.0
    return np.divide(C, margin, out=margin)


def _bump(margin: Floats, cautious: Mask | bool = False) -> Floats:
    """σ(m)σ(−m), without the cancellation of 1 − σ; if cautious, it falls like 1/|m|, not exponentially."""
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
    # the penalty's curvature is 1 for weights and 0 for intercepts, which is the gradient at ones
    diagonal = _penalised(np.ones((1, size)), classes)[0]
    return np.repeat(np.diag(diagonal)[None], trials, axis=0)


def _gram(rows: Rows, weight: Floats) -> Floats:
    """Σ weight_i a_i a_iᵀ; some rows at a time, so that sparse ones are never all made dense."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    step = max(1, BLOCK // rows.shape[1])
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        dense = part.toarray() if isinstance(part, sparse.csr_array) else part
        total += (dense * weight[start : start + step, None]).T @ dense
    return total


def times(M: Floats, vector: Floats) -> Floats:
    """Matrices (k, a, b) times vectors (k, b)."""
    result: Floats = np.matmul(M, vector.astype(M.dtype, copy=False)[:, :, None])[:, :, 0].astype(float, copy=False)
    return result
