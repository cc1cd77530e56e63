"""Bad input, each once found by hand: a clear message, the right exit code, and nothing stored by halves."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.helpers import Shell
from typer.testing import CliRunner

import evenhand as eh
from evenhand.errors import InputError, LedgerError

runner = CliRunner()
ODD_NAMES = ["[/b]", "ü ≤ ☃ [bold]", "' OR 1=1 --", "=cmd()", "-x/%s {0}"]
BAD_NAMES = ["", "  ", "\t", "a\nb", "a\0b", "a\x1bb", "\ud800", "x" * 501]
X2, Y2 = np.eye(2), ["no", "yes"]


class DatabaseShell(Shell):
    """Also looks into the database."""

    def sql(self, statement: str) -> list[Any]:
        with sqlite3.connect(self.file) as connection:
            return connection.execute(statement).fetchall()

    def stored(self) -> dict[str, list[Any]]:
        """Everything in the database, but for leases of refits."""
        tables = [name for (name,) in self.sql("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: self.sql(f"SELECT * FROM {name}") for name in tables if name != "leases"}


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DatabaseShell:
    monkeypatch.chdir(tmp_path)
    return DatabaseShell(tmp_path)


@pytest.fixture(scope="module")
def half_told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a campaign `s` that has a request of 4 labels, of which 2 were told."""
    folder = tmp_path_factory.mktemp("half-told")
    made = Shell(folder)
    made("create", "s", "--group", "u", "--group", "v", "--budget", 40, "--batch", 2, "--strategy", "uniform")
    made("ask", "s", "--collector", "ann")
    (folder / "good.csv").write_text("id,a,b,label\n1,0.5,2,yes\n2,1.5,3,no\n")
    made("tell", "s", 1, folder / "good.csv")
    made("backup", folder / "whole.db")
    return folder


@pytest.fixture
def survey(shell: DatabaseShell, half_told: Path) -> DatabaseShell:
    """A copy of that database, beside the file that was told."""
    shutil.copy(half_told / "whole.db", shell.file)
    shutil.copy(half_told / "good.csv", "good.csv")
    return shell


def refused(shell: DatabaseShell, *words: object, stdin: str | None = None) -> str:
    """What the command says; it exits with 2 and changes nothing."""
    before = shell.stored()
    message = shell(*words, code=2, stdin=stdin)
    assert shell.stored() == before
    return message


# -------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_names(shell: DatabaseShell, name: str) -> None:
    shell(
        "create",
        "--group",
        name,
        "--group",
        "v",
        "--budget",
        8,
        "--learner",
        "none",
        "--strategy",
        "uniform",
        "--",
        name,
    )
    for _ in range(2):
        shell("ask", "--collector", name, "--", name)
    found = shell.json("status", "--", name)
    assert found["name"] == name
    assert set(found["groups"]) == {name, "v"}
    words = shell("status", "--", name)
    assert name in words
    for command in ("events", "explain", "verify"):
        shell(command, "--", name)
    assert f"{name}: 0 of 8 labels" in shell("list")
    shell("retire", "--", name, name)
    assert not shell.json("status", "--", name)["groups"][name]["available"]
    assert shell.json("losses", name, "--", f"{name}=0.2,0.8,4")["reported"] == [name] if name[0] != "-" else True


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_cannot_be(shell: DatabaseShell, name: str) -> None:
    url = shell.db
    for make in (
        lambda: eh.Campaign(["u", name], "uniform", budget=40),
        lambda: eh.Campaign(["u"], "uniform", budget=40, name=name),
        lambda: eh.Campaign.create(url, "c", ["u", name], "uniform", budget=40),
        lambda: eh.Campaign.create(url, name, ["u"], "uniform", budget=40),
    ):
        with pytest.raises(InputError, match=r"is blank|has the character|at most 500 are allowed"):
            make()
    assert not shell.file.exists() or eh.campaigns(url) == []


@pytest.mark.parametrize("name", BAD_NAMES[:4])
def test_names_that_cannot_be_from_the_shell(shell: DatabaseShell, name: str) -> None:
    shell("create", "there", "--group", "u", "--budget", 8)
    for words in (["c", "--group", "u", "--group", name], [name, "--group", "u"]):
        message = refused(shell, "create", "--budget", 8, *words)
        assert "is blank" in message or "has the character" in message
    assert "the collector" in refused(shell, "ask", "there", "--collector", name)


