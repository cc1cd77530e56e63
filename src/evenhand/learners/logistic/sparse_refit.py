"""Compiled refits after a few more rows, for two classes and sparse rows.

`solver` has the mathematics. This is its common case, trial after trial: the new rows' curvature and Newton step, then
passes with secant updates, each of which must halve the gradient. Where one does not, the trial is left to the solver.
Compiled code avoids the interpreter between passes and keeps a trial's rows in the processor's cache from one pass to
the next. It is compiled on the first run on a machine and kept on disk.

Rows of trial t: row i has `values[t, start[t, i]:start[t, i + 1]]` in the columns `column[t, …]`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, isfinite
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import uint32

from evenhand.arrays import Floats, Indices, Ints, Positions, Singles

Room = Floats | Singles  # inverse Hessians only set the direction of steps: large ones are kept in single precision

_F = TypeVar("_F", bound=Callable[..., Any])

_MAX_PASSES = 10
_MAX_POLISH = 3  # passes below the tolerance, while the next step would still be larger than wanted
BLOCK = 256  # rows read for their margins and again for the gradient while they are in the nearest cache


def _compiled(function: _F) -> _F:
    """The function, compiled when it is first called; the compiled code is kept on disk if that is possible."""
    made: Any
    try:
        made = numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        # a read-only installation has no place to keep compiled code: it is compiled in every process then
        made = numba.njit(error_model="numpy")(function)
    return cast(_F, made)


# Numbers of rows and columns are made unsigned: a signed index costs a comparison with zero at every access.


@_compiled
def append_rows(
    trial: Ints,
    rows: Positions,
    sign: Floats,
    indptr: Indices,
    indices: Indices,
    data: Floats,
    features: int,
    n: Ints,
    start: Indices,
    column: Indices,
    values: Floats,
    size: Floats,
) -> None:
    """Append some CSR rows to their trials' n rows, with a trailing 1, times their signs; add up their sizes."""
    for k in range(len(trial)):
        t, row = trial[k], rows[k]
        to = start[t, n[t]]
        for j in range(indptr[row], indptr[row + 1]):
            values[t, to], column[t, to] = sign[k] * data[j], indices[j]
            size[t, indices[j]] += abs(data[j])
            to += 1
        values[t, to], column[t, to] = sign[k], features
        size[t, features] += 1.0
        n[t] += 1
        start[t, n[t]] = to + 1


@_compiled
def write_margins(
    trials: Positions, first: int, start: Indices, column: Indices, values: Floats, theta: Floats, margin: Floats
) -> None:
    """Scores of the rows from `first` on of some trials, (k, rows)."""
    for k in range(len(trials)):
        t = trials[k]
        for i in range(margin.shape[1]):
            margin[k, i] = _margin(start[t], column[t], values[t], first + i, theta[k])


@_compiled
def refit_sparse(
    trials: Positions,
    n: Ints,
    fitted: Ints,
    start: Indices,
    column: Indices,
    values: Floats,
    scale: Floats,
    C: float,
    tol: float,
    small: float,
    theta: Floats,
    inverse: Room,
    norm: Floats,
    work: Floats,
    thin: Room,
    slope: Floats,
) -> None:
    """Bring some trials, fitted on their first rows, to the optimum of all n.

    `theta` (T, p), `inverse` (T, p, p) and `norm` (T,) are updated in place; where the norm becomes infinite they are
    useless, and the solver has to do the refit. The last three arguments are work space.
    """
    for k in range(len(trials)):
        t = trials[k]
        begin, where, entry, at, M = start[t], column[t], values[t], theta[t], inverse[t]
        _take_in(begin, where, entry, fitted[t], n[t], C, at, M, work[0], thin)
        norm[t] = _passes(begin, where, entry, n[t], scale[k], C, tol, small, at, M, work, thin, slope)


@_compiled
def _take_in(
    start: Indices,
    column: Indices,
    values: Floats,
    first: int,
    last: int,
    C: float,
    theta: Floats,
    inverse: Room,
    gradient: Floats,
    thin: Room,
) -> None:
    """Update parameters and inverse, to first order, for the rows first … last − 1."""
    p = len(theta)
    image, scaled = thin[0], thin[1]
    for j in range(p):
        gradient[j] = 0.0
    # Sherman–Morrison, a row at a time: M − M a aᵀ M / (1/c + aᵀ M a) with the row's curvature c
    for i in range(first, last):
        margin = _margin(start, column, values, i, theta)
        small = exp(-abs(margin))
        curvature, slope = C * small / (1.0 + small) ** 2, C / (1.0 + exp(margin))
        for j in range(p):
            image[j] = 0.0
        for k in range(start[i], start[i + 1]):
            gradient[column[k]] -= slope * values[k]
            for j in range(p):
                image[j] += values[k] * inverse[column[k], j]
        along = 0.0
        for k in range(start[i], start[i + 1]):
            along += values[k] * image[column[k]]
        for j in range(p):
            scaled[j] = image[j] * curvature / (1.0 + curvature * along)
        for j in range(p):
            for k in range(p):
                inverse[j, k] -= scaled[j] * image[k]
    _times(inverse, gradient, thin[0], thin[1])
    for j in range(p):
        theta[j] -= thin[1, j]


