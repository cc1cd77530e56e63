"""The benchmarks, by name; each takes `full` (the published form) or not (a quick look)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from benchmarks.speed.plain_loop import RULES, gaussian_draws, plain_loop, sampled_rounds
from benchmarks.speed.timing import Outcome, best, once
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from evenhand.arrays import Floats, Ints
from evenhand.datasets import load
from evenhand.engine.memories.lockstep import LockstepLogistic
from evenhand.errors import InputError
from evenhand.learners.logistic.learner import Logistic
from evenhand.simulation.simulate import simulate
from evenhand.sources.base import Draw
from evenhand.sources.synthetic.model1 import SyntheticModel1
from evenhand.strategies.trend import RunningTrend

__all__ = ["CASES"]


def convergence(full: bool) -> Outcome:
    """The work of fig-convergence: instance I, three rules."""
    rounds, trials, samples = (500, 100, 2) if full else (200, 100, 1)
    source = SyntheticModel1.instance("I")

    def plain(seed: int) -> None:
        for rule in RULES.values():
            plain_loop(gaussian_draws(source.mu, seed), 2, 2, rounds, rule, seed)

    def ours() -> None:
        simulate(source, list(RULES), budget=2 * rounds, trials=trials, seed=0)

    # once before the clock runs: compiled code is loaded, caches are filled
    simulate(source, list(RULES), budget=20, trials=2)
    mine = best(ours, 3 if full else 2) / (trials * rounds * 3)
    theirs = min(once(partial(plain, seed)) for seed in range(samples)) / (rounds * 3)
    work = f"instance I, {trials} trials × {rounds} rounds × 3 rules, the whole of simulate"
    return Outcome("convergence", work, "plain loop", "round", mine, theirs, 100, f"baseline: best of {samples} trials")


def adult(full: bool) -> Outcome:
    """Exact A_opt on Adult, tested at 100 rounds."""
    rounds, trials, samples = (5000, 20, 50) if full else (1000, 10, 10)
    source = load("adult")
    simulate(source, ["uniform"], budget=20, trials=1)
    mine = once(partial(simulate, source, ["optimistic:c0=0.1"], budget=2 * rounds, trials=trials, evaluate=100))
    stream: Any = source.open(0, [0])
    pool = []
    for z, left in enumerate(stream.left()[0].tolist()):
        drawn = stream.draw(np.array([z]), np.array([left]))
        pool.append((drawn.X.toarray(), drawn.y))
    # a plain loop takes hours for all rounds; its time grows smoothly, so evenly spaced rounds tell
    theirs = np.mean([best(work, 2) for work in sampled_rounds(pool, rounds, samples)])
    model = LogisticRegression().fit(pool[0][0][:500], pool[0][1][:500])
    tested = best(lambda: [model.predict(X[: len(X) // 2]) for X, _ in pool], 2) * 100 / rounds
    work = f"Adult, exact A_opt, {rounds:,} rounds, evaluate=100, {trials} trials, the whole of simulate"
    note = f"baseline extrapolated from {samples} evenly spaced rounds"
    return Outcome("adult", work, "plain loop", "round", mine / (trials * rounds), float(theirs + tested), 50, note)


def one_hot(n: int, seed: int = 0) -> tuple[sparse.csr_array, Ints]:
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

    settings = {"C": 1.0, "tol": 1e-8, "max_iter": 10_000, "warm_start": True}
    dense = X.toarray()
    theirs, on_dense = (LogisticRegression(**settings).fit(rows[:n], y[:n]) for rows in (X, dense))
    add(slice(0, n))
    mine, base, slow, norms = [], [], [], []
    for t in range(n, n + more):
        mine.append(once(partial(add, slice(t, t + 1))))
        part = X[: t + 1]
        base.append(once(partial(theirs.fit, part, y[: t + 1])))
        slow.append(once(partial(on_dense.fit, dense[: t + 1], y[: t + 1])))
        norms.append(_gradient_norm(theirs, part, y[: t + 1]))
    model: Any = memory.models()[0]
    # the quicker half: what else the machine does can only make a run slower
    times = [float(np.mean(np.sort(spent)[: max(1, more // 2)])) for spent in (mine, base, slow)]
    note = (
        f"gradient norms: ours {model.gradient_norm_:.0e}, scikit-learn {max(norms):.0e}; "
        f"scikit-learn on the same rows as CSR takes {1e3 * times[1]:.1f} ms: {times[1] / times[0]:.0f}×"
    )
    work = "a refit after one more row, 50,000 × 108 one-hot"
    return Outcome("refit", work, "lbfgs on a NumPy array, warm start, tol 1e-8", "refit", times[0], times[2], 20, note)


def _gradient_norm(model: Any, X: Any, y: Ints) -> float:
    residual = model.predict_proba(X)[:, 1] - y
    gradient = (X.T @ residual + model.coef_[0] / model.C) / len(y)
    return float(max(np.abs(gradient).max(), abs(residual.mean())))


def scoring(full: bool) -> Outcome:
    """Validation scores of all groups after a model change."""
    n, m, trials, repeats = 2500, 4, 10, 50 if full else 10
    X, y = one_hot(2 * n + repeats)
    group, held = np.arange(len(y)) // 2 % m, np.arange(len(y)) % 2 == 1
    # the rows that come one by one train: the model changes, the validation set does not
    held[2 * n :] = False
    memory = LockstepLogistic(Logistic(), np.array([0, 1]), m, trials)

    def add(rows: slice) -> None:
        for t in range(trials):
            memory.add(np.full(len(y[rows]), t), X[rows], y[rows], group[rows], held[rows])

    add(slice(0, 2 * n))
    parts = [(X[held & (group == z)], y[held & (group == z)]) for z in range(m)]
    mine, theirs = [], []
    for k in range(2 * n, 2 * n + repeats):
        add(slice(k, k + 1))
        memory.fit()
        mine.append(once(memory.score))
        theirs.append(once(partial(_score_from_scratch, parts, memory.coef[0], memory.intercept[0])))
    work = f"0-1 scores of {m} groups, {n:,} one-hot validation rows, {trials} trials, after every model change"
    return Outcome("scoring", work, "group by group, from scratch", "round", min(mine) / trials, min(theirs), 1.0)


def _score_from_scratch(parts: list[Any], coef: Floats, intercept: float) -> list[int]:
    return [int(np.count_nonzero((rows @ coef + intercept > 0) != labels)) for rows, labels in parts]


def mann_kendall(full: bool) -> Outcome:
    """The trend of accuracies in a window of 20, one value more."""
    try:
        original_test = import_module("pymannkendall").original_test
    except ImportError as error:
        raise InputError("the baseline is not there: pip install pymannkendall") from error
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

    def add(kept: LockstepLogistic, part: Draw, *, fit: bool) -> int:
        kept.add(part.trial, part.X, part.y, part.group, np.arange(len(part.y)) % 2 == 1)
        if fit:
            kept.fit()
            kept.score()
        return int(part.X.data.nbytes + part.X.indices.nbytes + part.X.indptr.nbytes + part.y.nbytes)

    warm, kept, total = _memory(4), _memory(4), 0
    for part in drawn:  # compiled code is loaded before the count begins
        add(warm, part, fit=True)
    tracemalloc.start()
    try:
        for k in range(labels // chunk):
            total += add(kept, drawn[k % 4], fit=k % 10 == 9)
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