def test_actors_are_names_too(database: str) -> None:
    c = eh.Campaign.create(database, "s", ["u", "v"], "uniform", None, budget=40, batch=2)
    c.ask_many(3)
    c.tell(1, X2, Y2)
    before = c.events()
    steps: dict[str, Callable[[str], Any]] = {
        "ask": lambda who: c.ask(collector=who),
        "tell": lambda who: c.tell(1, X2 + 1, Y2, collector=who),
        "tell n": lambda who: c.tell(2, n=2, collector=who),
        "add": lambda who: c.add(X2, Y2, ["u", "v"], by=who),
        "extend": lambda who: c.extend(2, "2h", by=who),
        "retire": lambda who: c.retire("u", by=who),
        "change": lambda who: c.change(budget=50, by=who),
        "losses": lambda who: c.tell_losses({"u": (0.1, 0.9, 5)}, by=who),
        "abandon": lambda who: c.abandon(2, by=who),
        "close": lambda who: c.close(by=who),
    }
    taken = []
    for (verb, step), who in itertools.product(steps.items(), ["a\0b", "a\nb", " ", "\ud800", "x" * 501]):
        try:
            step(who)
        except InputError:
            continue
        except Exception as error:
            taken.append((verb, who[:3], repr(error)[:60]))
        else:
            taken.append((verb, who[:3], "taken"))
    assert taken == []
    assert c.events() == before


# -------------------------------------------------------------------- numbers

FOREVER = ["99999999d", "1e9d", "-1h", "0s", "nan", "inf", "soon", ""]


@pytest.mark.parametrize("lease", FOREVER)
def test_leases_that_cannot_be(survey: Shell, lease: str) -> None:
    with pytest.raises(InputError, match="cannot use the lease"):
        eh.Campaign(["u"], "uniform", budget=40, lease=lease)
    assert "cannot use the lease" in refused(survey, "create", "c", "--group", "u", "--budget", 8, f"--lease={lease}")
    assert "cannot use the lease" in refused(survey, "change", "s", f"--lease={lease}")
    assert "cannot use the lease" in refused(survey, "extend", "--", "s", 1, lease)
    assert eh.campaigns(survey.db) == ["s"]


@pytest.mark.parametrize("budget", [2**63, 2**64, 10**30, -(2**63), -1])
def test_budgets_that_cannot_be(survey: Shell, budget: int) -> None:
    with pytest.raises(InputError, match="budget"):
        eh.Campaign(["u"], "uniform", budget=budget)
    with pytest.raises(InputError, match="budget"):
        eh.Campaign.open(survey.db, "s").change(budget=budget)
    assert "budget" in refused(survey, "create", "c", "--group", "u", f"--budget={budget}")
    assert "budget" in refused(survey, "change", "s", f"--budget={budget}")
    assert eh.campaigns(survey.db) == ["s"]


@pytest.mark.parametrize("setting", ["batch", "warmup", "refit", "seed"])
def test_other_settings_beyond_64_bits(shell: DatabaseShell, setting: str) -> None:
    shell("create", "there", "--group", "u", "--budget", 8)
    if setting == "seed":  # any whole number is a seed
        shell("create", "c", "--group", "u", "--budget", 8, "--seed", 2**70)
        shell("ask", "c")
        return
    with pytest.raises(InputError):
        eh.Campaign(["u"], "uniform", budget=40, **{setting: 2**70})
    refused(shell, "create", "c", "--group", "u", "--budget", 8, f"--{setting}", 2**70)


def test_a_budget_below_what_is_used_or_promised(survey: Shell) -> None:
    assert "less than the 4 labels already used or promised" in refused(survey, "change", "s", "--budget", 3)
    survey("change", "s", "--budget", 4)
    assert survey.json("ask", "s", code=3)["reason"] == "waiting for open requests"


@pytest.mark.parametrize("number", [0, -1, 7, 2**31, 2**63, 2**70])
def test_requests_that_were_never_made(survey: Shell, number: int) -> None:
    c = eh.Campaign.open(survey.db, "s")
    told = len(c.events())
    rows = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    for do in (lambda: c.tell(number, rows, Y2), lambda: c.abandon(number), lambda: c.explain(number)):
        with pytest.raises(InputError, match="never made"):
            do()
    assert len(c.events()) == told
    if number >= 0:
        assert "never made" in refused(survey, "tell", "s", number, "good.csv")
        assert "never made" in refused(survey, "abandon", "s", number)
        assert "never made" in refused(survey, "explain", "s", number)


