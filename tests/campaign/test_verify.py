"""Verification, learners by text, words, and settings of any kind."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

import evenhand as eh
from evenhand.campaign.reasons import explain
from evenhand.campaign.settings import learner_from_text
from evenhand.campaign.state import State
from evenhand.errors import LedgerError
from evenhand.ledger import Event, Ledger, MemoryLedger
from evenhand.ledger.database import DatabaseLedger
from evenhand.strategies.decision import KINDS, Decision


def rows(k: int, n: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + y[:, None], y


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with a history, made once."""
    path = tmp_path_factory.mktemp("history") / "ledger.db"
    url = f"sqlite:///{path}"
    with eh.Campaign.create(url, "survey", ["u", "v"], "optimistic", "logistic", budget=400, batch=2, risk="log") as c:
        c.add(*rows(99, 10), ["u", "v"] * 5)
        for k in range(8):
            request, (X, y) = c.ask(), rows(k)
            c.tell(request, X[:1], y[:1], ids=[f"e{k}"])
            c.tell(request, X[1:], y[1:])
        c.certify(distinct=True)
        c.abandon(c.ask())
        c.change(budget=500)
        c.ask_many(3)
        c.save(path.with_name("saved.db"))
    return path.with_name("saved.db")


@pytest.fixture
def url(history: Path, tmp_path: Path) -> str:
    """A copy of it to tamper with."""
    return f"sqlite:///{shutil.copy(history, tmp_path / 'ledger.db')}"


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
    assert (found.requests_chosen_again, found.examples) == (12, 42)
    assert found.events == len(events(url))


