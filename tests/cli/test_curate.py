import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from evenhand.cli.curate import curate

app = typer.Typer()
app.command()(curate)


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    x = generator.normal(size=200)
    frame = pd.DataFrame({"x": x, "age": generator.integers(18, 90, 200), "sex": ["f", "m"] * 100, "y": x > 0})
    frame.to_csv(tmp_path / "pool.csv", index=False)
    return tmp_path / "pool.csv"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_rows_report_and_json_are_written(pool: Path) -> None:
    out = pool.with_name("train.parquet")
    done = call(
        pool, "--label", "y", "--group", "sex", "--group", "age:50", "--budget", 40, "--out", out, "--compare", 1
    )
    assert done.exit_code == 0, done.output
    assert "20 to train on, 20 that validated" in done.output
    assert "sex=f, age=under 50" in pd.read_parquet(out)["group"].unique()
    assert out.with_suffix(".report.html").exists()
    assert json.loads(out.with_suffix(".report.json").read_text())["labels"] == 40


def test_json_output_and_going_on(pool: Path) -> None:
    out = pool.with_name("train.csv")
    first = call(pool, "--label", "y", "--group", "sex", "--budget", 20, "--out", out, "--compare", 0, "--json")
    assert json.loads(first.output)["train"] == 10
    again = ["--label", "y", "--group", "sex", "--budget", 40, "--out", out, "--compare", 0, "--json"]
    assert "--resume goes on from it" in str(call(pool, *again).exception)
    assert json.loads(call(pool, *again, "--resume").output)["train"] == 20
    assert json.loads(call(pool, *again, "--force").output)["train"] == 20


def test_data_sets_by_name_and_test_parts(pool: Path, tmp_path: Path) -> None:
    out = tmp_path / "german.parquet"
    done = call("german", "--budget", 30, "--out", out, "--compare", 0)
    assert done.exit_code == 0, done.output
    asked = ["--label", "y", "--group", "sex", "--budget", 20, "--compare", 0, "--json", "--force", "--out", out]
    counts = {}
    held_out = tmp_path / "test.csv"
    pd.read_csv(pool).assign(x=lambda f: f["x"] + 0.5).to_csv(held_out, index=False)
    for test in ("0.1", str(held_out), "none"):
        found = json.loads(call(pool, *asked, "--test", test).output)["by_group"]
        counts[test] = [row["count"] for row in found]
    assert list(counts.values()) == [[10, 10], [100, 100], [0, 0]]


def test_options_without_effect_and_leaks_are_refused(pool: Path, tmp_path: Path) -> None:
    asked = ["--label", "y", "--group", "sex", "--budget", 20, "--compare", 0, "--out", tmp_path / "a.parquet"]
    named = ["--budget", 20, "--compare", 0, "--out", tmp_path / "a.parquet"]

    def why(*arguments: object) -> str:
        return str(call(*arguments).exception)

    assert "label has no effect on 'adult'" in why("adult", *named, "--label", "y")
    assert "separator has no effect" in why("german", *named, "--separator", ";")
    assert "unseen='ignore' has no effect" in why(pool, *asked, "--unseen", "ignore")
    assert "ignoring 'age' has no effect" in why(pool, *asked, "--feature", "x", "--ignore", "age")
    assert "jobs=2 has no effect" in why(pool, *asked, "--jobs", 2)
    assert "give one of the two" in why(pool, *asked, "--force", "--resume")
    assert "test rows are rows of the pool too" in why(pool, *asked, "--test", pool)
    assert "onto the input" in why(pool, *asked[:-1], pool, "--force")
    assert "C must be a positive number" in why(pool, *asked, "--learner", "logistic:C=0")
    assert "C" in why(pool, *asked, "--learner", "sklearn.linear_model.LogisticRegression:C=0")
    assert isinstance(
        call(pool, *asked, "--learner", "sklearn.linear_model.LogisticRegression:C=0").exception, ValueError
    )
    assert not (tmp_path / "a.parquet").exists()


def test_options_of_data_sets_have_an_effect(tmp_path: Path) -> None:
    asked = ["german", "--budget", 30, "--compare", 0, "--json"]
    plain = json.loads(call(*asked, "--out", tmp_path / "a.csv").output)
    found = json.loads(call(*asked, "--out", tmp_path / "b.csv", "--ignore", "age", "--test", "0.5").output)
    assert set(plain["features"]) - set(found["features"]) == {"age"}
    assert found["test"] == 500


def test_bad_input_is_a_value_error(pool: Path, tmp_path: Path) -> None:
    asked = ["--group", "sex", "--budget", 20, "--out"]
    assert "did you mean 'y'" in str(call(pool, "--label", "Y", *asked, tmp_path / "a.parquet").exception)
    assert ".parquet or .csv" in str(call(pool, "--label", "y", *asked, tmp_path / "a.xlsx").exception)
    for result in (call(pool, "--label", "Y", *asked, tmp_path / "a.parquet"),):
        assert isinstance(result.exception, ValueError)
