"""The model benchmark: published rivals against a convex solver, cells that are kept, and its quick forms."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import t as student

import evenhand as eh
from evenhand.learners.choosing import fit_chosen
from evenhand.learners.logistic.reweighting import LogisticRefits
from model_runs.cells import Cell, Kept, over_sources, run_cell
from model_runs.rivals import adaptive_weights, mixture_of_models
from model_runs.samples import draw
from model_runs.sources import SOURCES, digits

C = 100.0


@pytest.fixture(scope="module")
def problem():
    """Three groups that want different rules, and the least worst-group log loss there is (epigraph form)."""
    rng = np.random.default_rng(3)
    X, group = rng.normal(size=(180, 2)), rng.choice(["a", "b", "c"], 180, p=[0.2, 0.3, 0.5])
    axis = {"a": [1.0, 2.0], "b": [2.0, -1.0], "c": [0.0, 2.0]}
    y = (rng.random(180) < expit((X * np.array([axis[z] for z in group])).sum(axis=1))).astype(int)

    def risks(theta):
        losses = np.logaddexp(0.0, -(2 * y - 1) * (X @ theta[:2] + theta[2]))
        return np.array([losses[group == z].mean() for z in "abc"])

    found = minimize(
        lambda v: v[3] + v[:2] @ v[:2] / (2 * C * len(y)),
        np.append(np.zeros(3), 1.0),
        constraints={"type": "ineq", "fun": lambda v: v[3] - risks(v[:3])},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    return X, y, group, lambda model: risks(np.append(model.coef_, model.intercept_)), found.x[3]


def test_adaptive_weights_come_to_the_minimax(problem):
    X, y, group, risks, best = problem
    model = adaptive_weights(X, y, group, risk="log", C=C, rounds=800)
    assert best - 1e-6 < risks(model).max() < best + 0.002


def test_a_mixture_of_models_comes_to_the_minimax(problem):
    X, y, group, risks, best = problem
    few, many = (mixture_of_models(X, y, group, risk="log", C=C, rounds=n).risks(risks).max() for n in (20, 400))
    assert many < best + 0.01
    assert many - best < few - best


def test_cells_are_run_once_and_a_line_cut_short_is_run_again(tmp_path):
    kept = Kept(tmp_path / "cells.jsonl")
    cell = Cell("wine", 30, "uniform", 0, 2, chosen=True)
    found = run_cell(cell, kept)
    assert {name: len(values) for name, values in found.items()} == {"half": 2, "plain": 2, "chosen": 2}
    again = Kept(kept.path)
    assert again.get(cell.key, lambda: pytest.fail("it was kept")) == kept.get(cell.key, None)
    kept.path.write_text(kept.path.read_text() + json.dumps(["other", {"plain": [1.0]}])[:-4] + "\n")
    assert Kept(kept.path).get("other", lambda: 7) == 7


def test_on_digits_the_chosen_model_is_not_worse_in_a_few_trials(tmp_path):
    found = run_cell(Cell("digits", 400, "uniform", 0, 6, chosen=True), Kept(tmp_path / "cells.jsonl"))
    assert found["chosen"].mean() > found["plain"].mean() - 0.01


def test_samples_are_the_rules_shares():
    sample = draw(SOURCES["adult"].make(), 200, 0, 0, even=False)
    assert sorted(np.unique(sample.groups, return_counts=True)[1].tolist()) == [13, 16, 53, 118]
    even = draw(digits(), 100, 0, 0)
    assert np.unique(even.groups, return_counts=True)[1].tolist() == [20] * 5


@pytest.mark.parametrize("trial", [0, 11])
def test_fits_under_very_unequal_weights_converge(trial):
    """Such weights once made the solver take steps that hardly moved, until it gave up and no model came."""
    sample = draw(digits(), 200, 901, trial)
    model = fit_chosen(eh.Logistic(), sample.X, sample.y, sample.groups, seed=trial)
    assert len(model.choice.candidates) == 18
    rng = np.random.default_rng(trial)
    place = np.unique(sample.groups, return_inverse=True)[1]
    refits = LogisticRefits(eh.Logistic(), sample.X, sample.y, 1e-6)
    for C in (30.0, 0.1, 10.0, 30.0) * 5:
        weight = (10 ** rng.uniform(-6, 0, 5))[place]
        refits.fit(weight * len(weight) / weight.sum(), C)


def test_budgets_of_a_source_are_no_independent_evidence():
    values, sources = [1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 5.0, 5.0, 5.0], [name for name in "abc" for _ in range(3)]
    found = over_sources(values, sources)
    low, high = student.interval(0.95, 2, 3.0, np.std([1, 3, 5], ddof=1) / np.sqrt(3))
    assert [found[key] for key in ("mean", "low", "high")] == pytest.approx([3.0, low, high])
