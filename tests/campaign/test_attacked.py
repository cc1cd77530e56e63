"""What an attack from outside found: certificates forged, proofs that gave up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.claims.findings import Findings

SIGN = eh.Logistic().fit(np.array([[1.0], [-1.0]] * 10), np.array([1, 0] * 10))


def test_examples_known_before_the_freeze_only_speak_against_the_model() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 60))
    truth = {f"p{i}": int(v) for i, v in enumerate(rng.integers(0, 2, 120))}  # coins: the true error is one half
    frame = pd.DataFrame(X).add_prefix("f")
    frame.insert(0, "id", list(truth))
    frame.insert(1, "g", "u")
    c = eh.Campaign(None, "uniform", eh.Logistic(), budget=100, batch=5)
    c.pool(frame, id="id", group="g")
    out = c.ask_many(4)
    seen = [name for r in out for name in r.examples]
    by_heart = eh.Logistic(C=1e4).fit(X[[int(n[1:]) for n in seen]], np.array([truth[n] for n in seen]))
    for r in out:
        c.abandon(r)
    c.certify(0.2, model=by_heart)

    def answer_all() -> None:
        while True:
            c.tell_labels({name: truth[name] for name in c.ask().examples})

    with pytest.raises(eh.NothingToAsk, match=r"refuted|not reached"):
        answer_all()
    assert c.certificate().worst_at_most > 0.5


def test_counts_without_labels_are_refused_once_a_model_is_frozen() -> None:
    c = eh.Campaign(["u"], budget=40, batch=2)
    c.certify(model=SIGN)
    with pytest.raises(eh.InputError, match="certificate needs every label"):
        c.tell(c.ask(), n=4)


def test_the_balanced_error_is_certified_for_given_classes_only() -> None:
    c = eh.Campaign(["u"], "uniform", eh.Logistic(), budget=100, batch=5, risk="balanced")
    with pytest.raises(eh.InputError, match="every class there may be"):
        c.certify(model=SIGN)
    with pytest.raises(eh.InputError, match="every class there may be"):
        eh.Campaign(["u"], "uniform", eh.Logistic(), budget=100, risk="balanced", stop=eh.ErrorBelow(0.2))


def test_open_labels_widen_every_interval() -> None:
    found = Findings(("u", "v"))
    for evidence in (found.first, found.now):
        evidence.add([0] * 100 + [1] * 100, [0.0] * 95 + [1.0] * 5 + [0.0] * 90 + [1.0] * 10)
    before = found.certificate(1, 0.05, "error")
    found.open[0] = 40
    after = found.certificate(1, 0.05, "error")
    assert after.high[0] > before.high[0]
    assert after.low[0] < before.low[0]
    assert set(before.worst_groups) <= set(after.worst_groups)


def test_costs_for_classes_not_seen_yet() -> None:
    rng = np.random.default_rng(0)
    costs = eh.Costs(np.ones((4, 4)) - np.eye(4))
    c = eh.Campaign(["u", "v"], learner=eh.Logistic(), budget=100, batch=5, classes=[0, 1, 2, 3], risk=costs)
    for k in range(5):
        r = c.ask()
        c.tell(r, rng.normal(size=(r.size, 2)), rng.integers(0, 2, r.size), ids=[f"{k}-{i}" for i in range(r.size)])
    assert c.verify().ok


@pytest.mark.parametrize("target", ["0.1", [0.1], True, np.nan])
def test_targets_that_are_no_numbers(target: Any) -> None:
    c = eh.Campaign(["u"], budget=40)
    with pytest.raises(eh.InputError, match="target"):
        c.certify(target, model=SIGN)


def test_numpy_numbers_are_numbers() -> None:
    c = eh.Campaign(["u"], budget=400, batch=5)
    c.certify(np.float32(0.2), model=SIGN, most=np.int64(50))
    assert c.status()["proof"]["most"] == 50


def test_another_risk_than_the_one_it_was_made_with_is_refused(tmp_path: Any) -> None:
    def mine(model: Any, X: Any, y: Any) -> Any:
        return (model.predict(X) != y).astype(float), np.ones(len(y))

    def other(model: Any, X: Any, y: Any) -> Any:
        return np.zeros(len(y)), np.ones(len(y))

    url = f"sqlite:///{tmp_path / 'c.db'}"
    eh.Campaign.create(url, "c", ["u"], budget=10, risk=mine).release()
    with pytest.raises(eh.InputError, match="risk is 'mine', not 'other'"):
        eh.Campaign.open(url, "c", risk=other)
    assert eh.Campaign.open(url, "c", risk=mine).settings["risk"] == "own:mine"
