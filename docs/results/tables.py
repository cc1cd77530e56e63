"""Makes `tables.json`, the runs behind docs/results.md, by simulation; `render.py` writes its numbers into the page.

Run: python docs/results/tables.py --jobs 2          (`--only ceilings`: what no rule beats by much, without the runs)
"""

import argparse
import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from blocks.tables import METRICS, RULES

HERE = Path(__file__).parent
RUNS = {"adult": {500: 50, 1000: 50, 2000: 50, 10_000: 10}, "german": {100: 500, 200: 500, 300: 500, 400: 500}}


SEED = 0


def run(jobs: int) -> dict[str, Any]:
    """Simulate every data set at every budget."""
    import evenhand as eh

    found: dict[str, Any] = {"date": today(), "runs": {}, "seeds": [SEED]}
    found["command"] = f"python docs/results/tables.py --jobs {jobs}"
    for name, budgets in RUNS.items():
        source = eh.datasets.load(name)
        for budget, trials in budgets.items():
            settings = {"budget": budget, "trials": trials, "seed": SEED, "jobs": jobs, "evaluate": 1, "trace": "none"}
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


def ceilings() -> dict[str, Any]:
    """Accuracy of models of all rows, and of every group's rows alone, with the rows of every group's pool."""
    import evenhand as eh
    from evenhand.experiments.measures import ceilings as accuracies

    found: dict[str, Any] = {
        "command": "python docs/results/tables.py --only ceilings",
        "date": today(),
        "seeds": [SEED],
    }
    found["versions"] = {package: version(package) for package in ("evenhand", "numpy", "scipy", "scikit-learn")}
    for name, trials in {"adult": 1, "german": 500}.items():
        source = eh.datasets.load(name)
        rows = source.open(SEED, [0]).left()[0].tolist()
        groups = zip(accuracies(source, trials).items(), rows, strict=True)
        found[name] = {
            "trials": trials,
            "groups": {group: {"rows": n, "alone": alone, "together": both} for (group, (alone, both)), n in groups},
        }
    return found


def today() -> str:
    """The day, as it stands beside figures."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def main() -> None:
    """Run and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=["ceilings"])
    given, path = parser.parse_args(), HERE / "tables.json"
    found = json.loads(path.read_text(encoding="utf-8")) if given.only else run(given.jobs)
    path.write_text(json.dumps(found | {"ceilings": ceilings()}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
