"""Faults once found by hand, each with the test that would have found it."""

from __future__ import annotations

import getpass
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli.campaign import app
from evenhand.errors import InputError, LedgerError
from evenhand.ledger import MemoryLedger
from evenhand.ledger.database import DatabaseLedger


def rows(k: int, n: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + 2 * y[:, None], y


def answer(c: eh.Campaign, k: int) -> None:
    request = c.ask()
    c.tell(request, *rows(k, request.size), ids=[f"e{k}-{i}" for i in range(request.size)])


def run(file: Path, command: str, *words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [command, "--db", f"sqlite:///{file}", *map(str, words)])
    assert done.exit_code == code, (done.output, done.exception)
    assert "Traceback" not in done.output
    return done.output


# -------------------------------------------------------------------- certificates


@pytest.mark.parametrize("read_only", [False, True])
def test_leases_that_ended_are_missing_for_whoever_merely_looks(tmp_path: Path, read_only: bool) -> None:
    """No event says yet that they ended, and somebody who only reads writes none."""
    now, url = [1e9], f"sqlite:///{tmp_path / 'l.db'}"
    with DatabaseLedger(url, create=True, clock=lambda: now[0]) as ledger:
        c = eh.Campaign.create(ledger, "c", ["u"], "uniform", "logistic", budget=100, batch=2, lease="1h")
        for k in range(3):
            answer(c, k)
        c.certify()
        answer(c, 3)
        c.ask_many(2)
        before = c.certificate()
        assert before is not None
        assert (before.missing, before.open) == ((0,), (8,))
    now[0] += 3601
    with DatabaseLedger(url, read_only=read_only, clock=lambda: now[0]) as ledger:
        c = eh.Campaign.open(ledger, "c", read_only=read_only)
        found, events = c.certificate(), len(c.events())
        assert found is not None
        assert (found.missing, found.open) == ((8,), (0,))
        assert found.worst_at_most > before.worst_at_most
        assert c.status()["certificate"]["groups"]["u"]["missing"] == 8
        assert len(c.events()) == events


def test_data_added_without_ids_needs_somebodys_word_too() -> None:
    c = eh.Campaign(["u"], "uniform", "logistic", budget=100, batch=2)
    c.add(*rows(9), ["u"] * 4)
    answer(c, 0)
    with pytest.raises(InputError, match="rows were told without ids"):
        c.certify()
    assert c.certify(distinct=True).version == 1


@pytest.mark.parametrize("how", ["the learner's", "one's own"])
def test_a_model_that_only_predicts(how: str) -> None:
    """`RidgeClassifier` has no probabilities."""
    learner = "sklearn.linear_model.RidgeClassifier" if how == "the learner's" else "logistic"
    c = eh.Campaign(["u", "v"], "greedy", learner, budget=100, batch=2)
    for k in range(4):
        answer(c, k)
    own = RidgeClassifier().fit(*rows(50, 20))
    c.certify() if how == "the learner's" else c.certify(model=own)
    model, wrong = c.certified_model(), 0
    assert model is not None
    for k in range(4, 8):
        answer(c, k)
        X, y = rows(k)
        wrong += int((np.asarray(model.predict(X)) != y).sum())
    found = c.certificate()
    assert found is not None
    assert (sum(found.n), sum(found.missing)) == (16, 0)
    assert sum(round((m or 0) * n) for m, n in zip(found.mean, found.n, strict=True)) == wrong
    assert c.verify().problems == []


class PredictsOnly:
    """A model of one's own with nothing but `predict`."""

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X), dtype=int)


def test_a_model_of_ones_own_that_cannot_be_stored_is_refused_with_the_reason() -> None:
    c = eh.Campaign(["u"], "uniform", "logistic", budget=100, batch=2)
    answer(c, 0)
    with pytest.raises(InputError, match="a PredictsOnly cannot be stored, so it cannot be frozen: use Logistic"):
        c.certify(model=PredictsOnly())
    assert c.certificate() is None
    answer(c, 1)


# -------------------------------------------------------------------- learners that fail


class Quotes:
    """A learner whose error quotes a row."""

    def fit(self, X: Any, y: Any, *, previous: Any = None, seed: int = 0) -> Any:
        raise RuntimeError("cannot fit 123456.75 of mum@example.org")


