"""`evenhand campaign model`: train on every label, predict the rows of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli.campaign import app


def run(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, [*map(str, words), "--db", "sqlite:///c.db"])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return pd.DataFrame(
        {"age": rng.integers(20, 60, n), "score": rng.normal(size=n) + 3 * y, "label": np.array(["no", "yes"])[y]}
    )


@pytest.mark.parametrize("learner", ["logistic", "table"])
def test_predictions_are_those_of_the_final_model(learner: str) -> None:
    c = eh.Campaign.create("sqlite:///c.db", "s", ["u", "v"], "uniform", learner, budget=80, batch=10)
    for k in range(4):
        sent = rows(20, k)
        c.tell(c.ask(), sent[["age", "score"]], sent["label"])
    new = rows(30, 9).drop(columns="label").assign(predicted="mine", name="=a")
    new.to_csv("new.csv", index=False)
    said = run("model", "s", "new.csv", "--out", "out.csv")
    assert "trained on 80 labels; classes no, yes" in said
    assert "validation labels right" in said
    found = pd.read_csv("out.csv")
    model = c.final_model()
    assert found["predicted_"].tolist() == model.predict(new[["age", "score"]]).tolist()
    assert np.allclose(found["probability"], model.predict_proba(new[["age", "score"]]).max(axis=1), atol=1e-6)
    assert set(found["name"]) == {"'=a"}, "no cell that a spreadsheet would run"
    assert "is there already" in run("model", "s", "new.csv", "--out", "out.csv", code=2)
    assert "--out" in run("model", "s", "new.csv", code=2)
    new.drop(columns="age").to_csv("less.csv", index=False)
    assert "no column 'age'" in run("model", "s", "less.csv", "--out", "o2.csv", code=2)
    new.assign(age="old").to_csv("text.csv", index=False)
    assert "row 1" in run("model", "s", "text.csv", "--out", "o3.csv", code=2)


def test_without_labels_there_is_no_model() -> None:
    eh.Campaign.create("sqlite:///c.db", "s", ["u", "v"], "uniform", "logistic", budget=80)
    assert "there is no model" in run("model", "s", code=2)
    eh.Campaign.create("sqlite:///c.db", "own", ["u", "v"], "uniform", None, budget=80)
    assert "no learner" in run("model", "own", code=2)