def change_in(path: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    """An edit of one value within the facts of an event, e.g. at `groups.u.errors`."""

    def edit(facts: dict[str, Any]) -> None:
        *way, last = path.split(".")
        for name in way:
            facts = facts[name]
        facts[last] = change(facts[last])

    return edit


def more(value: Any) -> Any:
    return (value or 0) + 1


def other(group: str) -> str:
    return "v" if group == "u" else "u"


def turned(roles: str) -> str:
    return roles.translate(str.maketrans("tv", "vt"))


@pytest.mark.parametrize(
    ("kind", "which", "path", "change", "problem"),
    [
        ("scored", 3, "groups.u.loss_sum", lambda x: x * 1.001, "was chosen with the term"),
        ("scored", -1, "groups.u.n", more, "examples of 'u', and there were"),
        ("scored", -1, "groups", lambda g: {"u": g["u"]}, "it has no scores of 'v'"),
        ("scored", -1, "trained", more, "trained"),
        ("scored", -1, "risk", lambda x: "zero_one", "(scored): risk"),
        ("scored", -1, "rests_on", lambda x: x + 5, "its scores rest on event"),
        ("scored", -1, "rests_on", lambda x: 3, "its scores rest on event 3, which is not between"),
        ("scored", -1, "examples", more, "examples 43, but the events and rows say 42"),
        ("asked", 5, "decision.group", other, "request 6 was for"),
        ("asked", 5, "decision.kind", lambda k: "fewest", "request 6 was made because of 'fewest', now"),
        ("asked", 5, "decision.terms", lambda t: {}, "request 6 was chosen by the terms []"),
        ("asked", 5, "decision.terms", lambda t: {n: {"u": 9.0, "v": 0.0} for n in t}, "was chosen with the term"),
        ("asked", 5, "decision.probability", lambda p: {"u": 0.5, "v": 0.5}, "was chosen with the chances"),
        ("asked", 5, "size", lambda n: n + 2, "request 6 was for 6 labels, now it would be for 4"),
        ("asked", -1, "size", lambda n: n - 1, "request 12 was for 3 labels, now it would be for 4"),
        ("asked", 5, "rests_on", lambda n: n - 1, "request 6 has rests_on"),
        ("asked", 5, "scored_at", more, "request 6 has scored_at"),
        ("asked", 5, "behind", more, "request 6 has behind 1, but the events and rows say 0"),
        ("asked", 5, "until", lambda t: t + 3600, "request 6 waits until"),
        ("asked", 5, "until", lambda t: t - 3600, "request 6 waits until"),
        ("asked", 5, "until", lambda t: None, "request 6 waits until None"),
        ("told", -1, "roles", turned, "(told): roles"),
        ("told", -1, "surplus", more, "surplus 1, but the events and rows say 0"),
        ("told", -1, "rows", lambda n: n - 1, "(told): rows 2, but the events and rows say 3"),
        ("told", -1, "late", lambda x: True, "(told): late True"),
        ("told", -1, "group", other, "it says that its rows are of"),
        ("told", -1, "made", lambda x: False, "it does not say who made the ids of its rows"),
        ("told", -1, "digests", lambda d: d[:-1], "it has 2 digests for 3 rows"),
        ("told", -1, "digests", lambda d: d[::-1], "is not what was told"),
        ("added", 0, "roles", turned, "(added): roles"),
        ("added", 0, "charged", lambda n: 10, "charged 10, but the events and rows say 0"),
        ("added", 0, "groups", lambda g: [1 - z for z in g], "(added): groups"),
        ("frozen", 0, "labels", more, "(frozen): labels 33, but the events and rows say 32"),
    ],
)  # fmt: skip
def test_facts_that_do_not_follow(url: str, kind: str, which: int, path: str, change: Any, problem: str) -> None:
    event = events(url, kind)[which]
    change_in(path, change)(event.facts)
    set_facts(url, event, event.facts)
    assert [p for p in problems(url) if problem in p]


def test_what_another_machine_rounds_is_no_problem(url: str) -> None:
    event = events(url, "asked")[5]
    assert event.facts["decision"]["terms"]
    for column in event.facts["decision"]["terms"].values():
        column["u"] *= 1 + 1e-8
    set_facts(url, event, event.facts)
    assert problems(url) == []


def test_a_request_that_could_not_have_been_made(url: str) -> None:
    event = events(url, "created")[0]
    set_facts(url, event, {**event.facts, "budget": 20})
    assert [p for p in problems(url) if "request 6 was made, now: " in p]


def test_facts_that_cannot_be_read_any_more(url: str) -> None:
    with eh.Campaign.open(url, "survey", read_only=True) as c:
        for facts, problem in (("{", "event 5 cannot be read"), ("{}", "event 5 (told) is damaged")):
            event = events(url, "told")[0]
            assert event.seq == 5
            tamper(url, "UPDATE events SET facts = :f WHERE seq = 5", f=facts)
            found = c.verify()
            assert [problem in p for p in found.problems] == [True]
            set_facts(url, event, event.facts)


def test_a_pool_and_what_a_request_names(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    X, y = rows(1, 24)
    frame = pd.DataFrame({"id": [f"p{k}" for k in range(24)], "group": ["u", "v"] * 12, "a": X[:, 0], "b": X[:, 1]})
    labels = dict(zip(frame["id"], y.tolist(), strict=True))
    with eh.Campaign.create(url, "survey", None, "optimistic", "logistic", budget=40, batch=2, risk="log") as c:
        c.pool(frame)
        for _ in range(3):
            c.tell_labels({name: labels[name] for name in c.ask().examples})
        c.skip(c.ask().examples[0])
        names = c.ask().examples
        c.tell_labels({names[0]: labels[names[0]]})
        spare = next(name for name in frame["id"] if name not in str(c.events()))
        c.tell_labels({spare: labels[spare]}, extra=True)
        c.correct(names[0], 1 - labels[names[0]])
        c.erase(spare)
        c.abandon(5)
        c.refit()
    assert problems(url) == []
    event = events(url, "named")[3]
    facts = {**event.facts, "ids": event.facts["ids"][:-1], "roles": event.facts["roles"][:-1]}
    set_facts(url, event, facts)
    assert [p for p in problems(url) if "request 4 names 3 examples, but asks for 4" in p]


def test_times_that_go_backwards(url: str) -> None:
    event = events(url, "told")[4]
    tamper(url, "UPDATE events SET at = at - 60 WHERE seq = :s", s=event.seq)
    assert [p for p in problems(url) if p == f"event {event.seq} (told): it is dated before the event that it follows"]


def test_requests_out_of_order(url: str) -> None:
    event = events(url, "asked")[-1]
    tamper(url, "UPDATE events SET request = 40 WHERE seq = :s", s=event.seq)
    assert f"event {event.seq}: request 40 follows request 11" in problems(url)


def test_frozen_models_out_of_order(url: str) -> None:
    event = events(url, "frozen")[0]
    set_facts(url, event, {**event.facts, "version": 7})
    tamper(url, "UPDATE models SET version = 7")
    assert f"event {event.seq} (frozen): version 7, but the events and rows say 1" in problems(url)


def test_a_lease_that_had_not_ended(url: str) -> None:
    event = events(url, "abandoned")[0]
    tamper(url, "UPDATE events SET kind = 'expired' WHERE seq = :s", s=event.seq)
    assert f"event {event.seq} (expired): request 9 expired before its lease ended" in problems(url)


def test_a_clock_that_goes_back_is_no_problem() -> None:
    now = [1000.0]
    c = eh.Campaign.create(MemoryLedger(lambda: now[0]), "survey", ["u"], "uniform", None, budget=40, lease=60)
    c.ask()
    now[0] = 500.0
    c.ask_many(2)
    now[0] = 2000.0
    c.ask()
    assert [e["kind"] for e in c.events()].count("expired") == 3
    assert c.verify().problems == []


def test_the_newest_events_can_be_removed_unnoticed(url: str) -> None:
    """As the docstring says: nothing outside the ledger knows of them."""
    tamper(url, "DELETE FROM events WHERE seq > (SELECT max(seq) - 3 FROM events)")
    assert problems(url) == []


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
    with eh.Campaign.open(url, "survey", read_only=True) as c:
        tamper(url, "UPDATE snapshots SET state = 'broken'")
        assert c.verify().problems == ["the snapshot differs from the events: delete the row of the table snapshots"]
    with DatabaseLedger(url) as ledger:
        ledger.forget_snapshots()
    assert problems(url) == []


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM models",
        "UPDATE models SET data = x'00'",
        "UPDATE models SET digest = 'abc'",
        "UPDATE models SET format = 'torch'",
    ],
)
def test_a_frozen_model_that_is_not_the_one(url: str, change: str) -> None:
    event = events(url, "frozen")[0]
    tamper(url, change)
    assert problems(url) == [f"event {event.seq}: the frozen model 1 is missing or altered"]


