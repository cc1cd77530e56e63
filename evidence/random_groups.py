"""Do the report's intervals cover where groups are drawn by lot, so that the one picked as worst off is picked by chance?

All groups have the risk of the population under the model of the run, which 100,000 fresh rows tell. Counted is how often the
interval of the picked group holds that risk, and how often the interval of the worst-off does. The aim is 93 % of each.
"""

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

import evenhand as eh

AIM = 0.93
FRESH = 100_000


def random_groups(groups: int, seed: int) -> tuple[bool, bool, bool]:
    """Whether the picked group's interval and that of the worst-off cover; and whether an ordinary 95 % interval would."""

    def draw(n: int) -> pd.DataFrame:
        x = rng.normal(size=(n, 2))
        y = x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=n) > 0
        return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y.astype(int), "g": rng.integers(0, groups, n)})

    rng = np.random.default_rng(seed)
    curated = eh.curate(draw(150 * groups), label="y", groups="g", budget=4 * groups, compare=0, evaluate=1, seed=seed)
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


def measure(small: bool) -> dict[str, Any]:
    """How often each interval covers, by the number of groups."""
    rows, runs = [], 2 if small else 200
    for groups in (5,) if small else (5, 16, 40):
        covered = np.array([random_groups(groups, 1000 + run) for run in range(runs)]).sum(axis=0).tolist()
        rows.append(
            {"groups": groups, "runs": runs, **dict(zip(("picked", "worst_off", "ordinary"), covered, strict=True))}
        )
    return {"aim": AIM, "coverage": rows}
