"""How fast Evenhand is on this machine, against named baselines, on one thread.

Run: PYTHONPATH=benchmarks python -m speed [--only NAME ...] [--full] [--json] [--plot FILE]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from speed.cases import CASES
from speed.growth import curves, draw_curves
from speed.timing import Outcome, machine


def main(arguments: list[str] | None = None) -> None:
    names = (*CASES, "growth")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="run these alone")
    parser.add_argument("--full", action="store_true", help="the published form, some minutes; by default a quick look")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--plot", type=Path, help="picture of the growth curves")
    asked = parser.parse_args(arguments)
    parts = ["python -m speed", *(["--only", *asked.only] if asked.only is not names else []), *["--full"] * asked.full]
    found: dict[str, Any] = {"machine": machine(), "command": " ".join(parts), "full": asked.full}
    found |= {"benchmarks": [], "growth": []}
    with threadpool_limits(1):
        for name in asked.only:
            if name == "growth":
                lines = curves(asked.full)
                found["growth"] = [line.as_dict() for line in lines]
                if asked.plot:
                    draw_curves(lines, asked.plot)
            else:
                outcome = CASES[name](asked.full)
                found["benchmarks"].append(outcome.as_dict())
                if not asked.json:
                    show(outcome)
    if asked.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for line in found["growth"]:
        pairs = ", ".join(f"{n:,}: {1e6 * s:,.0f}" for n, s in zip(line["sizes"], line["seconds"], strict=True))
        print(f"growth with {line['name']}: slope {line['slope']:.2f} (at most 1); µs a round at {pairs}")
    print(", ".join(f"{key} {value}" for key, value in found["machine"].items()))


def show(outcome: Outcome) -> None:
    sign = "≤" if outcome.unit == "bytes" else "≥"
    reached = "reached" if outcome.reached else "not reached"
    print(f"{outcome.name}: {outcome.ratio:.3g}× (target {sign} {outcome.target:g}, {reached})")
    print(f"  {outcome.work}; baseline: {outcome.baseline}")
    ours, theirs = (amount(value, outcome.unit) for value in (outcome.ours, outcome.theirs))
    print(f"  ours {ours}, baseline {theirs}{'; ' + outcome.note if outcome.note else ''}")


def amount(value: float, unit: str) -> str:
    return f"{value / 1e6:.2f} MB" if unit == "bytes" else f"{value * 1e6:,.1f} µs a {unit}"


if __name__ == "__main__":
    main()
