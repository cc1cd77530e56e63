"""Certificates of campaigns: the model is frozen and stored, and only labels that answer requests afterwards count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

import evenhand as eh
from evenhand.claims.certificates import Certificate, Evidence
from evenhand.ledger import MemoryLedger
from evenhand.ledger.database import DatabaseLedger


def examples(group: str, k: int, size: int) -> tuple[Any, Any]:
    """The k-th delivery of a group, the same for whoever asks."""
    rng = np.random.default_rng([ord(group[0]), k])
    y = rng.integers(0, 2, size)
    shift = {"u": 0.4, "v": 1.5}[group]
    return rng.normal(size=(size, 2)) + shift * (2 * y - 1)[:, None], y


def names(k: int, size: int) -> list[str]:
    return [f"{k}:{i}" for i in range(size)]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def go_on(c: eh.Campaign, rounds: range, ids: bool = True) -> None:
    for k in rounds:
        request = c.ask()
        c.tell(request, *examples(request.group, k, request.size), ids=names(k, request.size) if ids else None)


def certificate(c: eh.Campaign, delta: float | None = None) -> Certificate:
    found = c.certificate(delta)
    assert found is not None
    return found


def test_the_evidence_is_that_of_a_campaign_in_memory(database: str) -> None:
    settings: dict[str, Any] = {"budget": 200, "batch": 3, "seed": 5, "distinct": True}
    plain = eh.Campaign(["u", "v"], eh.Optimistic(), eh.Logistic(), **settings)
    kept = eh.Campaign.create(database, "survey", ["u", "v"], "optimistic", "logistic", **settings)
    X, y = examples("u", 99, 8)
    for campaign in (plain, kept):
        campaign.add(X, y, ["u", "v"] * 4)
    for k in range(20):
        expected, found = plain.ask(), kept.ask()
        assert (found.group, found.size) == (expected.group, expected.size)
        rows = examples(found.group, k, found.size)
        plain.tell(expected, *rows)
        for part in (slice(0, 2), slice(2, None)):  # in two parts, which makes no difference
            kept.tell(found, rows[0][part], rows[1][part])
        if k in (6, 11):
            version = plain.certify().version
            kept.release()
            kept = eh.Campaign.open(database, "survey")  # a new process
            assert kept.certify().version == version
        if k % 5 == 3:
            kept.release()
            kept = eh.Campaign.open(database, "survey")  # reads the frozen model from the ledger
    assert plain.refit() == kept.refit() is True
    assert kept.running() == plain.running()
    assert sum(kept.running().n) > 50
    assert certificate(kept) == certificate(plain)
    assert sum(certificate(kept).n) == 6 * 8
    assert kept.verify().problems == []
    kept.release()


def test_evidence_by_an_independent_count(url: str) -> None:
    with eh.Campaign.create(
        url, "survey", ["u", "v"], "uniform", budget=400, batch=10, refit="background"
    ) as c:  # fmt: skip
        go_on(c, range(4))
        assert c.certify().n == (0, 0)
        frozen = c.certified_model()
        assert frozen is not None
        before = c.overview()["events"]
        go_on(c, range(4, 10))
        expected = Evidence(("u", "v"))
        for event in c.events(before):
            if event["kind"] in ("told", "labelled"):
                X, y = examples(event["facts"]["group"], event["request"] - 1, 20)
                expected.add(["uv".index(event["facts"]["group"])] * 20, np.asarray(frozen.predict(X)) != y)
        for delta in (None, 0.05, 0.3):  # no refit is needed to look
            wanted = expected.certificate(1, 0.05 if delta is None else delta)
            found = certificate(c, delta)
            assert (found.n, found.mean, found.low, found.high) == (wanted.n, wanted.mean, wanted.low, wanted.high)
            assert (found.worst_at_most, found.worst_groups) == (wanted.worst_at_most, wanted.worst_groups)
        assert found.n == (60, 60)
        with eh.Campaign.open(url, "survey", read_only=True) as other:
            assert certificate(other) == certificate(c)


def test_only_what_answered_a_request_is_evidence(url: str) -> None:
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=400, batch=2) as c:
        go_on(c, range(4))
        c.certify()
        request = c.ask()
        X, y = examples(request.group, 5, 9)
        c.tell(request, X, y, ids=names(5, 9), extra=True)
        c.add(*examples("u", 6, 10), ["u"] * 10)
        c.tell(1, *examples("u", 7, 3), ids=names(7, 3), extra=True)
        assert sum(certificate(c).n) == 4
        assert sum(certificate(c).missing) == 5, "whoever tells more than asked for may choose what is the answer"


def test_looking_between_does_not_change_the_evidence(url: str, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path / 'other.db'}"
    found = []
    for each in (url, other):
        with eh.Campaign.create(each, "survey", ["u", "v"], "greedy", budget=200, batch=3) as c:
            for k in range(8):
                go_on(c, range(k, k + 1))
                if k == 3:
                    c.certify()
                if each == other:  # fits on rows that the scores do not rest on yet
                    c.model()
                    c.final_model()
                    c.certificate()
                    c.status()
            c.refit()
            found.append((c.running(), certificate(c)))
            assert c.verify().problems == []
    assert found[0] == found[1]


def test_status_says_what_is_certain(url: str) -> None:
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=900, batch=20) as c:
        assert c.status()["running"]["groups"]["u"] == {"n": 0, "mean": None, "low": 0.0, "high": 1.0}
        assert c.status()["certificate"] is None
        go_on(c, range(6))
        c.certify(delta=0.1)
        go_on(c, range(6, 14))
        c.refit()
        found = c.status()
        assert found["running"] == c.running().as_dict()
        assert found["certificate"]["worst_at_most"] == certificate(c).worst_at_most < 1
        assert (found["certificate"]["frozen_at_labels"], found["certificate"]["version"]) == (240, 1)
        assert (found["certificate"]["confidence"], found["certificate"]["distinct"]) == (0.9, False)
        assert json.loads(json.dumps(found))["certificate"]["groups"].keys() == {"u", "v"}


class Slow:
    """A learner during whose fit something else happens."""

    meanwhile: Any = None

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, previous: Any = None, seed: int = 0) -> Any:
        meanwhile, Slow.meanwhile = Slow.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return eh.Logistic().fit(X, y)


def test_a_refit_under_way_while_a_model_is_frozen(url: str) -> None:
    settings: dict[str, Any] = {"budget": 400, "batch": 5, "refit": "background"}
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", Slow(), **settings) as c:
        go_on(c, range(4))
        c.certify()
        c.refit()
        go_on(c, range(4, 8))
        with eh.Campaign.open(url, "survey", learner=Slow()) as other:
            Slow.meanwhile = other.certify
            assert c.refit()
            assert Slow.meanwhile is None
        assert (certificate(c).version, certificate(c).n) == (2, (0, 0))
        assert sum(c.running().n) > 10
        go_on(c, range(8, 9))
        assert sum(certificate(c).n) == 10
        assert c.verify().problems == []


def test_a_new_class_after_the_model_was_frozen(url: str) -> None:
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=400, batch=5) as c:
        go_on(c, range(4))
        c.certify()
        request = c.ask()
        X, _ = examples(request.group, 7, 10)
        assert c.tell(request, X, [2] * 10, ids=names(7, 10)).new_classes == (2,)
        c.refit()
        assert sum(certificate(c).n) == 10
        assert [m for m in certificate(c).mean if m is not None] == [1.0]
        assert c.verify().problems == []


def test_labels_that_did_not_come_count_against_the_model(tmp_path: Path) -> None:
    now = [1e9]
    with DatabaseLedger(f"sqlite:///{tmp_path / 'l.db'}", create=True, clock=lambda: now[0]) as ledger:
        c = eh.Campaign.create(ledger, "survey", ["u", "v"], "uniform", budget=400, batch=2, lease="1h")
        go_on(c, range(20))
        c.certify()
        go_on(c, range(20, 40))
        full = certificate(c)
        assert full.missing == (0, 0)
        one, two, three, four = c.ask_many(4)
        waiting = certificate(c)  # they may still come: no look so far is worse for it, but every interval is wider
        assert (waiting.worst_at_most, waiting.missing) == (full.worst_at_most, full.missing)
        assert waiting.high > full.high
        X, y = examples(one.group, 50, 4)
        c.tell(one, X[:3], y[:3], ids=names(50, 3))
        assert sum(certificate(c).missing) == 1  # partly answered
        c.abandon(two)
        assert sum(certificate(c).missing) == 5
        now[0] += 3600
        c.tell(c.ask(), *examples("u", 60, 4), ids=names(60, 4))
        found = certificate(c)  # three and four expired, and one with a row to come
        assert sum(found.missing) == 13
        assert found.worst_at_most > full.worst_at_most
        c.tell(three, *examples(three.group, 70, 4), ids=names(70, 4))
        c.tell(one, X[3:], y[3:], ids=["late"])
        found = certificate(c)
        assert sum(found.missing) == 8  # no longer missing once told
        assert sum(found.n) == sum(full.n) + 12
        assert four.id in [r["request"] for r in c.status()["expired"]]


def test_of_rows_without_ids_somebody_has_to_vouch(url: str) -> None:
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=400, batch=2) as c:
        go_on(c, range(4), ids=False)
        with pytest.raises(ValueError, match="rows were told without ids"):
            c.certify()
        c.certify(distinct=True)
        go_on(c, range(4, 8), ids=False)
        assert (sum(certificate(c).n), certificate(c).equal) == (16, 0)
        c.tell(c.ask(), *examples("u", 0, 4))  # the rows of the first request once more
        assert certificate(c).equal == (4 if c.events()[1]["facts"]["decision"]["group"] == "u" else 0)
        assert c.status()["certificate"]["distinct"] is True


def test_rows_without_ids_after_the_freeze_are_missing_unless_somebody_vouched(url: str) -> None:
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=400, batch=2) as c:
        go_on(c, range(4))
        c.certify()
        go_on(c, range(4, 6), ids=False)
        assert (sum(certificate(c).n), sum(certificate(c).missing)) == (0, 8)


@pytest.mark.parametrize("where", ["memory", "file"])
def test_what_cannot_be_certified(where: str, url: str) -> None:
    ledger = MemoryLedger() if where == "memory" else DatabaseLedger(url, create=True)
    with ledger:
        none = eh.Campaign.create(ledger, "none", ["u", "v"], "uniform", None, budget=40)
        with pytest.raises(ValueError, match="no learner"):
            none.certify()
        empty = eh.Campaign.create(ledger, "empty", ["u", "v"], "greedy", "logistic", budget=80)
        with pytest.raises(ValueError, match="no model"):
            empty.certify()
        assert empty.certified_model() is None
        assert empty.certificate() is None
        go_on(empty, range(2))
        for bad in ("best", 3, None):
            with pytest.raises(ValueError, match=r"model must be|is no model"):
                empty.certify(model=bad)
        for delta in (0, 1, -0.1):
            with pytest.raises(ValueError, match="delta"):
                empty.certify(delta=delta)
        assert empty.certificate() is None
        empty.close()
        with pytest.raises(ValueError, match="is closed"):
            empty.certify()


def test_a_learner_that_goes_on_from_its_model_can_be_certified(url: str) -> None:
    """The frozen model is stored, so nobody has to fit it again."""
    learner = "sklearn.linear_model.SGDClassifier:random_state=1,update=partial_fit"
    with eh.Campaign.create(url, "survey", ["u", "v"], "greedy", learner, budget=80, batch=4) as c:
        go_on(c, range(5))
        c.certify()
        go_on(c, range(5, 8))
        found = certificate(c)
        assert sum(found.n) == 24
        c.refit()
        assert sum(c.running().n) > 0
        assert c.verify().problems == []
    with eh.Campaign.open(url, "survey", read_only=True) as c:
        assert certificate(c) == found


def test_a_model_that_cannot_be_stored_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "moody.py").write_text(
        "import numpy as np\nfrom sklearn.base import BaseEstimator, ClassifierMixin\n"
        "class Moody(ClassifierMixin, BaseEstimator):\n"
        "    def fit(self, X, y):\n"
        "        self.classes_ = np.unique(y)\n"
        "        return self\n"
        "    def predict(self, X):\n"
        "        return np.full(len(X), self.classes_[0])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("EVENHAND_ALLOW", "moody")
    with eh.Campaign.create(url, "survey", ["u", "v"], "greedy", "factory:moody.Moody", budget=400, batch=4) as c:
        go_on(c, range(3))
        with pytest.raises(ValueError, match=r"Moody cannot be stored, so it cannot be frozen: .*trust moody\.Moody"):
            c.certify()
        assert c.certificate() is None


def test_a_process_that_cannot_load_the_model_counts_labels_as_missing(url: str) -> None:
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=400, batch=5) as c:
        go_on(c, range(4))
        c.certify()
        go_on(c, range(4, 8))
        whole = certificate(c)
    with (
        DatabaseLedger(url) as ledger,
        ledger.engine.connect().execution_options(writing=True) as connection,
        connection.begin(),
    ):
        connection.execute(text("UPDATE models SET format = 'of tomorrow'"))
    with eh.Campaign.open(url, "survey") as c:
        found = certificate(c)
        assert (found.n, found.missing) == ((0, 0), whole.n)
        assert found.worst_at_most > whole.worst_at_most
        with pytest.raises(ValueError, match="'of tomorrow' is not known to this version"):
            c.certified_model()


def test_own_models_and_the_current_one(url: str) -> None:
    from sklearn.linear_model import LogisticRegression

    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", budget=400, batch=5) as c:
        go_on(c, range(6))
        X = examples("u", 77, 50)[0]
        for model, expected in (("current", c.model()), ("final", c.final_model())):
            c.certify(model=model)
            kept = c.certified_model()
            assert kept is not None
            np.testing.assert_array_equal(kept.predict(X), expected.predict(X))
            np.testing.assert_allclose(kept.coef_, expected.coef_)
        own = LogisticRegression().fit(*examples("v", 78, 50))
        assert c.certify(model=own).version == 3
        go_on(c, range(6, 8))
        wrong = {"u": 0, "v": 0}
        for k, event in enumerate([e for e in c.events() if e["kind"] in ("told", "labelled")][6:], start=6):
            group = event["facts"]["group"]
            X, y = examples(group, k, 10)
            wrong[group] += int((own.predict(X) != y).sum())
        found = certificate(c)
        assert [round((m or 0) * n) for m, n in zip(found.mean, found.n, strict=True)] == list(wrong.values())
        assert c.status()["certificate"]["model"] == "own"
