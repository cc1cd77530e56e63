"""Measures pools: registering a large one, asking from it, and opening a campaign that has it.

    python -m benchmarks.pools [--rows 1000000] [--parquet-rows 10000000] [--asks 50] [--quick] [--json FILE]

Every step runs in a process of its own, so that its peak memory is its own. `pool` and `ask` are those of the shell without the
start of Python. Opening and snapshots are compared with a campaign of the same requests and labels without a pool. `--quick`
leaves the Parquet file out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

GROUPS = [f"g{z}" for z in range(8)]
COLUMNS = 20
_CHUNK = 250_000


def table(first: int, rows: int) -> Any:
    """Rows of 20 columns, half numbers and half text, beside id and group."""
    import pyarrow as pa

    rng = np.random.default_rng(first)
    found: dict[str, Any] = {
        "id": [f"person-{k:08d}" for k in range(first, first + rows)],
        "group": np.array(GROUPS)[rng.integers(0, len(GROUPS), rows)],
    }
    for c in range(COLUMNS // 2):
        found[f"n{c}"] = rng.normal(size=rows).round(4)
        found[f"t{c}"] = np.array([f"value {v}" for v in range(10)])[rng.integers(0, 10, rows)]
    return pa.table(found)


def write_csv(path: Path, rows: int) -> dict[str, Any]:
    import pyarrow.csv as pacsv

    with pacsv.CSVWriter(path, table(0, 1).schema) as writer:
        for first in range(0, rows, _CHUNK):
            writer.write_table(table(first, min(_CHUNK, rows - first)))
    return {}


def write_parquet(path: Path, rows: int) -> dict[str, Any]:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, table(0, 1).schema) as writer:
        for first in range(0, rows, _CHUNK):
            writer.write_table(table(first, min(_CHUNK, rows - first)), row_group_size=50_000)
    return {}


def apart(work: Callable[..., dict[str, Any]], *given: Any) -> dict[str, Any]:
    """What a step found in a process of its own, and its peak memory.

    A process starts with the peak of the one that started it, so this one does nothing large by itself.
    """
    link = mp.get_context("spawn").SimpleQueue()
    child = mp.get_context("spawn").Process(target=_child, args=(link, work, given))
    child.start()
    child.join()
    if child.exitcode:
        raise SystemExit(f"{work.__name__} failed, see above: there is nothing to measure")
    found: dict[str, Any] = link.get()
    return found


def _child(link: Any, work: Callable[..., dict[str, Any]], given: tuple[Any, ...]) -> None:
    import pandas as pd  # noqa: F401  what every campaign with a pool imports

    import evenhand as eh  # noqa: F401

    before = _peak()
    found = work(*given)
    link.put({**found, "peak_mib": _peak(), "imports_mib": before})


def _peak() -> float:
    """The most memory this process ever had, in MiB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def create(url: str, pool: bool, asks: int) -> dict[str, Any]:
    import evenhand as eh

    groups = None if pool else GROUPS
    eh.Campaign.create(url, "bench", groups, "uniform", None, budget=100 * asks + 100, batch=5, lease="1d").release()
    return {}


def register(url: str, path: str) -> dict[str, Any]:
    import evenhand as eh

    with eh.Campaign.open(url, "bench") as c:
        start = time.perf_counter()
        found = c.pool(path)
        return {"seconds": time.perf_counter() - start, "examples": sum(found.groups.values())}


def ask(url: str, asks: int, out: str) -> dict[str, Any]:
    """Ask and tell; every request's rows are written as a file, as `ask --out` does."""
    import evenhand as eh
    from evenhand.cli.campaign_pool import write_todo

    asking, writing, telling = list[float](), list[float](), list[float]()
    with eh.Campaign.open(url, "bench") as c:
        for k in range(asks):
            start = time.perf_counter()
            request = c.ask()
            asked = time.perf_counter()
            if request.examples:
                write_todo(c, [request], Path(out) / f"{k}.csv")
            written = time.perf_counter()
            if request.examples:
                c.tell_labels({name: str(j % 2) for j, name in enumerate(request.examples)})
            else:
                c.tell(request, n=request.size)
            asking.append(asked - start)
            writing.append(written - asked)
            telling.append(time.perf_counter() - written)
        for j in range(110):  # so that there is a snapshot, and events after it
            c.retire(GROUPS[0], back=bool(j % 2))
    measured = (("ask", asking), ("todo", writing), ("tell", telling))
    return {f"{name}_{key}": value for name, times in measured for key, value in _times(times).items()}


def _times(seconds: list[float]) -> dict[str, float]:
    ms = sorted(1000 * s for s in seconds)
    return {"first_ms": 1000 * seconds[0], "median_ms": statistics.median(ms), "p99_ms": float(np.quantile(ms, 0.99))}


def opening(url: str) -> dict[str, Any]:
    import evenhand as eh

    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        with eh.Campaign.open(url, "bench") as c:
            c.overview()
        seconds.append(time.perf_counter() - start)
    with eh.Campaign.open(url, "bench") as c:
        start = time.perf_counter()
        c.status()
        status = time.perf_counter() - start
    file = url.removeprefix("sqlite:///")
    (size,) = (
        sqlite3.connect(f"file:{file}?mode=ro", uri=True).execute("SELECT length(state) FROM snapshots").fetchone()
    )
    return {
        "open_ms": 1000 * statistics.median(seconds),
        "status_ms": 1000 * status,
        "snapshot_bytes": size,
        "database_mib": round(os.path.getsize(file) / 2**20, 1),
    }


def measure(folder: Path, path: Path | None, asks: int) -> dict[str, Any]:
    """All of one campaign: with a pool of this file, or without a pool."""
    name = "none" if path is None else path.suffix[1:]
    url, out = f"sqlite:///{folder / f'{name}.db'}", folder / f"todo-{name}"
    out.mkdir()
    apart(create, url, path is not None, asks)
    found: dict[str, Any] = {}
    if path is not None:
        found["file_mib"] = round(path.stat().st_size / 2**20, 1)
        found["pool"] = apart(register, url, str(path))
    found["ask"] = apart(ask, url, asks, str(out))
    found["open"] = apart(opening, url)
    return found


def report(rows: int, parquet_rows: int, asks: int) -> dict[str, Any]:
    found: dict[str, Any] = {"rows": rows, "columns": COLUMNS}
    with tempfile.TemporaryDirectory(prefix="evenhand-pools-") as place:
        folder = Path(place)
        found["without"] = measure(folder, None, asks)
        apart(write_csv, folder / "pool.csv", rows)
        found["csv"] = measure(folder, folder / "pool.csv", asks)
        (folder / "pool.csv").unlink()
        if parquet_rows:
            apart(write_parquet, folder / "pool.parquet", parquet_rows)
            found["parquet"] = {"rows": parquet_rows, **measure(folder, folder / "pool.parquet", asks)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parquet-rows", type=int, default=10_000_000)
    parser.add_argument("--asks", type=int, default=50)
    parser.add_argument("--quick", action="store_true", help="without the Parquet file")
    parser.add_argument("--json", type=Path, help="also write the report here")
    given = parser.parse_args()
    found = report(given.rows, 0 if given.quick else given.parquet_rows, given.asks)
    text = json.dumps(found, indent=1, default=lambda value: float(value))
    print(text)
    if given.json is not None:
        given.json.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
