"""Image experiments: long runs with checkpoints, ceilings, and what each device of the torch memory gains.

python benchmarks/images.py run fashion-mnist --strategy uniform --rounds 500 --out DIR --checkpoint DIR
python benchmarks/images.py ceiling fashion-mnist --epochs 12
python benchmarks/images.py overhead
python benchmarks/images.py gains
python benchmarks/images.py figures DIR... --out docs/assets
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import evenhand as eh
from evenhand import datasets


def run(given: argparse.Namespace) -> None:
    """One or more rules at b0 = 50, one trial each, checkpointed."""
    source = datasets.load(given.data, data_dir=given.data_dir)
    settings = {"update": given.update, "checkpoint": given.checkpoint, "checkpoint_every": given.every}
    result = eh.simulate(
        source,
        given.strategy,
        source.default_learner(**settings),
        budget=100 * given.rounds,
        batch=50,
        n0=given.n0,
        trials=given.trials,
        seed=given.seed,
        evaluate=given.evaluate,
    )
    result.save(given.out)
    print(json.dumps(result.summary()["strategies"], indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.set_defaults(do=run)
    runs.add_argument("data")
    runs.add_argument("--strategy", action="append", required=True)
    runs.add_argument("--rounds", type=int, default=100)
    runs.add_argument("--update", default="step")
    runs.add_argument("--n0", type=int, default=10)
    runs.add_argument("--trials", type=int, default=1)
    runs.add_argument("--seed", type=int, default=0)
    runs.add_argument("--evaluate", type=int, default=100)
    runs.add_argument("--checkpoint", type=Path)
    runs.add_argument("--every", type=int, default=25)
    runs.add_argument("--out", type=Path, required=True)
    for command in (runs,):
        command.add_argument("--data-dir", type=Path)
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
