"""A CSV pool of a million rows without labels, labelled in five rounds of 100 through CSV files with `evenhand curate`.

    python -m benchmarks.unlabelled [--rows 1000000] [--rounds 5] [--json FILE]

Every command is a process of its own, as in a shell: its seconds hold the start of Python, its peak is its own. The first one
registers the pool; the aims, 10 seconds and 1 GiB, are for each of those after it, and the peak for all.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.pools import COLUMNS, apart, write_csv

SECONDS, MIB = 10.0, 1024.0
LABELS, TEST = 100, 100


def command(arguments: list[str]) -> dict[str, float]:
    """Seconds and peak memory of one `evenhand` command."""
    start = time.perf_counter()
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "evenhand", *arguments],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"evenhand {' '.join(arguments)} failed: there is nothing to measure")
    return {"seconds": round(time.perf_counter() - start, 2), "peak_mib": round(used.ru_maxrss / 1024, 1)}


def fill(todo: Path, done: Path) -> int:
    """Label the rows to label, as somebody would who looks at two of their columns; gives their number."""
    with todo.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["y"] = "yes" if float(row["n0"]) + float(row["n1"]) > 0 else "no"
    with done.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def measure(folder: Path, rows: int, rounds: int) -> dict[str, Any]:
    apart(write_csv, folder / "pool.csv", rows)
    budget = rounds * LABELS
    asked = ["curate", str(folder / "pool.csv"), "--label", "y", "--group", "group", "--id", "id"]
    asked += ["--budget", str(budget), "--test-labels", str(TEST), "--per-round", str(LABELS)]
    asked += ["--out", str(folder / "train.parquet")]
    found: dict[str, Any] = {"file_mib": round((folder / "pool.csv").stat().st_size / 2**20, 1)}
    found["register"], found["rounds"] = command(asked), []
    for k in range(rounds):
        labelled = fill(folder / "train.todo.csv", folder / f"done-{k}.csv")
        (folder / "train.todo.csv").unlink()
        done = command([*asked, "--labels", str(folder / f"done-{k}.csv")])
        found["rounds"].append({"labels": labelled, **done})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    given = parser.parse_args()
    found: dict[str, Any] = {"rows": given.rows, "columns": COLUMNS, "test_labels": TEST}
    with tempfile.TemporaryDirectory(prefix="evenhand-unlabelled-") as place:
        found |= measure(Path(place), given.rows, given.rounds)
    after = found["rounds"]
    found["aims"] = {
        "seconds": {"aim": SECONDS, "found": max(step["seconds"] for step in after)},
        "peak_mib": {"aim": MIB, "found": max(step["peak_mib"] for step in (found["register"], *after))},
    }
    print(json.dumps(found, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(found))
    # a finding, told on the page: not a failure of the measuring
    print("\n".join(f"missed: {name} {aim}" for name, aim in found["aims"].items() if aim["found"] > aim["aim"]))


if __name__ == "__main__":
    main()
