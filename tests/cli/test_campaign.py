"""`evenhand campaign` as a shell user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from evenhand.cli.campaign import app

runner = CliRunner()


class Shell:
    """Runs commands on one database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = f"sqlite:///{folder / 'c.db'}"

    def __call__(self, *words: object, code: int = 0, stdin: str | bytes | None = None) -> str:
        done = runner.invoke(app, [*map(str, words), "--db", self.db], input=stdin)
        assert done.exit_code == code, done.output
        return done.output

    def json(self, *words: object, code: int = 0, **given: Any) -> Any:
        text = self(*words, "--json", code=code, **given)
        return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path)


def frame(k: int, group: str | None = None, size: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(k)
    y = np.arange(size) % 2
    found = pd.DataFrame({"age": rng.integers(20, 60, size), "score": rng.normal(size=size) + y})
    found["label"] = np.where(y == 1, "yes", "no")
    return found if group is None else found.assign(group=group)


def test_a_campaign_from_beginning_to_end(shell: Shell, tmp_path: Path) -> None:
    made = shell.json("create", "survey", "--group", "u", "--group", "v", "--budget", 24, "--batch", 2)
    assert (made["budget"], made["unspent"], made["strategy"]) == (24, 24, "optimistic")
    writers = {
        "csv": lambda f, p: f.to_csv(p, index=False),
        "jsonl": lambda f, p: f.to_json(p, orient="records", lines=True),
        "parquet": lambda f, p: f.to_parquet(p, index=False),
    }
    for k in range(6):
        request = shell.json("ask", "survey", "--collector", "ann")["requests"][0]
        assert (request["request"], request["size"], request["collector"]) == (k + 1, 4, "ann")
        kind = ["csv", "jsonl", "parquet"][k % 3]
        file = tmp_path / f"{k}.{kind}"
        writers[kind](frame(k, request["group"] if k % 2 else None), file)
        receipt = shell.json("tell", "survey", k + 1, file, "--collector", "ann")
        assert (receipt["rows"], receipt["training"], receipt["repeated"]) == (4, 2, False)
        assert shell.json("tell", "survey", k + 1, file)["repeated"]
    assert shell.json("ask", "survey", code=3) == {"nothing_to_ask": True, "reason": "budget spent"}
    assert "nothing to ask: budget spent" in shell("ask", "survey", code=3)
    status = shell.json("status", "survey")
    assert (status["used"], status["examples"], status["answered"]) == (24, 24, 6)
    assert sum(g["n"] for g in status["groups"].values()) > 0
    assert "24 of 24 labels used" in shell("status", "survey")
    assert shell.json("verify", "survey")["problems"] == []
    assert "all the same" in shell("verify", "survey")
    for kind, reader in (("csv", pd.read_csv), ("parquet", pd.read_parquet), ("jsonl", None)):
        out = tmp_path / f"out.{kind}"
        assert shell.json("export", "survey", out)["rows"] == 24
        data = reader(out) if reader else pd.read_json(out, lines=True)
        assert list(data.columns) == ["age", "score", "label", "group", "role", "request"]
        assert (data.role == "training").sum() == 12
    assert shell.json("list")["campaigns"][0]["name"] == "survey"
    shell("close", "survey", "--reason", "enough")
    assert "survey: 24 of 24 labels, closed" in shell("list")
    assert shell.json("ask", "survey", code=3)["reason"] == "closed"


def test_bad_rows_are_refused_one_by_one(shell: Shell, tmp_path: Path) -> None:
    shell("create", "s", "--group", "u", "--budget", 40, "--batch", 3, "--class", "no", "--class", "yes")
    shell("ask", "s")
    bad = pd.DataFrame(
        {
            "age": ["31", "x", "33", "", "35", "36"],
            "score": [1.0, 2.0, np.inf, 4.0, 5.0, 6.0],
            "label": ["yes", "no", "no", "no", None, "maybe"],
            "group": ["u", "u", "u", "u", "w", "u"],
        }
    )
    bad.to_csv("bad.csv", index=False)
    message = shell("tell", "s", 1, "bad.csv", code=2)
    assert "5 rows refused, with reasons in bad.csv.rejected.csv" in message
    assert "nothing was stored" in message
    assert shell.json("status", "s")["used"] == 0
    refused = pd.read_csv("bad.csv.rejected.csv")
    assert refused.row.tolist() == [2, 3, 4, 5, 6]
    assert refused.reason.tolist() == [
        "age: 'x' is not a number",
        "score: inf",
        "age: missing",
        "of group 'w', the request is for 'u'; no label",
        "the label 'maybe' is not among the classes ['no', 'yes']",
    ]
    assert refused.age.tolist()[0] == "x"
    receipt = shell.json("tell", "s", 1, "bad.csv", "--partial", "--rejected", "left.csv")
    assert (receipt["rows"], len(receipt["refused"]), receipt["beyond"]) == (1, 5, -5)
    assert Path("left.csv").exists()


def test_standard_input_and_lines_that_are_no_json(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--budget", 40)
    shell("ask", "s", "--count", 3)
    lines = '{"a": 1, "label": 0}\n{"a": 2, "label": 1}\n'
    assert shell.json("tell", "s", 1, "-", stdin=lines)["rows"] == 2
    assert shell.json("tell", "s", 2, "-", stdin="a,label\n5,0\n6,1\n")["rows"] == 2
    assert "not a JSON object" in shell("tell", "s", 3, "-", code=2, stdin=lines + "oops\n")
    assert shell.json("tell", "s", 3, "-", "--partial", stdin=lines + "oops\n")["rows"] == 2
    shell("ask", "s")
    assert shell.json("tell", "s", 4, "-", stdin='[{"a": 7,\n "label": 0}]')["rows"] == 1


def test_data_one_already_has(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--group", "v", "--budget", 40, "--group-column", "who", "--label", "y")
    data = pd.concat([frame(0, "u"), frame(1, "v")]).rename(columns={"group": "who", "label": "y"})
    data.to_parquet("old.parquet")
    assert shell.json("add", "s", "old.parquet")["rows"] == 8
    assert shell.json("add", "s", "old.parquet")["repeated"]
    status = shell.json("status", "s")
    assert (status["used"], status["examples"]) == (0, 8)
    data.drop(columns="who").to_csv("no-group.csv", index=False)
    assert "there is no column 'who' (the group)" in shell("add", "s", "no-group.csv", code=2)


def test_explain_in_plain_words(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--group", "v", "--budget", 400)
    assert "has the fewest, 0" in shell("explain", "s")
    data = pd.concat([frame(k, g, 8) for k in range(5) for g in "uv"])
    data.to_csv("old.csv", index=False)
    shell("add", "s", "old.csv")
    shell("ask", "s")
    words = shell.json("explain", "s", 1)
    assert "may be the group worst off" in words["words"]
    assert "its error on validation examples" in words["words"]
    assert words["decision"]["terms"].keys() == {"loss", "confidence"}
    assert "request 7 was never made" in shell("explain", "s", 7, code=2)


def test_an_own_trainer_reports_losses(shell: Shell) -> None:
    shell("create", "s", "--group", "a=1", "--group", "b", "--budget", 40, "--learner", "none")
    for number in (1, 2):
        shell("ask", "s")
        shell("tell", "s", number, "-n", 2)
    assert shell.json("losses", "s", "a=1=0.2,0.8,50")["reported"] == ["a=1"]
    Path("l.json").write_text('{"b": [0.3, 0.7, 20]}')
    shell("losses", "s", "--file", "l.json")
    groups = shell.json("status", "s")["groups"]
    assert (groups["a=1"]["accuracy"], groups["b"]["n"]) == (0.8, 20)
    assert "cannot read 'b'" in shell("losses", "s", "b", code=2)
    assert "no losses given" in shell("losses", "s", code=2)


def test_changing_and_abandoning(shell: Shell) -> None:
    shell(
        "create", "s", "--group", "u", "--group", "v", "--budget", 4, "--refit", "background", "--strategy", "uniform"
    )
    shell("ask", "s", "--count", 5)
    assert shell.json("abandon", "s", 1)["unspent"] == 2
    assert "request 1 was abandoned; open are 2" in shell("abandon", "s", 1, code=2)
    assert shell.json("change", "s", "--budget", 10, "--retire", "u", "--lease", "2h") == {
        "budget": 10, "refit": "background", "lease": 7200.0, "retired": ["u"],
    }  # fmt: skip
    assert shell.json("ask", "s")["requests"][0]["group"] == "v"
    assert shell.json("change", "s", "--restore", "u")["retired"] == []
    assert "nothing to change" in shell("change", "s", code=2)
    assert shell.json("refit", "s") == {"refitted": False}


def test_certificates(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--group", "v", "--budget", 400, "--batch", 20, "--strategy", "uniform")
    assert "no model to certify yet" in shell("certify", "s", code=2)
    for k in range(8):
        request = shell.json("ask", "s")["requests"][0]
        frame(k, request["group"], 40).to_csv("rows.csv", index=False)
        shell("tell", "s", k + 1, "rows.csv")
        if k == 3:
            made = shell.json("certify", "s")
            assert (made["version"], made["worst_at_most"], made["frozen_at_labels"]) == (1, 1.0, 160)
    shell("refit", "s")
    found = shell.json("status", "s")
    assert {group: each["n"] for group, each in found["certificate"]["groups"].items()} == {"u": 40, "v": 40}
    assert {group: each["n"] for group, each in found["running"]["groups"].items()} == {"u": 40, "v": 40}
    words = shell("status", "s")
    low, high = (found["running"]["groups"]["u"][edge] for edge in ("low", "high"))
    assert f"{low:.2f}–{high:.2f} (40)" in words
    assert "accuracy steers the choice: an indication, no claim" in words
    assert "running error: average of the models so far, 95%, at every look" in words
    bound = found["certificate"]["worst_at_most"]
    assert f"no group's error is above {bound:.3f}, the worst is one of u, v" in " ".join(words.split())
    assert "certificate, version 2 (frozen at 320 labels)" in shell("certify", "s")


def test_stopping_rules(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--budget", 40, "--stop", "labels=4", "--stop", "until=2999-01-01")
    for number in (1, 2):
        shell("ask", "s")
        frame(number, size=2).to_csv("rows.csv", index=False)
        shell("tell", "s", number, "rows.csv")
    assert shell.json("ask", "s", code=3)["reason"] == "stopping rule"
    assert "nothing to ask: stopping rule (4 labels are spent)" in shell("status", "s")
    shell("change", "s", "--stop", "labels=6")
    shell("ask", "s")
    shell("change", "s", "--stop", "none")
    assert shell.json("status", "s")["stop"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["create", "s", "--group", "u", "--budget", "1"], "smaller than one start round"),
        (["create", "s", "--group", "u", "--budget", "9", "--strategy", "best"], "unknown strategy 'best'"),
        (["create", "s", "--group", "u", "--budget", "9", "--learner", "os.system"], "unknown learner"),
        (["create", "s", "--group", "u", "--budget", "9", "--learner", "factory:os.getcwd"], "not allowed here"),
        (["create", "s", "--group", "u", "--budget", "9", "--lease", "soon"], "cannot read the lease 'soon'"),
        (["create", "s", "--group", "u", "--budget", "9", "--refit", "never"], "refit must be always"),
        (["create", "s", "--group", "u", "--budget", "9", "--population", "u"], "write GROUP=SHARE"),
        (["create", "s", "--group", "u", "--budget", "9", "--stop", "soon"], "cannot read the stopping rule 'soon'"),
        (["create", "s", "--group", "u", "--budget", "9", "--label", "group"], "must differ"),
        (["create", "t", "--group", "u", "--budget", "9"], "there is a campaign 't' already"),
        (["ask", "none"], "there is no campaign 'none'"),
        (["tell", "t", "1"], "give a file of rows"),
        (["tell", "t", "1", "there-is-none.csv"], "request 1 was never made"),
        (["export", "t", "x.csv"], "holds no rows yet"),
    ],
)
def test_bad_input(shell: Shell, words: list[str], message: str) -> None:
    shell("create", "t", "--group", "u", "--budget", 9)
    assert message in shell(*words, code=2)


def test_no_database(shell: Shell) -> None:
    assert "there is no database" in shell("status", "s", code=2)
    shell.db = "mysql://x/y"
    assert "cannot use a mysql database" in shell("status", "s", code=2)
    shell.db = "nonsense"
    assert "cannot read the database URL" in shell("list", code=2)
