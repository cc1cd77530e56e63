"""Where the time of a simulated round goes: A_opt in lockstep, its steps timed one by one.

Run: python -m benchmarks.rounds --json FILE

The steps of a block of trials are timed as the engine calls them, in processor seconds of one thread; each case is the
quickest of three runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

import evenhand as eh
from evenhand.engine.run import each_round
from evenhand.engine.trials import Settings, Trials
from evenhand.sources.base import Source

STEPS = {
    "refits": ("memory", "fit"),
    "scores": ("memory", "score"),
    "choosing": ("engine", "choose"),
    "drawing": ("stream", "draw"),
    "taking in rows": ("engine", "record"),
}
CASES: tuple[tuple[str, Callable[[], Source], int, int], ...] = (
    ("instance I", lambda: eh.SyntheticModel1.instance("I"), 100, 500),
    ("Adult", lambda: eh.datasets.load("adult"), 20, 5000),
    ("Adult", lambda: eh.datasets.load("adult"), 1, 2000),
)


def timed(work: Callable[..., Any], spent: dict[str, float], step: str) -> Callable[..., Any]:
    """The same work, whose time is added to what the step has spent."""

    @wraps(work)
    def inner(*given: Any, **settings: Any) -> Any:
        started = time.process_time()
        found = work(*given, **settings)
        spent[step] += time.process_time() - started
        return found

    return inner


def measure(source: Source, trials: int, rounds: int) -> dict[str, float]:
    """Seconds of a round of one trial, in all and by step."""
    settings = Settings(budget=2 * rounds, evaluate=1)
    block = Trials(source, eh.Optimistic(c0=0.1), eh.Logistic(), settings, range(trials))
    spent = dict.fromkeys(STEPS, 0.0)
    for step, (part, name) in STEPS.items():
        owner = getattr(block, part)
        setattr(owner, name, timed(getattr(owner, name), spent, step))
    started = time.process_time()
    for _ in each_round(block):
        pass
    spent = {"all": time.process_time() - started} | spent
    return {step: seconds / (trials * rounds) for step, seconds in spent.items()}


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    given = parser.parse_args()
    found = []
    with threadpool_limits(1):
        for name, load, trials, rounds in CASES:
            source = load()
            # once before the clock runs: compiled code is loaded, caches are filled
            measure(source, 2, 20)
            best = min((measure(source, trials, rounds) for _ in range(3)), key=lambda run: run["all"])
            found.append({"case": name, "trials": trials, "rounds": rounds, "seconds": best})
            print(json.dumps(found[-1]), flush=True)
    if given.json:
        given.json.write_text(json.dumps({"cases": found}))


if __name__ == "__main__":
    main()
