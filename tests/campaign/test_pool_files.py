"""Pools from files and back: CSV out and in as people and spreadsheets write it, Parquet by reference, the shell."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.helpers import Shell, label_of, new_schema, pool_frame
from typer.testing import CliRunner

import evenhand as eh
from evenhand.campaign import pools
from evenhand.campaign.state import State
from evenhand.cli.campaign import app
from evenhand.cli.campaign_pool import write_todo
from evenhand.errors import InputError, NothingToAsk
from evenhand.ledger import Ledger, MemoryLedger, RowOrder
from evenhand.ledger.database import DatabaseLedger

runner = CliRunner()
NASTY = [
    "007", "1e5", "=a", "+1+1", "-2+3", "@SUM(A1)", "'quoted", "'=a", "a,b", 'say "hi"', "two\nlines", "two\r\nlines",
    "שלום עולם", "مرحبا", "a;b", "tab\there", "1,5", "0x1F", "2026-01-01", "true", "1_000", "00", "ünïcödé", "\u200fmark",
]  # fmt: skip


class PoolShell(Shell):
    """Also opens the campaigns, and checks that a command changed nothing."""

    def open(self, name: str = "survey") -> eh.Campaign:
        return eh.Campaign.open(self.db, name)

    def nothing_changes(self, name: str = "survey") -> Callable[[], None]:
        with self.open(name) as c:
            before = c.events(), c.status()["pool"]

        def check() -> None:
            with self.open(name) as c:
                assert (c.events(), c.status()["pool"]) == before

        return check


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PoolShell:
    monkeypatch.chdir(tmp_path)
    return PoolShell(tmp_path)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    url = f"sqlite:///{tmp_path / 'l.db'}?synchronous=normal"
    if request.param == "postgresql":
        url = f"{new_schema(request.getfixturevalue('postgres_server'))}&synchronous=normal"
    with DatabaseLedger(url, create=True) as found:
        yield found


def made(ledger: Ledger | None = None, groups: Any = ("u", "v"), learner: Any = None, **given: Any) -> eh.Campaign:
    ledger = ledger or MemoryLedger()
    asked = {"budget": 400, "batch": 1, "lease": "1d", "seed": 1, **given}
    return eh.Campaign.create(
        ledger, f"c{len(ledger.campaigns())}", groups and list(groups), "uniform", learner, **asked
    )


def everything(c: eh.Campaign) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in (c.training_set, c.validation_set):
        try:
            examples = part()
        except InputError:
            continue
        found |= dict(zip(examples.ids.tolist(), examples.y.tolist(), strict=True))
    return found


def rest(c: eh.Campaign) -> list[str]:
    """All that can still be handed out, asked for."""
    found: list[str] = []
    try:
        while True:
            found += [name for r in c.ask_many(50) for name in r.examples]
    except NothingToAsk:
        return found


def sound(c: eh.Campaign) -> None:
    with c.store.moment() as (reader, state):
        assert State().fold(reader.events()).expire(reader.now) == state
        assert state.pool == [len(reader.next_in_pool(group, 10**6)) for group in state.groups]
    assert c.verify().problems == []
    again = eh.Campaign.open(c.store.ledger, c.name)
    assert again.events() == c.events()
    assert everything(again) == everything(c)


def people(path: Path, n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    found = pd.DataFrame(
        {
            "person": [f"{k:03d}" for k in range(n)],
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(16, 80, n),
            "city": rng.choice(["Wien", "Zürich", "תל אביב"], n),
            "score": rng.normal(size=n).round(3),
        }
    )
    found.to_csv(path, index=False)
    return found


def fill(todo: Path, done: Path, label: Callable[[dict[str, str]], str], **how: Any) -> int:
    """Fill in a file as somebody with a script would."""
    with todo.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    with done.open("w", newline="", encoding=how.pop("encoding", "utf-8")) as file:
        writer = csv.DictWriter(file, list(rows[0]), **how)
        writer.writeheader()
        writer.writerows({**row, "label": label(row)} for row in rows)
    return len(rows)


# -------------------------------------------------------------------- the shell


def test_from_an_unlabelled_file_to_a_model(shell: PoolShell, tmp_path: Path) -> None:
    people(tmp_path / "people.csv")
    shell("create", "survey", "--budget", 24, "--batch", 2, "--learner", "table")
    found = shell.json("pool", "survey", "people.csv", "--id", "person", "--group", "sex", "--group", "age:30,60")
    assert sum(found["groups"].values()) == 60
    assert "sex=f, age=under 30" in found["groups"]
    turns = 0
    while True:
        done = runner.invoke(app, ["ask", "survey", "--count", "3", "--out", f"todo{turns}.csv", "--db", shell.db])
        if done.exit_code == 3:
            break
        assert done.exit_code == 0, done.output
        todo = pd.read_csv(tmp_path / f"todo{turns}.csv", dtype={"person": str})
        assert {"person", "request", "sex", "age", "city", "score", "label"} <= set(todo.columns)
        assert todo["label"].isna().all()
        assert todo["person"].str.len().eq(3).all()
        fill(tmp_path / f"todo{turns}.csv", tmp_path / f"done{turns}.csv", lambda row: label_of(row["person"]))
        told = shell.json("tell", "survey", f"done{turns}.csv", "--collector", "ann")
        assert told["rows"] == len(todo)
        turns += 1
    status = shell.json("status", "survey")
    assert status["used"] == 24
    assert status["pool"]["left"] == 36
    shell("export", "survey", "data.csv")
    data = pd.read_csv(tmp_path / "data.csv", dtype={"person": str})
    assert data["label"].tolist() == [label_of(name) for name in data["person"]]
    assert shell.json("verify", "survey")["ok"]
    with shell.open() as c:
        people_again = pd.read_csv(tmp_path / "people.csv")
        assert set(c.final_model().predict(people_again)) <= {"yes", "no"}


def test_status_in_words_knows_the_pool(shell: PoolShell, tmp_path: Path) -> None:
    pool_frame(12).to_csv(tmp_path / "pool.csv", index=False)
    shell("create", "survey", "--budget", 40)
    shell("pool", "survey", "pool.csv")
    words = shell("status", "survey")
    assert "pool of u: 6 left" in words
    shell("ask", "survey", "--all", "--out", "todo.csv")
    words = shell("status", "survey")
    assert "used up" in words


def test_a_file_told_again_and_again(shell: PoolShell, tmp_path: Path) -> None:
    pool_frame().to_csv(tmp_path / "pool.csv", index=False)
    shell("create", "survey", "--budget", 40, "--batch", 2)
    shell("pool", "survey", "pool.csv")
    shell("ask", "survey", "--count", 3, "--out", "todo.csv")
    ids = pd.read_csv(tmp_path / "todo.csv")["id"].tolist()
    told = 0
    for k in (0, 1, 5, 5, 12):
        fill(
            tmp_path / "todo.csv",
            tmp_path / "half.csv",
            lambda row, k=k: label_of(row["id"]) if row["id"] in ids[:k] else "",
        )
        if not k:
            assert "no row of half.csv has a label yet" in shell("tell", "survey", "half.csv", code=2)
            continue
        found = shell.json("tell", "survey", "half.csv")
        assert (found["rows"], found["known"]) == (k - told, told)
        told = k
    same = shell.nothing_changes()
    assert "already told" in shell("tell", "survey", "half.csv")
    same()
    with shell.open() as c:
        assert everything(c) == {name: label_of(name) for name in ids}
        sound(c)


def test_never_onto_a_file_that_is_there(shell: PoolShell, tmp_path: Path) -> None:
    pool_frame().to_csv(tmp_path / "pool.csv", index=False)
    shell("create", "survey", "--budget", 40)
    shell("pool", "survey", "pool.csv")
    same = shell.nothing_changes()
    before = (tmp_path / "pool.csv").read_bytes()
    assert "is there already" in shell("ask", "survey", "--out", "pool.csv", code=2)
    assert (tmp_path / "pool.csv").read_bytes() == before
    same()


def test_a_file_that_cannot_be_written_costs_no_request(shell: PoolShell, tmp_path: Path) -> None:
    pool_frame().to_csv(tmp_path / "pool.csv", index=False)
    shell("create", "survey", "--budget", 40)
    shell("pool", "survey", "pool.csv")
    same = shell.nothing_changes()
    shell("ask", "survey", "--out", tmp_path / "no folder" / "todo.csv", code=2)
    same()


def test_out_needs_a_pool(shell: PoolShell) -> None:
    shell("create", "survey", "--group", "u", "--group", "v", "--budget", 40)
    same = shell.nothing_changes()
    assert "pool" in shell("ask", "survey", "--out", "todo.csv", code=2)
    same()


def test_no_pool_yet(shell: PoolShell) -> None:
    shell("create", "survey", "--budget", 40)
    found = shell.json("ask", "survey", code=3)
    assert found["reason"] == "no pool yet"
    assert "evenhand campaign pool" in shell("ask", "survey", code=3)
    shell("status", "survey")


def test_rows_of_open_requests_can_be_had_again(shell: PoolShell, tmp_path: Path) -> None:
    pool_frame().to_csv(tmp_path / "pool.csv", index=False)
    shell("create", "survey", "--budget", 8)
    shell("pool", "survey", "pool.csv")
    assert "no request is open" in shell("ask", "survey", "--again", code=2)
    said = shell("ask", "survey", "--collector", "ann")
    names = shell.json("ask", "survey", "--again")["requests"][0]["examples"]
    # without a file the ids are named, and how to get one
    assert all(name in said for name in names)
    assert "--again --out" in said
    same = shell.nothing_changes()
    assert "label " not in shell("ask", "survey", "--again", "--out", "todo.csv")
    assert list(pd.read_csv("todo.csv")["id"]) == names
    assert "no request of bob is open" in shell("ask", "survey", "--again", "--collector", "bob", code=2)
    assert "leave out" in shell("ask", "survey", "--again", "--count", 2, code=2)
    same()
    shell("ask", "survey", "--all")
    assert "--again" in shell("ask", "survey", code=3)


def test_skip_from_the_shell(shell: PoolShell, tmp_path: Path) -> None:
    pool_frame().to_csv(tmp_path / "pool.csv", index=False)
    shell("create", "survey", "--budget", 40)
    shell("pool", "survey", "pool.csv")
    names = shell.json("ask", "survey")["requests"][0]["examples"]
    assert shell.json("skip", "survey", names[0], "--reason", "illegible")["skipped"] == names[0]
    assert shell.json("status", "survey")["open"][0]["outstanding"] == 1
    assert "no example" in shell("skip", "survey", "stranger", code=2)


def test_labels_from_standard_input_json_lines_and_parquet(shell: PoolShell, tmp_path: Path) -> None:
    pool_frame().to_csv(tmp_path / "pool.csv", index=False)
    shell("create", "survey", "--budget", 40)
    shell("pool", "survey", "pool.csv")
    a, b = (r["examples"] for r in shell.json("ask", "survey", "--count", 2)["requests"])
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"id": n, "label": label_of(n)}) + "\n" for n in a))
    assert shell.json("tell", "survey", "a.jsonl")["rows"] == 2
    pd.DataFrame({"id": b[:1], "label": [label_of(b[0])]}).to_parquet(tmp_path / "b.parquet")
    assert shell.json("tell", "survey", "b.parquet")["rows"] == 1
    assert shell.json("tell", "survey", "-", stdin=f"id,label\n{b[1]},{label_of(b[1])}\n")["rows"] == 1


PAGE = Path(__file__).parents[2] / "docs" / "pools.md"
BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_guide_says_what_happens(shell: PoolShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the page, in order, prints what the page says; `…` is a time."""
    monkeypatch.setattr(pools, "draw_order", lambda settings, event, salt: RowOrder(event, "0"))  # that of the page
    said, told = "", 0
    for kind, block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "python" and "to_csv" in block:
            exec(compile(block, str(PAGE), "exec"), {})
        elif kind == "sh":
            if "done.csv" in block:
                fill(
                    tmp_path / "todo.csv",
                    tmp_path / "done.csv",
                    lambda row: "yes" if float(row["hours"]) > 38 else "no",
                )
            said = "".join(shell(*shlex.split(line)[2:]) for line in block.replace("\\\n", " ").splitlines())
        elif kind == "text":
            pattern = ".*".join(re.escape(part) for part in block.strip().split("…"))
            assert re.fullmatch(pattern, said.strip()), said
            told += 1
    assert told == 5
    predicted = pd.read_csv(tmp_path / "predicted.csv")
    assert set(predicted["predicted"]) <= {"yes", "no"}
    assert predicted["probability"].between(0.5, 1).all()
    assert re.search(r"pool of sex=male, age=under 30: \d+ left", shell("status", "survey"))
    todo = (tmp_path / "todo.csv").read_text(encoding="utf-8").splitlines()
    assert "```csv\n" + "\n".join(todo[:3]) + "\n```" in PAGE.read_text(encoding="utf-8")
    with shell.open() as c:
        assert set(c.final_model().predict(pd.read_csv(tmp_path / "people.csv"))) <= {"yes", "no"}


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("id,group,x\na,u,1\na,v,2\nb,u,3\nb,v,1\n", (), "comes again in rows 2, 4"),
        ("id,group,x\na,u,1\n,v,2\nb,u,3\nc,v,1\n", (), "the id 'id' is missing in row 2"),
        ("id,group,x\na,u,1\nd,,2\nb,u,3\nc,v,1\n", (), "'group' tells the group, and is empty in row 2"),
        ("id,group,x\na,u,1\nd,v,2\nb,z,3\nc,v,1\n", (), "unknown group 'z'.*rows? 3"),
        ("name,group,x\na,u,1\nb,v,2\n", (), "no column 'id'"),
        ("id,sex,x\na,u,1\nb,v,2\n", (), "no column 'group'"),
        ("id,group,x\na,u,1\nb,v,2\n", ("--group", "gruop"), "no column 'gruop'.*'group'"),
        ("id,group,x\na,u,1\nb,v,2\n", ("--feature", "y"), "no column 'y'"),
        ("id,group,x\na,u,1\nb,v,2\n", ("--ignore", "y"), "'y'"),
        ("id,group\na,u\nb,v\n", (), "no features"),
        ("id,group,x,x\na,u,1,2\nb,v,2,3\n", (), "'x'"),
        ("id,group,x\n", (), "no rows"),
        ("", (), "empty"),
        ("id,group,x\na,u,1,5\nb,v,2\n", (), "row 1: it has 4 cells, the header has 3"),
        ("id,group,x,label\na,u,1,yes\nb,v,2,Yes\nc,u,1,\n", (), "only by case"),
        ("id,group,x,label\na,u,1,1.5\nb,v,2,2\nc,u,1,\n", (), "1.5"),
    ],
)
def test_a_bad_file_exits_with_2_and_nothing_is_stored(
    shell: PoolShell, tmp_path: Path, text: str, options: tuple[str, ...], message: str
) -> None:
    shell("create", "survey", "--group", "u", "--group", "v", "--budget", 40, "--learner", "table")
    (tmp_path / "pool.csv").write_text(text)
    same = shell.nothing_changes()
    said = shell("pool", "survey", "pool.csv", *options, code=2)
    assert re.search(message, said, re.DOTALL), said
    assert "Traceback" not in said
    same()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,label\n{a},yes\nstranger,no\n", "no example 'stranger'"),
        ("id,label\n{a},yes\n{free},no\n", "nobody asked"),
        ("id,label\n{a},yes\n{b},Yes\n", "only by case"),
        ("id,label\n{a},yes\n{a},no\n", "twice"),
        ("id,label\n{a},yes\n,no\n", "no id in row 2"),
        ("id\n{a}\n", "no column 'label'"),
        ("label\nyes\n", "no column 'id'"),
        ("id,note,label\n{a},hello, world,yes\n{b},x,no\n", "cells"),
        ("id,note,label\n{a},no\n{b},x,no\n", "cells"),
        ("id,label\n{a},yes\n{b},{long}\n", "characters"),
    ],
)
def test_a_bad_delivery_exits_with_2_and_nothing_is_stored(
    shell: PoolShell, tmp_path: Path, text: str, message: str
) -> None:
    pool_frame().to_csv(tmp_path / "pool.csv", index=False)
    shell("create", "survey", "--budget", 40)
    shell("pool", "survey", "pool.csv")
    a, b = shell.json("ask", "survey")["requests"][0]["examples"]
    free = next(name for name in pool_frame()["id"] if name not in (a, b))
    (tmp_path / "done.csv").write_text(text.format(a=a, b=b, free=free, long="x" * 501))
    same = shell.nothing_changes()
    said = shell("tell", "survey", "done.csv", code=2)
    assert re.search(message, said, re.DOTALL), said
    same()