def test_what_was_corrected_withdrawn_and_erased_on_purpose(url: str) -> None:
    with eh.Campaign.open(url, "survey") as c:
        for label in (1, 0, 1):  # of an early row, after and between scores
            c.correct("e1", label)
            c.refit()
        c.withdraw("e2")
        c.withdraw("e3", refund=True)
        assert c.verify().problems == []
        c.erase("e7")
        c.refit()
        found = c.verify()
        assert (found.problems, found.erased) == ([], ["e7"])
    for kind, name, change, problem in (
        ("corrected", "digests", lambda d: ["0" * 32], "the label of the example 'e1' is not the one it was corrected"),
        ("corrected", "digests", lambda d: [], "it has 0 digests for 1 rows"),
        ("corrected", "groups", lambda g: [1 - z for z in g], "(corrected): groups"),
        ("withdrawn", "roles", turned, "(withdrawn): roles"),
        ("withdrawn", "groups", lambda g: [1 - z for z in g], "(withdrawn): groups"),
        ("withdrawn", "refund", lambda n: 9, "it gives 9 labels back to the budget, which was charged 1 for them"),
        ("erased", "roles", turned, "(erased): roles"),
    ):
        event = events(url, kind)[-1]
        set_facts(url, event, {**event.facts, name: change(event.facts[name])})  # type: ignore[no-untyped-call]
        assert [p for p in problems(url) if problem in p], problem
        set_facts(url, event, event.facts)
    assert problems(url) == []
    tamper(url, "UPDATE examples SET label = '0' WHERE id = 'e1'")
    assert "the label of the example 'e1' is not the one it was corrected to" in problems(url)
    tamper(url, "UPDATE examples SET fate = NULL WHERE id = 'e2'")
    assert "the example 'e2' is not withdrawn, which no event says" in problems(url)
    for column in ("features = '[1,2]'", "label = '1'", "first_label = '1'", "salt = '00'"):
        tamper(url, f"UPDATE examples SET {column} WHERE id = 'e7'")
        assert "the example 'e7' was erased, but its row is still there" in problems(url)
        tamper(url, f"UPDATE examples SET {column.partition(' ')[0]} = NULL WHERE id = 'e7'")


def test_scores_of_earlier_learners(url: str) -> None:
    with eh.Campaign.open(url, "survey") as c:
        for learner in ("logistic:C=0.1", "sklearn.naive_bayes.GaussianNB", "logistic"):
            c.change(learner=learner)
            c.refit()
        found = c.verify()
    assert found.problems == []


def test_an_earlier_learner_of_ones_own() -> None:
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier

    c = eh.Campaign(["u", "v"], "greedy", GaussianNB(), budget=100, batch=2)
    c.add(*rows(9, 12), ["u", "v"] * 6)
    c.refit()
    c.change(learner=KNeighborsClassifier(1))
    c.refit()
    c.change(learner="logistic")
    c.refit()
    assert c.verify().problems == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["tell", "tell", "correct", "correct", "withdraw", "erase", "refit", "open", "change"]),
        st.integers(0, 11),
        st.integers(0, 1),
    ),
    min_size=4,
    max_size=14,
)


