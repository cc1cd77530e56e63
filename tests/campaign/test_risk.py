"""Campaigns steered, stopped and certified by another risk than the error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.claims.sequences import error_rate

RISKS: list[dict[str, Any]] = [
    {"risk": "fnr", "positive": 1},
    {"risk": "fpr", "positive": 1},
    {"risk": "balanced"},
    {"risk": "log"},
    {"risk": eh.Costs([[0, 1], [5, 0]]), "classes": [0, 1]},
]


def draw(rng: np.random.Generator, group: str, n: int) -> tuple[Any, Any]:
    y = (rng.random(n) < (0.2 if group == "u" else 0.6)).astype(int)
    return rng.normal(size=(n, 2)) + (1.0 if group == "u" else 1.6) * (2 * y - 1)[:, None], y


def play(c: eh.Campaign, labels: int, seed: int = 0) -> None:
    rng = np.random.default_rng([seed, c.labels_used])
    while c.labels_used < labels:
        r = c.ask()
        X, y = draw(rng, r.group, r.size)
        c.tell(r, X, y, ids=[f"{r.id}-{k}" for k in range(r.size)])


def values(risk: Any, y: Any, predicted: Any, chance: Any) -> tuple[Any, Any]:
    """Losses and relevance written out, apart from our tables."""
    wrong = (y != predicted).astype(float)
    if risk == "fnr":
        return wrong, y == 1
    if risk == "fpr":
        return wrong, y == 0
    if risk == "log":
        return -np.log(chance[np.arange(len(y)), y]), y >= 0
    return np.where(y == 1, wrong, wrong / 5), y >= 0


@pytest.mark.parametrize("given", RISKS, ids=lambda g: str(g["risk"]))
def test_scores_are_the_risk_on_the_validation_set(given: dict[str, Any]) -> None:
    c = eh.Campaign(["u", "v"], "optimistic", eh.Logistic(), budget=300, batch=3, **given)
    play(c, 120)
    c.refit()
    held, model = c.validation_set(), c.model()
    predicted, chance = model.predict(held.X), model.predict_proba(held.X)
    groups = c.status()["groups"]
    for group in c.groups:
        mine = held.groups == group
        y, p = held.y[mine], predicted[mine]
        if given["risk"] == "balanced":
            expected = np.mean([np.mean(p[y == k] != k) for k in np.unique(y)])
        else:
            losses, relevant = values(given["risk"], y, p, chance[mine])
            expected = losses[relevant].mean()
            assert groups[group]["relevant"] == relevant.sum()
        assert groups[group]["mean_loss"] == pytest.approx(expected, abs=1e-9)
    assert c.status()["risk"] == str(given["risk"])
    assert c.verify().ok


def test_open_requests_count_by_the_relevant_share() -> None:
    c = eh.Campaign(["u", "v"], "greedy", eh.Logistic(), budget=400, batch=3, risk="fnr", positive=1)
    play(c, 120)
    c.refit()
    standing = c.standing()
    c.ask_many(4)
    now = c.standing(refit=False)
    for z in range(2):
        share = standing.validated[z] / standing.scored[z]
        counted = standing.validated[z] + share * now.pending_validation[z]
        assert now.mean_loss[z] == pytest.approx(standing.loss_sum[z] / counted)


def test_a_group_without_positives_does_not_hold_up_warm_up() -> None:
    c = eh.Campaign(["u", "v"], "optimistic", eh.Logistic(), budget=400, risk="fnr", positive=1, classes=[0, 1])
    rng = np.random.default_rng(0)
    kinds = []
    for _ in range(80):
        r = c.ask()
        kinds.append((r.group, r.decision.kind))
        X, y = draw(rng, "v", r.size)
        c.tell(r, X, np.zeros_like(y) if r.group == "u" else y, ids=[f"{r.id}-{k}" for k in range(r.size)])
    assert kinds[0][1] == "warm-up"
    assert kinds[-1][1] != "warm-up"
    assert any("'u'" in note for note in c.status()["warnings"])
    terms = [e["facts"]["decision"]["terms"] for e in c.events() if e["kind"] in ("asked", "named")][-1]
    assert terms["loss"]["u"] == terms["loss"]["v"]  # nothing is known of it: as bad as the worst of the others


def test_a_certificate_is_about_the_risk() -> None:
    c = eh.Campaign(["u", "v"], "uniform", eh.Logistic(), budget=2000, batch=10, risk="fnr", positive=1)
    play(c, 200)
    c.certify()
    model = c.certified_model()
    play(c, 800, seed=1)
    found = c.certificate()
    assert found.risk == "false negative rate"
    worst = []
    before = {name for e in c.events() if e["kind"] in ("told", "labelled") for name in e["facts"]["ids"]}
    rows = [(x, y, g, i) for part in (c.training_set(), c.validation_set()) for x, y, g, i in zip(*part, strict=True)]
    freeze = next(e["seq"] for e in c.events() if e["kind"] == "frozen")
    before = {
        n for e in c.events() if e["kind"] in ("told", "labelled") and e["seq"] < freeze for n in e["facts"]["ids"]
    }
    for z, group in enumerate(c.groups):
        new = [(x, y) for x, y, g, i in rows if g == group and i not in before and y == 1]
        missed = int((model.predict(np.array([x for x, _ in new])) != 1).sum())
        assert found.n[z] == len(new)
        assert found.mean[z] == pytest.approx(missed / len(new))
        worst.append(float(error_rate(missed, len(new), 0.025)[1]))
    assert found.worst_at_most <= max(worst) + 1e-12


def test_a_correction_may_change_who_is_relevant() -> None:
    c = eh.Campaign(["u"], "uniform", eh.Logistic(), budget=400, batch=5, risk="fnr", positive=1, classes=[0, 1])
    play(c, 40)
    c.certify()
    model = c.certified_model()
    play(c, 140, seed=2)
    before = c.certificate()
    freeze = next(e["seq"] for e in c.events() if e["kind"] == "frozen")
    new = {n for e in c.events() if e["kind"] in ("told", "labelled") and e["seq"] > freeze for n in e["facts"]["ids"]}
    rows = [r for part in (c.training_set(), c.validation_set()) for r in zip(*part, strict=True)]
    missed = [i for x, y, _, i in rows if i in new and y == 1 and model.predict(x[None])[0] == 0]
    assert missed
    c.correct(dict.fromkeys(missed, 0))  # "they were not ill after all"
    after = c.certificate()
    assert after.mean[0] == 0
    assert after.worst_at_most >= before.worst_at_most - 1e-12
    c.withdraw([i for _, y, _, i in rows if i in new and y == 0][:3])
    assert c.certificate().worst_at_most > after.worst_at_most  # relevant and wrong, whatever it was


def test_a_risk_of_your_own(tmp_path: Path) -> None:
    def far(model: Any, X: Any, y: Any) -> Any:
        return np.minimum(np.abs(np.asarray(X)[:, 0]) / 10, 1) * (model.predict(X) != y), np.asarray(X)[:, 1] > 0

    url = f"sqlite:///{tmp_path / 'c.db'}"
    c = eh.Campaign.create(url, "own", ["u", "v"], "optimistic", "logistic", budget=300, batch=3, risk=far)
    play(c, 60)
    c.refit()
    held, model = c.validation_set(), c.model()
    losses, relevant = far(model, held.X, held.y)
    for group in c.groups:
        mine = (held.groups == group) & relevant
        assert c.status()["groups"][group]["mean_loss"] == pytest.approx(losses[mine].mean())
    c.certify()
    play(c, 120)
    kept = c.certificate()
    assert kept.risk == "far"
    c.release()
    with pytest.raises(eh.InputError, match="risk is your own object"):
        eh.Campaign.open(url, "own").ask()
    again = eh.Campaign.open(url, "own", risk=far)
    assert again.certificate() == kept
    assert again.verify().ok


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"risk": "recall"}, "unknown risk 'recall'"),
        ({"risk": "fnr"}, "needs the positive class"),
        ({"risk": "fnr", "positive": "ill", "classes": ["sick", "well"]}, "is not a class"),
        ({"risk": eh.Costs([[0, 1], [5, 0]])}, "costs need the classes"),
        ({"risk": eh.Costs([[0, 1], [5, 0]]), "classes": [0, 1, 2]}, "2 classes, but there are 3"),
        ({"positive": 1}, "has no use for it"),
        ({"risk": "log", "strategy": eh.Optimistic.theoretical(eh.VCBound(d=3))}, "log loss"),
    ],
)
def test_bad_input(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(eh.InputError, match=message):
        eh.Campaign(["u", "v"], **{"budget": 10, **settings})


@pytest.mark.parametrize("label", ["Ill", "i ll"])
def test_a_label_that_is_nearly_the_positive_class_is_refused(label: str) -> None:
    c = eh.Campaign(["u", "v"], "optimistic", "logistic", budget=40, risk="fnr", positive="ill")
    with pytest.raises(eh.InputError, match="differs from the positive class 'ill' only by case or blanks"):
        c.tell(c.ask(), [[0.0], [1.0]], ["well", label])
    c.tell(c.ask(), [[0.0], [1.0]], ["well", "ill"])


def test_a_function_that_fails_says_so_in_certificates_and_refits() -> None:
    calls = []

    def fragile(model: Any, X: Any, y: Any) -> Any:
        if calls:
            raise KeyError("column")
        return model.predict(X) != y, np.ones(len(y))

    c = eh.Campaign(["u", "v"], "optimistic", eh.Logistic(), budget=300, batch=3, classes=[0, 1], risk=fragile)
    play(c, 60)
    c.certify()
    c.certificate()
    calls.append(1)
    r = c.ask()
    c.tell(r, *draw(np.random.default_rng(0), r.group, r.size), ids=[f"{r.id}-{k}" for k in range(r.size)])
    with pytest.raises(eh.InputError, match="the risk 'fragile' failed: KeyError: 'column'"):
        c.certificate()
    status = c.status()
    assert status["certificate"] is None
    assert status["budget"] == 300
    assert any("the risk 'fragile' failed: KeyError: 'column'" in warning for warning in status["warnings"])
    with pytest.raises(eh.LearnerError, match=r"^the risk 'fragile' failed: KeyError: 'column' \(after"):
        c.refit()
    c.ask()  # goes on with the scores there are


def test_costs_follow_the_order_of_the_classes_given() -> None:
    one = eh.Campaign(
        ["u"], "uniform", eh.Logistic(), budget=60, risk=eh.Costs([[0, 1], [5, 0]]), classes=["no", "yes"]
    )
    two = eh.Campaign(
        ["u"], "uniform", eh.Logistic(), budget=60, risk=eh.Costs([[0, 5], [1, 0]]), classes=["yes", "no"]
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y = draw(rng, "u", 2)
        for c in (one, two):
            c.tell(c.ask(), X, np.where(y == 1, "yes", "no"))
    for c in (one, two):
        c.refit()
    assert one.status()["groups"]["u"]["mean_loss"] == two.status()["groups"]["u"]["mean_loss"]


def test_test_labels_come_first_and_train_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'c.db'}"
    c = eh.Campaign.create(url, "t", ["u", "v"], "optimistic", "logistic", budget=200, batch=3, test_labels=21)
    rng = np.random.default_rng(0)
    kinds = []
    for _ in range(12):
        r = c.ask()
        kinds.append(r.decision.kind)
        c.tell(r, *draw(rng, r.group, r.size), ids=[f"{r.id}-{k}" for k in range(r.size)])
    assert kinds[:4] == ["test"] * 4
    assert "test" not in kinds[5:]
    groups = c.status()["groups"]
    assert sorted(g["test"] for g in groups.values()) == [10, 11]
    assert c.labels_used == 21 + sum(g["training"] + g["validation"] for g in groups.values())
    told = {
        n
        for e in c.events()
        if e["kind"] in ("told", "labelled") and set(e["facts"]["roles"]) == {"x"}
        for n in e["facts"]["ids"]
    }
    assert len(told) == 21
    assert not told & {*c.training_set().ids.tolist(), *c.validation_set().ids.tolist()}
    assert c.test_set().ids.tolist() == [i for i in c.test_set().ids.tolist() if i in told]
    # the model is the one of a campaign that never had them
    plain = eh.Campaign(["u", "v"], "optimistic", eh.Logistic(), budget=200, batch=3)
    plain.add(*c.training_set()[:3])
    assert np.allclose(eh.Logistic().fit(c.training_set().X, c.training_set().y).coef_, c.model().coef_, atol=1e-6)
    assert c.verify().ok
    with pytest.raises(eh.InputError, match="test_labels"):
        eh.Campaign(["u"], budget=10, test_labels=11)
