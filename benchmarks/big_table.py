"""A Parquet pool of 10 million rows and 20 columns: memory, and time to the first request.

    python -m benchmarks.big_table --rows 10000000

Prints the time to the first request as a ratio to what pyarrow needs to read the group and label columns (best of
several, each in a process of its own), the time until the first rows are read, and the peak memory of each.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP = 1_000_000


def generate(path: Path, rows: int) -> None:
    generator = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, ROW_GROUP):
        n = min(ROW_GROUP, rows - start)
        columns = {f"x{j}": generator.normal(size=n) for j in range(12)}
        columns |= {f"k{j}": np.array([f"v{i}" for i in range(20)])[generator.integers(0, 20, n)] for j in range(5)}
        columns["sex"] = np.array(["Female", "Male"])[generator.integers(0, 2, n)]
        columns["race"] = np.array(["A", "B", "C", "D"])[generator.choice(4, n, p=[0.7, 0.2, 0.07, 0.03])]
        columns["y"] = (columns["x0"] + generator.normal(size=n) > 0).astype(np.int64)
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=ROW_GROUP)
    assert writer is not None
    writer.close()


def baseline(path: str) -> dict[str, float]:
    start = time.perf_counter()
    pq.read_table(path, columns=["sex", "race", "y"])
    return {"read": time.perf_counter() - start}


def first_request(path: str) -> dict[str, float]:
    import evenhand as eh
    from evenhand.engine.engine import Engine
    from evenhand.engine.labels import Labels
    from evenhand.engine.memories.build import make_memory
    from evenhand.sources.table.table import Table

    start = time.perf_counter()
    table = Table(path, label="y", groups=["sex", "race"])
    stream = table.open(0, [0])
    memory = make_memory(eh.Logistic(), Labels(table.classes.tolist()), len(table.groups))
    engine = Engine(table.groups, eh.Optimistic(c0=0.1), memory, population=table.population)
    chosen = engine.choose().index
    request = time.perf_counter() - start
    stream.draw(chosen, np.array([2]))
    return {"first_request": request, "first_rows": time.perf_counter() - start}


def measure(what: str, path: str) -> dict[str, float]:
    found = {"baseline": baseline, "first_request": first_request}[what](path)
    return found | {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def best(what: str, path: Path, repeats: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", what, str(path)]
    runs = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(repeats)
    ]
    return {
        key: min(run[key] for run in runs) if key != "peak_mib" else max(run[key] for run in runs) for key in runs[0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--file", type=Path, help="keep and reuse the generated file")
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(*args.measure)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = args.file or Path(folder) / "pool.parquet"
        if not path.exists():
            generate(path, args.rows)
        read, ours = best("baseline", path, args.repeats), best("first_request", path, args.repeats)
    print(f"pyarrow reads group and label columns: {read['read']:.2f} s, peak {read['peak_mib']:.0f} MiB")
    print(f"first request: {ours['first_request']:.2f} s, {ours['first_request'] / read['read']:.2f} times that")
    print(f"first rows read: {ours['first_rows']:.2f} s; peak {ours['peak_mib']:.0f} MiB")
    if args.json:
        args.json.write_text(json.dumps({"rows": args.rows, "pyarrow": read, "evenhand": ours}))


if __name__ == "__main__":
    main()
