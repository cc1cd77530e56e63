"""What commands print fits the terminal, and no name or number is cut."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from evenhand.cli import app
from evenhand.cli.terminal import folded

GROUPS = ("people of the northern province who moved", "people of the southern province who stayed", "其他省份的人")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    hours = rng.normal(38, 8, 600).round(2)
    frame = pd.DataFrame({"person": range(600), "origin": rng.choice(GROUPS, 600), "hours": hours})
    frame["hired"] = np.where(hours + rng.normal(size=600) > 38, "yes", "no")
    frame.to_csv("people.csv", index=False)
    return tmp_path / "people.csv"


def shown(*words: object, columns: int) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": str(columns)})
    assert done.exit_code == 0, f"{done.output} {done.exception}"
    return done.stdout


def fits(text: str, columns: int, names: tuple[str, ...] = GROUPS) -> None:
    assert "…" not in text
    lines = [line for line in text.splitlines() if not line.startswith("written")]
    assert max(len(line.rstrip()) for line in lines) <= columns
    # a name that goes on below is whole all the same: its letters come in their order
    letters = re.sub(r"\s", "", text)
    for name in names:
        words = [re.escape(word) for word in name.split()]
        assert re.search(r"[^a-z]*?".join(words), letters) or re.search(r"[\s\S]*?".join(words), text), name


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_with_long_names(table: Path, columns: int):
    of_table = ("--id", "person", "--label", "hired", "--group", "origin", "--budget", 60)
    rules = (
        "--strategy",
        "A_opt_by_a_long_name=optimistic:c0=0.3,c1=0.1",
        "--strategy",
        "uniform",
        "--strategy",
        "greedy",
    )
    for risk in ((), ("--risk", "fnr", "--positive", "yes", "--final", "chosen")):
        text = shown("simulate", table, *of_table, *rules, *risk, "--trials", 2, columns=columns)
        fits(text, columns, (*GROUPS, "A_opt_by_a_long_name"))
        text = shown(
            "curate", table, *of_table, *risk[:4], "--compare", 1, "--force", "--out", "t.csv", columns=columns
        )
        fits(text, columns)
        assert text.count(" %") > 3 * len(GROUPS)
    pilot = shown("plan", "--pilot", table, *of_table, *rules, "--trials", 2, "--final", "plain", columns=columns)
    fits(pilot, columns, ("A_opt_by_a_long_name",))


@pytest.mark.parametrize("columns", [80, 120])
def test_campaigns_with_long_names(table: Path, columns: int):
    pd.read_csv(table).drop(columns="hired").to_csv("unlabelled.csv", index=False)
    campaign = ("campaign",)
    shown(*campaign, "create", "survey", "--budget", 60, "--batch", 2, "--learner", "table", columns=columns)
    fits(
        shown(*campaign, "pool", "survey", "unlabelled.csv", "--id", "person", "--group", "origin", columns=columns),
        columns,
    )
    fits(shown(*campaign, "ask", "survey", "--count", 3, "--out", "todo.csv", columns=columns), columns)
    todo = pd.read_csv("todo.csv")
    todo.assign(label=np.where(todo["hours"] > 38, "yes", "no")).to_csv("done.csv", index=False)
    fits(shown(*campaign, "tell", "survey", "done.csv", columns=columns), columns, ())
    shown(*campaign, "ask", "survey", "--collector", "ann", columns=columns)
    fits(shown(*campaign, "certify", "survey", columns=columns), columns, ())
    shown(*campaign, "ask", "survey", "--out", "more.csv", columns=columns)
    more = pd.read_csv("more.csv")
    more.assign(label=np.where(more["hours"] > 38, "yes", "no")).to_csv("done.csv", index=False)
    shown(*campaign, "tell", "survey", "done.csv", columns=columns)
    for look in ("status", "events", "certificate", "model"):
        fits(shown(*campaign, look, "survey", columns=columns), columns)
    for look in ("explain", "verify"):
        fits(shown(*campaign, look, "survey", columns=columns), columns, ())
    fits(shown(*campaign, "list", columns=columns), columns, ("survey",))


def test_other_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    fits(shown("plan", "synthetic1:I", "--budget", 1000, columns=80), 80, ())


def test_output_for_other_programs_is_not_folded():
    line = "word " * 40
    assert folded(line, None) == line
    assert max(map(len, folded(line, 30).splitlines())) <= 30


def test_explain_says_that_labels_wait_for_a_fit(table: Path):
    pd.read_csv(table).drop(columns="hired").to_csv("unlabelled.csv", index=False)
    shown("campaign", "create", "survey", "--budget", 60, "--batch", 2, "--learner", "table", columns=200)
    shown("campaign", "pool", "survey", "unlabelled.csv", "--id", "person", "--group", "origin", columns=200)
    assert "since the model was last fitted" not in shown("campaign", "explain", "survey", columns=200)
    shown("campaign", "ask", "survey", "--count", 3, "--out", "todo.csv", columns=200)
    todo = pd.read_csv("todo.csv")
    todo.assign(label=np.where(todo["hours"] > 38, "yes", "no")).to_csv("done.csv", index=False)
    shown("campaign", "tell", "survey", "done.csv", columns=200)
    assert "12 labels have come since the model was last fitted" in shown("campaign", "explain", "survey", columns=200)
    shown("campaign", "ask", "survey", columns=200)
    assert "since the model was last fitted" not in shown("campaign", "explain", "survey", columns=200)
