"""Odd arguments are the user's slip and are told as one: an `InputError` that names the argument, never a traceback."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import evenhand as eh
from evenhand.datasets import load
from evenhand.errors import InputError, LearnerError
from evenhand.report.plane import width_of, wrapped

GROUPS = ["u", "v"]
ODD = ["x", "3", None, [3], 1.5, -1]


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("name", ["budget", "batch", "evaluate", "trials", "seed"])
def test_of_simulate(name: str, value: Any) -> None:
    if (name, value) != ("seed", None):
        with pytest.raises(InputError, match=name):
            eh.simulate(load("german"), "uniform", **{"budget": 60, "trials": 1, name: value})


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("name", ["budget", "batch", "evaluate", "compare", "min_test", "seed"])
def test_of_curate(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        eh.curate(load("german"), **{"budget": 60, "compare": 0, name: value})


@pytest.mark.parametrize("value", ["x", None, [1], True, float("nan"), -1])
@pytest.mark.parametrize("name", ["c0", "c1", "xi", "window", "epsilon"])
def test_of_rules(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        (eh.EpsilonGreedy if name == "epsilon" else eh.Optimistic)(**{name: value})
    rule = "epsilon-greedy" if name == "epsilon" else "optimistic"
    with pytest.raises(InputError, match=name):
        eh.Campaign(GROUPS, f"{rule}:{name}={'no' if value is None else value}", None, budget=40)


@pytest.mark.parametrize("population", ["x", 3, ["a", "b"], {"u": "a", "v": 1}, {"u": None, "v": 1}, [[1, 2]], {}])
def test_of_shares(population: Any) -> None:
    with pytest.raises(InputError, match="population"):
        eh.Campaign(GROUPS, "uncurated", None, budget=40, population=population)


def no_argument() -> Any:
    return None


def one_argument(standing: Any) -> Any:
    return None


def three_arguments(standing: Any, uniforms: Any, more: Any) -> Any:
    return None


@pytest.mark.parametrize("rule", [no_argument, one_argument, three_arguments, 3, None, eh.Optimistic, [[]]])
def test_of_what_is_to_be_a_strategy(rule: Any) -> None:
    """At once, and not at the first request, when people are waiting."""
    with pytest.raises(InputError, match="strateg"):
        eh.Campaign(GROUPS, rule, None, budget=40)
    with pytest.raises(InputError, match="strateg"):
        eh.simulate(load("german"), rule, budget=60, trials=1)


@pytest.mark.filterwarnings("ignore:the learner GridSearchCV warns")
def test_a_learner_that_needs_more_rows_is_told_how_to_get_them() -> None:
    search = GridSearchCV(LogisticRegression(), {"C": [1, 2]})
    with pytest.raises(LearnerError, match=r"failed in fit on 2 rows, too few for it\? raise batch"):
        eh.SklearnLearner(search).fit([[0.0], [1.0]], [0, 1])
    assert len(eh.curate(load("german"), learner=search, budget=80, batch=20, compare=0).rows) == 80


def test_a_hundred_scattered_trials_are_kept(tmp_path: Any) -> None:
    from evenhand.experiments.study import Study
    from evenhand.simulation import blocks
    from evenhand.simulation.store import Store

    study = Study("synthetic1:I", {"ours": "uniform"}, budget=6, trials=400, block=200)
    settings, odd = study.settings("ours"), list(range(1, 400, 2))
    (block,) = study.blocks({"ours": odd})
    store = Store(tmp_path)
    store.put(settings, blocks.run(block))
    assert store.missing(settings, range(400)) == list(range(0, 400, 2))
    found = store.get(settings, odd)
    assert found is not None
    assert found.trials.tolist() == odd


def test_very_long_group_names() -> None:
    """Every prefix was measured from its start: names of 1,000 characters took five seconds. Longer ones are refused."""
    rng = np.random.default_rng(0)
    names, began = ["a" * 500, "b" * 500, "漢字" * 250], time.process_time()
    rows = pd.DataFrame({"g": rng.choice(names, 300), "x": rng.normal(size=300), "y": rng.integers(0, 2, 300)})
    curated = eh.curate(rows, "y", "g", budget=60, compare=0)
    assert len(curated.report()) > 10_000
    with pytest.raises(InputError, match="a name of 10,000 characters"):
        eh.curate(rows.assign(g=rows["g"] * 20), "y", "g", budget=60, compare=0)
    assert time.process_time() - began < 60, "not a time that is promised: it was minutes"
    assert "".join(wrapped("漢字Wm" * 50, 60)) == "漢字Wm" * 50
    assert all(width_of(line) <= 60 for line in wrapped("漢字Wm one two" * 50, 60))


def test_what_a_learner_warns_of_is_said_in_whole_and_once() -> None:
    X, y = np.array([[1e30], [-1e30], [0.0], [1.0]] * 10), np.arange(40) % 2
    learner = eh.SklearnLearner(LogisticRegression(max_iter=2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rows in (X, X[::-1]):
            learner.fit(rows, y)
    assert {each.category for each in caught} == {ConvergenceWarning}
    assert all("the learner LogisticRegression warns: lbfgs failed" in str(each.message) for each in caught)
    assert len({str(each.message) for each in caught}) == 1
    assert all("\n" not in str(each.message) for each in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.fit(X, y)
