"""Do the report's intervals cover where groups are drawn by lot, so that the one picked as worst off is picked by chance?

    python benchmarks/random_groups.py [--runs 200] [--groups 5 16 40] [--json docs/results/random-groups.json]

All groups have the risk of the population under the model of the run, which 100,000 fresh rows tell. Counted is how often the
interval of the picked group holds that risk, and how often the interval of the worst-off does. The aim is 93 % of each.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from evenhand.curation.curate import curate
from provenance import about, write_json

AIM = 0.93
FRESH = 100_000


def random_groups(groups: int, seed: int) -> tuple[bool, bool, bool]:
    """Whether the picked group's interval and that of the worst-off cover; and whether an ordinary 95 % interval would."""

    def draw(n: int) -> pd.DataFrame:
        x = rng.normal(size=(n, 2))
        y = x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=n) > 0
        return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y.astype(int), "g": rng.integers(0, groups, n)})

    rng = np.random.default_rng(seed)
    curated = curate(draw(150 * groups), label="y", groups="g", budget=4 * groups, compare=0, evaluate=1, seed=seed)
    fresh = draw(FRESH)
    truth = float(np.mean(curated.model.predict(fresh) != fresh["y"]))
    worst, whole = curated.summary["worst"], curated.summary["worst_off"]
    wrong = round(worst["risk"] * worst["count"])
    ordinary = binomtest(wrong, worst["count"]).proportion_ci(0.95, "exact")
    return (
        worst["risk_low"] <= truth <= worst["risk_high"],
        whole["low"] <= truth <= whole["high"],
        ordinary.low <= truth <= ordinary.high,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--groups", type=int, nargs="+", default=[5, 16, 40])
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    given = parser.parse_args()
    found = []
    for groups in given.groups:
        covered = np.array([random_groups(groups, 1000 + run) for run in range(given.runs)]).sum(axis=0)
        names = ("picked", "worst_off", "ordinary")
        found.append({"groups": groups, "runs": given.runs, **dict(zip(names, covered.tolist(), strict=True))})
        print(json.dumps(found[-1]), flush=True)
    kept = {
        **about(f"random_groups.py --runs {given.runs}", "numpy", "scipy", seeds=range(1000, 1000 + given.runs)),
        "aim": AIM,
        "coverage": found,
    }
    if given.json is not None:
        write_json(given.json, kept)
    if any(min(row["picked"], row["worst_off"]) < AIM * row["runs"] for row in found):
        raise SystemExit("an interval covers too rarely")


if __name__ == "__main__":
    main()
