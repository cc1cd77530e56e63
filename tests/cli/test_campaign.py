"""`evenhand campaign` as a shell user meets it."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.helpers import Shell, label_of, pool_frame
from typer.testing import CliRunner

runner = CliRunner()


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
        assert (receipt["outstanding"], receipt["surplus"], receipt["late"]) == (0, 0, False)
        assert shell.json("tell", "survey", k + 1, file)["repeated"]
        assert "already told, nothing changed" in shell("tell", "survey", k + 1, file)
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
        ours = ["id", "group", "role", "request", "origin", "label", "first_label", "corrected_by"]
        assert list(data.columns) == [*ours, "age", "score"]
        assert (data.role == "train").sum() == 12
        assert data.id.tolist()[:5] == ["r1-1", "r1-2", "r1-3", "r1-4", "r2-1"]
        assert set(data.origin) == {"asked"}
        assert (data.label == data.first_label).all()
    assert "is there already" in shell("export", "survey", "out.csv", code=2)
    shell("export", "survey", "out.csv", "--force")
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
    assert "5 of 6 rows cannot be stored, so nothing was" in message
    assert shell.json("status", "s")["used"] == 0
    refused = pd.read_csv("bad.csv.rejected.csv")
    assert refused.row.tolist() == [2, 3, 4, 5, 6]
    reasons = [
        "age: 'x' is not a number",
        "score: inf is beyond",
        "age is missing, which the learner cannot use",
        "it is of group 'w', the request is for 'u'",
        "the label 'maybe' is not among the classes 'no', 'yes'",
    ]
    for reason, start in zip(refused.reason, reasons, strict=True):
        assert reason.startswith(start)
    assert refused.age.tolist()[0] == "x"
    would = shell.json("tell", "s", 1, "bad.csv", "--partial", "--dry-run", "--rejected", "left.csv")
    assert (would["rows"], would["dry_run"]) == (1, True)
    assert shell.json("status", "s")["used"] == 0
    receipt = shell.json("tell", "s", 1, "bad.csv", "--partial", "--rejected", "left.csv")
    assert (receipt["rows"], len(receipt["refused"]), receipt["outstanding"]) == (1, 5, 5)
    assert [row["row"] for row in receipt["refused"]] == [2, 3, 4, 5, 6]
    assert pd.read_csv("left.csv").row.tolist() == [2, 3, 4, 5, 6]


def test_a_request_told_in_parts_by_id(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--budget", 12, "--batch", 2, "--id-column", "key", "--strategy", "uniform")
    shell("ask", "s")
    data = frame(0, size=6).assign(key=[f"00{k}" for k in range(6)])
    data[:3].to_csv("first.csv", index=False)
    data.to_csv("all.csv", index=False)
    first = shell.json("tell", "s", 1, "first.csv", "--collector", "ann")
    assert (first["rows"], first["outstanding"], sorted(first["new_classes"])) == (3, 1, ["no", "yes"])
    assert "1 of 4 labels of u outstanding" in shell("status", "s")
    assert "3 rows for request 1, which waits for 1" in shell("tell", "s", 1, "all.csv", code=2)
    would = shell.json("tell", "s", 1, "all.csv", "--extra", "--dry-run")
    assert (would["rows"], would["known"], would["surplus"], would["event"]) == (3, 3, 2, 0)
    assert shell.json("status", "s")["used"] == 3
    words = shell("tell", "s", 1, "all.csv", "--extra", "--collector", "bob")
    assert "3 rows stored" in words
    assert "3 known already, 2 more than asked for" in words
    status = shell.json("status", "s")
    assert (status["used"], status["answered"]) == (6, 1)
    assert {who: each["labels"] for who, each in status["collectors"].items()} == {
        "ann": 3,
        "bob": 3,
        getpass.getuser(): 0,
    }
    assert status["groups"]["u"]["classes"] == {"no": 3, "yes": 3}
    shell("export", "s", "out.csv")
    out = pd.read_csv("out.csv", dtype=str)
    assert out.key.tolist() == [f"00{k}" for k in range(6)]
    assert out.origin.tolist() == ["asked"] * 4 + ["extra"] * 2
    data.assign(label="yes").to_csv("other.csv", index=False)
    assert "use correct to change it" in shell("tell", "s", 1, "other.csv", "--extra", code=2)


def test_requests_wait_as_long_as_one_says(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--budget", 12, "--lease", "90m")
    shell("ask", "s", "--count", 2)
    before = shell.json("status", "s")["open"]
    until = shell.json("extend", "s", 1, "7d")["until"]
    assert until > before[0]["until"]
    assert [r["until"] for r in shell.json("status", "s")["open"]] == [until, before[1]["until"]]
    assert shell.json("extend", "s", 1, "never")["until"] is None
    assert "request 1 waits until" in shell("extend", "s", 1, "1h")
    assert "request 5 was never made; open requests: 1, 2" in shell("extend", "s", 5, "1h", code=2)


def test_what_happened(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--budget", 12, "--learner", "none")
    shell("ask", "s", "--count", 2, "--collector", "ann")
    shell("tell", "s", 1, "-n", 2, "--collector", "bob")
    shell("abandon", "s", 2, "--by", "cyd")
    found = shell.json("events", "s")["events"]
    assert [(e["seq"], e["kind"], e["request"], e["actor"]) for e in found] == [
        (1, "created", None, getpass.getuser()),
        (2, "asked", 1, "ann"),
        (3, "asked", 2, "ann"),
        (4, "counted", 1, "bob"),
        (5, "abandoned", 2, "cyd"),
    ]
    assert all(e["at"].endswith("Z") for e in found)
    assert [e["seq"] for e in shell.json("events", "s", "--after", 2, "--limit", 2)["events"]] == [3, 4]
    assert "abandoned  request 2, by cyd" in shell("events", "s", "--after", 4)
    assert "nothing happened since" in shell("events", "s", "--after", 5)
    shell("retire", "s", "u")
    assert shell.json("events", "s", "--after", 5)["events"][0]["actor"]


def test_events_hold_no_labels_nor_features(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--budget", 12)
    shell("ask", "s")
    Path("rows.csv").write_text("id,secret,label\none,123456.75,hushhush\ntwo,2.5,mum\n")
    shell("tell", "s", 1, "rows.csv")
    shell("ask", "s")
    text = json.dumps(shell.json("events", "s"))
    assert "one" in text
    assert not [word for word in ("hushhush", "123456.75", "mum") if word in text]


def test_backup_and_restore(shell: Shell, tmp_path: Path) -> None:
    for name in ("s", "t"):
        shell("create", name, "--group", "u", "--budget", 12)
    shell("ask", "s")
    frame(0, size=2).to_csv("rows.csv", index=False)
    shell("tell", "s", 1, "rows.csv")
    assert shell.json("backup", "kept.db")["campaigns"] == ["s", "t"]
    assert "is there already" in shell("backup", "kept.db", code=2)
    was = shell.json("status", "s")
    assert "there is a campaign 's' already" in shell("restore", "kept.db", code=2)
    shell.db = f"sqlite:///{tmp_path / 'new.db'}"
    assert shell.json("restore", "kept.db", "--campaign", "s")["campaigns"] == ["s"]
    assert shell.json("status", "s") == was
    assert shell.json("verify", "s")["ok"]
    assert "there is no campaign 't'" in shell("status", "t", code=2)
    shell("restore", "kept.db", "--campaign", "t")
    assert "there is no campaign 'x'" in shell("restore", "kept.db", "--campaign", "x", code=2)
    assert "there is no backup 'none.db'" in shell("restore", "none.db", code=2)
    assert shell.json("ask", "s")["requests"][0]["request"] == 2


def test_as_many_requests_as_the_budget_allows(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--group", "v", "--budget", 14, "--batch", 2, "--strategy", "uniform")
    assert "give --all" in shell("ask", "s", "--count", 1001, code=2)
    assert [r["size"] for r in shell.json("ask", "s", "--all")["requests"]] == [4, 4, 4, 2]
    assert shell.json("ask", "s", code=3)["reason"] == "waiting for open requests"


def test_another_learner(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--group", "v", "--budget", 40, "--batch", 2)
    for k in range(4):
        group = shell.json("ask", "s")["requests"][0]["group"]
        frame(k, group).to_csv("rows.csv", index=False)
        shell("tell", "s", k + 1, "rows.csv")
    text = "sklearn.tree.DecisionTreeClassifier:max_depth=2"
    assert shell.json("change", "s", "--learner", text)["learner"] == text
    shell("ask", "s")
    assert shell.json("status", "s")["learner_failed"] is None
    assert "unknown learner" in shell("change", "s", "--learner", "os.system", code=2)
    assert shell.json("status", "s")["learner"] == text
    assert shell.json("change", "s", "--learner", "none")["learner"] is None
    assert shell.json("verify", "s")["ok"]


def test_standard_input_and_lines_that_are_no_json(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--budget", 40)
    shell("ask", "s", "--count", 3)
    lines = '{"a": 1, "label": 0}\n{"a": 2, "label": 1}\n'
    assert shell.json("tell", "s", 1, "-", stdin=lines)["rows"] == 2
    assert shell.json("tell", "s", 2, "-", stdin="a,label\n5,0\n6,1\n")["rows"] == 2
    assert "not a JSON object" in shell("tell", "s", 3, "-", code=2, stdin=lines + "oops\n")
    assert shell.json("tell", "s", 3, "-", "--partial", stdin=lines + "oops\n")["rows"] == 2
    shell("ask", "s")
    receipt = shell.json("tell", "s", 4, "-", stdin='[{"a": 7,\n "label": 0}]')
    assert (receipt["rows"], receipt["outstanding"]) == (1, 1)


def test_data_one_already_has(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--group", "v", "--budget", 40, "--group-column", "who", "--label", "y")
    data = pd.concat([frame(0, "u"), frame(1, "v")]).rename(columns={"group": "who", "label": "y"})
    data.to_parquet("old.parquet")
    assert shell.json("add", "s", "old.parquet")["rows"] == 8
    assert shell.json("add", "s", "old.parquet")["repeated"]
    status = shell.json("status", "s")
    assert (status["used"], status["examples"]) == (0, 8)
    data.assign(score=-data.score).to_csv("more.csv", index=False)
    assert shell.json("add", "s", "more.csv", "--charge", "--dry-run")["rows"] == 8
    assert shell.json("add", "s", "more.csv", "--charge", "--by", "ann")["rows"] == 8
    assert shell.json("status", "s")["used"] == 8
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
    assert shell.json("losses", "s", "a=1=0.2,0.8,30")["reported"] == ["a=1"]
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
    assert "request 1 was abandoned; open requests: 2" in shell("abandon", "s", 1, code=2)
    assert shell.json("change", "s", "--budget", 10, "--lease", "2h") == {
        "budget": 10, "learner": "logistic", "refit": "background", "lease": 7200.0, "stop": None,
        "limits": {"labels": 1000, "lease": 2592000.0, "streams": 50},
    }  # fmt: skip
    changed = shell("change", "s", "--limit", "labels=500", "--limit", "lease=never")
    assert changed.strip() == "limits are now labels=500, lease=never, streams=50"
    assert "there is no limit 'speed'" in shell("change", "s", "--limit", "speed=3", code=2)
    assert "write e.g. labels=500" in shell("change", "s", "--limit", "labels", code=2)
    assert shell.json("retire", "s", "u") == {"group": "u", "retired": True}
    assert "u (retired)" in shell("status", "s")
    assert shell.json("ask", "s")["requests"][0]["group"] == "v"
    assert shell.json("retire", "s", "u", "--back") == {"group": "u", "retired": False}
    assert shell.json("status", "s")["groups"]["u"]["available"]
    assert "unknown group 'w'" in shell("retire", "s", "w", code=2)
    assert "nothing to change" in shell("change", "s", code=2)
    assert shell.json("refit", "s") == {"refitted": False}


def test_a_correction_that_changes_nothing_says_so(shell: Shell, tmp_path: Path) -> None:
    shell("create", "s", "--group", "u", "--budget", 8, "--learner", "none", "--class", "True", "--class", "false")
    shell("ask", "s")
    (tmp_path / "rows.csv").write_text("id,x,label\na,1,true\nb,2,FALSE\n")
    shell("tell", "s", 1, tmp_path / "rows.csv")
    assert "'a' is already labelled 'TRUE'; nothing changed." in shell("correct", "s", "a", "TRUE")
    assert "which are True or False" in shell("correct", "s", "a", "yes", code=2)
    assert "every example is already labelled so" in shell("correct", "s", "--file", tmp_path / "rows.csv")
    assert "1 label corrected" in shell("correct", "s", "a", "false")


def test_certificates(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--group", "v", "--budget", 400, "--batch", 20, "--strategy", "uniform")
    assert "no learner or no examples yet" in shell("certify", "s", code=2)
    assert "no model is frozen" in shell("certificate", "s")
    for k in range(8):
        request = shell.json("ask", "s")["requests"][0]
        frame(k, request["group"], 40).to_csv("rows.csv", index=False)
        shell("tell", "s", k + 1, "rows.csv")
        if k == 3:
            shell("refit", "s")
            assert "rows were told without ids" in shell("certify", "s", code=2)
            made = shell.json("certify", "s", "--distinct", "--delta", "0.1")
            assert (made["version"], made["worst_at_most"], made["frozen_at_labels"]) == (1, 1.0, 160)
            assert (made["model"], made["distinct"]) == ("final", True)
    shell("refit", "s")
    found = shell.json("status", "s")
    assert {group: each["n"] for group, each in found["certificate"]["groups"].items()} == {"u": 80, "v": 80}
    assert shell.json("certificate", "s") == found["certificate"]
    assert {group: each["n"] for group, each in found["running"]["groups"].items()} == {"u": 40, "v": 40}
    words = shell("status", "s")
    low, high = (found["running"]["groups"]["u"][edge] for edge in ("low", "high"))
    assert f"{low:.2f}–{high:.2f} (40)" in words
    assert "accuracy steers the choice: an indication, no claim" in words
    assert "error so far: the error on new labels, averaged over the models of the time" in words
    bound = found["certificate"]["worst_at_most"]
    assert f"no group's error is above {bound:.3f}, with 90 % confidence" in words
    for group, each in found["certificate"]["groups"].items():
        assert f"{group}      {each['low']:.3f} and {each['high']:.3f}  80" in words
    assert "the worst is one of u, v" in words
    assert "certificate, version 1 (frozen at 160 labels)" in shell("certificate", "s")
    assert "certificate, version 2 (frozen at 320 labels)" in shell("certify", "s", "--distinct", "--model", "current")
    assert "model must be 'final', 'current'" in shell("certify", "s", "--distinct", "--model", "best", code=2)


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
    assert shell.json("status", "s")["stop"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["create", "s", "--group", "u", "--budget", "1"], "smaller than one warm-up round"),
        (["create", "s", "--group", "u", "--budget", "9", "--strategy", "best"], "unknown strategy 'best'"),
        (["create", "s", "--group", "u", "--budget", "9", "--learner", "os.system"], "unknown learner"),
        (["create", "s", "--group", "u", "--budget", "9", "--learner", "factory:os.getcwd"], "not allowed here"),
        (["create", "s", "--group", "u", "--budget", "9", "--lease", "soon"], "cannot use the lease 'soon'"),
        (["create", "s", "--group", "u", "--budget", "9", "--refit", "never"], "refit must be always"),
        (["create", "s", "--group", "u", "--budget", "9", "--population", "u"], "write GROUP=SHARE"),
        (["create", "s", "--group", "u", "--budget", "9", "--stop", "soon"], "cannot read the stopping rule 'soon'"),
        (["create", "s", "--group", "u", "--budget", "9", "--label", "group"], "must differ"),
        (["create", "t", "--group", "u", "--budget", "9"], "there is a campaign 't' already"),
        (["ask", "none"], "there is no campaign 'none'"),
        (["tell", "t", "1"], "give a file of rows"),
        (["tell", "t", "1", "there-is-none.csv"], "there is no file 'there-is-none.csv'"),
        (["tell", "t", "1", "rows.csv"], "request 1 was never made"),
        (["tell", "t", "1", "-n", "2"], "has a learner, which needs the rows"),
        (["create", "s", "--group", "u", "--budget", "9", "--warmup", "-1"], "warmup must be"),
        (["explain", "t", "7"], "request 7 was never made"),
        (["retire", "t", "w"], "unknown group 'w'"),
        (["export", "t", "x.csv"], "holds no rows yet"),
    ],
)
def test_bad_input(shell: Shell, words: list[str], message: str) -> None:
    shell("create", "t", "--group", "u", "--budget", 9)
    frame(0, size=2).to_csv("rows.csv", index=False)
    assert message in shell(*words, code=2)
    assert message in shell.json(*words, code=2)["error"]
    assert [c["name"] for c in shell.json("list")["campaigns"]] == ["t"]
    assert shell.json("status", "t")["events"] == 1


@pytest.mark.parametrize("option", [["--retire", "u"], ["--restore", "u"], ["--n0", "3"]])
def test_options_that_are_gone(shell: Shell, option: list[str]) -> None:
    shell("create", "s", "--group", "u", "--budget", 9)
    assert "No such option" in shell("change", "s", *option, code=2)


def test_warm_up(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--group", "v", "--budget", 40, "--warmup", 6, "--learner", "none")
    shell("tell", "s", shell.json("ask", "s")["requests"][0]["request"], "-n", 2)
    shell("tell", "s", shell.json("ask", "s")["requests"][0]["request"], "-n", 2)
    shell("losses", "s", "u=0.9,0.1,5", "v=0.1,0.9,5")
    kinds = [r["decision"]["kind"] for r in shell.json("ask", "s", "--count", 5)["requests"]]
    assert kinds[:4] == ["warm-up"] * 4
    assert kinds[4] != "warm-up"


def test_no_database(shell: Shell) -> None:
    assert "there is no database" in shell("status", "s", code=2)
    shell.db = "mysql://x/y"
    assert "cannot use a mysql database" in shell("status", "s", code=2)
    shell.db = "nonsense"
    assert "cannot read the database URL" in shell("list", code=2)


def test_status_shows_the_risk_that_steers(shell: Shell) -> None:
    shell("create", "s", "--group", "u", "--group", "v", "--budget", 100, "--risk", "fnr", "--positive", "yes")
    for k in range(4):
        request = shell.json("ask", "s")["requests"][0]
        frame(k, request["group"], 2).to_csv("rows.csv", index=False)
        shell("tell", "s", k + 1, "rows.csv")
    shell("refit", "s")
    words, found = shell("status", "s"), shell.json("status", "s")["groups"]["u"]
    assert "fnr (n)" in words
    assert found["relevant"] == 0 or f"{found['mean_loss']:.3f} ({found['relevant']})" in words
    assert "the false negative rate on validation examples steers the choice" in words


def test_a_proof_that_cannot_be_ended_says_what_to_type(shell: Shell) -> None:
    rare = pool_frame(400).assign(group=["w"] * 6 + ["u", "v"] * 197)
    rare.to_csv("pool.csv", index=False)
    shell("create", "s", "--budget", 300, "--batch", 5)
    said = shell("pool", "s", "pool.csv")
    assert "note: fewer than 100 examples of 'w'" in said
    for k in range(6):
        shell("ask", "s", "--out", f"todo{k}.csv")
        todo = pd.read_csv(f"todo{k}.csv")
        todo.assign(label=[label_of(i) for i in todo["id"]]).to_csv(f"done{k}.csv", index=False)
        said = shell("tell", "s", f"done{k}.csv")
        assert ("labels seen for the first time" in said) == (k == 0)
    shell("ask", "s")  # a request that is out holds the proof up no longer
    assert "'w' has no more examples to give" in shell("certify", "s", "--target", "0.45")
    said = " ".join(shell("ask", "s", code=3).split())
    assert "nothing to ask: not reached (the group 'w' has no more examples to give" in said
    assert "`evenhand campaign change NAME --stop none` goes on collecting" in said
    assert shell.json("ask", "s", code=3)["reason"] == "not reached"
    assert "stop is now None" in shell("change", "s", "--stop", "none")
    assert "labels of" in shell("ask", "s")
