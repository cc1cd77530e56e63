"""Labels corrected, withdrawn and erased: what changes, what stays, and what verify says of it."""

from __future__ import annotations

import getpass
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.ledger import MemoryLedger

GROUPS = ["u", "v"]
ROWS = 6


def rows(k: int) -> tuple[Any, list[int]]:
    rng = np.random.default_rng(k)
    y = np.arange(ROWS) % 2
    return rng.normal(size=(ROWS, 2)) + y[:, None], y.tolist()


def played(c: eh.Campaign, rounds: int = 6, labels: dict[str, int] | None = None) -> eh.Campaign:
    """Ask and tell a few rounds; some examples have other labels."""
    for k in range(rounds):
        X, y = rows(k)
        ids = [f"e{k}-{i}" for i in range(ROWS)]
        c.tell(c.ask(), X, [(labels or {}).get(name, label) for name, label in zip(ids, y, strict=True)], ids=ids)
    return c


def made(where: str | None = None, **given: Any) -> eh.Campaign:
    settings = {"budget": 200, "batch": ROWS // 2, **given}
    ledger = MemoryLedger() if where is None else where
    return eh.Campaign.create(ledger, "c", GROUPS, "optimistic", "logistic", **settings)


@pytest.fixture(params=["memory", "server"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def anywhere(place: str, request: pytest.FixtureRequest) -> Any:
    """A campaign with examples, in this process and on a server."""
    if place == "memory":
        return played(made())
    create = request.getfixturevalue("create_remote")
    return played(create(GROUPS, budget=200, batch=ROWS // 2))


IDS = [f"e{k}-{i}" for k in range(6) for i in range(ROWS)]


@settings(max_examples=15)
@given(changes=st.dictionaries(st.sampled_from(IDS), st.integers(0, 1), min_size=1, max_size=8))
def test_models_equal_those_of_a_campaign_told_the_corrected_labels(changes: dict[str, int]) -> None:
    corrected = played(made())
    corrected.correct(changes)
    told = made()
    for k in range(6):  # the same requests, whatever the labels would have steered
        X, y = rows(k)
        ids = [f"e{k}-{i}" for i in range(ROWS)]
        told.add(X, [changes.get(n, v) for n, v in zip(ids, y, strict=True)], _groups(corrected, ids), ids=ids)
    assert np.array_equal(corrected.final_model().coef_, told.final_model().coef_)


def _groups(c: eh.Campaign, ids: list[str]) -> list[str]:
    sets = [c.training_set(), c.validation_set()]
    by_id = {name: group for found in sets for name, group in zip(found.ids, found.groups, strict=True)}
    return [by_id[name] for name in ids]


@pytest.mark.parametrize("reopened", [False, True])
def test_the_same_on_every_ledger(database: str, reopened: bool) -> None:
    changes = {"e0-1": 0, "e2-2": 1, "e5-5": 0}
    kept, memory = (played(made(where, seed=3)) for where in (database, None))
    for c in (kept, memory):
        assert c.correct(changes, reason="typo", by="ann") == 3
        assert c.correct("e0-1", 0) == 0
        assert c.withdraw(["e1-1", "e1-2"], refund=True) == 2
        assert c.erase("e3-0") == []
    if reopened:
        kept = eh.Campaign.open(database, "c")
    assert kept.counts == memory.counts
    assert kept.labels_used == memory.labels_used == 34
    assert np.array_equal(kept.model().coef_, memory.model().coef_)
    assert np.array_equal(kept.final_model().coef_, memory.final_model().coef_)
    assert kept.ask().group == memory.ask().group
    for c in (kept, memory):
        found = c.verify()
        assert found.problems == []
        assert found.erased == ["e3-0"]
        status = c.status()
        assert (status["corrected"], status["withdrawn"], status["erased"]) == (3, 2, 1)


def test_counts_change_at_once_and_past_models_stay(anywhere: Any) -> None:
    c = anywhere
    model, examples = c.model(), sum(c.counts.values()) + len(c.validation_set().y)
    before = model.coef_.copy()
    c.withdraw("e0-0")
    assert sum(c.counts.values()) + len(c.validation_set().y) == examples - 1
    assert "e0-0" not in {*c.training_set().ids, *c.validation_set().ids}
    assert np.array_equal(model.coef_, before)


def test_a_correction_shows_in_events_and_export(anywhere: Any, tmp_path: Path) -> None:
    c = anywhere
    # on a server it is the token that says who
    who = "ann" if isinstance(c, eh.Campaign) else getpass.getuser()
    c.correct("e0-1", 0, reason="typo", **({"by": who} if isinstance(c, eh.Campaign) else {}))
    event = c.events()[-1]
    assert (event["kind"], event["actor"], event["facts"]["reason"]) == ("corrected", who, "typo")
    assert "digests" not in event["facts"]
    c.export(tmp_path / "rows.csv")
    header, *lines = (tmp_path / "rows.csv").read_text().splitlines()
    found = {line.split(",")[0]: dict(zip(header.split(","), line.split(","), strict=True)) for line in lines}
    assert (found["e0-1"]["label"], found["e0-1"]["first_label"], found["e0-1"]["corrected_by"]) == ("0", "1", who)
    assert found["e0-0"]["corrected_by"] == ""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.correct("nobody", 1), "there is no example 'nobody'"),
        (lambda c: c.correct({"e0-0": 1, "nobody": 1}), "nothing was"),
        (lambda c: c.correct("e0-0", "yes"), "not like the classes"),
        (lambda c: c.correct("e0-0", None), "no label"),
        (lambda c: c.correct("e1-0", 1), "was withdrawn"),
        (lambda c: c.withdraw("nobody"), "there is no example"),
        (lambda c: c.erase([]), "no ids given"),
        (lambda c: c.tell(1, [[0.0, 0.0]], [0], ids=["e1-0"], extra=True), "was withdrawn and cannot be told again"),
        (lambda c: c.tell(1, [[0.0, 0.0]], [0], ids=["e0-1"], extra=True), "use correct to change it"),
    ],
)
def test_what_is_refused_changes_nothing(anywhere: Any, call: Any, message: str) -> None:
    c = anywhere
    c.withdraw("e1-0")
    before = c.events()
    with pytest.raises(eh.InputError, match=message):
        call(c)
    assert c.events() == before


def test_the_request_of_a_withdrawn_label_stays_closed(anywhere: Any) -> None:
    c = anywhere
    c.withdraw("e0-0", refund=True)
    assert c.open_requests == []
    assert c.labels_used == 35


def test_erased_rows_leave_no_byte_behind(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'l.db'}"
    c = eh.Campaign.create(url, "c", GROUPS, "uniform", None, budget=40, batch=2)
    marker, label = "Erika-Mustermann-1234567", "xyzzy-label"
    import pandas as pd

    for k in range(4):
        names = [f"{marker}-{k}-{i}" if (k, i) == (1, 1) else f"row {k} {i}" for i in range(4)]
        labels = [label if (k, i) == (1, 1) else "no" for i in range(4)]
        c.tell(c.ask(), pd.DataFrame({"name": names, "age": [30 + k] * 4}), labels, ids=[f"p{k}-{i}" for i in range(4)])
    assert marker in "".join(c.training_set().X["name"]) + "".join(c.validation_set().X["name"])
    c.erase("p1-1", reason="asked to be forgotten")
    again = eh.Campaign.open(url, "c")
    again.tell(again.ask(), pd.DataFrame({"name": ["a"] * 4, "age": [1] * 4}), ["no"] * 4)
    assert again.verify().ok
    again.release()
    c.release()
    with sqlite3.connect(tmp_path / "l.db") as raw:
        raw.execute("VACUUM")
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw.close()
    from evenhand.campaign.files import backup
    from evenhand.ledger import open_ledger

    with open_ledger(url) as ledger:
        backup(ledger, tmp_path / "backup.db")
    for file in tmp_path.iterdir():
        data = file.read_bytes()
        assert marker.encode() not in data, file
        assert label.encode() not in data, file
    assert b"asked to be forgotten" in (tmp_path / "l.db").read_bytes()


def test_erased_on_postgresql_leaves_no_byte_in_the_tables_files(postgres_url: str, postgres_server: str) -> None:
    import psycopg

    c = eh.Campaign.create(postgres_url, "c", GROUPS, "uniform", None, budget=8, batch=2)
    marker = "Erika-Mustermann-7654321"
    import pandas as pd

    c.tell(c.ask(), pd.DataFrame({"name": [marker, "b", "c", "d"]}), ["no"] * 4, ids=list("abcd"))
    c.erase("a")
    schema = postgres_url.rsplit("%3D", 1)[1]
    with psycopg.connect(postgres_server, autocommit=True) as raw:
        raw.execute(f"VACUUM FULL {schema}.examples")
        raw.execute("CHECKPOINT")
        path = raw.execute(f"SELECT pg_relation_filepath('{schema}.examples')").fetchone()[0]
        toast = raw.execute(
            f"SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = '{schema}.examples'::regclass"
        ).fetchone()[0]
        folder = raw.execute("SHOW data_directory").fetchone()[0]
    for name in (path, toast):
        assert marker.encode() not in (Path(folder) / name).read_bytes()
    assert c.verify().ok


def test_verify_names_an_altered_and_a_missing_row(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'l.db'}"
    c = played(made(url))
    c.correct("e2-2", 1)
    with sqlite3.connect(tmp_path / "l.db") as raw:
        raw.execute("UPDATE examples SET features = '[9.0,9.0]' WHERE id = 'e0-0'")
        raw.execute("UPDATE examples SET label = '0' WHERE id = 'e0-1'")
        raw.execute("UPDATE examples SET label = '0' WHERE id = 'e2-2'")
        raw.execute("DELETE FROM examples WHERE id = 'e4-4'")
    raw.close()
    found = "\n".join(eh.Campaign.open(url, "c", read_only=True).verify().problems)
    assert "'e0-0' is not what was told" in found
    assert "'e0-1' changed, but nobody corrected it" in found
    assert "'e2-2' is not the one it was corrected to" in found
    assert "'e4-4' is missing" in found


def test_from_the_shell(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from evenhand.cli import app

    url = f"sqlite:///{tmp_path / 'l.db'}"
    played(made(url)).release()

    def run(*words: str, code: int = 0) -> str:
        found = CliRunner().invoke(app, ["campaign", *words, "--db", url])
        assert found.exit_code == code, found.output
        return found.output

    assert "1 label corrected" in run("correct", "c", "e0-1", "0", "--reason", "typo", "--by", "ann")
    (tmp_path / "fix.csv").write_text("id,label\ne1-1,0\ne2-1,0\n")
    assert "2 labels corrected" in run("correct", "c", "--file", str(tmp_path / "fix.csv"))
    assert "2 examples withdrawn" in run("withdraw", "c", "e3-0", "e3-1", "--refund")
    (tmp_path / "ids.csv").write_text("id\ne4-0\n")
    assert "1 example erased" in run("erase", "c", "--file", str(tmp_path / "ids.csv"), "--reason", "asked")
    assert '"ok": true' in run("verify", "c", "--json")
    assert "there is no example" in run("correct", "c", "zz", "0", code=2)
    for text, why in (
        ("id,label\ne1-1,1,2\n", "row 1: it has 3 cells, the header has 2"),
        ("id,label\ne1-1,1\ne1-1,0\n", "twice"),
        ("id,label\ne1-1,\n", "no label"),
        ("id,label\ne1-1,x\n", "whole numbers"),
    ):
        (tmp_path / "fix.csv").write_text(text)
        assert why in run("correct", "c", "--file", str(tmp_path / "fix.csv"), code=2)
    assert "row 1: it has 2 cells, the header has 1" in run(
        "withdraw", "c", "--file", str(_written(tmp_path, "id\na,b\n")), code=2
    )
    assert '"corrected": 3' in run("status", "c", "--json")


def _written(folder: Path, text: str) -> Path:
    (folder / "ids.csv").write_text(text)
    return folder / "ids.csv"


@pytest.mark.parametrize("learner", ["logistic", "sklearn.linear_model.SGDClassifier:loss=log_loss"])
def test_a_process_that_starts_anew_counts_the_same_errors(tmp_path: Path, learner: str) -> None:
    """The model of the last scores is fitted again with the labels as they were then, not as they were first or are now."""
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("kept", "anew")]
    kept, anew = (
        eh.Campaign.create(url, "c", GROUPS, "optimistic", learner, budget=200, batch=ROWS // 2, seed=2) for url in urls
    )
    for k in range(8):
        for c in (kept, anew):
            X, y = rows(k)
            c.tell(c.ask(), X, y, ids=[f"e{k}-{i}" for i in range(ROWS)])
            for i, label in ((0, 1), (1, 0), (0, 0), (2, 1), (1, 1)) if k % 2 else ((0, 1), (3, 0)):
                c.correct(f"e{k - k % 2}-{i}", label)
            c.withdraw(f"e{k // 2}-5") if k % 3 == 2 else None
        anew = eh.Campaign.open(urls[1], "c")
    for c in (kept, anew):
        c.refit()
    assert kept.running() == anew.running()
    scores = [[e["facts"] for e in c.events() if e["kind"] == "scored"] for c in (kept, anew)]
    assert scores[0] == scores[1]
    assert kept.verify().problems == anew.verify().problems == []
    assert kept.verify().scores_skipped == 0
