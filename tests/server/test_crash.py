"""Servers that are killed, and several on one database: nothing acknowledged is lost or doubled, and all agree."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Start
from tests.server.test_fits import SLOW, children, collect
from tests.serving.storm import check, storm

import evenhand as eh


def held(database: str, clients: int, deliveries: int, kills: int) -> None:
    found = storm(database, clients=clients, deliveries=deliveries, kills=kills)
    seen = check(database, found)
    assert seen == {
        "lost": [], "doubled": [], "not acknowledged": [], "requests asked twice": 0, "labels": 2 * deliveries,
        "verified": True, "wrong": [],
    }  # fmt: skip
    assert found.kills == kills
    assert len(found.requests) == deliveries


def test_nothing_acknowledged_is_lost_or_doubled_when_the_server_is_killed(tmp_path: Path) -> None:
    held(f"sqlite:///{tmp_path / 'ledger.db'}", clients=8, deliveries=100, kills=1)


def test_two_servers_on_one_database_agree_and_one_takes_over(postgres_url: str, start: Start, tmp_path: Path) -> None:
    (tmp_path / "slow_learner.py").write_text(SLOW.format(seconds=0.8))
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        patch.setenv("EVENHAND_ALLOW", "slow_learner")
        eh.Campaign.create(
            postgres_url, "c", ["u", "v"], learner="factory:slow_learner.make", budget=200, batch=2
        ).release()
    first, second = (start(postgres_url, EVENHAND_ALLOW="slow_learner", PYTHONPATH=path) for _ in range(2))
    for k, server in enumerate((first, second, first, second)):
        collect(server, "c", k, max_wait=0)
    states = [server.client.get("/api/campaigns/c").json() for server in (first, second)]
    assert states[0]["used"] == states[1]["used"] == 16
    again = [
        server.post("/api/campaigns/c/ask", {"max_wait": 0}, headers={"Idempotency-Key": "same"}).json()
        for server in (first, second)
    ]
    assert again[0] == again[1]

    def ask() -> None:
        try:
            first.post("/api/campaigns/c/ask")
        except Exception:
            return  # it is killed while it fits for this ask

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.5)
    workers = children(first.process.pid)
    first.kill()
    thread.join()
    assert second.post("/api/campaigns/c/ask").status_code == 200  # waits until the lease of the dead runs out
    assert workers
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)  # nobody was there to end them
    status: dict[str, Any] = second.client.get("/api/campaigns/c").json()
    assert status["scores"]["labels_behind"] == 0
    assert second.client.get("/api/campaigns/c/verify").json()["ok"]