def test_requests_beyond_what_a_database_counts(database: str) -> None:
    c = eh.Campaign.create(database, "s", ["u"], "uniform", None, budget=40)
    c.ask()
    for number in (2**31, 2**63, 2**70, -(2**70)):
        with pytest.raises(InputError, match="never made"):
            c.tell(number, n=2)


def test_events_from_anywhere(database: str) -> None:
    """Either refused everywhere or the same everywhere."""
    kept = eh.Campaign.create(database, "s", ["u"], "uniform", None, budget=40)
    memory = eh.Campaign(["u"], "uniform", budget=40)
    found = []
    for c in (kept, memory):
        c.ask_many(2)
        found.append([_seqs(c, *given) for given in ((-1, None), (0, -1), (2**70, None), (0, 2**70), (0, 0), (1, 1))])
    assert found[0] == found[1]
    assert found[0][-1] == [2]


def _seqs(c: eh.Campaign, after: int, limit: int | None) -> Any:
    try:
        return [event["seq"] for event in c.events(after, limit)]
    except InputError as error:
        return str(error)
    except Exception as error:
        return type(error)


def test_more_requests_than_anybody_wants(shell: DatabaseShell) -> None:
    shell("create", "s", "--group", "u", "--group", "v", "--budget", 40, "--strategy", "uniform")
    message = refused(shell, "ask", "s", "--count", 1_000_000_000)
    assert "--count 1000000000 is more than 1,000: give --all" in message
    for count in (0, -3):
        assert "ask for 1 request or more" in refused(shell, "ask", "s", "--count", count)
    assert len(shell.json("ask", "s", "--all")["requests"]) == 20
    assert shell.json("ask", "s", "--all", code=3)["reason"] == "waiting for open requests"
    c = eh.Campaign(["u"], "uniform", budget=40)
    assert len(c.ask_many(1_000_000_000)) == 20


@pytest.mark.parametrize("value", ["1e160", "-1e160", "inf", "nan", "1e999"])
def test_values_nothing_can_be_learned_from(survey: Shell, value: str) -> None:
    c = eh.Campaign.open(survey.db, "s")
    Path("bad.csv").write_text(f"id,a,b,label\n3,{value},2,yes\n4,1.5,3,no\n")
    message = refused(survey, "tell", "s", 1, "bad.csv")
    assert "1 of 2 rows cannot be stored, so nothing was" in message or "1 rows refused" in message
    Path("bad.jsonl").write_text(
        '{"id": 3, "a": 1e160, "b": 2, "label": "yes"}\n{"id": 4, "a": 1, "b": 2, "label": "no"}\n'
    )
    refused(survey, "tell", "s", 1, "bad.jsonl")
    memory = eh.Campaign(["u"], "uniform", eh.Logistic(), budget=40)
    memory.ask()
    with pytest.raises(InputError, match="feature 0"):
        memory.tell(1, [[float(value), 1.0]], ["yes"])
    with pytest.raises(InputError, match=r"rows cannot be stored"):
        c.tell_delivery(1, c.read("bad.csv", 1)[1])
    assert c.tell_delivery(1, c.read("bad.csv", 1)[1], partial=True).rows == 1
    assert c.model() is not None


def test_values_of_images(shell: DatabaseShell) -> None:
    c = eh.Campaign(["u"], "uniform", budget=40)
    c.ask()
    for value in (1e160, np.nan, np.inf):
        with pytest.raises(InputError):
            c.tell(1, np.full((1, 2, 2), value), ["yes"])
    assert c.labels_used == 0


@pytest.mark.parametrize("n", [0, 2.5, -1, 41, 1e12, 2**70, float("nan"), float("inf"), "many", None])
def test_losses_of_more_examples_than_can_be(shell: DatabaseShell, n: Any) -> None:
    shell("create", "s", "--group", "u", "--budget", 40, "--learner", "none")
    shell("ask", "s")
    shell("tell", "s", 1, "-n", 2)
    c = eh.Campaign.open(shell.db, "s")
    told = c.events()
    with pytest.raises(InputError, match="losses of 'u'"):
        c.tell_losses({"u": (0.2, 0.8, n)})
    assert "losses of 'u'" in refused(shell, "losses", "s", f"u=0.2,0.8,{n}")
    assert c.events() == told
    c.tell_losses({"u": (0.2, 0.8, 40)})


