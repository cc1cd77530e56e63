"""NumPy's numbers, texts and truth values wherever somebody may hand them in: a frame's cells are nothing else."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.helpers import label_of, pool_frame

import evenhand as eh
from evenhand.claims.stopping import Deadline, ErrorBelow, LabelsSpent, NoImprovement
from evenhand.datasets import load
from evenhand.errors import InputError
from evenhand.ledger import Ledger, open_ledger

I, F, S, B = np.int64, np.float64, np.str_, np.bool_
GROUPS = [S("u"), S("v")]


@pytest.fixture
def ledger(database: str) -> Ledger:
    return open_ledger(database, create=True)


def rows(k: int, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + y[:, None], y


@pytest.mark.parametrize(
    "settings",
    [
        {"budget": I(60)}, {"batch": np.int32(2)}, {"warmup": I(1)}, {"validation": F(0.3)}, {"seed": I(3)},
        {"seed": (I(1), I(2))}, {"classes": np.array(["a", "b"])}, {"population": np.array([0.3, 0.7])},
        {"population": {S("u"): F(0.2), S("v"): np.float32(0.8)}}, {"test_labels": I(4)}, {"stop": S("labels=20")},
        {"lease": F(3600.0)}, {"lease": I(60)}, {"distinct": B(True)}, {"refit": I(5)}, {"risk": S("error")},
        {"risk": "fnr", "positive": I(1), "classes": [I(0), I(1)]},
        {"risk": "fnr", "positive": B(True), "classes": [B(True), B(False)]},
        {"stop": ErrorBelow(F(0.1), F(0.9))}, {"stop": LabelsSpent(I(30)) | NoImprovement(I(3), F(0.1))},
        {"stop": Deadline(np.datetime64("2090-01-01"))},
    ],
)  # fmt: skip
def test_every_setting(settings: dict[str, Any], ledger: Ledger) -> None:
    with eh.Campaign.create(
        ledger, "c", GROUPS, S("optimistic:c0=0.5"), S("logistic"), **{"budget": 60, **settings}
    ) as c:
        assert c.ask(S("ann")).group in ("u", "v")
        assert eh.Campaign.open(ledger, "c").settings == c.settings


@pytest.mark.parametrize("rule", [eh.Optimistic, eh.EpsilonGreedy, eh.Greedy, eh.Uniform, eh.Uncurated])
def test_every_setting_of_a_rule(rule: Any) -> None:
    for name, parameter in inspect.signature(rule).parameters.items():
        if isinstance(parameter.default, int | float):
            plain, given = rule(), rule(**{name: np.asarray(parameter.default)[()]})
            assert str(given) == str(plain)
            c = eh.Campaign(GROUPS, given, None, budget=40, population=[0.5, 0.5])
            assert "np." not in c.settings["strategy"]
            c.ask()


def test_every_verb(ledger: Ledger) -> None:
    c = eh.Campaign.create(ledger, "c", GROUPS, "uniform", None, budget=I(400), batch=I(2))
    first, *_ = c.ask_many(I(4), S("ann"))
    c.tell(I(first.id), n=I(4), collector=S("bob"))
    c.tell_losses({S("u"): (F(0.1), F(0.9), I(4)), S("v"): np.array([0.1, 0.9, 4])}, by=S("me"))
    c.abandon(I(2), by=S("me"))
    c.extend(I(3), F(60.0), by=S("me"))
    c.retire(S("u"), back=B(True), by=S("me"))
    c.change(budget=I(500), lease=I(60), refit=I(3), stop=[S("labels=200")])
    assert c.explain(I(1))["request"] == 1
    assert [event["seq"] for event in c.events(I(1), I(2))] == [2, 3]
    assert c.status()["collectors"].keys() >= {"ann", "bob"}
    c.ask_many(I(2), S("ann"))  # as the state was snapshot with its collectors
    assert c.verify().problems == []
    c.close(S("done"), by=S("me"))


def test_every_verb_about_rows(ledger: Ledger, tmp_path: Path) -> None:
    c = eh.Campaign.create(ledger, "c", GROUPS, "uniform", "logistic", budget=400, batch=5)
    for k in range(4):
        request = c.ask()
        c.tell(request, *rows(k, 10), ids=np.arange(10) + 10 * k, partial=B(False), extra=B(False), dry_run=B(False))
    c.add(*rows(9, 4), np.array(["u", "v"] * 2), ids=np.array(["a", "b", "c", "d"]), charge=B(True), by=S("me"))
    label = dict(zip(c.training_set().ids, c.training_set().y, strict=True))
    [one, two, *_] = [int(name) for name in label if name.isdigit()]
    assert c.correct(I(one), 1 - label[str(one)], reason=S("why"), by=S("me")) == 1
    assert c.correct({I(two): I(1 - label[str(two)])}) == 1
    assert c.correct({two: int(label[str(two)])}) == 1, "a number is an id, as it is when it is told"
    assert c.withdraw(np.array([7, 8]), refund=B(True), by=S("me")) == 2
    assert c.withdraw(I(9)) == 1
    c.erase(I(11), reason=S("asked for"))
    c.erase([I(12), "13"])
    c.certify(np.float32(0.3), most=np.int32(50), delta=np.float32(0.1), distinct=B(True), by=S("me"))
    assert c.certificate(F(0.1)) is not None
    assert c.running(np.float32(0.1)).groups == ("u", "v")
    assert c.export(tmp_path / "rows.csv", force=B(True)) > 30
    assert c.verify().problems == []


def test_every_verb_of_a_pool(ledger: Ledger) -> None:
    c = eh.Campaign.create(ledger, "c", None, "uniform", "table", budget=40)
    frame = pool_frame(20).assign(id=range(20))
    c.pool(
        frame, id=S("id"), group=S("group"), features=np.array(["x"]), merge_below=I(0), use_group_as_feature=B(False),
        by=S("me"),
    )  # fmt: skip
    one, two = (int(name) for name in c.ask().examples)
    c.tell_labels({I(one): S("yes"), S(two): S("no")}, collector=S("ann"))
    c.skip(I(int(c.ask().examples[0])), S("blurred"), S("me"))
    assert c.status()["skipped"] == 1
    assert c.verify().problems == []
    with pytest.raises(InputError, match="no id"):
        c.skip(F(0.5))  # type: ignore[arg-type]


def test_curate_and_simulate(tmp_path: Path) -> None:
    whole = {"budget": I(60), "seed": I(1), "batch": I(1), "warmup": I(1), "jobs": I(1), "evaluate": I(5)}
    curated = eh.curate(load("german"), compare=I(2), min_test=I(30), **whole)
    assert len(curated.rows) == 60
    curated.save(tmp_path / "rows.csv")
    assert len(eh.simulate(load("german"), "uniform", trials=I(2), validation=F(0.5), **whole).trace) > 60
    table = pool_frame(40).assign(label=None)
    begun = eh.curate(
        table, "label", "group", budget=I(10), seed=I(1), batch=I(1), per_round=I(4), test_labels=I(2), id="id",
        out=tmp_path / "new.csv",
    )  # fmt: skip
    assert begun.tell({S(name): S(label_of(name)) for name in begun.todo["id"]}) == 4
    assert isinstance(begun.todo, pd.DataFrame)
