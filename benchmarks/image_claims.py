"""The paper's image figures, its final table and their verdicts out of trials that `image_trials.py` has kept.

Run: python benchmarks/image_claims.py --out results docs/results/images-*-trials*.json

`--out` is the folder of `evenhand reproduce`: Adult's and German's trials are taken from there for the table. Of a data set
those trials count that A_opt, Greedy and Uniform all have.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from evenhand.arrays import Floats
from evenhand.engine.run import Record
from evenhand.experiments.base import Findings
from evenhand.experiments.catalogue import experiments
from evenhand.experiments.image_figures import ROUNDS
from evenhand.experiments.output import Output
from evenhand.experiments.run import Options, collect
from evenhand.notation import JsonObject
from evenhand.simulation.store import Store

NAMES = {"fashion-mnist": "FashionMNIST", "cifar10": "CIFAR-10", "utkface": "UTKFace"}
LABELS = {
    "A_opt": "A_opt",
    "greedy": "Greedy",
    "uniform": "Uniform",
    "uncurated": "Uncurated",
    "epsilon-greedy:epsilon=0.1": "ε-greedy",
}
NEEDED = ("A_opt", "Greedy", "Uniform")


def read_runs(files: Sequence[Path]) -> dict[str, dict[str, dict[int, JsonObject]]]:
    """The runs of these files by data set, rule and trial, each with the groups of its data set."""
    found: dict[str, dict[str, dict[int, JsonObject]]] = defaultdict(lambda: defaultdict(dict))
    for file in files:
        kept = json.loads(file.read_text(encoding="utf-8"))
        for run in kept["runs"]:
            if run["rule"] in LABELS:
                found[NAMES[kept["data"]]][LABELS[run["rule"]]][run["trial"]] = run | {"groups": kept["groups"]}
    return found


def record_of(runs: Mapping[int, JsonObject], trials: Sequence[int]) -> Record:
    """One rule's trials as the record that `simulate` would have made."""
    own = [runs[trial] for trial in trials]

    def over(name: str) -> Floats:
        return np.stack([np.array(run[name], dtype=float) for run in own], axis=1)

    numbers = {name: over(name).astype(np.int64) for name in ("labels", "chosen", "kind", "counts")}
    groups = tuple(own[0]["groups"])
    ends = np.array([[run["final"]["all"][group] for group in groups] for run in own], dtype=float)
    return Record(
        groups=groups,
        trials=np.array(trials),
        validation_loss=over("validation_loss"),
        accuracy=over("accuracy"),
        final_accuracy=ends,
        seconds=sum(run["cpu_seconds"] for run in own),
        **numbers,
    )


def records(files: Sequence[Path]) -> dict[str, dict[str, Record]]:
    """Every data set's records, of the trials that all needed rules have."""
    found = {}
    for name, rules in read_runs(files).items():
        if not all(rule in rules for rule in NEEDED):
            continue
        trials = sorted(set.intersection(*(set(rules[rule]) for rule in NEEDED)))
        whole = [label for label in LABELS.values() if label in rules and set(trials) <= set(rules[label])]
        found[name] = {label: record_of(rules[label], trials) for label in whole}
    return found


def main(arguments: list[str] | None = None) -> None:
    """Enter every figure whose data set is there, then the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    there, output, known = records(given.files), Output(given.out), experiments()
    command = f"python benchmarks/image_claims.py --out FOLDER {' '.join(sorted(str(file) for file in given.files))}"
    # shorter runs carry a watermark
    rounds = min(len(record.labels) for found in there.values() for record in found.values())
    options = Options(scale="paper", image_rounds=rounds if rounds < ROUNDS else None)
    for experiment in known.values():
        names = list(experiment.studies)
        if len(names) == 1 and names[0] in there:
            enter(output, experiment.id, experiment.find(there, "paper"), there[names[0]], options, command)
    table = known["table-final"]
    tables = {name: study for name, study in table.at("paper", None, None).items() if not study.of_images}
    kept = {name: found for name, found in collect(tables, Store(given.out / "trials")).items() if found}
    both = {name: (there | kept)[name] for name in table.studies if name in there or name in kept}
    everything = {f"{name}/{label}": record for name, found in both.items() for label, record in found.items()}
    enter(output, table.id, table.find(both, "paper"), everything, options, command)
    output.write()


def enter(
    output: Output, id: str, findings: Findings, used: Mapping[str, Record], options: Options, command: str
) -> None:
    """One experiment's findings with where they come from."""
    experiment = experiments()[id]
    work = round(sum(record.seconds for record in used.values()), 1)
    details = {"failures": [], "absent": {}, "seconds": 0.0, "worker_seconds": work, "studies": {}}
    output.enter(experiment, options, findings, status="done", key=f"image trials: {id}", **details)
    output.entries[id]["command"] = command
    for claim in output.entries[id]["claims"]:
        print(f"{id}: {claim['verdict']}: {claim['text']}\n    {claim['evidence']}", flush=True)


if __name__ == "__main__":
    main()