@pytest.mark.parametrize("loss", ["1e308", "nan", "inf", "x", "-1"])
def test_losses_that_cannot_be(shell: DatabaseShell, loss: str) -> None:
    shell("create", "s", "--group", "u", "--budget", 40, "--learner", "none")
    shell("ask", "s")
    shell("tell", "s", 1, "-n", 2)
    assert "losses of 'u'" in refused(shell, "losses", "s", f"u={loss},0.8,20")
    shell("ask", "s")
    shell("status", "s")


def test_losses_as_they_should_not_be_written(shell: DatabaseShell) -> None:
    shell("create", "s", "--group", "u", "--budget", 40, "--learner", "none")
    Path("list.json").write_text("[1, 2]")
    Path("broken.json").write_text("{")
    Path("deep.json").write_text('{"u": {"loss": 1}}')
    for words in (
        ["u"], ["w=0.1,0.9,4"], ["u=0.1"], ["u=0.1,0.9,4,5"], [], ["--file", "list.json"], ["--file", "broken.json"],
        ["--file", "deep.json"], ["--file", "none.json"], ["u=0.1,0.9,4", "--file", "list.json"],
    ):  # fmt: skip
        assert "error" in refused(shell, "losses", "s", *words)


# -------------------------------------------------------------------- files


def test_refused_rows_never_replace_the_delivered_file(survey: Shell) -> None:
    bad = Path("bad.csv")
    bad.write_text("id,a,b,label\n3,x,2,yes\n4,1.5,3,no\n")
    was = bad.read_bytes()
    Path("link.csv").symlink_to(bad)
    for target in ("bad.csv", "./bad.csv", bad.absolute(), "link.csv"):
        assert "is there already" in refused(survey, "tell", "s", 1, "bad.csv", "--rejected", target)
        assert bad.read_bytes() == was
    refused(survey, "tell", "s", 1, "bad.csv", "--rejected", "left.csv")
    assert bad.read_bytes() == was
    with Path("left.csv").open(newline="") as file:
        assert [(row["row"], row["id"]) for row in csv.DictReader(file)] == [("1", "3")]


def test_refused_rows_never_replace_the_database(survey: Shell) -> None:
    Path("bad.csv").write_text("id,a,b,label\n3,x,2,yes\n")
    survey("tell", "s", 1, "bad.csv", "--rejected", "c.db", code=2)
    assert survey.json("status", "s")["used"] == 2


def test_exports_never_replace_a_file(survey: Shell) -> None:
    was = Path("good.csv").read_bytes()
    assert "is there already" in refused(survey, "export", "s", "good.csv")
    assert Path("good.csv").read_bytes() == was
    with pytest.raises(InputError, match="is there already"):
        eh.Campaign.open(survey.db, "s").export("good.csv")
    refused(survey, "export", "s", "c.db")
    refused(survey, "backup", "c.db")
    refused(survey, "backup", "good.csv")
    assert Path("good.csv").read_bytes() == was
    survey("export", "s", "out.csv")
    survey("export", "s", "out.csv", "--force")
    assert [path.name for path in Path().glob(".*.partial")] == []


