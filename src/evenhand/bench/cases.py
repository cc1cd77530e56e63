"""The benchmarks, by name; each takes `full` (the published form) or not (a quick look)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from evenhand.bench.plain_loop import RULES, adult_draws, gaussian_draws, plain_loop
from evenhand.bench.timing import Outcome, best, once
from evenhand.datasets import load
from evenhand.engine.lockstep import LockstepLogistic
from evenhand.learners.logistic import Logistic
from evenhand.simulation import simulate
from evenhand.sources.synthetic import SyntheticModel1
from evenhand.stats import RunningTrend

__all__ = ["CASES"]

Floats = NDArray[np.float64]


def convergence(full: bool) -> Outcome:
    """The work of fig-convergence: instance I, three rules."""
    rounds, trials, samples = (500, 100, 2) if full else (200, 100, 1)
    source = SyntheticModel1.instance("I")

    def plain(seed: int) -> None:
        for rule in RULES.values():
            plain_loop(gaussian_draws(source.mu, seed), 2, 2, rounds, rule, seed, lambda model, t: None)

    def ours() -> None:
        simulate(source, list(RULES), budget=2 * rounds, trials=trials, seed=0)

    simulate(source, list(RULES), budget=20, trials=2)
    mine = best(ours, 3 if full else 2) / (trials * rounds * 3)
    theirs = min(once(partial(plain, seed)) for seed in range(samples)) / (rounds * 3)
    work = f"instance I, {trials} trials × {rounds} rounds × 3 rules, the whole of simulate"
    return Outcome("convergence", work, "plain loop", "round", mine, theirs, 100, f"baseline: best of {samples} trials")


def adult(full: bool) -> Outcome:
    """Exact A_opt on Adult, tested at 100 rounds."""
    rounds, trials = (5000, 10) if full else (500, 10)
    source = load("adult")
    pool, tests = _adult_pool(source)
    tested = set(np.linspace(0, rounds - 1, 101).round().astype(int)[1:].tolist())

    def test(model: Any, t: int) -> None:
        if t in tested:
            for X, y in tests:
                np.mean(model.predict(X) == y)

    def plain() -> None:
        plain_loop(adult_draws(pool, 0), 4, pool[0][0].shape[1], rounds, RULES["optimistic:c0=0.1"], 0, test)

    def ours() -> None:
        simulate(source, ["optimistic:c0=0.1"], budget=2 * rounds, trials=trials, evaluate=100)

    simulate(source, ["uniform"], budget=20, trials=1)
    mine = best(ours, 2) / (trials * rounds)
    work = f"Adult, exact A_opt, {rounds:,} rounds, evaluate=100, {trials} trials, the whole of simulate"
    return Outcome("adult", work, "plain loop", "round", mine, once(plain) / rounds, 50, "baseline: one whole trial")


def _adult_pool(source: Any) -> tuple[list[Any], list[Any]]:
    """Adult's rows by group, encoded and dense, for the plain loop: what is drawn, and as much to test on."""
    stream = source.open(0, [0])
    left = stream.left()[0]
    pool = []
    for z in range(4):
        drawn = stream.draw(np.array([z]), np.array([left[z]]))
        pool.append((drawn.X.toarray(), drawn.y))
    return pool, [(X[: len(y) // 2], y[: len(y) // 2]) for X, y in pool]


def one_hot(n: int, seed: int = 0) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """n rows of 12 variables with 9 values each, 108 columns, and labels from a logistic model."""
    rng = np.random.default_rng(seed)
    column = rng.integers(0, 9, (n, 12)) + 9 * np.arange(12)
    weight = rng.standard_normal(108)
    y = (weight[column].sum(axis=1) + rng.logistic(size=n) > 0).astype(np.int64)
    parts = (np.ones(12 * n), column.ravel().astype(np.int32), np.arange(0, 12 * n + 1, 12, dtype=np.int32))
    return sparse.csr_array(parts, shape=(n, 108)), y


def refit(full: bool) -> Outcome:
    """A refit after one more row."""
    n, more = 50_000, 10 if full else 3
    X, y = one_hot(n + more)
    zero = np.zeros(n + more, dtype=np.int64)
    memory = _memory(1)

    def add(rows: slice) -> None:
        memory.add(zero[rows], X[rows], y[rows], zero[rows], zero[rows].astype(bool))
        memory.fit()

    theirs = LogisticRegression(C=1.0, tol=1e-8, max_iter=10_000, warm_start=True).fit(X[:n], y[:n])
    add(slice(0, n))
    mine, base, norms = [], [], []
    for t in range(n, n + more):
        mine.append(once(partial(add, slice(t, t + 1))))
        part = X[: t + 1]
        base.append(once(partial(theirs.fit, part, y[: t + 1])))
        norms.append(_gradient_norm(theirs, part, y[: t + 1]))
    model: Any = memory.models()[0]
    own = model.gradient_norm_
    note = f"gradient norms: ours {own:.0e}, scikit-learn {max(norms):.0e}"
    work = "a refit after one more row, 50,000 × 108 one-hot"
    return Outcome("refit", work, "lbfgs, warm start, tol 1e-8", "refit", min(mine), min(base), 20, note)


def _gradient_norm(model: Any, X: Any, y: NDArray[np.int64]) -> float:
    residual = model.predict_proba(X)[:, 1] - y
    gradient = (X.T @ residual + model.coef_[0] / model.C) / len(y)
    return float(max(np.abs(gradient).max(), abs(residual.mean())))


def scoring(full: bool) -> Outcome:
    """Validation scores of all groups after a model change."""
    n, m, repeats = 5000, 4, 100 if full else 20
    X, y = one_hot(2 * n + repeats)
    group, held = np.arange(len(y)) // 2 % m, np.arange(len(y)) % 2 == 1
    held[2 * n :] = False
    memory, first = _memory(m), slice(0, 2 * n)
    memory.add(np.zeros(2 * n, dtype=np.int64), X[first], y[first], group[first], held[first])
    parts = [(X[held & (group == z)], y[held & (group == z)]) for z in range(m)]
    mine, theirs = [], []
    for t in range(2 * n, 2 * n + repeats):
        memory.add(np.zeros(1, dtype=np.int64), X[t : t + 1], y[t : t + 1], group[t : t + 1], held[t : t + 1])
        memory.fit()
        mine.append(once(partial(memory.score, "zero_one")))
        theirs.append(once(partial(_score_from_scratch, parts, memory.coef[0], memory.intercept[0])))
    work = f"0-1 scores of {m} groups, {n:,} one-hot validation rows, after a model change"
    return Outcome("scoring", work, "recomputing group by group", "round", min(mine), min(theirs), 1.0)


def _score_from_scratch(parts: list[Any], coef: Floats, intercept: float) -> list[int]:
    return [np.count_nonzero((rows @ coef + intercept > 0) != labels) for rows, labels in parts]


def mann_kendall(full: bool) -> Outcome:
    """The trend of accuracies in a window of 20, one value more."""
    try:
        from pymannkendall import original_test
    except ImportError as error:
        raise ValueError("the baseline is not there: pip install pymannkendall") from error
    values = np.random.default_rng(0).integers(0, 20, (300, 2, 21)) / 20
    running = RunningTrend.of(values[..., :20])
    pushes = 200 if full else 50

    def ours() -> None:
        for k in range(pushes):
            running.push(values[..., k % 20])

    def theirs() -> None:
        for row in values[:20].reshape(-1, 21):
            original_test(row[1:])

    series = values.shape[0] * values.shape[1]
    mine = best(ours, 5) / (pushes * series)
    work = f"Mann–Kendall, window 20, {series} series in lockstep, one value more"
    return Outcome("mann-kendall", work, "pymannkendall", "series", mine, best(theirs, 3) / 40, 100)


def memory(full: bool) -> Outcome:
    """Peak memory of the example sets and models on Adult."""
    labels, chunk = (20_000, 100) if full else (4_000, 100)
    stream = load("adult").open(0, [0])
    drawn = [stream.draw(np.array([k % 4]), np.array([chunk])) for k in range(4)]
    kept, total = _memory(4), 0
    tracemalloc.start()
    try:
        for k in range(labels // chunk):
            part = drawn[k % 4]
            kept.add(part.trial, part.X, part.y, part.group, np.arange(len(part.y)) % 2 == 1)
            total += part.X.data.nbytes + part.X.indices.nbytes + part.X.indptr.nbytes + part.y.nbytes
            if k % 10 == 9:
                kept.fit()
                kept.score("zero_one")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    work = f"peak memory of example sets and models, Adult to {labels:,} labels"
    return Outcome("memory", work, "bytes of the data drawn", "bytes", float(peak), float(total), 3.0)


def _memory(groups: int) -> LockstepLogistic:
    return LockstepLogistic(Logistic(), np.array([0, 1]), groups)


CASES: dict[str, Callable[[bool], Outcome]] = {
    "convergence": convergence,
    "adult": adult,
    "refit": refit,
    "scoring": scoring,
    "mann-kendall": mann_kendall,
    "memory": memory,
}