def test_what_was_not_understood_is_listed(shell: PoolShell, tmp_path: Path) -> None:
    pool_frame().to_csv(tmp_path / "pool.csv", index=False)
    shell("create", "survey", "--budget", 40)
    shell("pool", "survey", "pool.csv")
    a, b = shell.json("ask", "survey")["requests"][0]["examples"]
    (tmp_path / "done.csv").write_text(f"id,label\n{a},yes\nstranger,no\n{b},\nother,yes\n")
    same = shell.nothing_changes()
    assert "2 rows refused" in shell("tell", "survey", "done.csv", code=2)
    same()
    listed = pd.read_csv(tmp_path / "done.csv.rejected.csv")
    assert listed["row"].tolist() == [2, 4]
    assert listed["id"].tolist() == ["stranger", "other"]
    found = shell.json("tell", "survey", "done.csv", "--partial", "--rejected", "why.csv")
    assert (found["rows"], [row["id"] for row in found["refused"]]) == (1, ["stranger", "other"])
    assert (tmp_path / "why.csv").exists()


def test_tell_needs_to_know_what_is_meant(shell: PoolShell, tmp_path: Path) -> None:
    pool_frame().to_csv(tmp_path / "pool.csv", index=False)
    shell("create", "survey", "--budget", 40)
    shell("pool", "survey", "pool.csv")
    request = shell.json("ask", "survey")["requests"][0]
    (tmp_path / "rows.csv").write_text("x,w,group,label\n1,2,u,yes\n")
    same = shell.nothing_changes()
    for words in (("gone.csv",), ("pool.csv", "pool.csv"), ("pool.csv", "-n", 2), (1,), (1, "-n", 2), (1, "rows.csv")):
        shell("tell", "survey", *words, code=2)
    same()
    assert request["size"] == 2