def test_formulas_in_an_export_are_only_text(shell: DatabaseShell) -> None:
    nasty = ["=cmd()", "+x", "-x", "@sum(a1)", "\t=x"[1:], "-1", "plain"]
    c = eh.Campaign.create(shell.db, "s", ["=g()"], "uniform", None, budget=40, batch=4)
    c.ask()
    frame = pd.DataFrame({"=name": [-1.5, 2.0, 3, 4, 5, 6, 7], "word": nasty})
    c.tell(1, frame, nasty, ids=[f"={name}" for name in nasty])
    c.export("out.csv")
    with Path("out.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    for cell in (cell for line in lines for cell in line):
        try:
            float(cell)
        except ValueError:
            assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r")
    again = eh.Campaign.create(shell.db, "t", ["=g()"], "uniform", None, budget=40, batch=4)
    again.ask()
    assert again.tell_delivery(1, again.read("out.csv", 1)[1]).rows == 7
    for part in ("training_set", "validation_set"):
        a, b = (getattr(each, part)() for each in (c, again))
        assert (a.ids.tolist(), a.y.tolist()) == (b.ids.tolist(), b.y.tolist())
        assert a.X["word"].tolist() == b.X["word"].tolist()
        assert a.X["=name"].tolist() == b.X["=name"].tolist()


def test_an_apostrophe_of_ones_own_survives_an_export(shell: DatabaseShell) -> None:
    c = eh.Campaign.create(shell.db, "s", ["u"], "uniform", None, budget=40)
    c.ask()
    c.tell(1, X2, ["'=x", "'tis"], ids=["'-a", "b"])
    c.export("out.csv")
    again = eh.Campaign.create(shell.db, "t", ["u"], "uniform", None, budget=40)
    again.ask()
    again.tell_delivery(1, again.read("out.csv", 1)[1])
    found = [
        part for each in (again.training_set(), again.validation_set()) for part in zip(each.ids, each.y, strict=True)
    ]
    assert sorted((str(name), str(label)) for name, label in found) == [("'-a", "'=x"), ("b", "'tis")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("id,a,b,label\n", "the table has no rows"),
        ("id,a,b,label\n3,1,2\n", "it has 3 cells, the header has 4"),
        ("id,a,b,label\n3,1,2,yes,9\n", "it has 5 cells, the header has 4"),
        ("id,a,b,b,label\n3,1,2,2,yes\n", "more than one column is called 'b'"),
        ("id,a,,label\n3,1,2,yes\n", "column 3 has no name"),
        ("id,a,b\n3,1,2\n", "there is no column 'label' (the label); the columns are"),
        ("id,a,label\n3,1,yes\n", "there is no column 'b' (a feature)"),
        ("id,a,b,label\n3,1,2,\n", "no label"),
        ("id,a,b,label\n,1,2,yes\n", "the id is blank"),
        ("id,a,b,label\n3,,2,yes\n", "a is missing"),
        ("id,a,b,label\n3,x,2,yes\n", "'x' is not a number"),
        ("id,a,b,label\n3,1,2,YES\n", "only by case or blanks"),
        ("id,a,b,label,group\n3,1,2,yes,w\n", "it is of group 'w', the request is for"),
        ("id,a,b,label\n1,0.5,2,no\n", "use correct to change it"),
        ("id,a,b,label\n1,0.7,2,yes\n", "with other features"),
        ("id,a,b,label\n3,1,2,yes\n4,1,2,no\n5,1,2,no\n", "3 rows for request 1, which waits for 2"),
        ('id,a,b,label\n"3,1,2,yes\n', 'a quote (") opens a cell and is never closed'),
    ],
)
def test_files_that_cannot_be_told(survey: Shell, content: str, message: str) -> None:
    Path("bad.csv").write_text(content)
    assert message in " ".join(refused(survey, "tell", "s", 1, "bad.csv").split())
    assert message in " ".join(refused(survey, "tell", "s", 1, "bad.csv", "--dry-run").split())


def test_files_that_are_no_text(survey: Shell) -> None:
    Path("bad.csv").write_bytes(b"id,a,b,label\n3,\xff\xff,2,yes\n")
    assert "is not written in utf-8" in refused(survey, "tell", "s", 1, "bad.csv")
    for name, message in (("bad.parquet", "cannot be read as Parquet"), ("bad.xlsx", "cannot be read; save the table")):
        Path(name).write_bytes(b"nonsense")
        assert message in refused(survey, "tell", "s", 1, name)
    assert "there is no file" in refused(survey, "tell", "s", 1, "none.csv")


@pytest.mark.parametrize("line", ["nonsense", "[1, 2]", "3", "null"])
def test_lines_that_are_no_objects(survey: Shell, line: str) -> None:
    good = '{"id": "9", "a": 1, "b": 2, "label": "yes"}'
    assert "not a JSON object" in refused(survey, "tell", "s", 1, "-", stdin=f"{good}\n{line}\n")


def test_labels_of_files_where_classes_are_numbers(shell: DatabaseShell) -> None:
    shell("create", "s", "--group", "u", "--budget", 40, "--class", "0", "--class", "1")
    shell("ask", "s")
    message = refused(shell, "tell", "s", 1, "-", stdin="a,label\n1,0\n2,yes\n")
    assert "'yes' is not like the classes" in message
    assert "invalid literal" not in message


# -------------------------------------------------------------------- ledgers


