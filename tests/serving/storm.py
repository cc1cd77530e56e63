"""Many clients deliver while the server is killed again and again: what was acknowledged must be there, once."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any

import orjson
from tests.serving.process import Server, call, send

import evenhand as eh


@dataclass
class Storm:
    """What happened: deliveries that were acknowledged, and how often a client had to try again."""

    acknowledged: list[str] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    retries: int = 0
    kills: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def storm(database: str, *, clients: int, deliveries: int, kills: int) -> Storm:
    """So many clients ask and tell until there are so many deliveries; the server is killed as often along the way."""
    server, found, lock = Server(database), Storm(), threading.Lock()
    body = {"name": "storm", "groups": ["u", "v"], "budget": 2 * deliveries, "learner": "none", "lease": "never"}
    assert call(server.port, "POST", "/api/campaigns", body)[0] == 201
    begun, left = time.perf_counter(), iter(range(deliveries))

    def patiently(path: str, body: Any, **headers: str) -> Any:
        """Send until there is an answer, as a client has to whose connection breaks."""
        for _ in range(2000):
            try:
                status, answer = call(server.port, "POST", path, body, **headers)
                if status == 200:
                    return answer
                if status != 503:
                    raise RuntimeError(f"{status}: {answer}")
            except (OSError, HTTPException):
                pass
            with lock:
                found.retries += 1
            time.sleep(0.05)
        raise RuntimeError("the server did not come back")

    def client() -> None:
        try:
            while True:
                with lock:
                    k = next(left, None)
                if k is None:
                    return
                asked = patiently("/api/campaigns/storm/ask", {}, **{"Idempotency-Key": uuid.uuid4().hex})
                request = asked["requests"][0]["request"]
                rows = {"X": [[k, 0.0], [k, 1.0]], "y": [0, 1], "ids": [f"{k}-0", f"{k}-1"]}
                patiently(f"/api/campaigns/storm/requests/{request}/tell", rows)
                with lock:
                    found.acknowledged += rows["ids"]
                    found.requests.append(request)
        except Exception as error:
            with lock:
                found.wrong.append(repr(error))

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for k in range(1, kills + 1):
        while len(found.requests) < k * deliveries // (kills + 1) and not found.wrong:
            time.sleep(0.005)
        server.kill()
        found.kills += 1
        server.start()
    for thread in threads:
        thread.join()
    found.seconds = time.perf_counter() - begun
    server.stop()
    return found


def check(database: str, found: Storm) -> dict[str, Any]:
    """Compare what clients were told with what the ledger has; empty lists are good."""
    with eh.Campaign.open(database, "storm", read_only=True) as campaign:
        events = campaign.events()
        report = campaign.verify()
        used = campaign.labels_used
    stored = [name for event in events if event["kind"] == "told" for name in event["facts"]["ids"]]
    asked = [event["request"] for event in events if event["kind"] == "asked"]
    return {
        "lost": sorted(set(found.acknowledged) - set(stored)),
        "doubled": sorted(name for name in set(stored) if stored.count(name) > 1)
        if len(stored) != len(set(stored))
        else [],
        "not acknowledged": sorted(set(stored) - set(found.acknowledged)),
        "requests asked twice": len(asked) - len(found.requests),
        "labels": used,
        "verified": report.ok,
        "wrong": found.wrong,
    }


class Pump:
    """Clients that deliver ready-made bodies as fast as they are taken."""

    def __init__(self, port: int, bodies: list[tuple[str, bytes]], clients: int, headers: dict[str, str]) -> None:
        self._port, self._headers = port, headers
        self._lock, self._left = threading.Lock(), iter(bodies)
        self.statuses: list[int] = []
        self._clients = clients

    def run(self) -> float:
        """Deliver all; gives the seconds."""
        threads = [threading.Thread(target=self._client) for _ in range(self._clients)]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - begun

    def _client(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=120)
        while True:
            with self._lock:
                found = next(self._left, None)
            if found is None:
                break
            status, _ = send(connection, "POST", found[0], found[1], self._headers)
            self.statuses.append(status)
        connection.close()


def rows_body(k: int, rows: int = 50, features: int = 5) -> bytes:
    """A delivery as JSON, every number its own."""
    X = [[(k * 7919 + i * 104729 + j * 1299709) % 10007 / 10007 for j in range(features)] for i in range(rows)]
    return orjson.dumps({"X": X, "y": [i % 2 for i in range(rows)], "ids": [f"{k}-{i}" for i in range(rows)]})
