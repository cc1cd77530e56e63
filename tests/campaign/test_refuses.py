"""What a campaign refuses, and that nothing is lost by it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import evenhand as eh


def campaign(**settings):
    return eh.Campaign(("u", "v"), eh.Optimistic(), eh.Logistic(), budget=100, **settings)


@pytest.mark.parametrize("kind", [np.nan, np.inf])
def test_bad_features_are_refused_and_nothing_is_lost(kind):
    c = campaign()
    r = c.ask()
    with pytest.raises(ValueError, match="row 1: feature 1 is"):
        c.tell(r, [[0.0, 1.0], [2.0, kind]], [0, 1])
    bad = sp.csr_array(np.array([[0.0, 1.0], [2.0, kind]]))
    with pytest.raises(ValueError, match="row 1"):
        c.tell(r, bad, [0, 1])
    assert c.labels_used == 0
    assert [each.as_dict() for each in c.open_requests] == [r.as_dict()]
    c.tell(r, np.eye(2), [0, 1])
    r = c.ask()
    with pytest.raises(ValueError, match="3 features, earlier rows had 2"):
        c.tell(r, np.eye(3)[:2], [0, 1])
    assert [each.as_dict() for each in c.open_requests] == [r.as_dict()]


def test_bad_tells_are_refused():
    c = campaign(classes=[0, 1])
    r = c.ask()
    for X, y, message in [
        (np.eye(2), [0, 2], "row 1: the label 2 is not among the classes 0, 1"),
        (np.eye(2), [0, None], "row 1: no label"),
        (np.eye(2), [0], "2 rows and y 1"),
        (np.empty((0, 2)), [], "empty delivery"),
        (np.zeros(2), [0, 1], "rows and features"),
        (pd.DataFrame({"a": ["x", "y"]}), [0, 1], "column .a. is text, which the learner cannot use"),
    ]:
        with pytest.raises(ValueError, match=message):
            c.tell(r, X, y)
    with pytest.raises(ValueError, match="never made"):
        c.tell(99, np.eye(2), [0, 1])
    with pytest.raises(ValueError, match="needs the rows"):
        c.tell(r, n=2)
    with pytest.raises(ValueError, match="unknown group 'w'"):
        c.add(np.eye(2), [0, 1], ["u", "w"])
    assert c.labels_used == 0
    assert [each.as_dict() for each in c.open_requests] == [r.as_dict()]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 3}, "smaller than one warm-up round"),
        ({"budget": 10, "batch": 3}, "need 12"),
        ({"budget": 10, "batch": 0}, "batch"),
        ({"budget": 10, "validation": 1.0}, "validation"),
        ({"budget": 10, "warmup": -1}, "warmup"),
        ({"budget": 10, "seed": -1}, "seed"),
        ({"budget": 10.5}, "whole number"),
        ({"budget": 10, "population": {"u": 1.0}}, "population names"),
        ({"budget": 10, "population": [0.5, -0.5]}, "from 0 up"),
        ({"budget": 10, "classes": [0, 0]}, "twice"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        eh.Campaign(["u", "v"], eh.Uniform(), **settings)


def test_bad_groups_strategies_and_learners():
    with pytest.raises(ValueError, match="named twice"):
        eh.Campaign(["u", "u"], eh.Uniform(), budget=10)
    with pytest.raises(ValueError, match="no groups"):
        eh.Campaign([], eh.Uniform(), budget=10)
    with pytest.raises(ValueError, match="is not a strategy"):
        eh.Campaign(["u"], 3, budget=10)
    with pytest.raises(ValueError, match="unknown strategy 'best'"):
        eh.Campaign(["u"], "best", budget=10)
    with pytest.raises(ValueError, match="population"):
        eh.Campaign(["u"], eh.Uncurated(), budget=10)
    with pytest.raises(ValueError, match="explore='uniform'"):
        eh.Campaign(["u"], eh.EpsilonGreedy(), budget=10)
    with pytest.raises(ValueError, match="is not a learner"):
        eh.Campaign(["u"], eh.Uniform(), 7, budget=10)
