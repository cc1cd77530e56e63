"""The tables of docs/results.md: `--run` makes `tables.json` by simulation, plain writes its numbers into the page.

Run: python docs/results/tables.py --run --jobs 2
"""

import argparse
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "results.md"
RULES = {"optimistic:c0=0.1": "A_opt", "greedy": "Greedy", "uniform": "Uniform", "uncurated": "Uncurated"}
RUNS = {"adult": {500: 50, 1000: 50, 2000: 50, 10_000: 10}, "german": {100: 500, 200: 500, 300: 500, 400: 500}}
PAPER = {
    "adult": [(0.801, 0.001), (0.800, 0.002), (0.798, 0.002), (0.797, 0.003)],
    "german": [(0.721, 0.035), (0.713, 0.036), (0.716, 0.032), (0.715, 0.038)],
}
METRICS = {"half": "worst_group_accuracy", "all": "final_worst_group_accuracy"}


def run(jobs: int) -> dict[str, Any]:
    """Simulate every data set at every budget."""
    import evenhand as eh

    found: dict[str, Any] = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "runs": {}}
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


def short(value: float, digits: int, sign: bool = False) -> str:
    """A share without its leading zero, with a true minus."""
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    return text.replace("0.", ".", 1).replace("-", "−")


def means(runs: dict[str, Any], metric: str, paper: list[tuple[float, float]] | None) -> str:
    """Mean ± sd of every rule, a row for each budget."""
    lines = ["| labels | " + " | ".join(RULES.values()) + " |", "|---" * (1 + len(RULES)) + "|"]
    for budget, kept in runs.items():
        cells = [kept["strategies"][rule][metric] for rule in RULES]
        shown = [f"{short(c['mean'], 3)} ± {short(c['sd'], 3)}" for c in cells]
        lines.append(f"| {int(budget):,} | " + " | ".join(shown) + " |")
    if paper:
        lines.append("| *paper* | " + " | ".join(f"*{short(m, 3)} ± {short(s, 3)}*" for m, s in paper) + " |")
    return "\n".join(lines)


def gaps(runs: dict[str, Any], metric: str) -> str:
    """A_opt minus each other rule, paired, with 95 % intervals."""
    others = list(RULES)[1:]
    lines = ["| labels | " + " | ".join(f"− {RULES[rule]}" for rule in others) + " |", "|---" * (1 + len(others)) + "|"]
    for budget, kept in runs.items():
        by_rule = {d["b"]: d for d in kept["differences"] if d["metric"] == metric}
        cells = [[short(by_rule[rule][key], 4, sign=True) for key in ("mean", "low", "high")] for rule in others]
        lines.append(f"| {int(budget):,} | " + " | ".join(f"{m} [{lo}, {hi}]" for m, lo, hi in cells) + " |")
    return "\n".join(lines)


def render(text: str) -> str:
    """The page with every block between its marks written anew."""
    found = json.loads((HERE / "tables.json").read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    blocks = {"made": f"Measured on {found['date']} with {versions}: `python docs/results/tables.py --run`."}
    for name, runs in found["runs"].items():
        for part, metric in METRICS.items():
            blocks[f"{name}-{part}"] = means(runs, metric, PAPER[name] if part == "half" else None)
            blocks[f"{name}-{part}-gaps"] = gaps(runs, metric)

    def fill(match: re.Match[str]) -> str:
        return f"<!-- begin {match[1]} -->\n{blocks[match[1]]}\n<!-- end -->"

    return re.sub(r"<!-- begin ([\w-]+) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def main() -> None:
    """Run if asked to, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.run:
        made = json.dumps(run(arguments.jobs), indent=1)
        (HERE / "tables.json").write_text(made + "\n", encoding="utf-8")
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
