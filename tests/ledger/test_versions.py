"""Ledgers of this and of other versions: every later one must read this one's and go on; a later one's is refused."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

import evenhand as eh
from evenhand.campaign.state import State
from evenhand.errors import InputError
from evenhand.ledger import Example, copy, migrate
from evenhand.ledger.database import DatabaseLedger

ASSET = Path(__file__).parents[1] / "assets" / "ledger-0001.db"
"""Made by `make_asset`, run this file as a script; once these tables are released it is never made again."""


def rows(k: int, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + y[:, None], np.array(["no", "yes"])[y].tolist()


def make_asset(path: Path) -> None:
    """How the kept file was made: `survey`, a campaign with a bit of everything, and `counts`, one without a learner."""
    now, rule = [1_800_000_000.0], "optimistic:c0=0.1"
    with DatabaseLedger(f"sqlite:///{path}", create=True, clock=lambda: now[0]) as ledger:
        c = eh.Campaign.create(ledger, "survey", ["u", "v"], rule, budget=80, batch=2, lease="1h", seed=3)
        c.add(*rows(99, 6), ["u", "v"] * 3, by="carl")
        for k in range(6):
            now[0] += 60
            request = c.ask("ann")
            X, y = rows(k, 4)
            if k % 2:  # in two parts, with ids
                c.tell(request, X[:1], y[:1], ids=[f"ä{k}-0"], collector="ann")
                c.tell(request, X[1:], y[1:], ids=[f"ä{k}-{i}" for i in (1, 2, 3)], collector="bob")
            else:
                c.tell(request, X, y, collector="ann")
        c.correct("ä5-1", "no", reason="read wrongly", by="carl")
        c.withdraw("ä5-2", refund=True)
        c.erase("ä5-3", reason="asked for", by="carl")
        c.abandon(c.ask(), by="bob")
        late = c.ask("bob")
        c.tell(late, *(part[:1] for part in rows(6, 4)))
        now[0] += 3600
        c.change(budget=100, by="carl")
        c.certify(distinct=True, by="carl")  # and now `late` has expired
        for k in range(7, 10):
            now[0] += 60
            request = c.ask("ann")
            c.tell(request, *rows(k, 4), ids=[f"e{k}-{i}" for i in range(4)])
        c.tell(c.ask(), *rows(10, 5), extra=True)
        c.tell(c.ask(), *(part[:1] for part in rows(11, 4)), ids=["open"])  # stays open
        c.refit()
        c.retire("u")
        d = eh.Campaign.create(ledger, "counts", ["u", "v"], "uniform", None, budget=10)
        d.tell(d.ask(), n=2)
        d.tell_losses({"u": (0.25, 0.75, 4)})
        d.retire("v")
        d.close("enough")
        ledger.checkpoint()


@pytest.fixture
def old(database: str, tmp_path: Path) -> str:
    """The database of version 0001, as a file or on a server."""
    if database.startswith("sqlite"):
        shutil.copy(ASSET, tmp_path / "ledger.db")
        return database
    shutil.copy(ASSET, tmp_path / "source.db")
    with (
        DatabaseLedger(f"sqlite:///{tmp_path / 'source.db'}", read_only=True) as source,
        DatabaseLedger(database, create=True) as target,
    ):
        copy(source, target)
    return database


def look(c: eh.Campaign) -> None:
    """What is known of the kept campaign."""
    found = c.status()
    assert (found["budget"], found["used"], found["examples"], found["events"]) == (100, 42, 47, 51)
    assert (found["answered"], found["abandoned"]) == (10, 1)
    assert [(r["request"], r["outstanding"], r["collector"]) for r in found["expired"]] == [(8, 3, "bob")]
    assert [(r["request"], r["outstanding"]) for r in found["open"]] == [(13, 3)]
    assert [(c.counts[g], found["groups"][g]["validation"]) for g in "uv"] == [(18, 18), (6, 5)]
    assert [found["groups"][g]["available"] for g in "uv"] == [False, True]
    assert {who: (t["requests"], t["labels"]) for who, t in found["collectors"].items()} == {
        "ann": (9, 27), "bob": (1, 10), "root": (3, 6),
    }  # fmt: skip
    events = c.events()
    assert [e["seq"] for e in events] == list(range(1, 52))
    assert events[0]["at"] == "2027-01-15T08:00:00Z"
    assert [e["kind"] for e in events if e["request"] == 8] == ["asked", "told", "expired"]
    assert [e["facts"]["ids"] for e in events if e["request"] == 2 and e["kind"] == "told"] == [
        ["ä1-0"], ["ä1-1", "ä1-2", "ä1-3"],
    ]  # fmt: skip
    certificate = c.certificate()
    assert certificate is not None
    assert (certificate.version, sum(certificate.n), sum(certificate.missing)) == (1, 17, 4)
    assert c.running().n == (16, 4)
    model = c.certified_model()
    assert model is not None
    X, y = rows(500, 200)
    assert (np.asarray(model.predict(X)) == np.array(y)).mean() > 0.6
    assert len(c.training_set().y) + len(c.validation_set().y) == 47


def test_it_is_whole(old: str) -> None:
    with DatabaseLedger(old, read_only=True) as ledger:
        assert list(ledger.campaigns()) == ["survey", "counts"]
        c = eh.Campaign.open(ledger, "survey")
        look(c)
        found = c.verify()
        assert found.problems == []
        assert (found.events, found.examples, found.requests_chosen_again) == (51, 49, 13)
        assert found.erased == ["ä5-3"]
        counts = eh.Campaign.open(ledger, "counts").status()
        assert (counts["closed"], counts["used"], counts["groups"]["u"]["accuracy"]) == ("enough", 2, 0.75)
        with ledger.reading(ledger.find("survey")) as reader:
            state, rows = State().fold(reader.events()), reader.changed()
        assert state == State.from_text(state.as_text())
        assert sum(row.counts for row in rows) == state.examples
        assert isinstance(rows[0], Example)


def test_it_goes_on(old: str) -> None:
    with eh.Campaign.open(old, "survey") as c:
        look(c)
        receipt = c.tell(13, *(part[1:] for part in rows(11, 4)), ids=["open 1", "open 2", "open 3"])
        assert (receipt.rows, receipt.outstanding) == (3, 0)
        assert c.tell(2, *(part[1:] for part in rows(1, 4)), ids=["ä1-1", "ä1-2", "ä1-3"]).repeated
        assert c.tell(1, *rows(0, 4)).repeated
        for k in (2, 3):  # taken back for good
            with pytest.raises(InputError, match=f"the id 'ä5-{k}' was .* and cannot be told again"):
                c.tell(6, *(part[k : k + 1] for part in rows(5, 4)), ids=[f"ä5-{k}"], extra=True)
        assert c.tell(8, *(part[1:] for part in rows(6, 4))).late
        request = c.ask()
        assert (request.id, request.group) == (14, "v")
        c.tell(request, *rows(12, 4))
        assert c.labels_used == 42 + 3 + 3 + 4
        assert c.certificate().n != (0, 0)
        assert np.asarray(c.final_model().classes).tolist() == ["no", "yes"]
        assert c.refit()
        assert c.certify(distinct=True).version == 2
        assert c.verify().problems == []
    with eh.Campaign.open(old, "counts") as d, pytest.raises(eh.NothingToAsk, match="closed"):
        d.ask()


def fingerprints(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_reading_only_changes_no_byte(tmp_path: Path) -> None:
    shutil.copy(ASSET, tmp_path / "ledger.db")
    before = fingerprints(tmp_path)
    with eh.Campaign.open(f"sqlite:///{tmp_path / 'ledger.db'}", "survey", read_only=True) as c:
        look(c)
        c.verify()
        c.final_model()
        c.explain()
        assert fingerprints(tmp_path)["ledger.db"] == before["ledger.db"]
    assert eh.campaigns(f"sqlite:///{tmp_path / 'ledger.db'}") == ["survey", "counts"]
    assert fingerprints(tmp_path)["ledger.db"] == before["ledger.db"]


def test_a_ledger_of_a_later_version_is_refused(old: str, tmp_path: Path) -> None:
    with DatabaseLedger(old) as ledger:
        assert migrate.HEAD == "0001"  # when it changes, keep a ledger of the new version here too
        with ledger.engine.connect().execution_options(writing=True) as connection, connection.begin():
            connection.execute(text("UPDATE alembic_version SET version_num = '0999'"))
    for options in ({}, {"create": True}, {"read_only": True}):
        with pytest.raises(
            InputError, match=r"made by a later version of Evenhand \(tables 0999, here 0001\): upgrade"
        ):
            DatabaseLedger(old, **options)
    with pytest.raises(InputError, match="later version of Evenhand"):
        eh.Campaign.open(old, "survey")


def test_an_event_of_a_later_version_is_refused(old: str) -> None:
    with DatabaseLedger(old) as ledger:
        with ledger.engine.connect().execution_options(writing=True) as connection, connection.begin():
            connection.execute(text("UPDATE events SET kind = 'dreamt' WHERE campaign = 1 AND seq = 7"))
        with pytest.raises(eh.errors.LedgerError, match="event 7 is 'dreamt', which this version does not know"):
            eh.Campaign.open(ledger, "survey")


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE notes (text)")
    other.commit()
    other.close()
    before = path.read_bytes()
    for options in ({}, {"read_only": True}):
        with pytest.raises(InputError, match="holds no campaigns yet"):
            DatabaseLedger(f"sqlite:///{path}", **options)
    assert path.read_bytes() == before


if __name__ == "__main__":
    ASSET.unlink(missing_ok=True)
    make_asset(ASSET)
