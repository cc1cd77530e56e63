"""How fast Evenhand is on this machine, against named baselines, on one thread.

Run: python -m benchmarks.speed [--only NAME ...] [--full] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.cases import CASES
from benchmarks.speed.growth import curves
from benchmarks.speed.timing import Outcome, processor
from threadpoolctl import threadpool_limits


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for, and tell it line by line."""
    names = [*CASES, "growth"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="run these alone")
    parser.add_argument("--full", action="store_true", help="the published form, some minutes; by default a quick look")
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    given = parser.parse_args(arguments)
    found: dict[str, Any] = {"processor": processor(), "benchmarks": [], "growth": []}
    with threadpool_limits(1):
        for name in given.only:
            if name == "growth":
                found["growth"] = [line.as_dict() for line in curves(given.full)]
            else:
                outcome = CASES[name](given.full)
                found["benchmarks"].append(outcome.as_dict())
                show(outcome)
    for line in found["growth"]:
        pairs = ", ".join(f"{n:,}: {1e6 * s:,.0f}" for n, s in zip(line["sizes"], line["seconds"], strict=True))
        print(f"growth with {line['name']}: slope {line['slope']:.2f} (at most 1); µs a round at {pairs}")
    if given.json:
        given.json.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")


def show(outcome: Outcome) -> None:
    """One benchmark in three lines."""
    sign = "≤" if outcome.unit == "bytes" else "≥"
    reached = "reached" if outcome.reached else "not reached"
    print(f"{outcome.name}: {outcome.ratio:.3g}× (target {sign} {outcome.target:g}, {reached})")
    print(f"  {outcome.work}; baseline: {outcome.baseline}")
    ours, theirs = (amount(value, outcome.unit) for value in (outcome.ours, outcome.theirs))
    print(f"  ours {ours}, baseline {theirs}{'; ' + outcome.note if outcome.note else ''}")


def amount(value: float, unit: str) -> str:
    """Time of one unit, or megabytes."""
    return f"{value / 1e6:.2f} MB" if unit == "bytes" else f"{value * 1e6:,.1f} µs a {unit}"


if __name__ == "__main__":
    main()
