"""Telling, correcting and withdrawing at once, processes killed at random: nothing lost, no id with two labels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.ledger import open_ledger

SCRIPT = Path(__file__).parent / "correctors.py"


def send(url: str, folder: Path, *, processes: int, kills: int) -> None:
    folder.mkdir()
    settings = {"budget": 10**6, "batch": 2, "refit": "background"}
    eh.Campaign.create(url, "survey", ["a", "b"], "optimistic", "logistic", **settings).release()
    size = ["--processes", str(processes), "--kills", str(kills)]
    command = [sys.executable, str(SCRIPT), url, "survey", str(folder), *size]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def check(url: str, folder: Path) -> int:
    """Compare the ledger with what was acknowledged; gives the number of corrections."""
    with open_ledger(url) as ledger:
        with ledger.reading(ledger.find("survey")) as reader:
            rows = {row.id: row for row in reader.changed()}
        corrected = 0
        for notes in folder.glob("*.notes"):
            last: dict[str, list[str]] = {}
            for line in notes.read_text().splitlines():
                word, name, label = line.split()
                row = rows[name]
                if word == "told":
                    assert row.first_label == label
                last.setdefault(name, []).append(word)
                if word == "corrected":
                    corrected += 1
                    assert row.label == label
                if word == "withdrawn":
                    assert row.fate == "withdrawn"
            for name, words in last.items():
                if words == ["told"]:
                    assert (rows[name].label, rows[name].fate) == (rows[name].first_label, None)
        c = eh.Campaign.open(ledger, "survey")
        found = c.verify()
        assert found.problems == []
        assert found.examples == len(rows) == c.labels_used
        status = c.status()
        assert status["corrected"] == sum(row.label != row.first_label for row in rows.values()) >= corrected
        living = sum(row.fate is None for row in rows.values())
        assert sum(g["training"] + g["validation"] for g in status["groups"].values()) == living
    return corrected


def test_killed_while_correcting(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    send(url, tmp_path / "n", processes=8, kills=12)
    assert check(url, tmp_path / "n") > 0


@pytest.mark.soak
def test_killed_a_hundred_times_while_correcting(database: str, tmp_path: Path) -> None:
    send(database, tmp_path / "n", processes=8, kills=100)
    found = check(database, tmp_path / "n")
    print(f"{found} corrections acknowledged")
    assert found > 50
