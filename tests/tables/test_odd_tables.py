"""The tables of `odd`: every way into Evenhand sees the same in each of them, or refuses it with one clear message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tables.odd import ODD, Odd
from typer.testing import CliRunner

import evenhand as eh
from evenhand.campaign.examples import schema_of
from evenhand.cli import app
from evenhand.ledger import MemoryLedger
from evenhand.tables.encoder import Encoder
from evenhand.tables.problems import TableError
from evenhand.tables.schema import Schema

TINY = ("one_row",)
"""Tables that are read, and hold too little to choose from."""


def seen(data: Any, odd: Odd) -> tuple[Any, ...]:
    """What a table is taken for: its columns, groups, classes and its rows as numbers."""
    table = eh.Table(data, test=None, **odd.settings)
    rows = table.coded(np.arange(table.counts.sum()))
    X = Encoder.fit(table.layout, [rows]).encode(rows, np.zeros(len(rows), dtype=np.int64))
    matrix = X if isinstance(X, np.ndarray) else X.toarray()
    groups = [table.groups[z] for z in table.group_of(np.arange(len(rows)))]
    return table.schema, groups, table.classes.tolist(), table.labels(np.arange(len(rows))).tolist(), matrix


def the_same(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert one[:-1] == other[:-1]
    np.testing.assert_array_equal(one[-1], other[-1])


@pytest.mark.parametrize("name", [name for name, odd in ODD.items() if not odd.refused and name not in TINY])
def test_files_and_frames_are_taken_for_the_same(name: str, tmp_path: Path) -> None:
    odd = ODD[name]
    of_file = seen(odd.write(tmp_path), odd)
    assert np.isfinite(of_file[-1]).all()
    assert of_file[-1].shape[1] > 0
    assert Schema.from_json(of_file[0].to_json()) == of_file[0]
    for frame in odd.frames():
        the_same(seen(frame, odd), of_file)


@pytest.mark.parametrize("name", [name for name, odd in ODD.items() if odd.refused])
def test_what_cannot_be_used_is_refused_with_one_message(name: str, tmp_path: Path) -> None:
    odd = ODD[name]
    path = odd.write(tmp_path)
    for data in (path, *odd.frames()):
        with pytest.raises(TableError) as error:
            eh.curate(data, out=tmp_path / "train.parquet", budget=4, compare=0, **odd.settings)
        assert odd.refused in str(error.value)
        assert "pyarrow" not in str(error.value)
    assert list(tmp_path.iterdir()) == [path]


def options(odd: Odd) -> list[str]:
    """The options of the shell for a table."""
    words = {"groups": "group", "numbers": "number", "features": "feature"}
    found = []
    for key, value in odd.settings.items():
        if key == "spellings":
            found.append("--merge-spellings")
            continue
        for each in value if isinstance(value, list) else [value]:
            found += [f"--{words.get(key, key).replace('_', '-')}", str(each)]
    return found


@pytest.mark.soak
@pytest.mark.parametrize("way", ["curate", "simulate", "plan"])
@pytest.mark.parametrize("name", [name for name in ODD if name not in TINY])
def test_the_commands_say_the_same(name: str, way: str, tmp_path: Path) -> None:
    odd = ODD[name]
    path, out = str(odd.write(tmp_path)), tmp_path / "out"
    commands = {
        "curate": [
            "curate",
            path,
            "--budget",
            "6",
            "--compare",
            "0",
            "--final",
            "plain",
            "--out",
            str(tmp_path / "t.csv"),
        ],
        "simulate": ["simulate", path, "--budget", "6", "--trials", "1", "--out", str(out)],
        "plan": ["plan", "--pilot", path, "--budget", "100", "--trials", "2", "--final", "plain"],
    }
    done = CliRunner().invoke(app, [*commands[way], *options(odd)])
    assert done.exit_code == 0 or isinstance(done.exception, ValueError), done.exception
    if odd.refused:
        assert odd.refused in str(done.exception)
        assert [path.name for path in tmp_path.iterdir()] == [f"{odd.name}.{odd.ending}"]


@pytest.mark.parametrize("name", [name for name, odd in ODD.items() if not odd.refused and name not in TINY])
def test_a_pool_takes_a_file_for_what_a_table_does(name: str, tmp_path: Path) -> None:
    odd = ODD[name]
    path = odd.write(tmp_path)
    table = eh.Table(path, test=None, **odd.settings)
    given = {key: value for key, value in odd.settings.items() if key not in ("label", "groups", "fill", "split_by")}
    c = eh.Campaign.create(
        MemoryLedger(), "odd", None, "uniform", "table", budget=1000, label=odd.settings["label"], refit="background"
    )
    c.pool(path, **{"id": None, **given}, group=odd.settings["groups"])
    schema = schema_of(c.state.columns or {})
    assert {n: schema[n].kind for n in schema.encoded} == {n: table.schema[n].kind for n in table.schema.encoded}
    assert sorted(c.groups) == sorted(table.groups)
    known = {label for counts in (g["classes"] for g in c.status()["groups"].values()) for label in counts}
    assert known == {str(label).lower() if isinstance(label, bool) else str(label) for label in table.classes.tolist()}
    assert c.state.examples == table.counts.sum()
