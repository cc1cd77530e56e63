"""Makes `tables.json`, the runs behind docs/results.md, by simulation; `render.py` writes its numbers into the page.

Run: python docs/results/tables.py --jobs 2
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from blocks.tables import METRICS, RULES

HERE = Path(__file__).parent
RUNS = {"adult": {500: 50, 1000: 50, 2000: 50, 10_000: 10}, "german": {100: 500, 200: 500, 300: 500, 400: 500}}


def run(jobs: int) -> dict[str, Any]:
    """Simulate every data set at every budget."""
    import evenhand as eh

    found: dict[str, Any] = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "runs": {}}
    found["command"] = f"python docs/results/tables.py --jobs {jobs}"
    for name, budgets in RUNS.items():
        source = eh.datasets.load(name)
        for budget, trials in budgets.items():
            settings = {"budget": budget, "trials": trials, "seed": 0, "jobs": jobs, "evaluate": 1, "trace": "none"}
            summary = eh.simulate(source, list(RULES), **settings).summary()
            found["versions"] = summary["versions"]
            kept = {
                "trials": trials,
                "strategies": {r: {m: s[m] for m in METRICS.values()} for r, s in summary["strategies"].items()},
                "differences": [d for d in summary["differences"] if d["a"] == next(iter(RULES))],
                "seconds": sum(s["seconds"] for s in summary["strategies"].values()),
            }
            found["runs"].setdefault(name, {})[str(budget)] = kept
            print(name, budget, f"{kept['seconds']:.0f} s", flush=True)
    return found


def main() -> None:
    """Run and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    made = json.dumps(run(parser.parse_args().jobs), indent=1)
    (HERE / "tables.json").write_text(made + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
