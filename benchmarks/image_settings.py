"""How a user would train on images, and how A_opt+ has to be set there: FashionMNIST, A_opt beside Uniform, short runs.

python benchmarks/image_settings.py updates --json docs/results/image-settings.json      ways to update the network, 5 trials
python benchmarks/image_settings.py trend --json docs/results/image-trend.json           c1 of A_opt+, 5 trials

Every run is kept as soon as it is finished, with its date and commit: the same command goes on where it was stopped. The file's
own date, commit and versions are those of its last run. With `--keep FILE` it is that file which grows, and the other is its copy
when all runs are there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand import datasets
from evenhand.engine.run import Settings, run_block
from evenhand.errors import InputError
from evenhand.learners.torch.transform import ImageTransform
from evenhand.simulation.metrics import worst
from evenhand.sources.images.images import Images
from evenhand.strategies import parse_strategy
from image_trials import numbers
from provenance import about, commit, stamp, write_json

AUGMENTED = ImageTransform(crop=28, padding=2, flip=0.5)
UPDATES: dict[str, dict[str, Any]] = {
    "one step, as the paper": {"update": "step"},
    "three steps": {"update": "step", "updates": 3},
    "one epoch": {"update": "epoch"},
    "one epoch, crops and flips": {"update": "epoch", "transform": AUGMENTED},
    "three epochs": {"update": "epoch", "updates": 3},
}
RULES = ("A_opt=optimistic:c0=0.1", "uniform")
TREND = (
    "A_opt=optimistic:c0=0.1",
    *(f"optimistic:c0=0.1,c1={c1},window=20" for c1 in ("0.003", "0.01", "0.03", "0.1")),
)


def one(source: Images, strategy: str, learner: dict[str, Any], settings: Settings, trial: int) -> dict[str, Any]:
    """One run: accuracies after the last round, the mixture, CPU seconds without the tests' part taken out."""
    label, rule = parse_strategy(strategy)
    code = commit()
    # the final updates on all labels are left out: they are the same work for all
    made = source.default_learner(**({"final_updates": 0, "threads": 1} | learner))
    spent = time.process_time()
    record = run_block(source, rule, made, settings, [trial])
    counts = record.counts[-1, 0]
    return {
        "rule": label,
        "trial": trial,
        "worst": round(float(worst(record.accuracy[-1])[0]), 6),
        "accuracy": dict(zip(source.groups, record.accuracy[-1, 0].round(6).tolist(), strict=True)),
        "mixture": dict(zip(source.groups, (counts / counts.sum()).round(4).tolist(), strict=True)),
        "cpu_seconds": round(time.process_time() - spent, 1),
        "finished": stamp(),
        "commit": code,
    }


def read(path: Path, command: str) -> list[dict[str, Any]]:
    """The runs of a file, or none; refused where another command made them."""
    if not path.exists():
        return []
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept["command"] != about(command)["command"]:
        raise InputError(f"{path} was made by {kept['command']}, these runs are of {command}: name another file")
    # runs of earlier files have no date of their own: the file's, before it becomes that of the next run
    return [run if "finished" in run else run | {"finished": kept["date"]} for run in kept["runs"]]


def run_all(
    source: Images,
    ways: Mapping[str, dict[str, Any]],
    rules: Iterable[str],
    trials: Iterable[int],
    settings: Settings,
    *,
    command: str,
    out: Path,
) -> None:
    """Every run that the file does not have yet, all ways and rules of a trial before the next one.

    Args:
        source: the images.
        ways: settings of the learner by name.
        rules: strategies as text.
        trials: their numbers.
        settings: of every run.
        command: the script with the options that decide the runs; the file must be of the same one.
        out: the file that grows by one run at a time.
    """
    kept = read(out, command)
    facts = {"data": source.name, "rounds": settings.rounds, "labels": settings.budget, "seed": settings.seed}
    done = {(run["way"], run["rule"], run["trial"]) for run in kept}
    cases = [(trial, way, strategy) for trial in trials for way in ways for strategy in rules]
    for trial, way, strategy in cases:
        if (way, parse_strategy(strategy)[0], trial) in done:
            continue
        kept.append({"way": way} | one(source, strategy, ways[way], settings, trial))
        print(kept[-1], flush=True)
        write_json(out, about(command, "torch", "numpy") | facts | {"runs": kept})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("updates", "trend"))
    parser.add_argument("--trials", type=numbers, default=numbers("0-4"))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--keep", type=Path, help="the file that grows, unless it is that of --json")
    given = parser.parse_args(arguments)
    updates = given.what == "updates"
    rounds = given.rounds or (30 if updates else 60)
    command = f"image_settings.py {given.what} --rounds {rounds} --seed {given.seed}"
    # before the data are loaded, or even downloaded
    growing = given.keep or given.json
    read(growing, command)
    source = datasets.load("fashion-mnist", data_dir=given.data_dir)
    # only the end is reported: tests would take more time than the training
    settings = Settings(100 * rounds, batch=50, warmup=10, seed=given.seed, evaluate=1)
    ways = UPDATES if updates else {"one step, as the paper": UPDATES["one step, as the paper"]}
    rules = RULES if updates else TREND
    run_all(source, ways, rules, given.trials, settings, command=command, out=growing)
    write_json(given.json, json.loads(growing.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
