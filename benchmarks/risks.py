"""What steering by misses buys, and what it costs: A_opt by the false negative rate beside A_opt by the error and Uniform.

Run: python benchmarks/risks.py --out docs/results          (`--only clinics` for the synthetic source alone)

Every run is tested by both risks, whatever steered it. The trials are paired: the k-th example of a group is the same.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import evenhand as eh
from evenhand.arrays import Floats
from evenhand.claims.paired import paired
from evenhand.engine.run import Settings, each_round
from evenhand.engine.trials import Trials
from evenhand.risks import ERROR, Risk, as_risk
from evenhand.simulation.metrics import share, spread
from provenance import about, write_json

CLINICS = eh.SyntheticModel1(
    {"u": {0: [0.5], 1: [2.5]}, "v": {0: [-0.5], 1: [1.5]}},
    name="two clinics",
)
"""One measurement, lower by 1 in v: with one threshold for both, u has the false alarms and v the misses."""


class Case(NamedTuple):
    """What is run: a source, its positive class, labels of a trial, trials, and how many of them run together."""

    source: Any
    positive: Any
    budget: int
    trials: int
    block: int


CASES = {
    "clinics": lambda: Case(CLINICS, 1, 400, 200, 100),
    "adult": lambda: Case(eh.datasets.load("adult"), ">50K", 1000, 32, 8),
}


class Ended(NamedTuple):
    """Where trials ended: shares of the groups, and test risks by name, (T, m) each, with the model on half the labels."""

    mixture: Floats
    risks: dict[str, Floats]


def ended(source: Any, strategy: Any, steer: Risk, tested: dict[str, Risk], settings: Any, trials: range) -> Ended:
    """Run these trials to the end, steered by one risk, and test the models by several."""
    block = Trials(source, strategy, eh.Logistic(), Settings(**settings, risk=steer), trials)
    for _ in each_round(block, test=False, test_risk=False):
        pass
    block.engine.refit()
    stream: Any = block.stream
    models = block.memory.models()
    risks = {
        name: stream.accuracies_and_risks(models, risk.for_classes(source.classes))[1] for name, risk in tested.items()
    }
    return Ended(share(block.engine.counts), risks)


def compare(case: Case, seed: int = 0) -> dict[str, Any]:
    """Worst-group risks at the end of A_opt by either risk, and of Uniform, with paired differences."""
    tested = {"error": ERROR, "fnr": as_risk("fnr", case.positive)}
    settings = {"budget": case.budget, "seed": seed, "evaluate": 1}
    steered = {
        "A_opt by fnr": (eh.Optimistic(c0=0.1), tested["fnr"]),
        "A_opt by error": (eh.Optimistic(c0=0.1), ERROR),
        "Uniform": (eh.Uniform(), ERROR),
    }
    starts = range(0, case.trials, case.block)
    blocks = [range(start, min(start + case.block, case.trials)) for start in starts]
    rules: dict[str, Any] = {}
    worst: dict[str, dict[str, Floats]] = {}
    for label, (strategy, steer) in steered.items():
        run = partial(ended, case.source, strategy, steer, tested, settings)
        parts = [run(block) for block in blocks]
        mixture = np.concatenate([part.mixture for part in parts])
        risks = {name: np.concatenate([part.risks[name] for part in parts]) for name in tested}
        worst[label] = {name: np.nanmax(found, axis=1) for name, found in risks.items()}
        rules[label] = {
            "mixture": dict(zip(case.source.groups, mixture.mean(axis=0).round(4).tolist(), strict=True)),
            "worst": {
                name: dict(zip(("mean", "sd"), map(float, spread(v)), strict=True)) for name, v in worst[label].items()
            },
            "risk": {
                name: dict(zip(case.source.groups, np.nanmean(found, axis=0).round(4).tolist(), strict=True))
                for name, found in risks.items()
            },
        }
    return {
        "source": case.source.name,
        "positive": case.positive,
        "budget": case.budget,
        "trials": case.trials,
        "groups": list(case.source.groups),
        "rules": rules,
        # above 0: steering by misses leaves the worst-off group with less of this risk
        "less": {
            other: {
                name: dict(
                    zip(("mean", "low", "high"), paired(worst[other][name], worst["A_opt by fnr"][name]), strict=True)
                )
                for name in tested
            }
            for other in ("A_opt by error", "Uniform")
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    given = parser.parse_args()
    file = given.out / "risks.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in given.only:
        started = time.perf_counter()
        found = compare(CASES[name]())
        run = about(f"risks.py --out docs/results --only {name}", "numpy", "scipy", seeds=[0])
        found["run"] = run | {"seconds": round(time.perf_counter() - started, 1)}
        kept[name] = found
        write_json(file, kept)
        print(json.dumps(found, indent=1, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
