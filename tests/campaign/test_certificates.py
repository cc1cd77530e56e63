"""Certificates of live campaigns: the evidence is recorded, and is what a campaign in memory counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

import evenhand as eh
from evenhand import live
from evenhand.certificates import Evidence
from evenhand.ledger import Ledger, State
from evenhand.ledger.schema import SPAN
from evenhand.live import LiveCampaign
from evenhand.live.status import status
from evenhand.live.verify import verify


def examples(group: str, k: int, size: int) -> tuple[Any, Any]:
    """The k-th delivery of a group, the same for whoever asks."""
    rng = np.random.default_rng([ord(group[0]), k])
    y = rng.integers(0, 2, size)
    shift = {"u": 0.4, "v": 1.5}[group]
    return rng.normal(size=(size, 2)) + shift * (2 * y - 1)[:, None], y


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def go_on(kept: LiveCampaign, rounds: range) -> None:
    for k in rounds:
        request = kept.ask()
        kept.tell(request, *examples(request.group, k, request.size))


def test_the_evidence_is_that_of_a_campaign_in_memory(database: str) -> None:
    settings: dict[str, Any] = {"budget": 200, "batch": 3, "seed": 5}
    plain = eh.Campaign(["u", "v"], eh.Optimistic(), eh.Logistic(), **settings)
    kept = live.create(database, "survey", ["u", "v"], "optimistic", "logistic", **settings)
    X, y = examples("u", 99, 8)
    for campaign in (plain, kept):
        campaign.add(X, y, ["u", "v"] * 4)  # data that were there before are no evidence
    for k in range(20):
        expected, found = plain.ask(), kept.ask()
        assert (found.group, found.size) == (expected.group, expected.size)
        rows = examples(found.group, k, found.size)
        plain.tell(expected, *rows)
        kept.tell(found, *rows)
        if k in (6, 11):
            version = plain.certify().version
            kept = LiveCampaign(Ledger(database), "survey")  # a new process: the frozen model is rebuilt
            assert kept.certify().version == version
        if k % 5 == 3:
            kept = LiveCampaign(Ledger(database), "survey")
    kept.refit()
    assert kept.running() == plain.monitor.running()
    assert sum(kept.running().n) == 60
    assert kept.certificate() == plain.monitor.certificate()
    assert kept.certificate().n != (0, 0)
    assert kept.ledger.state(kept.number, State()) == kept.refresh()
    assert verify(kept)["problems"] == []


def test_evidence_by_an_independent_count(url: str) -> None:
    kept = live.create(url, "survey", ["u", "v"], "uniform", "logistic", budget=400, batch=10, refit="background")
    go_on(kept, range(4))
    kept.certify()
    frozen = kept.frozen_model()
    assert frozen is not None
    before = kept.refresh().seq
    go_on(kept, range(4, 10))
    assert kept.certificate().n == (0, 0)  # counted when it is refitted
    assert kept.refit()
    expected = Evidence(("u", "v"))
    for event in kept.ledger.events(kept.number, before, kind="told"):
        k = event.request - 1
        held = np.array(list(event.header["roles"])) == "v"
        X, y = examples(event.header["group"], k, 20)
        expected.add(["uv".index(event.header["group"])] * held.sum(), frozen.predict(X[held]) != y[held])
    assert kept.certificate() == expected.certificate(1)
    assert kept.running().n == expected.running().n  # one model stood for all of them
    assert kept.running(0.1) == expected.running(0.1)


def test_looking_between_does_not_change_the_evidence(url: str, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path / 'other.db'}"
    for each in (url, other):
        kept = live.create(each, "survey", ["u", "v"], "greedy", "logistic", budget=200, batch=3)
        for k in range(8):
            go_on(kept, range(k, k + 1))
            if each == other:  # fits on rows that the scores do not rest on yet
                kept.model()
                kept.final_model()
        kept.refit()
    assert live.open_campaign(other, "survey").running() == live.open_campaign(url, "survey").running()
    assert verify(live.open_campaign(other, "survey"))["problems"] == []


def test_status_says_what_is_certain(url: str) -> None:
    kept = live.create(url, "survey", ["u", "v"], "uniform", "logistic", budget=900, batch=20)
    assert status(kept)["running"]["groups"]["u"] == {"n": 0, "mean": None, "low": 0.0, "high": 1.0}
    assert status(kept)["certificate"] is None
    go_on(kept, range(6))
    kept.certify()
    go_on(kept, range(6, 14))
    kept.refit()
    found = status(kept)
    assert found["running"] == kept.running().as_dict()
    assert found["certificate"]["worst_at_most"] == kept.certificate().worst_at_most < 1
    assert (found["certificate"]["frozen_at_labels"], found["certificate"]["version"]) == (240, 1)
    assert json.loads(json.dumps(found))["certificate"]["groups"].keys() == {"u", "v"}


def test_a_refit_under_way_while_a_model_is_frozen(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = live.create(url, "survey", ["u", "v"], "uniform", "logistic", budget=400, batch=5, refit="background")
    go_on(kept, range(4))
    kept.certify()
    go_on(kept, range(4, 8))
    other = LiveCampaign(Ledger(url), "survey")
    scores = kept._trainer.scores

    def slow(state: State) -> dict[str, Any]:
        found = scores(state)
        other.certify()  # the lease is taken: it freezes the scored model there is
        return found

    monkeypatch.setattr(kept._trainer, "scores", slow)
    assert kept.refit()
    certificate = kept.certificate()
    assert (certificate.version, certificate.n) == (2, (0, 0))
    assert sum(kept.running().n) == 20
    assert verify(kept)["problems"] == []


def test_a_new_class_after_the_model_was_frozen(url: str) -> None:
    kept = live.create(url, "survey", ["u", "v"], "uniform", "logistic", budget=400, batch=5)
    go_on(kept, range(4))
    kept.refit()
    kept.certify()
    request = kept.ask()
    X, _ = examples(request.group, 7, 10)
    kept.tell(request, X, [2] * 10)
    kept.refit()
    certificate = kept.certificate()
    assert sum(certificate.n) == 5
    assert [m for m in certificate.mean if m is not None] == [1.0]
    assert verify(kept)["problems"] == []


def test_what_cannot_be_certified(url: str) -> None:
    ledger = Ledger(url, create=True)
    none = live.create(ledger, "none", ["u", "v"], "uniform", None, budget=40)
    with pytest.raises(ValueError, match="has no learner"):
        none.certify()
    text = "sklearn.linear_model.SGDClassifier:random_state=1,update=partial_fit"
    on = live.create(ledger, "on", ["u", "v"], "greedy", text, budget=80, batch=4)
    go_on(on, range(5))
    with pytest.raises(ValueError, match="cannot be rebuilt exactly"):
        on.certify()
    on.refit()
    assert sum(on.running().n) > 0
    assert verify(on)["problems"] == []
    empty = live.create(ledger, "empty", ["u", "v"], "greedy", "logistic", budget=80)
    with pytest.raises(ValueError, match="no model to certify yet"):
        empty.certify()
    assert empty.frozen_model() is None
    go_on(empty, range(2))
    empty.close()
    with pytest.raises(ValueError, match="is closed"):
        empty.certify()


def test_another_version_of_the_software_adds_nothing_to_a_certificate(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = live.create(url, "survey", ["u", "v"], "uniform", "logistic", budget=400, batch=5)
    go_on(kept, range(4))
    kept.certify()
    monkeypatch.setattr("evenhand.live.fitting.learner_digest", lambda text, seed: "another")
    kept = LiveCampaign(Ledger(url), "survey")
    go_on(kept, range(4, 8))
    kept.refit()
    assert kept.frozen_model() is None
    assert kept.certificate().n == (0, 0)
    assert sum(kept.running().n) > 0


def test_a_learner_that_is_another_at_every_fit(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "moody.py").write_text(
        "import itertools\nimport numpy as np\nfrom sklearn.base import BaseEstimator, ClassifierMixin\n"
        "moods = itertools.count()\n"
        "class Moody(ClassifierMixin, BaseEstimator):\n"
        "    def fit(self, X, y):\n"
        "        self.classes_, self.mood_ = np.unique(y), next(moods)\n"
        "        return self\n"
        "    def predict(self, X):\n"
        "        return np.full(len(X), self.classes_[self.mood_ % len(self.classes_)])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("EVENHAND_ALLOW", "moody")
    kept = live.create(url, "survey", ["u", "v"], "greedy", "factory:moody.Moody", budget=400, batch=4)
    for _ in range(2):
        request = kept.ask()
        kept.tell(request, np.eye(8), [0, 0, 0, 0, 0, 0, 1, 1])
    with pytest.raises(ValueError, match="fitted again, the learner gives another model"):
        kept.certify()
    assert kept.refresh().frozen is None


def test_evidence_that_does_not_come_out_again(url: str) -> None:
    kept = live.create(url, "survey", ["u", "v"], "greedy", "logistic", budget=200, batch=5)
    go_on(kept, range(6))
    event = kept.ledger.events(kept.number, kind="scored")[-1]
    group = next(iter(event.header["evidence"]["running"]))
    event.header["evidence"]["running"][group][1] += 1
    with kept.ledger.engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(
            text("UPDATE events SET header = :h WHERE place = :p"),
            {"h": json.dumps(event.header), "p": SPAN + event.seq},
        )
    problems = verify(LiveCampaign(Ledger(url), "survey"))["problems"]
    assert [p for p in problems if p.startswith(f"event {event.seq}: the evidence was")]