class GivesNothing:
    """A learner whose fit forgets to return the model."""

    def fit(self, X: Any, y: Any, *, previous: Any = None, seed: int = 0) -> Any:
        return None


def test_a_failure_is_stored_by_its_kind_without_the_message(tmp_path: Path) -> None:
    file = tmp_path / "l.db"
    with eh.Campaign.create(f"sqlite:///{file}", "c", ["u"], "greedy", Quotes(), budget=100, batch=2) as c:
        answer(c, 0)
        c.ask()
        failed = [e["facts"] for e in c.events() if e["kind"] == "failed"]
        assert [set(facts) for facts in failed] == [{"error", "rests_on"}]
        assert failed[0]["error"] == "RuntimeError"
        assert "mum@example.org" in c.status()["learner_failed"]["message"]  # in this process somebody may want to know
    with eh.Campaign.open(f"sqlite:///{file}", "c", read_only=True) as c:
        assert "mum@example.org" not in json.dumps(c.status())
    for path in tmp_path.iterdir():
        assert b"mum@example.org" not in path.read_bytes()
        assert b"123456.75" not in path.read_bytes()


def test_a_fit_that_returns_nothing_is_a_failure_and_asking_goes_on() -> None:
    c = eh.Campaign(["u", "v"], "greedy", GivesNothing(), budget=100, batch=2)
    for k in range(4):
        answer(c, k)
    assert c.ask().size == 4
    assert c.status()["learner_failed"] is not None
    assert c.labels_used == 16
    with pytest.raises(eh.LearnerError):
        c.refit()


@pytest.mark.parametrize("learner", ["logistic:C=-1", "logistic:C=0", "logistic:C=nan", "logistic:C=much"])
def test_learner_settings_that_cannot_be_are_refused_at_once(tmp_path: Path, learner: str) -> None:
    url = f"sqlite:///{tmp_path / 'l.db'}"
    with pytest.raises(InputError, match="C"):
        eh.Campaign.create(url, "c", ["u"], "uniform", learner, budget=10)
    with eh.Campaign.create(url, "c", ["u"], "uniform", "logistic", budget=10) as c:  # the name is free
        with pytest.raises(InputError, match="C"):
            c.change(learner=learner)
        assert c.settings["learner"] == "logistic"


# -------------------------------------------------------------------- requests and actors


@pytest.mark.parametrize("how", ["open", "expired", "abandoned", "filled"])
def test_the_request_of_another_campaign_is_refused_however_ours_ended(how: str) -> None:
    """Once, only open requests were compared: after a lease had ended, another campaign's labels were taken for ours."""
    now = [1e9]
    mine, other = (
        eh.Campaign.create(MemoryLedger(lambda: now[0]), "c", groups, "uniform", None, budget=40, batch=2, lease="1h")
        for groups in (["u"], ["w"])
    )
    ours, theirs = mine.ask(), other.ask()
    assert ours.id == theirs.id
    now[0] += 3601 if how == "expired" else 0
    if how == "abandoned":
        mine.abandon(ours)
    if how == "filled":
        mine.tell(ours, n=4)
    before = mine.events()
    for verb in (
        lambda: mine.tell(theirs, n=4),
        lambda: mine.tell(theirs, n=2, extra=True),
        lambda: mine.abandon(theirs),
        lambda: mine.extend(theirs, "2h"),
        lambda: mine.explain(theirs),
    ):
        with pytest.raises(InputError, match="belongs to another campaign"):
            verb()
    assert mine.events() == before
    assert mine.explain(ours)["request"] == ours.id


def test_the_request_of_another_campaign_is_refused() -> None:
    mine, other = (
        eh.Campaign(groups, "uniform", "logistic", budget=40, batch=2) for groups in (["u", "v"], ["w", "v"])
    )
    mine.ask()
    theirs = other.ask()
    while theirs.group != "w":
        theirs = other.ask()
    for _ in range(theirs.id):
        mine.ask()
    with pytest.raises(InputError, match=f"request {theirs.id} for 'w' belongs to another campaign"):
        mine.tell(theirs, *rows(0))
    assert mine.labels_used == 0
    assert other.tell(theirs, *rows(0)).rows == 4


