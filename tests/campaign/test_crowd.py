"""Many collectors at once, some killed in the middle: nothing acknowledged is lost, nothing is doubled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

import evenhand as eh
from evenhand.campaign.state import State
from evenhand.ledger import Event, Example
from evenhand.ledger.database import DatabaseLedger
from evenhand.ledger.text import from_text

SCRIPT = Path(__file__).parent / "crowd.py"
GROUPS = ["a", "b", "c", "d"]


def _script() -> Any:
    spec = spec_from_file_location("crowd", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


crowd = _script()


def send_crowd(
    url: str,
    folder: Path,
    *,
    processes: int,
    requests: int,
    kills: int = 0,
    lease: str = "1h",
    budget: int | None = None,
) -> None:
    """Let the crowd loose on a new campaign."""
    folder.mkdir()
    settings = {"budget": 4 * requests if budget is None else budget, "batch": 2, "refit": "background", "lease": lease}
    eh.Campaign.create(url, "survey", GROUPS, "optimistic", "logistic", **settings).release()
    size = ["--processes", str(processes), "--requests", str(requests), "--kills", str(kills)]
    command = [sys.executable, str(SCRIPT), url, "survey", str(folder), *size]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def check(url: str, folder: Path) -> int:
    """Compare the ledger with what was acknowledged; gives the number of requests answered."""
    with DatabaseLedger(url) as ledger:
        with ledger.reading(ledger.find("survey")) as reader:
            events, rows, snapshot = reader.events(), reader.changed(), reader.snapshot()
        c = eh.Campaign.open(ledger, "survey")
        state = check_replay(events, snapshot)
        assert c.overview()["events"] == state.seq
        assert c.status()["used"] == state.labels_used == len(rows)
        acknowledged = check_notes(events, folder)
        check_rows(events, rows, acknowledged)
        assert all(state.open[number]["told"] == 0 for number in state.open)
        assert not state.open.keys() & acknowledged
        assert c.verify().problems == []
        if url.startswith("sqlite"):
            with ledger.engine.connect() as connection:
                assert connection.execute(text("PRAGMA integrity_check")).scalar() == "ok"
    return len(acknowledged)


def check_replay(events: list[Event], snapshot: tuple[int, str] | None) -> State:
    """Fold one event after the other: no hole, never more than the budget; the snapshot is what stood there."""
    state, last = State(), 0.0
    for event in events:
        state.fold([event])  # refuses a hole
        assert state.labels_used + state.outstanding <= state.settings["budget"]
        assert event.at >= last
        last = event.at
        if snapshot is not None and snapshot[0] == event.seq:
            assert State.from_text(snapshot[1]) == state
    assert snapshot is not None or len(events) < 100
    return state


def check_notes(events: list[Event], folder: Path) -> set[int]:
    """All that was acknowledged is there; gives the requests that were answered."""
    kept = {event.seq: (event.kind, event.request) for event in events}
    answered = set()
    for notes in folder.glob("*.notes"):
        for line in notes.read_text().splitlines():
            kind, request, *more = line.split()
            if kind in ("asked", "told") and more[-1] != "0":  # told again by id: it was in an event before
                assert kept[int(more[-1])] == (kind, int(request))
            if kind == "answered":
                answered.add(int(request))
    return answered


def check_rows(events: list[Event], rows: list[Example], answered: set[int]) -> None:
    """Every request was made once, and every row that was told for it is there once, with its label and its id."""
    asked = [e.request for e in events if e.kind in ("asked", "named")]
    assert asked == list(range(1, len(asked) + 1))
    found: dict[int, list[Example]] = defaultdict(list)
    for row in rows:
        found[row.request or 0].append(row)
    assert set(found) == answered
    deliveries = Counter(e.request for e in events if e.kind in ("told", "labelled"))
    assert set(deliveries.values()) == {len(crowd.PARTS)}
    group = {e.request: e.facts["decision"]["group"] for e in events if e.kind in ("asked", "named")}
    for request, mine in found.items():
        X, y = crowd.rows(request)
        told = [(from_text(row.features or ""), int(row.label or -1)) for row in mine]
        assert told == list(zip(X.tolist(), y.tolist(), strict=True))
        given = [crowd.ids(request, part) for part in range(len(crowd.PARTS))]
        expected = [name for part in given if part is not None for name in part]
        assert [row.id for row in mine if not row.made] == expected
        assert {row.group for row in mine} == {group[request]}


def test_killed_in_the_middle(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    send_crowd(url, tmp_path / "n", processes=8, requests=10**6, kills=20, lease="0.5s")
    assert check(url, tmp_path / "n") > 0


def test_thirty_at_once(database: str, tmp_path: Path) -> None:
    """They have as many labels between them as the budget has."""
    quick = f"{database}{'&' if '?' in database else '?'}synchronous=normal"
    send_crowd(quick, tmp_path / "notes", processes=30, requests=150)
    assert check(quick, tmp_path / "notes") == 150


@pytest.mark.soak
def test_killed_two_hundred_times(database: str, tmp_path: Path) -> None:
    send_crowd(database, tmp_path / "notes", processes=8, requests=10**6, kills=200, lease="0.5s")
    assert check(database, tmp_path / "notes") > 100


@pytest.mark.soak
def test_fifty_at_once_ten_thousand_deliveries(database: str, tmp_path: Path) -> None:
    send_crowd(database, tmp_path / "notes", processes=50, requests=5000)
    assert check(database, tmp_path / "notes") == 5000
