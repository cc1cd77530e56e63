"""Tables with something wrong with them: a clear message each, no traceback, exit code 2."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.cli import main


def people(n=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "city": rng.choice(["Rome", "Oslo", "Lima"], n),
            "sex": ["f", "m"] * (n // 2),
            "hired": rng.integers(0, 2, n),
        }
    )


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["evenhand", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr().err


def csv(frame, **settings):
    return lambda path: frame.to_csv(path, index=False, **settings)


def constant(frame):
    return frame.assign(hired=1)


def nested(path):
    table = pa.table({"x": [[1, 2], [3]] * 30, "sex": ["f", "m"] * 30, "hired": [0, 1] * 30})
    pq.write_table(table, path)


CASES = {
    "missing column": ("t.csv", csv(people().rename(columns={"hired": "hird"})), "hird"),
    "constant label": ("t.csv", csv(constant(people())), "hired"),
    "label with one example": ("t.csv", csv(people().assign(hired=["yes"] + ["no"] * 59)), "yes"),
    "group of one row": ("t.csv", csv(people().assign(sex=["x"] + ["f", "m"] * 29 + ["f"])), "x"),
    "spellings": ("t.csv", csv(people().assign(sex=["f", "F ", "m"] * 20)), "--merge-spellings"),
    "a short row": ("t.csv", lambda path: path.write_text("age,city,sex,hired\n1,Rome,f,0\n2,Oslo,m\n"), "row 2"),
    "duplicate column names": ("t.csv", csv(people().rename(columns={"city": "age"})), "age"),
    "mixed types": ("t.csv", csv(people().assign(age=["old", *range(59)])), None),
    "many categories": (
        "t.csv",
        csv(people(10_000)[["sex", "hired"]].assign(city=[f"c{i}" for i in range(10_000)])),
        "city",
    ),
    "not UTF-8": ("t.csv", csv(people().assign(city="Köln"), encoding="latin-1"), "encoding"),
    "another separator": ("t.csv", csv(people(), sep="~"), "no column"),
    "empty file": ("t.csv", lambda path: path.write_text(""), "empty"),
    "nested columns": ("t.parquet", nested, "x"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_tables_are_told_apart(case, tmp_path, monkeypatch, capsys):
    name, write, word = CASES[case]
    write(tmp_path / name)
    columns = ("--label", "hired", "--group", "sex")
    out = ("--budget", 20, "--out", tmp_path / "out.parquet")
    code, err = run(monkeypatch, capsys, "curate", tmp_path / name, *columns, *out)
    assert code == 2, err
    assert "Traceback" not in err
    assert word is None or word in err
    assert not (tmp_path / "out.parquet").exists()


def test_an_unseen_category_in_the_test_file(tmp_path, monkeypatch, capsys):
    people().to_csv(tmp_path / "pool.csv", index=False)
    people().assign(city="Atlantis").to_csv(tmp_path / "test.csv", index=False)
    columns = ("--label", "hired", "--group", "sex", "--test", tmp_path / "test.csv")
    out = ("--budget", 20, "--compare", 0, "--out", tmp_path / "out.parquet")
    code, err = run(monkeypatch, capsys, "curate", tmp_path / "pool.csv", *columns, *out)
    assert code == 2
    assert "Atlantis" in err
    code, err = run(monkeypatch, capsys, "curate", tmp_path / "pool.csv", *columns, *out, "--unseen", "ignore")
    assert code == 0, err


def test_simulate_tells_the_same(tmp_path, monkeypatch, capsys):
    people().to_csv(tmp_path / "t.csv", index=False)
    code, err = run(monkeypatch, capsys, "simulate", tmp_path / "t.csv", "--label", "hird", "--group", "sex")
    assert code == 2
    assert "'hired'" in err
    code, err = run(monkeypatch, capsys, "simulate", tmp_path / "t.csv")
    assert code == 2
    assert "--label" in err