# -------------------------------------------------------------------- the round trip


def round_trip(names: list[str], labels: list[Any], folder: Path, how: dict[str, Any], source: str = "frame") -> None:
    """A pool of these ids, out as a file, filled in, back: every id has the label that was written beside it."""
    rows = pd.DataFrame(
        {"id": names, "group": ["u", "v"] * (len(names) // 2) + ["u"] * (len(names) % 2), "x": 1.5, "note": names}
    )
    c = made(MemoryLedger(), None, learner=None)
    if source == "csv":
        rows.to_csv(folder / "pool.csv", index=False)
        c.pool(folder / "pool.csv")
    else:
        c.pool(rows)
    requests = c.ask_many(len(names))
    asked = [name for request in requests for name in request.examples]
    assert set(asked) <= set(names)
    assert len(asked) >= len(names) - 2
    todo, done = folder / f"{uuid.uuid4().hex}.csv", folder / f"{uuid.uuid4().hex}.csv"
    write_todo(c, requests, todo)
    written = dict(zip(names, labels, strict=True))
    with todo.open(newline="", encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    assert [row["x"] for row in cells] == ["1.5"] * len(asked)
    for row, name in zip(cells, asked, strict=True):
        row["label"] = str(written[name])
        if how.get("decimal"):
            row["x"] = "1,5"
    with done.open("w", newline="", encoding=how.get("encoding", "utf-8")) as file:
        writer = csv.DictWriter(
            file, list(cells[0]), delimiter=how.get("separator", ","), lineterminator=how.get("end", "\r\n"),
            quoting=how.get("quoting", csv.QUOTE_MINIMAL),
        )  # fmt: skip
        writer.writeheader()
        writer.writerows(cells)
    found, values, _ = c.labels_in(done)
    assert found == asked
    c.tell_labels(dict(zip(found, values, strict=True)), written=True)
    assert everything(c) == {name: written[name] for name in asked}
    assert c.verify().problems == []


SPREADSHEETS = {
    "plain": {},
    "unix": {"end": "\n"},
    "BOM": {"encoding": "utf-8-sig"},
    "semicolons": {"separator": ";", "encoding": "utf-8-sig"},
    "decimal comma": {"separator": ";", "decimal": True},
    "tabs": {"separator": "\t"},
    "utf-16": {"encoding": "utf-16", "separator": "\t"},
    "all quoted": {"quoting": csv.QUOTE_ALL},
}


@pytest.mark.parametrize("how", SPREADSHEETS.values(), ids=SPREADSHEETS)
@pytest.mark.parametrize("labels", [["yes", "no"], [-1, 1], [0, 1], ["=yes", "-no"], ["כן", "לא"]], ids=str)
def test_every_id_comes_back(tmp_path: Path, how: dict[str, Any], labels: list[Any]) -> None:
    round_trip(NASTY, [labels[k % 2] for k in range(len(NASTY))], tmp_path, how)


@pytest.mark.parametrize("how", SPREADSHEETS.values(), ids=SPREADSHEETS)
@pytest.mark.parametrize(
    "names",
    [["007", "008", "010", "0100"], ["1e5", "2e5", "1e6", "1E7"], ["1.0", "2.50", "3", "4"], ["1,5", "2,5", "3,5", "4,5"],
     ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], ["true", "false", "True", "False"], ["12:30", "12:31", "12:32", "12:33"],
     ["12345678901234567890", "12345678901234567891", "1", "2"], ["+1", "-1", "1", "2"]],
    ids=lambda names: names[0],
)  # fmt: skip
@pytest.mark.parametrize("source", ["csv", "frame"])
def test_ids_that_look_like_something_else(tmp_path: Path, names: list[str], how: dict[str, Any], source: str) -> None:
    round_trip(names, ["yes", "no"] * 2, tmp_path, how, source)


@pytest.mark.parametrize(
    "names", [["NA", "a", "b", "c"], ["null", "a", "b", "c"], ["nan", "a", "b", "c"]], ids=lambda n: n[0]
)
def test_ids_that_look_missing(tmp_path: Path, names: list[str]) -> None:
    """They come back, or a pool refuses them: never a file that cannot be told."""
    c = made(MemoryLedger(), None)
    try:
        c.pool(pd.DataFrame({"id": names, "group": "u", "x": 1.0}))
    except InputError:
        return
    round_trip(names, ["yes", "no"] * 2, tmp_path, {})


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(
    lambda t: t == t.strip() and t not in {"NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null"}
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(WORDS, min_size=4, max_size=8, unique=True), how=st.sampled_from(list(SPREADSHEETS.values())))
@example(names=["''=a", "'=a", "=a", "'a"], how={})
def test_any_ids_come_back(tmp_path: Path, names: list[str], how: dict[str, Any]) -> None:
    round_trip(names, [label_of(name) for name in names], tmp_path, how)


def test_blank_lines_that_spreadsheets_leave(tmp_path: Path) -> None:
    c = made()
    c.pool(pool_frame(10))
    a, b = c.ask().examples
    (tmp_path / "done.csv").write_text(f"id;label\r\n{a};yes\r\n{b};no\r\n;\r\n;\r\n", encoding="utf-8-sig")
    names, labels, _ = c.labels_in(tmp_path / "done.csv")
    assert (names, labels) == ([a, b], ["yes", "no"])


def test_columns_with_our_names(tmp_path: Path) -> None:
    c = made(label="request", group="sex")
    c.pool(pool_frame(10).assign(request_=1, sex=pool_frame(10)["group"], sex_=2), group="sex")
    requests = c.ask_many(2)
    names, rows = c.to_label(requests)
    assert len(set(names)) == len(names)
    assert [row[1] for row in rows] == [name for r in requests for name in r.examples]
    write_todo(c, requests, tmp_path / "todo.csv")
    found, labels, _ = c.labels_in(tmp_path / "todo.csv")
    assert found == [row[1] for row in rows]
    assert set(labels) == {None}


# -------------------------------------------------------------------- CSV in


def same_campaign(one: eh.Campaign, other: eh.Campaign) -> None:
    found = []
    for c in (one, other):
        asked = []
        while len(asked) < 12:
            request = c.ask()
            asked.append((request.group, request.examples))
            c.tell_labels({name: label_of(name) for name in request.examples})
        found.append((asked, c.training_set().X.to_numpy().tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "write",
    [
        lambda f, p: f.to_csv(p, index=False),
        lambda f, p: f.to_csv(p, index=False, encoding="utf-8-sig"),
        lambda f, p: f.to_csv(p, index=False, sep=";"),
        lambda f, p: f.to_csv(p, index=False, sep=";", decimal=","),
        lambda f, p: f.to_csv(p, index=False, sep=";", decimal=",", encoding="utf-8-sig", lineterminator="\r\n"),
        lambda f, p: f.to_csv(p, index=False, sep="\t"),
        lambda f, p: f.to_csv(p, index=False, lineterminator="\r\n", quoting=csv.QUOTE_ALL),
        lambda f, p: f.sample(frac=1, random_state=3).to_csv(p, index=False),
    ],
    ids=["plain", "BOM", "semicolons", "decimal comma", "excel", "tabs", "quoted", "shuffled"],
)
def test_a_csv_file_is_the_same_pool(ledger: Ledger, tmp_path: Path, write: Any) -> None:
    rows = pool_frame().assign(n=np.arange(40), note=[f'a "{k}", b;\nc' for k in range(40)])
    write(rows, tmp_path / "pool.csv")
    one, other = made(ledger, learner="table"), made(learner="table")
    one.pool(tmp_path / "pool.csv", _salt="a secret")
    other.pool(rows, _salt="a secret")
    same_campaign(one, other)
    sound(one)


@pytest.mark.parametrize("first", ["1;2", ";0,5", "3;1,5", '"1,5";2'])
def test_a_decimal_comma_anywhere(tmp_path: Path, first: str) -> None:
    """The first row says little about how a file is written."""
    lines = [f"e{k};{'uv'[k % 2]};{k},25;{k}" for k in range(2, 10)]
    (tmp_path / "pool.csv").write_text("\n".join(["id;group;x;w", f"e0;u;{first}", "e1;v;1,5;2,5", *lines]))
    c = made(learner="table")
    c.pool(tmp_path / "pool.csv")
    columns = c.store.refresh().columns
    assert {column["name"]: column["kind"] for column in columns["columns"] if column["use"] == "feature"} == {
        "x": "number",
        "w": "number",
    }


def test_a_csv_file_is_copied(tmp_path: Path) -> None:
    pool_frame().to_csv(tmp_path / "pool.csv", index=False)
    c = made()
    c.pool(tmp_path / "pool.csv")
    (tmp_path / "pool.csv").unlink()
    assert len(rest(c)) == 40
    sound(c)


def test_half_labelled_files(shell: PoolShell, tmp_path: Path) -> None:
    for learner, values in (("table", ["yes", "no"]), ("logistic", ["0", "1"])):
        half = pool_frame().assign(label=[values[k % 2] if k < 10 else "" for k in range(40)])
        half.to_csv(tmp_path / f"{learner}.csv", index=False)
        shell("create", learner, "--group", "u", "--group", "v", "--budget", 20, "--learner", learner)
        assert "10 labelled rows taken in" in shell("pool", learner, f"{learner}.csv")
        status = shell.json("status", learner)
        assert (status["used"], status["examples"], status["pool"]["left"]) == (0, 10, 30)
        shell("ask", learner, "--all", "--out", f"{learner}-todo.csv")
        fill(
            tmp_path / f"{learner}-todo.csv",
            tmp_path / f"{learner}-done.csv",
            lambda row, v=values: v[len(row["id"]) % 2],
        )
        assert shell.json("tell", learner, f"{learner}-done.csv")["rows"] == 20
        assert shell.json("verify", learner)["ok"]


def test_labels_that_came_since_are_taken_in_when_pool_is_called_again(tmp_path: Path) -> None:
    c = made()
    c.pool(pool_frame())
    found = c.pool(pool_frame().assign(label=["yes", "no", *[None] * 38]))
    assert found.labelled == 2 or found.known == 40
    assert everything(c) in ({"e0": "yes", "e1": "no"}, {})
    sound(c)


# -------------------------------------------------------------------- Parquet by reference


def write_parquet(rows: pd.DataFrame, path: Path, shape: str) -> Path:
    """A file, a folder of files, or hive partitions."""
    if shape == "file":
        target = path / "pool.parquet"
        rows.to_parquet(target, index=False, row_group_size=7)
        return target
    target = path / shape
    if target.exists():
        shutil.rmtree(target)
    target.mkdir()
    if shape == "folder":
        (target / "sub").mkdir()
        rows.iloc[:13].to_parquet(target / "b.parquet", index=False)
        rows.iloc[13:].to_parquet(target / "sub" / "a.parquet", index=False, row_group_size=5)
    else:
        rows.to_parquet(target, partition_cols=["group"], index=False)
    return target


@pytest.fixture(params=["file", "folder", "hive"])
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def few_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy few rows at a time, so that small files are read in several goes."""
    monkeypatch.setattr(pools, "AHEAD", 3)


@pytest.mark.usefixtures("few_ahead")
def test_parquet_is_the_same_pool(ledger: Ledger, tmp_path: Path, shape: str) -> None:
    path = write_parquet(pool_frame(), tmp_path, shape)
    one, other = made(ledger, learner="table"), made(learner="table")
    one.pool(path, _salt="a secret")
    other.pool(pool_frame(), _salt="a secret")
    same_campaign(one, other)
    assert one.status()["pool"]["files"] == [str(path)]
    sound(one)


@pytest.mark.usefixtures("few_ahead")
def test_rows_are_copied_little_by_little(ledger: Ledger, tmp_path: Path) -> None:
    path = write_parquet(pool_frame(), tmp_path, "file")
    c = made(ledger)
    c.pool(path)

    def copied() -> int:
        with c.store.moment() as (reader, _):
            return sum(e.features is not None for e in reader.find(list(pool_frame()["id"])).values())

    assert copied() <= 2 * 4
    asked = [name for r in c.ask_many(4) for name in r.examples]
    assert 8 <= copied() <= 8 + 2 * 12
    names, rows = c.to_label(c.open_requests)
    plain = pool_frame().set_index("id")
    assert [row[names.index("x")] for row in rows] == [plain.loc[row[1], "x"] for row in rows]
    assert len(set(asked) | set(rest(c))) == 40
    sound(c)


def touch(path: Path) -> None:
    import os

    for file in [path] if path.is_file() else path.rglob("*.parquet"):
        os.utime(file, ns=(1, file.stat().st_mtime_ns + 10**9))


@pytest.mark.usefixtures("few_ahead")
def test_a_file_that_was_only_touched_is_the_same(tmp_path: Path, shape: str) -> None:
    path = write_parquet(pool_frame(), tmp_path, shape)
    c = made()
    c.pool(path)
    touch(path)
    assert len(rest(c)) == 40


@pytest.mark.usefixtures("few_ahead")
def test_a_changed_file_is_refused_until_pool_is_called_again(ledger: Ledger, tmp_path: Path, shape: str) -> None:
    path = write_parquet(pool_frame(), tmp_path, shape)
    c = made(ledger)
    c.pool(path)
    first = c.ask()
    changed = pool_frame(38, 4).assign(x=7.0)  # e0 to e3 are gone, e40 and e41 are new
    write_parquet(changed, tmp_path, shape)
    before = c.events()
    with pytest.raises(InputError, match="has changed: call pool again"):
        rest(c)
    assert [e["kind"] for e in c.events()[len(before) :] if e["kind"] != "asked"] == []
    handed_out = {name for r in c.open_requests for name in r.examples}
    found = c.pool(path)
    assert (sum(found.groups.values()), found.known) == (2, 36)
    sound(c)
    with c.store.moment() as (reader, _):
        pool = {e.id for group in ("u", "v") for e in reader.next_in_pool(group, 100)}
    assert pool == set(changed["id"]) - handed_out
    assert len(pool) - len(rest(c)) <= 2, "one example of a group is no pair"
    names, rows = c.to_label(c.open_requests)
    assert {row[names.index("x")] for row in rows if row[1] not in handed_out} == {7.0}
    c.tell_labels({name: label_of(name) for name in first.examples})
    sound(c)


def test_a_changed_file_is_refused_also_when_its_rows_were_copied(ledger: Ledger, tmp_path: Path, shape: str) -> None:
    """SPEC 11: a changed file is an error until `pool` is called again, however many rows are ahead."""
    path = write_parquet(pool_frame(), tmp_path, shape)
    c = made(ledger)
    c.pool(path)
    write_parquet(pool_frame().assign(x=7.0), tmp_path, shape)
    with pytest.raises(InputError, match="has changed"):
        c.ask()
    assert any("has changed" in problem for problem in c.verify().problems)


def test_another_process_registers_it_anew(tmp_path: Path) -> None:
    path = write_parquet(pool_frame(), tmp_path, "file")
    url = f"sqlite:///{tmp_path / 'l.db'}"
    eh.Campaign.create(url, "c", None, "uniform", None, budget=40).release()
    one, other = (eh.Campaign.open(url, "c") for _ in range(2))
    one.pool(path)
    other.ask()
    write_parquet(pool_frame(44).assign(x=7.0), tmp_path, "file")
    one.pool(path)
    assert len(other.ask().examples) == 2
    sound(other)


@pytest.mark.usefixtures("few_ahead")
def test_a_file_that_vanished(ledger: Ledger, tmp_path: Path, shape: str) -> None:
    path = write_parquet(pool_frame(), tmp_path, shape)
    c = made(ledger)
    c.pool(path)
    moved = tmp_path / "elsewhere" / path.name
    moved.parent.mkdir()
    path.rename(moved)
    with pytest.raises(InputError, match="is gone"):
        rest(c)
    handed_out = {name for r in c.open_requests for name in r.examples}
    c.pool(moved)
    assert c.status()["pool"]["left"] == 40 - len(handed_out), "the message says: call pool again with another"
    assert set(rest(c)) <= set(pool_frame()["id"]) - handed_out
    sound(c)


@pytest.mark.usefixtures("few_ahead")
def test_put_back_it_goes_on(tmp_path: Path) -> None:
    path = write_parquet(pool_frame(), tmp_path, "file")
    c = made()
    c.pool(path)
    shutil.copy2(path, tmp_path / "copy")
    path.unlink()
    with pytest.raises(InputError, match="is gone"):
        rest(c)
    held = sum(len(r.examples) for r in c.open_requests)
    shutil.copy2(tmp_path / "copy", path)
    assert held + len(rest(c)) == 40


def test_pool_again_with_the_same_file_changes_nothing(ledger: Ledger, tmp_path: Path, shape: str) -> None:
    path = write_parquet(pool_frame(), tmp_path, shape)
    c = made(ledger)
    c.pool(path)
    held = set(c.ask().examples)
    for _ in range(3):
        c.pool(path)
        assert c.status()["pool"]["left"] == 38
        sound(c)
    assert set(rest(c)) == set(pool_frame()["id"]) - held


def test_pool_again_keeps_what_happened(ledger: Ledger, tmp_path: Path) -> None:
    """Skipped, labelled, held and erased examples stay as they are."""
    path = write_parquet(pool_frame(), tmp_path, "file")
    c = made(ledger)
    c.pool(path)
    one, two = c.ask_many(2)
    c.tell_labels({name: label_of(name) for name in one.examples})
    free = [name for name in pool_frame()["id"] if name not in {*one.examples, *two.examples}]
    c.skip(free[0])
    write_parquet(pool_frame().assign(x=7.0), tmp_path, "file")
    c.pool(path)
    sound(c)
    assert [r.examples for r in c.open_requests] == [two.examples]
    assert set(rest(c)) <= set(free[1:])
    assert c.status()["skipped"] == 1


def test_two_files_and_a_frame(ledger: Ledger, tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pool_frame(20).to_parquet(paths[0], index=False)
    pool_frame(20, 20).to_parquet(paths[1], index=False)
    c = made(ledger)
    for path in paths:
        c.pool(path, _salt="a secret")
    c.pool(pool_frame(10, 40), _salt="a secret")
    one = made()
    one.pool(pool_frame(50), _salt="a secret")
    assert [r.examples for r in c.ask_many(6)] == [r.examples for r in one.ask_many(6)]
    pool_frame(22).assign(x=0.5).to_parquet(paths[0], index=False)
    found = c.pool(paths[0])
    assert found.known <= 22
    sound(c)
    overlap = tmp_path / "c.parquet"
    pool_frame(60).to_parquet(overlap, index=False)
    assert sum(c.pool(overlap).groups.values()) == 10
    sound(c)
    c.pool(overlap)
    sound(c)


@pytest.mark.usefixtures("few_ahead")
def test_extra_labels_bring_their_rows(ledger: Ledger, tmp_path: Path, shape: str) -> None:
    path = write_parquet(pool_frame(), tmp_path, shape)
    c = made(ledger, learner="table")
    c.pool(path)
    with c.store.moment() as (reader, _):
        far = [e.id for e in reader.next_in_pool("u", 40) if e.features is None][-3:]
    assert len(far) == 3
    c.tell_labels({name: label_of(name) for name in far}, extra=True)
    rows = pool_frame().set_index("id")
    for part in (c.training_set, c.validation_set):
        try:
            found = part()
        except InputError:
            continue
        assert found.X["x"].tolist() == rows.loc[found.ids, "x"].tolist()
    sound(c)
    with c.store.moment() as (reader, _):
        other = next(e.id for e in reader.next_in_pool("v", 40)[::-1] if e.features is None)
    write_parquet(pool_frame().assign(x=7.0), tmp_path, shape)
    with pytest.raises(InputError, match="has changed"):
        c.tell_labels({other: "yes"}, extra=True)


def test_a_late_label_of_an_id_that_vanished(ledger: Ledger, tmp_path: Path) -> None:
    path = write_parquet(pool_frame(), tmp_path, "file")
    c = made(ledger)
    c.pool(path)
    request = c.ask()
    c.abandon(request)
    gone = request.examples[0]
    write_parquet(pool_frame().query("id != @gone"), tmp_path, "file")
    c.pool(path)
    sound(c)
    c.tell_labels({gone: "yes"})
    sound(c)


def test_an_export_never_replaces_the_pool(tmp_path: Path, shape: str) -> None:
    path = write_parquet(pool_frame(), tmp_path, shape)
    c = made()
    c.pool(path)
    c.tell_labels({name: label_of(name) for name in c.ask().examples})
    target = path if path.is_file() else path / "export.parquet"
    with pytest.raises(InputError, match="the pool's own file"):
        c.export(target, force=True)
    assert len(rest(c)) == 38


def test_half_labelled_parquet(ledger: Ledger, tmp_path: Path, shape: str) -> None:
    half = pool_frame().assign(label=[label_of(f"e{k}") if k % 4 == 0 else None for k in range(40)])
    path = write_parquet(half, tmp_path, shape)
    c = made(ledger, learner="table")
    found = c.pool(path)
    assert (found.labelled, sum(found.groups.values())) == (10, 30)
    assert everything(c) == {f"e{k}": label_of(f"e{k}") for k in range(0, 40, 4)}
    sound(c)


def test_bad_parquet_is_refused(shell: PoolShell, tmp_path: Path) -> None:
    shell("create", "survey", "--group", "u", "--group", "v", "--budget", 40)
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 nothing PAR1")
    (tmp_path / "mixed").mkdir()
    pool_frame(10).to_parquet(tmp_path / "mixed" / "a.parquet", index=False)
    pool_frame(10, 10).drop(columns="w").to_parquet(tmp_path / "mixed" / "b.parquet", index=False)
    pd.concat([pool_frame(10), pool_frame(3)]).to_parquet(tmp_path / "twice.parquet", index=False)
    same = shell.nothing_changes()
    for name, message in (
        ("empty", "no .parquet file"),
        ("broken.parquet", "Parquet"),
        ("mixed", "same columns"),
        ("twice.parquet", "comes again in rows 11, 12, 13"),
        ("gone.parquet", "no file"),
    ):
        assert message in shell("pool", "survey", name, code=2)
    same()


@pytest.mark.usefixtures("few_ahead")
def test_a_changed_file_exits_with_2(shell: PoolShell, tmp_path: Path) -> None:
    path = write_parquet(pool_frame(), tmp_path, "file")
    shell("create", "survey", "--group", "u", "--group", "v", "--budget", 40, "--learner", "none")
    shell("pool", "survey", path)
    shell("ask", "survey", "--count", 2)
    write_parquet(pool_frame().assign(x=7.0), tmp_path, "file")
    same = shell.nothing_changes()
    assert "has changed" in shell("ask", "survey", "--count", 10, code=2)
    same()
    shell("pool", "survey", path)
    assert len(shell.json("ask", "survey", "--count", 10)["requests"]) == 10


def test_a_path_relative_to_here_is_found_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("evenhand.campaign.pools.AHEAD", 2)
    write_parquet(pool_frame(), tmp_path, "file")
    c = made()
    c.pool("pool.parquet")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert len(rest(c)) == 40


def test_a_csv_of_many_rows_keeps_every_row_with_its_id(tmp_path: Path) -> None:
    """Rows are registered in batches of twenty thousand."""
    n = 45_000
    buffer = io.StringIO()
    pd.DataFrame({"id": np.arange(n), "group": np.where(np.arange(n) % 2, "v", "u"), "x": np.arange(n) * 2}).to_csv(
        buffer, index=False
    )
    (tmp_path / "big.csv").write_text(buffer.getvalue())
    c = made(MemoryLedger(), budget=2000, batch=100)
    c.pool(tmp_path / "big.csv")
    names, rows = c.to_label(c.ask_many(10))
    x = names.index("x")
    assert all(row[x] == 2 * int(row[1]) for row in rows)
    assert len(rows) == 2000
