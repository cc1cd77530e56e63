"""Certificates under attack: whoever sees the model's errors and corrects, withdraws, erases or abandons them away.

A certificate is false where `worst_at_most` lies below the true error of the worst group; at most δ may be, whatever is
done to the labels. The long form, two thousand campaigns, is `make evidence EVIDENCE=corrections`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.ledger import MemoryLedger

TRUE = {"u": 0.25, "v": 0.15}
GROUPS = list(TRUE)


class Sign:
    """Examples x = ±1 with the label of their sign, flipped at the group's rate: every model's true error is known."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def draw(self, group: str, n: int) -> tuple[Any, Any]:
        x = self.rng.choice([-1.0, 1.0], n)
        wrong = self.rng.random(n) < TRUE[group]
        return x[:, None], np.where(wrong, x < 0, x > 0).astype(int)


def attacked(seed: int, attack: str, labels: int = 160) -> tuple[bool, eh.Certificate]:
    """A certified campaign in which somebody hides errors; whether its certificate is false at any look."""
    source = Sign(seed)
    size = 2
    c = eh.Campaign(GROUPS, "uniform", "logistic", budget=40 + 3 * labels, batch=size // 2, seed=seed, classes=[0, 1])
    for k in range(10):
        r = c.ask()
        c.tell(r, *source.draw(r.group, r.size), ids=[f"a{k}-{i}" for i in range(r.size)])
    c.certify(delta=0.05)
    model = c.certified_model()
    follows = np.mean(model.predict([[-1.0], [1.0]]) == [0, 1])  # how often it says what the sign says
    truth = max(follows * flip + (1 - follows) * (1 - flip) for flip in TRUE.values())
    false, told = False, 0
    for k in range(2 * labels):
        if told >= labels:
            break
        r = c.ask()
        X, y = source.draw(r.group, r.size)
        ids = [f"b{k}-{i}" for i in range(r.size)]
        wrong = model.predict(X) != y
        if attack == "abandon" and wrong.any():
            c.abandon(r)
        elif attack == "part" and wrong.any() and not wrong.all():
            c.tell(r, X[~wrong], y[~wrong], ids=[n for n, w in zip(ids, wrong, strict=True) if not w])
            c.abandon(r)
            told += 1
        else:
            c.tell(r, X, y, ids=ids)
            told += r.size
            for name, guess, is_wrong in zip(ids, model.predict(X).tolist(), wrong, strict=True):
                if is_wrong and source.rng.random() < 0.8:
                    if attack == "correct":
                        c.correct(name, guess)
                    elif attack == "withdraw":
                        c.withdraw(name)
                    elif attack == "erase":
                        c.erase(name)
        if k % 8 == 0:
            false |= c.certificate().worst_at_most < truth
    found = c.certificate()
    return bool(false or found.worst_at_most < truth), found


@pytest.mark.parametrize("attack", ["correct", "withdraw", "erase", "abandon", "part"])
def test_errors_cannot_be_hidden(attack: str) -> None:
    runs = [attacked(seed, attack, labels=60) for seed in range(6)]
    assert sum(false for false, _ in runs) <= 2
    found = runs[0][1]
    hidden = sum(found.corrected) if attack in ("correct", "withdraw", "erase") else sum(found.missing)
    assert hidden > 0


def test_repeated_rows_need_somebodys_word() -> None:
    c = eh.Campaign(GROUPS, "uniform", "logistic", budget=200, batch=10)
    X, y = Sign(0).draw("u", 20)
    for _ in range(3):
        c.tell(c.ask(), X, y)
    with pytest.raises(eh.InputError, match="distinct=True"):
        c.certify()
    c.certify(distinct=True)
    c.tell(c.ask(), X, y)
    found = c.certificate()
    assert found.equal >= 60
    assert "equal" in str(found)
    assert c.status()["certificate"]["distinct"] is True


def test_rows_told_without_ids_to_a_model_frozen_without_the_word_are_missing() -> None:
    c = eh.Campaign(["u"], "uniform", "logistic", budget=200, batch=10)
    X, y = Sign(0).draw("u", 20)
    c.tell(c.ask(), X, y, ids=range(20))
    c.certify()
    c.tell(c.ask(), *Sign(1).draw("u", 20))
    assert c.certificate().n == (0,)
    assert c.certificate().missing == (20,)


def picking(how: str) -> tuple[float, eh.Certificate]:
    """Ways to pick the answers by what the model gets right; the true error is 0.25."""
    now, source, size = [1e9], Sign(3), 2
    c = eh.Campaign.create(
        MemoryLedger(lambda: now[0]), "c", ["u"], "uniform", "logistic", budget=600, classes=[0, 1], lease="1h", seed=3
    )
    for k in range(10):
        r = c.ask()
        c.tell(r, *source.draw("u", r.size), ids=[f"a{k}-{i}" for i in range(r.size)])
    before = c.ask_many(60) if how in ("open at the freeze", "expired at the freeze") else []
    now[0] += 3601 if how == "expired at the freeze" else 0
    c.certify()
    model = c.certified_model()
    for k in range(60):
        r = before[k] if before else c.ask()
        X, y = source.draw("u", 3 * size)
        right = model.predict(X) == y
        order = np.argsort(~right, kind="stable")
        chosen = order if how == "more than asked for" else order[right[order]][:size]
        if how == "left open" and not right[:size].all():
            c.extend(r, "300d")
            continue
        if len(chosen):
            ids = [f"b{k}-{i}" for i in range(len(chosen))]
            c.tell(r, X[chosen], y[chosen], ids=ids, extra=how == "more than asked for")
    follows = np.mean(model.predict([[-1.0], [1.0]]) == [0, 1])
    return follows * 0.25 + (1 - follows) * 0.75, c.certificate()


@pytest.mark.parametrize("how", ["open at the freeze", "expired at the freeze", "more than asked for"])
def test_answers_cannot_be_picked(how: str) -> None:
    truth, found = picking(how)
    assert found.worst_at_most >= truth


def test_what_is_left_open_is_said_and_decides_no_target() -> None:
    """Nobody knows whether an open request will be answered: the certificate says how many labels are out."""
    _, found = picking("left open")
    assert sum(found.open) > 20
    assert f"{sum(found.open)} still open" in str(found)


def test_a_target_waits_for_what_is_open() -> None:
    c = eh.Campaign(
        ["u"], "uniform", "logistic", budget=2000, batch=50, classes=[0, 1], stop=eh.ErrorBelow(0.3), seed=3
    )
    source = Sign(3)
    c.tell(c.ask(), *source.draw("u", 100), ids=range(100))
    c.certify()
    out = c.ask_many(4)
    for k, r in enumerate(out[1:]):
        x = source.draw("u", r.size)[0]
        c.tell(r, x, (x[:, 0] > 0).astype(int), ids=[f"b{k}-{i}" for i in range(r.size)])
    # the first one asked for is open: whoever leaves it so may know why, so it counts as errors
    assert c.certificate().worst_at_most > 0.3
    x = source.draw("u", 100)[0]
    c.tell(out[0], x, (x[:, 0] > 0).astype(int), ids=[f"c{i}" for i in range(100)])
    with pytest.raises(eh.NothingToAsk, match="stopping rule"):
        c.ask()
    assert "above 0.3" in c.status()["stopped"]


def test_added_and_extra_rows_are_never_evidence() -> None:
    c = eh.Campaign(["u"], "uniform", "logistic", budget=200, batch=2)
    c.tell(c.ask(), *Sign(0).draw("u", 4), ids=range(4))
    c.certify()
    c.add(*Sign(1).draw("u", 8), ["u"] * 8, ids=range(100, 108))
    c.tell(c.ask(), *Sign(2).draw("u", 6), ids=range(200, 206), extra=True)
    assert c.certificate().n == (4,)
    assert c.certificate().missing == (2,)


def test_a_model_that_cannot_be_stored_is_refused() -> None:
    class Odd:
        classes = np.array([0, 1])

        def fit(self, X: Any, y: Any, *, previous: Any = None, seed: int = 0) -> Any:
            return self

        def predict(self, X: Any) -> Any:
            return np.zeros(len(X), dtype=int)

    c = eh.Campaign(["u"], "uniform", Odd(), budget=40, batch=2)
    c.tell(c.ask(), *Sign(0).draw("u", 4), ids=range(4))
    with pytest.raises(eh.InputError, match="cannot be stored"):
        c.certify()


@pytest.mark.parametrize("learner", ["logistic", "sklearn.naive_bayes.GaussianNB", "sklearn.svm.SVC"])
def test_the_frozen_model_comes_back_on_any_ledger(learner: str, database: str) -> None:
    c = eh.Campaign.create(database, "c", ["u", "v"], "uniform", learner, budget=200, batch=5)
    source = Sign(3)
    for k in range(6):
        r = c.ask()
        c.tell(r, *source.draw(r.group, r.size), ids=[f"{k}-{i}" for i in range(r.size)])
    expected = c.final_model()
    c.certify()
    again = eh.Campaign.open(database, "c", read_only=True).certified_model()
    X, _ = source.draw("u", 50)
    assert np.array_equal(again.predict(X), expected.predict(X))


def test_a_forest_is_refused_because_loading_it_would_need_trust() -> None:
    learner = "sklearn.ensemble.RandomForestClassifier:n_estimators=5"
    c = eh.Campaign(["u"], "uniform", learner, budget=40, batch=5)
    c.tell(c.ask(), *Sign(0).draw("u", 10), ids=range(10))
    with pytest.raises(eh.InputError, match="would need to trust"):
        c.certify()
