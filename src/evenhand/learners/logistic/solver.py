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
* otherwise δ went too far: M is computed anew if it was old, then from the *cautious* Hessian, then α is halved. After
  many passes the cautious one is skipped: under very unequal weights its steps are always taken and hardly move.

Far out, where every row is decided, the exact curvature is next to nothing and its step goes anywhere. The cautious
Hessian, used there and where the exact one fails, has a curvature that falls like 1/|m|, not exponentially.

*It converges from anywhere:* a halving of the best norm happens finitely often before the tolerance is reached, and
between two of them every point taken lowers F along a descent direction with a step no shorter than half of
the way to the minimum on it, which forces g → 0 for a smooth, strictly convex F with bounded level sets.

**One more row.** The optimum moves by O(1/t). `append` adds the row's curvature to M (Woodbury) and takes the Newton
step for the row's own gradient, reading no other row. What is left, O(1/t²), takes one to three passes.

**Certificate.** The norm is :math:`\max_j |g_j| / (C Σ s_i · \max(1, \text{mean}|x_j|))`: the largest entry of the
gradient of the mean objective, relative to the column's size where that exceeds 1. What is returned is below the
tolerance, or `ConvergenceError` is raised. Where F is flat a small gradient is not enough: a few passes more are made
while the next step would still move a parameter noticeably.

**Many trials at once.** Arrays have a leading trial axis; every trial stops at its own norm and never sees another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenhand.arrays import Floats, Mask, Positions
from evenhand.errors import LearnerError
from evenhand.learners.logistic.objectives import BinaryBlock, Softmax, times

DENSE_LIMIT = 2000  # parameters up to which the inverse Hessian is held as a matrix
_MAX_PASSES = 1000
_MAX_POLISH = 6  # passes below the tolerance, while the next step would still be larger than wanted
_FAR, _CAUTIOUS = 0.01, 2  # the norm above which a point counts as far out; see `_renew`
_PATIENCE = 50  # after this many passes an exact step that went too far is halved at once


class ConvergenceError(LearnerError):
    """The tolerance was not reached."""


class Problem(Protocol):
    """T objectives of q parameters each; `which` names the trials meant, one for each row of `theta`."""

    scale: Floats

    def gradient(self, theta: Floats, which: Positions) -> Floats:
        """Gradient of F, (k, q)."""
        ...

    def hessian(self, theta: Floats, which: Positions, cautious: Mask) -> Floats:
        """Hessian of F, (k, q, q), made positive definite where F is flat; `cautious` (k,): see above."""
        ...

    def product(self, theta: Floats, vector: Floats, trial: int) -> Floats:
        """Hessian of one trial at `theta` (1, q) times a vector, without the matrix."""
        ...


def minimise(problem: Problem, theta: Floats, inverse: Floats | None, tol: float, step: float = 1e-8) -> Floats:
    """Move `theta` (T, q) and `inverse` (T, q, q) in place to every trial's optimum; returns the norms there, (T,).

    A trial whose inverse starts with NaN has none yet. Without any matrix, steps come from conjugate gradients, trial
    by trial. With one, a few passes more are made while the next step would move a parameter by more than `step`.
    """
    # far out a step may overflow; its norm is then infinite, so it is not taken
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        norm = _newton_cg(problem, theta, tol) if inverse is None else _newton(problem, theta, inverse, tol, step)
    if not (norm <= tol).all():
        raise ConvergenceError(
            f"Logistic: the gradient norm {norm.max():.2g} did not fall to the tolerance {tol:g}; "
            "give a larger tol, a smaller C, or scale the columns of X to similar sizes"
        )
    return norm


def inverse_hessian(problem: Problem, theta: Floats) -> Floats:
    """The exact inverse Hessians at `theta`, from which many refits with one more row can start."""
    T = len(theta)
    return _inverse(problem.hessian(theta, np.arange(T), np.zeros(T, dtype=bool)))