def test_a_ledger_with_a_hole(survey: Shell) -> None:
    eh.Campaign.open(survey.db, "s").release()
    survey.sql("DELETE FROM events WHERE seq = 2")
    with pytest.raises(LedgerError, match=r"event 3 does not follow event 1: the ledger has a hole; restore a backup"):
        eh.Campaign.open(survey.db, "s")
    Path("more.csv").write_text("id,a,b,label\n3,1,2,yes\n")
    for words in (
        ["status", "s"],
        ["ask", "s"],
        ["tell", "s", 1, "more.csv"],
        ["verify", "s"],
        ["export", "s", "x.csv"],
    ):
        before = survey.stored()
        assert "the ledger has a hole" in survey(*words, code=1)
        assert survey.stored() == before
    assert json.loads(survey("status", "s", "--json", code=1).splitlines()[0])["error"].startswith("event 3")


def test_a_ledger_that_lost_a_row(survey: Shell) -> None:
    survey.sql("DELETE FROM examples WHERE id = '1'")
    assert "the example '1' is missing" in survey("verify", "s", code=1)
    assert survey.json("verify", "s", code=1)["ok"] is False


def test_a_ledger_whose_row_was_changed(survey: Shell) -> None:
    survey.sql("UPDATE examples SET label = 'no', first_label = 'no' WHERE id = '1'")
    assert "the example '1' is not what was told" in survey("verify", "s", code=1)


def test_a_ledger_that_lost_its_end_while_it_was_open(survey: Shell) -> None:
    c = eh.Campaign.open(survey.db, "s")
    survey.sql("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")
    before = survey.stored()
    for do in (c.ask, lambda: c.tell(1, X2, Y2), lambda: c.abandon(1)):
        with pytest.raises(LedgerError, match="not the one that was read before"):
            do()
    assert survey.stored() == before


def test_a_file_that_is_no_ledger(shell: DatabaseShell) -> None:
    shell.file.write_bytes(b"nonsense" * 1000)
    assert "not a usable SQLite database" in shell("status", "s", code=1)
    shell.file.unlink()
    assert "there is no database" in shell("status", "s", code=2)
    assert not shell.file.exists()


# -------------------------------------------------------------------- clocks


def test_another_clock_on_the_collectors_machine(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    c = eh.Campaign.create(postgres_url, "s", ["u"], "uniform", None, budget=8, lease="1h")
    c.ask()
    for wrong in (0.0, 4e9):
        monkeypatch.setattr(time, "time", lambda wrong=wrong: wrong)
        theirs = eh.Campaign.open(postgres_url, "s")
        assert theirs.status()["open"]
        request = theirs.ask()
        assert abs(request.until - c.open_requests[0].until) < 600
        theirs.abandon(request)
    monkeypatch.undo()
    assert [r.id for r in c.open_requests] == [1]
    assert c.status()["expired"] == []
    assert c.verify().ok


def test_a_clock_that_goes_back(shell: DatabaseShell, monkeypatch: pytest.MonkeyPatch) -> None:
    c = eh.Campaign.create(shell.db, "s", ["u"], "uniform", None, budget=40)
    c.ask()
    monkeypatch.setattr(time, "time", lambda: 5.0)
    c.ask()
    c.tell(1, n=2)
    monkeypatch.undo()
    times = [event["at"] for event in c.events()]
    assert times == sorted(times)
    assert c.verify().ok


# -------------------------------------------------------------------- looking changes nothing


def test_read_only_changes_nothing(survey: Shell) -> None:
    before = survey.stored()
    c = eh.Campaign.open(survey.db, "s", read_only=True)
    for do in (
        c.ask, lambda: c.tell(1, X2, Y2), lambda: c.abandon(1), lambda: c.change(budget=50), lambda: c.retire("u"),
        lambda: c.add(X2, Y2, ["u", "v"]), lambda: c.extend(1, "2h"), c.close, c.certify, c.refit,
    ):  # fmt: skip
        with pytest.raises(InputError):
            do()
    c.status(), c.events(), c.explain(), c.verify(), c.counts, c.training_set()
    for command in ("status", "events", "explain", "verify", "certificate"):
        survey(command, "s")
    assert survey.stored() == before


def test_a_memory_ledger_opened_read_only_changes_nothing() -> None:
    from evenhand.ledger import MemoryLedger

    ledger = MemoryLedger()
    eh.Campaign.create(ledger, "s", ["u"], "uniform", None, budget=40)
    with pytest.raises(InputError, match="read-only"):
        eh.Campaign.open(ledger, "s", read_only=True).ask()