@_compiled
def _passes(
    start: Indices,
    column: Indices,
    values: Floats,
    n: int,
    scale: Floats,
    C: float,
    tol: float,
    small: float,
    theta: Floats,
    inverse: Room,
    work: Floats,
    thin: Room,
    slope: Floats,
) -> float:
    """Make passes until the tolerance is reached; returns the norm, or infinity if the solver has to do the refit."""
    gradient, change, step = work[0], work[1], work[2]
    p, target, polish = len(theta), np.inf, _MAX_POLISH
    for number in range(_MAX_PASSES):
        for j in range(p):
            change[j] = -gradient[j]
        _gradient(start, column, values, n, C, theta, gradient, slope)
        norm, total = 0.0, 0.0
        for j in range(p):
            change[j] += gradient[j]
            norm = max(norm, abs(gradient[j]) / scale[j])
            total += gradient[j]
        if not (norm <= target and isfinite(total)):  # a maximum does not show NaN
            return np.inf
        if number:
            _secant(inverse, step, change, thin)
        _times(inverse, gradient, thin[0], thin[1])
        longest = 0.0
        for j in range(p):
            step[j] = -thin[1, j]
            longest = max(longest, abs(step[j]))
        if norm <= tol:
            if longest <= small:
                return norm
            polish -= 1
        if polish < 0:
            return np.inf
        target = norm if norm <= tol else max(tol, 0.5 * norm)
        for j in range(p):
            theta[j] += step[j]
    return np.inf


@_compiled
def _margin(start: Indices, column: Indices, values: Floats, row: int, theta: Floats) -> float:
    total = 0.0
    for k in range(uint32(start[row]), uint32(start[row + 1])):
        total += values[k] * theta[uint32(column[k])]
    return total


@_compiled
def _gradient(
    start: Indices, column: Indices, values: Floats, n: int, C: float, theta: Floats, gradient: Floats, slope: Floats
) -> None:
    """Gradient of F; `slope` is work space for a block of rows."""
    for j in range(len(theta) - 1):
        gradient[j] = theta[j]
    gradient[-1] = 0.0
    for first in range(0, n, len(slope)):
        length = min(len(slope), n - first)
        for i in range(length):
            slope[i] = _margin(start, column, values, first + i, theta)
        _to_slopes(slope, length, C)
        for i in range(length):
            for k in range(uint32(start[first + i]), uint32(start[first + i + 1])):
                gradient[uint32(column[k])] -= slope[i] * values[k]


@_compiled
def _to_slopes(margin: Floats, n: int, C: float) -> None:
    """C·σ(−m) in place of m, to 13 digits; e^m is (e^(m/1024))^1024, a Taylor sum squared ten times.

    That is five times as fast as `exp`, because the processor does several rows at once. Beyond ±40 nothing changes.
    """
    for i in range(n):
        x = min(max(margin[i], -40.0), 40.0) * (1 / 1024)
        e = x * (1 / 5040) + (1 / 720)
        e = ((((e * x + (1 / 120)) * x + (1 / 24)) * x + (1 / 6)) * x + 0.5) * x + 1.0
        e = e * x + 1.0
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        e *= e
        margin[i] = C / (1.0 + e)


@_compiled
def _secant(inverse: Room, step: Floats, change: Floats, thin: Room) -> None:
    """The BFGS update of the inverse, so that it takes the gradient's change to the step."""
    p, image, one, two = len(step), thin[0], thin[1], thin[2]
    _times(inverse, change, one, image)
    curvature, across = 0.0, 0.0
    for j in range(p):
        curvature += step[j] * change[j]
        across += change[j] * image[j]
    if not curvature > 0.0:
        return
    half = 0.5 * (1.0 + across / curvature) / curvature
    for j in range(p):
        one[j], two[j] = step[j], half * step[j] - image[j] / curvature
    for j in range(p):
        for k in range(p):
            inverse[j, k] += one[j] * two[k] + two[j] * one[k]


@_compiled
def _times(matrix: Room, vector: Floats, thin: Room, result: Room) -> None:
    """A symmetric matrix times a vector, in the matrix's precision; `thin` is work space for the vector."""
    p = len(vector)
    for j in range(p):
        thin[j], result[j] = vector[j], 0.0
    for j in range(p):
        for k in range(p):
            result[k] += thin[j] * matrix[j, k]