@settings(max_examples=10)
@given(steps=STEPS)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_whatever_was_corrected_the_ledger_is_sound(
    kind: str, steps: list[tuple[str, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    ledger: Ledger = MemoryLedger()
    if kind == "sqlite":
        path = tmp_path_factory.mktemp("steps") / "l.db"
        ledger = DatabaseLedger(f"sqlite:///{path}?synchronous=normal", create=True)
    with ledger:
        c = eh.Campaign.create(ledger, "c", ["u", "v"], "optimistic", "logistic", budget=100, batch=1, risk="log")
        c.add(*rows(50, 6), ["u", "v"] * 3, ids=[f"e{i}" for i in range(6)])
        erased: set[str] = set()
        gone: set[str] = set()
        for k, (step, which, label) in enumerate(steps):
            name = f"e{which % 6}"
            if step == "tell":
                c.tell(c.ask(), *rows(k, 2), ids=[f"t{k}", f"s{k}"])
            elif step == "correct" and name not in gone:
                c.correct(name, label)
            elif step == "withdraw" and name not in gone:
                c.withdraw(name)
                gone.add(name)
            elif step == "erase":
                c.erase(name)
                gone.add(name)
                erased.add(name)
            elif step == "refit" and len(gone) < 6:
                c.refit()
            elif step == "open":
                c = eh.Campaign.open(ledger, "c")
            elif step == "change":
                c.change(learner=f"logistic:C={1 + label}")
        found = c.verify()
        assert found.problems == []
        assert set(found.erased) == erased


def test_learners_by_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_models.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import StandardScaler\n"
        "def scaled():\n    return make_pipeline(StandardScaler(), LogisticRegression())\n"
        "def network(width):\n    import torch\n    return torch.nn.Linear(width, 2)\n"
        "number = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="set EVENHAND_ALLOW=shop_models"):
        learner_from_text("factory:shop_models.scaled")
    assert "shop_models" not in sys.modules
    monkeypatch.setenv("EVENHAND_ALLOW", "other, shop_models")
    assert learner_from_text("factory:shop_models.scaled").estimator.steps
    with pytest.raises(ValueError, match="is not a function"):
        learner_from_text("factory:shop_models.number")
    with pytest.raises(ValueError, match="there is no factory"):
        learner_from_text("factory:shop_models.nothing")
    assert learner_from_text("sklearn.naive_bayes.GaussianNB") is not None
    with pytest.raises(ValueError, match="unknown learner"):
        learner_from_text("os.path.join")
    with DatabaseLedger(f"sqlite:///{tmp_path}/l.db", create=True) as ledger:
        for name, settings in (("scaled", ""), ("network", ":width=2")):
            text = f"factory:shop_models.{name}{settings}"
            eh.Campaign.create(ledger, name, ["u", "v"], "greedy", text, budget=40)
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


def damaged(value: Any) -> list[Any]:
    """What may stand in place of a value once something has gone wrong."""
    return [None, "", -1, [], {}, {"a": [1]}]


def places_in(facts: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place within the facts of an event, down to the third level."""
    found = [(*above, key) for key in (facts if isinstance(facts, dict) else range(min(len(facts), 1)))]
    for key in facts if isinstance(facts, dict) else range(min(len(facts), 1)):
        if isinstance(facts[key], dict | list) and len(above) < 2:
            found += places_in(facts[key], (*above, key))
    return found


@pytest.mark.parametrize("reached", ["opened before", "opened after"])
def test_whatever_is_damaged_is_a_finding(url: str, reached: str) -> None:
    """`verify` is what people run when something has gone wrong: it must not fail on what it is there to find."""
    by_kind = {event.kind: event for event in events(url)}
    rng, tried = np.random.default_rng(0), 0
    with eh.Campaign.open(url, "survey", read_only=True) as c:
        for event in by_kind.values():
            for place in places_in(event.facts):
                facts = json.loads(json.dumps(event.facts))
                inner = facts
                for key in place[:-1]:
                    inner = inner[key]
                values = damaged(inner[place[-1]])
                if rng.random() < 0.2 and isinstance(inner, dict):
                    del inner[place[-1]]
                else:
                    inner[place[-1]] = values[rng.integers(len(values))]
                set_facts(url, event, facts)
                found = c.verify() if reached == "opened before" else None
                if found is None:
                    with (
                        suppress(LedgerError),  # it says which event is damaged, and nothing else may be raised
                        eh.Campaign.open(url, "survey", read_only=True) as again,
                    ):
                        found = again.verify()
                assert found is None or all(isinstance(problem, str) for problem in found.problems)
                tried += 1
            set_facts(url, event, event.facts)
        assert tried > 80
        for broken in ("", "{", "null", "[]", "3"):
            tamper(url, "UPDATE events SET facts = :f WHERE seq = 5", f=broken)
            assert c.verify().problems != []
        set_facts(url, by_kind["told"], by_kind["told"].facts)
        for column, value in (("label", "{"), ("features", "nonsense"), ("role", "king"), ("salt", None)):
            with DatabaseLedger(url) as ledger, ledger.transaction(writing=True) as connection:
                connection.execute(text(f"UPDATE examples SET {column} = :v"), {"v": value})
            assert c.verify().problems != []
