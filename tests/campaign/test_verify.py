"""Verification, learners by text, words, and settings of any kind."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

import evenhand as eh
from evenhand.campaign.learners import learner_from_text
from evenhand.campaign.state import State
from evenhand.campaign.words import explain
from evenhand.decision import KINDS, Decision
from evenhand.ledger import Event
from evenhand.ledger.database import DatabaseLedger


def rows(k: int, n: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + y[:, None], y


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A campaign with a history."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with eh.Campaign.create(url, "survey", ["u", "v"], "optimistic:loss=log", "logistic", budget=400, batch=2) as c:
        c.add(*rows(99, 10), ["u", "v"] * 5)
        for k in range(8):
            request, (X, y) = c.ask(), rows(k)
            c.tell(request, X[:1], y[:1], ids=[f"e{k}"])
            c.tell(request, X[1:], y[1:])
        c.certify(distinct=True)
        c.abandon(c.ask())
        c.change(budget=500)
        c.ask_many(3)
    return url


def events(url: str, *kinds: str) -> list[Event]:
    with DatabaseLedger(url, read_only=True) as ledger, ledger.reading(1) as reader:
        return reader.events(kinds=kinds)


def tamper(url: str, statement: str, **given: Any) -> None:
    with (
        DatabaseLedger(url) as ledger,
        ledger.engine.connect().execution_options(writing=True) as connection,
        connection.begin(),
    ):
        assert connection.execute(text(statement), given).rowcount


def problems(url: str) -> list[str]:
    with eh.Campaign.open(url, "survey", read_only=True) as c:
        found = c.verify()
        assert found.ok == (not found.problems)
        assert found.as_dict()["problems"] == found.problems
        return found.problems


def set_facts(url: str, event: Event, facts: dict[str, Any]) -> None:
    tamper(url, "UPDATE events SET facts = :f WHERE seq = :s", f=json.dumps(facts), s=event.seq)


def test_a_sound_ledger(url: str) -> None:
    with eh.Campaign.open(url, "survey", read_only=True) as c:
        found = c.verify()
    assert found.problems == []
    assert found.ok
    assert (found.requests_chosen_again, found.scores_refitted, found.scores_skipped, found.examples) == (12, 9, 0, 42)
    assert found.events == len(events(url))


def test_scores_that_do_not_come_out_again(url: str) -> None:
    event = events(url, "scored")[3]
    event.facts["groups"]["u"]["errors"] += 1
    set_facts(url, event, event.facts)
    assert [p for p in problems(url) if p.startswith(f"event {event.seq}: 'u' had")]


def test_running_errors_that_do_not_come_out_again(url: str) -> None:
    event = events(url, "scored")[-1]
    group = next(iter(event.facts["running"]))
    event.facts["running"][group][1] += 1
    set_facts(url, event, event.facts)
    assert [p for p in problems(url) if p.startswith(f"event {event.seq}: the running errors were")]


def test_requests_that_would_be_chosen_otherwise(url: str) -> None:
    event = events(url, "asked")[5]
    was = event.facts["decision"]["group"]
    event.facts["decision"]["group"] = "v" if was == "u" else "u"
    set_facts(url, event, event.facts)
    assert [p for p in problems(url) if "request 6 was for" in p]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("features = '[9,9]'", "is not what was told"),
        ("label = '0', first_label = '7'", "is not what was told"),
        ("label = '7'", "the label of the example 'e2' changed, but nobody corrected it"),
        ("salt = '00'", "is not what was told"),
        ("id = 'other'", "the example 'e2' is missing"),
    ],
)
def test_a_row_that_was_changed(url: str, change: str, problem: str) -> None:
    tamper(url, f"UPDATE examples SET {change} WHERE id = 'e2'")
    assert [p for p in problems(url) if problem in p]


@pytest.mark.parametrize(
    "change",
    [
        "role = CASE role WHEN 'train' THEN 'validate' ELSE 'train' END",
        "group_name = CASE group_name WHEN 'u' THEN 'v' ELSE 'u' END",
        "group_name = 'w'",
        "fate = 'withdrawn'",
        "origin = 'added'",
        "made = NOT made",
        "request = request + 1",
        "told = told - 1",
    ],
)
def test_what_is_beside_the_content_of_a_row(url: str, change: str) -> None:
    """Of the last row, which no score rests on: training, evidence or counts would differ from what the events say."""
    last = events(url, "told")[-1].facts["ids"][-1]
    tamper(url, f"UPDATE examples SET {change} WHERE id = '{last}'")
    assert [p for p in problems(url) if repr(last) in p]


def test_rows_that_are_gone_or_nobody_told(url: str) -> None:
    event = next(e for e in events(url, "told") if e.facts["ids"] == ["e3"])
    tamper(url, "DELETE FROM examples WHERE id = 'e3'")
    with DatabaseLedger(url) as ledger, ledger.writing(1) as writer:
        writer.put([writer.find(["e4"])["e4"]._replace(id="new")])
    found = problems(url)
    assert f"event {event.seq}: the example 'e3' is missing" in found
    assert "the example 'new' is in no event" in found


def test_an_event_that_is_gone(url: str) -> None:
    tamper(url, "DELETE FROM events WHERE seq = 9")
    with pytest.raises(eh.errors.LedgerError, match="event 10 does not follow event 8: the ledger has a hole"):
        eh.Campaign.open(url, "survey")


def test_a_snapshot_that_is_not_what_the_events_say(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with eh.Campaign.create(url, "survey", ["u", "v"], "uniform", None, budget=1000) as c:
        for _ in range(60):
            c.tell(c.ask(), n=2)
    assert problems(url) == []
    with DatabaseLedger(url, read_only=True) as ledger, ledger.reading(1) as reader:
        snapshot = reader.snapshot()
        assert snapshot is not None
        assert State.from_text(snapshot[1]) == State().fold(reader.events(limit=snapshot[0]))
    tamper(url, "UPDATE snapshots SET state = replace(state, :a, :b)", a='"labels_used":', b='"labels_used":1')
    assert problems(url) == ["the snapshot differs from the events: delete the row of the table snapshots"]
    with DatabaseLedger(url) as ledger:
        ledger.forget_snapshots()
    assert problems(url) == []


@pytest.mark.parametrize("change", ["DELETE FROM models", "UPDATE models SET data = x'00'"])
def test_a_frozen_model_that_is_not_the_one(url: str, change: str) -> None:
    event = events(url, "certified")[0]
    tamper(url, change)
    assert problems(url) == [f"event {event.seq}: the frozen model 1 is missing or altered"]


def test_what_was_corrected_withdrawn_and_erased_on_purpose(url: str) -> None:
    with eh.Campaign.open(url, "survey") as c:
        c.correct("e5", 1 - int(rows(5)[1][0]))
        c.withdraw("e6")
        c.erase("e7")
        found = c.verify()
        assert found.problems == []
        assert found.erased == ["e7"]
        assert found.scores_skipped > 0
        assert found.scores_refitted > 0
        c.refit()
        assert c.verify().problems == []
    tamper(url, "UPDATE examples SET label = first_label WHERE id = 'e5'")
    assert "the label of the example 'e5' is not the one it was corrected to" in problems(url)
    tamper(url, "UPDATE examples SET features = '[1,2]' WHERE id = 'e7'")
    assert "the example 'e7' was erased, but its row is still there" in problems(url)


def test_learners_by_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_models.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import StandardScaler\n"
        "def scaled():\n    return make_pipeline(StandardScaler(), LogisticRegression())\n"
        "def network():\n    import torch\n    return torch.nn.Linear(2, 2)\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="set EVENHAND_ALLOW=shop_models"):
        learner_from_text("factory:shop_models.scaled")
    assert "shop_models" not in sys.modules
    monkeypatch.setenv("EVENHAND_ALLOW", "other, shop_models")
    assert learner_from_text("factory:shop_models.scaled").estimator.steps
    with pytest.raises(ValueError, match="is no function"):
        learner_from_text("factory:shop_models.number")
    with pytest.raises(ValueError, match="there is no factory"):
        learner_from_text("factory:shop_models.nothing")
    assert learner_from_text("sklearn.naive_bayes.GaussianNB") is not None
    with pytest.raises(ValueError, match="unknown learner"):
        learner_from_text("os.path.join")
    with DatabaseLedger(f"sqlite:///{tmp_path}/l.db", create=True) as ledger:
        for name in ("scaled", "network"):
            eh.Campaign.create(ledger, name, ["u", "v"], "greedy", f"factory:shop_models.{name}", budget=40)
            for k in range(6):
                c = eh.Campaign.open(ledger, name)
                c.tell(c.ask(), *rows(k, 2))
            assert c.verify().problems == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_decision_has_words(kind: str) -> None:
    groups = ("u", "v")
    terms = {"count": np.array([-3.0, -4.0])} if kind in ("warm-up", "fewest") else {}
    terms |= {"loss": np.array([0.3, 0.1]), "own": np.array([0.1, 0.1])} if kind in ("score", "forced") else {}
    chance = np.array([0.25, 0.75]) if kind in ("explore", "population") else None
    words = explain(Decision(groups, np.array(0), np.array(KINDS.index(kind)), terms, chance))
    assert "u" in words
    assert words.endswith(".")
    if kind == "score":
        assert "0.400, is the largest" in words
        assert "Next comes v with 0.200" in words


@pytest.mark.parametrize(
    ("groups", "settings"),
    [
        (["u", "v"], {"seed": 2**100}),
        (["u", "v"], {"seed": (3, 7)}),
        (["u", "v"], {"population": np.array([0.3, 0.7]), "validation": np.float64(0.4), "budget": np.int64(110)}),
        (["ä 'x' \"y\"", "v"], {}),
    ],
)
def test_settings_of_any_kind_are_kept(database: str, groups: list[str], settings: dict[str, Any]) -> None:
    strategy = "uncurated" if "population" in settings else "optimistic"
    with DatabaseLedger(database, create=True) as ledger:
        made = eh.Campaign.create(ledger, "survey", groups, strategy, **{"budget": 110, **settings})
        for k in range(60):
            request = made.ask()
            if k < 20:
                made.tell(request, *rows(k, 2))
            else:
                made.abandon(request)
        again = eh.Campaign.open(ledger, "survey")
        assert again.settings == made.settings
        both = [{**c.status(), "scores": None} for c in (made, again)]  # their age goes on
        assert both[0] == both[1]
        with ledger.reading(1) as reader:
            state, snapshot = State().fold(reader.events()), reader.snapshot()
        assert snapshot is not None  # so this one was opened from a snapshot
        assert (again.labels_used, again.counts) == (state.labels_used, dict(zip(groups, state.train, strict=True)))
        assert again.ask().group in groups
        assert again.verify().problems == []


def test_names_that_cannot_be_stored_are_refused(database: str) -> None:
    for groups, name in ((["\ud800", "v"], "survey"), (["u", "v"], "\ud800"), (["u\x00", "v"], "survey"), (["u"], " ")):
        with pytest.raises(ValueError, match=r"has the character|is blank"):
            eh.Campaign.create(database, name, groups, budget=10)
