import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from evenhand.cli import app


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "z": rng.normal(size=300), "who": np.arange(300) // 3})
    frame["sex"] = np.where(np.arange(300) < 12, "d", np.where(rng.random(300) < 0.5, "f", "m"))
    frame["y"] = (frame["x"] > 0).astype(int)
    frame.to_csv(tmp_path / "pool.csv", index=False, sep=";")
    return tmp_path / "pool.csv"


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)])


def test_all_options_of_tables_work(pool: Path) -> None:
    asked = [pool, "--label", "y", "--group", "sex", "--budget", 20, "--trials", 1, "--strategy", "uniform", "--json"]
    asked += ["--ignore", "z", "--fill", "median", "--scale", "minmax", "--max-categories", 5, "--split-by", "who"]
    asked += ["--separator", ";", "--test", "0.2"]
    for option, groups in (("--exclude=d", ["f", "m"]), ("--merge-below=20", ["f", "m", "other"])):
        done = run(*asked, option)
        assert done.exit_code == 0, done.exception
        assert json.loads(done.stdout)["groups"] == groups


def test_curate_and_simulate_read_tables_by_the_same_options() -> None:
    simulating, curating = (
        {param.opts[0] for param in typer.main.get_command(app).get_command(None, name).params}  # type: ignore[attr-defined]
        for name in ("simulate", "curate")
    )
    assert {"--split-by", "--scale", "--encoding"} < simulating & curating
    done = CliRunner().invoke(app, ["simulate", "synthetic1:I", "--budget", "20", "--merge-below", "3"])
    assert "merge_below has no effect" in str(done.exception)


def test_no_test_part_means_the_same_everywhere(pool: Path) -> None:
    asked = [pool, "--label", "y", "--group", "sex", "--budget", 20, "--trials", 1, "--strategy", "uniform", "--json"]
    done = run(*asked, "--test", "none")
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout)["strategies"]["uniform"]["final_worst_group_accuracy"]["mean"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("synthetic1:I", "--label", "x"), "label has no effect on the source 'synthetic1:I'"),
        (("synthetic2", "--test", "0.3"), "test has no effect"),
        (("synthetic1:I", "--merge-below", "3"), "merge_below has no effect"),
        (("german", "--label", "credit"), "label has no effect on 'german'"),
        (("fashion-mnist", "--group", "sex"), "groups has no effect"),
        (("german", "--data-dir", "."), "data_dir has no effect"),
        (("german", "--encoding", "latin-1"), "encoding has no effect"),
        (("fashion-mnist", "--ignore", "age"), "ignore has no effect"),
    ],
)
def test_options_without_effect_are_refused(arguments: tuple[str, ...], message: str) -> None:
    assert message in str(run(*arguments, "--budget", 20, "--trials", 1).exception)


def test_a_random_split_of_all_rows(tmp_path):
    from evenhand.sources.catalogue import open_source

    command = ["simulate", "adult", "--no-stratify", "--budget", "20"]
    refused = CliRunner().invoke(app, command)
    assert "stratify=False has no effect" in str(refused.exception)
    source = open_source("german", stratify=True)
    assert source.description["stratify"]
    assert not open_source("german").description["stratify"]