def append(new: BinaryBlock | Softmax, theta: Floats, inverse: Floats) -> None:
    """Update `theta` and `inverse` in place, to first order, for the rows of `new` that join every trial."""
    with np.errstate(over="ignore"):
        gradient, root = new.tail(theta)
    if root.shape[1] == 1:  # NumPy multiplies matrices of rank one slowly
        root = np.concatenate((root, np.zeros_like(root)), axis=1)
    root = root.astype(inverse.dtype, copy=False)
    spread = np.matmul(root, inverse)
    inner = np.matmul(spread, root.transpose(0, 2, 1)) + np.eye(root.shape[1], dtype=inverse.dtype)
    inverse -= np.matmul(spread.transpose(0, 2, 1), np.linalg.solve(inner, spread))
    theta -= times(inverse, gradient)


@dataclass(slots=True)
class _State:
    """The state of the unfinished trials; the `kind` of M is old (0), exact at θ (1) or cautious at θ (2)."""

    trial: Positions
    theta: Floats
    M: Floats
    gradient: Floats
    norm: Floats
    best: Floats
    length: Floats
    polish: Positions
    kind: Positions
    renew: Mask

    def keep(self, mask: Mask) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name)[mask])


def _newton(problem: Problem, theta: Floats, inverse: Floats, tol: float, small: float) -> Floats:
    T = len(theta)
    every = np.arange(T)
    gradient = problem.gradient(theta, every)
    norms = _norm(gradient, problem.scale)
    at = _State(
        every,
        theta,
        inverse,
        gradient,
        norms.copy(),
        norms.copy(),
        np.ones(T),
        np.full(T, _MAX_POLISH),
        np.zeros(T, dtype=np.intp),
        np.isnan(inverse[:, 0, 0]),
    )
    for made in range(_MAX_PASSES):
        if at.renew.any():
            _renew(problem, at)
        step = -times(at.M, at.gradient)
        reached = at.norm <= tol
        if reached.any():
            done = reached & ((np.abs(step).max(axis=1) <= small) | (at.polish == 0))
            if done.any():
                trial = at.trial[done]
                theta[trial], inverse[trial], norms[trial] = at.theta[done], at.M[done], at.norm[done]
                going = ~done
                at.keep(going)
                step, reached = step[going], reached[going]
            at.polish -= reached
            # a matrix that still moves parameters after half
            # of these passes is too old to tell how far to go
            at.renew |= reached & (at.polish == _MAX_POLISH // 2)
        if not len(step):
            return norms
        target = np.where(reached, at.norm, np.maximum(tol, 0.5 * at.best))
        _advance(problem, at, step * at.length[:, None], target, _CAUTIOUS if made < _PATIENCE else 1)
    theta[at.trial], inverse[at.trial], norms[at.trial] = at.theta, at.M, at.norm
    return norms


def _renew(problem: Problem, at: _State) -> None:
    """Compute M anew where due: from the exact Hessian, or the cautious one far out or if the exact one failed."""
    due = np.flatnonzero(at.renew)
    at.kind[due] = np.where(at.norm[due] > _FAR, _CAUTIOUS, at.kind[due] + 1)
    hessian = problem.hessian(at.theta[due], at.trial[due], at.kind[due] == _CAUTIOUS)
    at.M[due] = _inverse(hessian)
    at.renew[due] = False


def _advance(problem: Problem, at: _State, step: Floats, target: Floats, last_kind: int) -> None:
    """One pass: look at θ + step, learn its curvature, go there if that helps; else halve α if no other M is left."""
    moved = at.theta + step
    gradient = problem.gradient(moved, at.trial)
    norm = _norm(gradient, problem.scale[at.trial])
    learned = _secant(at.M, step, gradient - at.gradient)
    falls = norm <= target
    if falls.all():
        at.theta, at.gradient, at.norm = moved, gradient, norm
        at.kind[:] = 0
        at.length[:] = 1.0
    else:
        lower = _dot(gradient, step) <= 0.0
        taken, last = falls | lower, at.kind >= last_kind
        if last_kind < _CAUTIOUS:  # the direction of an exact step is right, only its length is not
            learned = np.where((~taken & last)[:, None, None], at.M, learned)
        at.renew |= ~falls & (lower | ~last)
        at.length = np.where(taken | ~last, 1.0, 0.5 * at.length)
        at.kind = np.where(taken, 0, at.kind)
        at.theta, at.gradient = (
            np.where(taken[:, None], new, old) for new, old in ((moved, at.theta), (gradient, at.gradient))
        )
        at.norm = np.where(taken, norm, at.norm)
    at.M = learned
    at.best = np.minimum(at.best, at.norm)


def _newton_cg(problem: Problem, theta: Floats, tol: float) -> Floats:
    """The same iteration for more parameters than a matrix can hold: M is a few conjugate-gradient steps."""
    norms = np.empty(len(theta))
    for t in range(len(theta)):
        one, at = np.array([t]), theta[t : t + 1]
        gradient = problem.gradient(at, one)
        norm = best = _norm(gradient, problem.scale[one])
        for _ in range(_MAX_PASSES):
            if norm[0] <= tol:
                break
            step = _conjugate_gradients(problem, at, gradient[0], t)
            for _ in range(60):
                g_moved = problem.gradient(at + step, one)
                norm_moved = _norm(g_moved, problem.scale[one])
                if norm_moved[0] <= max(tol, 0.5 * best[0]) or g_moved[0] @ step <= 0.0:
                    break
                step *= 0.5
            at += step
            gradient, norm, best = g_moved, norm_moved, np.minimum(best, norm_moved)
        norms[t] = norm[0]
    return norms


def _conjugate_gradients(problem: Problem, theta: Floats, gradient: Floats, trial: int) -> Floats:
    """A descent direction d with H·d ≈ −gradient, to a hundredth."""
    step, residual = np.zeros_like(gradient), -gradient
    direction, size = residual.copy(), float(residual @ residual)
    # of squared norms: a hundredth. Further out an exact step is no better than a rough one
    target = 1e-4 * size
    for _ in range(len(gradient)):
        image = problem.product(theta, direction, trial)
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
    # no update where rounding hides the curvature: M has to stay positive definite
    rho = np.where(curvature > 0.0, 1.0 / curvature, 0.0)
    image = times(M, change)
    half = 0.5 * rho * (1.0 + rho * _dot(change, image))
    pair = np.empty((2, *step.shape), dtype=M.dtype)
    pair[0], pair[1] = step, half[:, None] * step - rho[:, None] * image
    updated: Floats = np.matmul(pair.transpose(1, 2, 0), pair[::-1].transpose(1, 0, 2))
    updated += M
    return updated


def _inverse(hessian: Floats) -> Floats:
    """Inverses, computed on a unit diagonal so that columns of very different sizes do no harm."""
    size = hessian.shape[1]
    root = np.sqrt(np.maximum(np.einsum("tqq->tq", hessian), np.finfo(float).tiny))
    # the small ridge is relative to the unit diagonal, so it means the same for every column
    unit = hessian / root[:, :, None] / root[:, None, :] + 1e-14 * size * np.eye(size)
    inverse: Floats = np.linalg.inv(unit) / root[:, :, None] / root[:, None, :]
    return 0.5 * (inverse + inverse.transpose(0, 2, 1))


def _norm(gradient: Floats, scale: Floats) -> Floats:
    norm: Floats = (np.abs(gradient) / scale).max(axis=1)
    return norm


def _dot(one: Floats, two: Floats) -> Floats:
    # Not einsum: its order of summation depends on how many trials there are.
    result: Floats = np.matmul(one[:, None, :], two[:, :, None])[:, 0, 0]
    return result
