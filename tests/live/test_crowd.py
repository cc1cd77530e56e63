"""Many collectors at once, some killed in the middle: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import text

from evenhand import live
from evenhand.ledger import Ledger, State
from evenhand.live.fitting import deliveries

SCRIPT = Path(__file__).parent / "crowd.py"
GROUPS = ["a", "b", "c", "d"]


def send_crowd(url: str, folder: Path, *, processes: int, deliveries: int, kills: int = 0) -> Ledger:
    """Let the crowd loose on a new campaign; gives its ledger."""
    folder.mkdir()
    settings = {"budget": 4 * deliveries + 1000, "refit": "background", "lease": "1h"}
    live.create(url, "survey", GROUPS, "optimistic", "logistic", **settings).ledger.close()
    size = ["--processes", str(processes), "--deliveries", str(deliveries), "--kills", str(kills)]
    command = [sys.executable, str(SCRIPT), url, "survey", str(folder), *size]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return Ledger(url)


def check(ledger: Ledger, folder: Path) -> int:
    """Compare the ledger with what was acknowledged; gives the number of deliveries."""
    campaign = ledger.find("survey")
    events = ledger.events(campaign)
    state = State().fold(events)  # refuses a hole
    assert state == ledger.state(campaign)
    kept = {event.seq: (event.kind, event.request) for event in events}
    for notes in folder.glob("*.notes"):
        for line in notes.read_text().splitlines():
            kind, request, *event = line.split()
            if event:
                assert kept[int(event[0])] == (kind, int(request))
    asked = Counter(e.request for e in events if e.kind == "asked")
    told = Counter(e.request for e in events if e.kind == "told")
    assert set(asked.values()) == set(told.values()) == {1}
    assert set(told) <= set(asked)
    assert sorted(asked) == list(range(1, len(asked) + 1))
    assert state.labels_used == state.examples == 2 * len(told)
    found = deliveries(ledger, campaign)
    assert {e.request for e, _ in found} == set(told)
    assert all(parcel.digest == event.header["digest"] for event, parcel in found)
    return len(told)


def check_file(ledger: Ledger) -> None:
    """SQLite's own check of its file."""
    with ledger.engine.connect() as connection:
        assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"


def test_killed_in_the_middle(tmp_path: Path) -> None:
    with send_crowd(f"sqlite:///{tmp_path}/a.db", tmp_path / "n", processes=8, deliveries=10**6, kills=20) as ledger:
        assert check(ledger, tmp_path / "n") > 0
        check_file(ledger)


def test_fifty_at_once(database: str, tmp_path: Path) -> None:
    quick = f"{database}{'&' if '?' in database else '?'}synchronous=normal"
    with send_crowd(quick, tmp_path / "notes", processes=50, deliveries=1000) as ledger:
        assert check(ledger, tmp_path / "notes") == 1000


@pytest.mark.soak
def test_killed_two_hundred_times(database: str, tmp_path: Path) -> None:
    with send_crowd(database, tmp_path / "notes", processes=8, deliveries=10**6, kills=200) as ledger:
        assert check(ledger, tmp_path / "notes") > 100


@pytest.mark.soak
def test_fifty_at_once_ten_thousand_deliveries(database: str, tmp_path: Path) -> None:
    with send_crowd(database, tmp_path / "notes", processes=50, deliveries=10_000) as ledger:
        assert check(ledger, tmp_path / "notes") == 10_000