def test_whoever_runs_it_is_the_actor_unless_somebody_is_named() -> None:
    c = eh.Campaign(["u"], "uniform", "logistic", budget=100, batch=2)
    answer(c, 0)
    c.correct("e0-0", 1)
    c.withdraw("e0-1", by="bob")
    c.abandon(c.ask(collector="ann"))
    c.change(budget=90)
    c.certify()
    c.close()
    actors = {e["kind"]: e["actor"] for e in c.events()}
    named = {"withdrawn": "bob", "asked": "ann"}
    assert actors == {kind: named.get(kind, getpass.getuser()) for kind in actors}
    assert {"created", "told", "corrected", "abandoned", "changed", "frozen", "closed"} <= actors.keys()


# -------------------------------------------------------------------- files


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a campaign `c` that has a few events."""
    file = tmp_path_factory.mktemp("small") / "l.db"
    with eh.Campaign.create(f"sqlite:///{file}", "c", ["u"], "uniform", "logistic", budget=40, batch=2) as c:
        answer(c, 0)
        c.ask()
        c.save(file.with_name("saved.db"))
    return file.with_name("saved.db")


@pytest.mark.parametrize("facts", ["{}", "[]", "null", "3", '{"rows":', "", "nonsense"])
@pytest.mark.parametrize("seq", [1, 3])
def test_damaged_facts_name_their_event(small: Path, tmp_path: Path, facts: str, seq: int) -> None:
    file = Path(shutil.copy(small, tmp_path / "l.db"))
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE events SET facts = ? WHERE seq = ?", (facts, seq))
    connection.close()
    with pytest.raises(LedgerError, match=f"event {seq} .*restore a backup"):
        eh.Campaign.open(f"sqlite:///{file}", "c")
    for command in ("status", "verify"):
        assert f"event {seq} " in run(file, command, "c", code=1)


def test_a_decimal_comma_is_recognised_column_by_column(tmp_path: Path) -> None:
    file = tmp_path / "l.db"
    run(file, "create", "c", "--group", "u", "--budget", 40, "--batch", 2)
    run(file, "ask", "c")
    (tmp_path / "rows.csv").write_text(
        "id;height;weight;count;label\n1;1,75;70.5;3;yes\n2;1,5;60.25;4;no\n3;2;80;5;yes\n4;-1,0e1;1e1;6;no\n"
    )
    run(file, "tell", "c", 1, tmp_path / "rows.csv")
    with eh.Campaign.open(f"sqlite:///{file}", "c", read_only=True) as c:
        both = [c.training_set(), c.validation_set()]
    found = {name: list(x) for one in both for name, x in zip(one.ids, np.asarray(one.X).tolist(), strict=True)}
    assert found == {"1": [1.75, 70.5, 3], "2": [1.5, 60.25, 4], "3": [2, 80, 5], "4": [-10, 10, 6]}


def test_a_comma_among_points_is_no_number(tmp_path: Path) -> None:
    file = tmp_path / "l.db"
    run(file, "create", "c", "--group", "u", "--budget", 40, "--batch", 1)
    run(file, "ask", "c")
    (tmp_path / "rows.csv").write_text("id;a;label\n1;1,75;yes\n2;1.5;no\n")
    run(file, "tell", "c", 1, tmp_path / "rows.csv", code=2)


@pytest.mark.parametrize("why", ["no such campaign", "no backup", "not a backup"])
def test_a_restore_that_failed_leaves_no_database_behind(small: Path, tmp_path: Path, why: str) -> None:
    file, source = tmp_path / "new.db", small
    words: list[str] = ["--campaign", "x"] if why == "no such campaign" else []
    if why == "no backup":
        source = tmp_path / "none.db"
    elif why == "not a backup":
        source = tmp_path / "text.db"
        source.write_text("nonsense" * 100)
    before = sorted(tmp_path.iterdir())
    run(file, "restore", source, *words, code=2)
    assert sorted(tmp_path.iterdir()) == before
    run(file, "restore", small)
    assert "c" in run(file, "status", "c")


def test_the_ledger_names_every_setting_of_the_rule_and_people_see_the_short_form():
    campaign = eh.Campaign(["u", "v"], "optimistic", budget=20)
    [created] = [event for event in campaign.events() if event["kind"] == "created"]
    assert created["facts"]["strategy"] == "optimistic:c0=1.0,c1=0.0,xi=0.5"
    assert campaign.status()["strategy"] == "optimistic"
    own = eh.Campaign(["u", "v"], lambda standing, uniforms: eh.Decision.of(standing, "u"), budget=20)
    assert own.status()["strategy"].startswith("own:")
